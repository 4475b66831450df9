//===- BlockTablesErrorTest.cpp - Bad calls, and that nothing leaks -------===//

#include "PoolFixture.h"

using namespace tokentile;
using namespace tokentile::test;

namespace {

/// Checks that the only request left works on, and that nothing leaks.
void expectSound(PoolFixture &f, int32_t slot) {
  ASSERT_OK(f.tables->append(slot, 1));
  ASSERT_OK(f.tables->commit(slot, 1));
  ASSERT_OK(f.tables->release(slot));
  EXPECT_EQ(f.pool->freeChunkCount(), f.pool->chunkCount());
}

} // namespace

TEST(BlockTablesError, OutOfPages) {
  PoolFixture f(6, 2);
  ASSERT_OK(f.fill(0, 7, 8));
  ASSERT_OK(f.tables->admit(1, 8));
  std::vector<int64_t> pages;
  for (int32_t table = 0; table < 4; ++table)
    pages.push_back(f.pool->use(table).pages);
  expectError(f.tables->propose(1, maxWidth), StatusCode::ResourceExhausted,
              "request 8 (slot 1): out of pages: class 'state' uses all");
  EXPECT_EQ(f.tables->reserved(1), 0);
  for (int32_t table = 0; table < 4; ++table) {
    EXPECT_EQ(f.pool->use(table).pages, pages[table]);
    EXPECT_EQ(f.tables->held(table, 1), 0);
  }
  // Fewer rows need fewer snapshots.
  ASSERT_OK(f.tables->propose(1, 2));
  ASSERT_OK(f.tables->release(1));
  expectSound(f, 0);
}

TEST(BlockTablesError, LongerThanTheTable) {
  PoolFixture f(16, 2);
  ASSERT_OK(f.fill(0, 7, 1));
  ASSERT_OK(f.tables->admit(1, 8));
  expectError(f.tables->append(1, maxTokens + 1), StatusCode::OutOfRange,
              "request 8 (slot 1): 97 rows exceed its table of class "
              "'target', which holds 96; finish it or make the tables longer");
  ASSERT_OK(f.tables->append(1, maxTokens));
  ASSERT_OK(f.tables->commit(1, maxTokens));
  expectError(f.tables->propose(1, 1), StatusCode::OutOfRange,
              "request 8 (slot 1): 97 rows exceed");
  ASSERT_OK(f.tables->release(1));
  expectSound(f, 0);
}

TEST(BlockTablesError, WiderThanTheTables) {
  PoolFixture f(16, 1);
  ASSERT_OK(f.fill(0, 7, 1));
  expectError(f.tables->propose(0, maxWidth + 1), StatusCode::OutOfRange,
              "request 7 (slot 0): 6 proposed rows exceed its table of class "
              "'block', which takes 5 uncommitted ones");
  expectError(f.tables->propose(0, 0), StatusCode::InvalidArgument,
              "request 7 (slot 0): cannot reserve 0 rows");
  expectError(f.tables->append(0, 0x7fffffff), StatusCode::OutOfRange,
              "request 7 (slot 0): 2147483648 rows; lengths are 32-bit");
  expectSound(f, 0);
}

TEST(BlockTablesError, CallsOutOfOrder) {
  PoolFixture f(16, 3);
  expectError(f.tables->append(0, 1), StatusCode::FailedPrecondition,
              "slot 0 is empty; admit a request first");
  expectError(f.tables->admit(3, 1), StatusCode::InvalidArgument,
              "slot 3 does not exist; the tables have 0 .. 2");
  ASSERT_OK(f.fill(0, 7, 4));
  expectError(f.tables->admit(0, 8), StatusCode::FailedPrecondition,
              "request 7 (slot 0): occupies the slot; release or move it");
  expectError(f.tables->move(0, 0), StatusCode::FailedPrecondition,
              "request 7 (slot 0): occupies the slot");
  expectError(f.tables->commit(0, 1), StatusCode::FailedPrecondition,
              "request 7 (slot 0): nothing to commit");
  ASSERT_OK(f.tables->append(0, 3));
  expectError(f.tables->commit(0, 4), StatusCode::OutOfRange,
              "request 7 (slot 0): cannot commit 4 rows; 3 are reserved");
  expectError(f.tables->commit(0, 2), StatusCode::InvalidArgument,
              "request 7 (slot 0): cannot commit 2 of 3 appended rows; propose "
              "rows that may be rejected");
  const char *reserved = "request 7 (slot 0): 3 rows are reserved; commit "
                         "them first, or 0 of them";
  expectError(f.tables->propose(0, 1), StatusCode::FailedPrecondition,
              reserved);
  expectError(f.tables->truncate(0, 1), StatusCode::FailedPrecondition,
              reserved);
  expectError(f.tables->share(0, 1, 8, 1), StatusCode::FailedPrecondition,
              reserved);
  ASSERT_OK(f.tables->commit(0, 3));
  expectSound(f, 0);
  expectError(f.tables->release(0), StatusCode::FailedPrecondition,
              "slot 0 is empty");
}

TEST(BlockTablesError, PrefixesThatAreGone) {
  PoolFixture f(16, 2);
  ASSERT_OK(f.fill(0, 7, 6));
  expectError(f.tables->share(0, 1, 8, 7), StatusCode::OutOfRange,
              "request 7 (slot 0): no prefix of 7 rows; it has 6");
  expectError(f.tables->share(0, 1, 8, 5), StatusCode::FailedPrecondition,
              "request 7 (slot 0): class 'state' has the state after 6 rows, "
              "not after 5; recompute it");
  EXPECT_FALSE(f.tables->live(1));
  ASSERT_OK(f.tables->share(0, 1, 8, 6));
  ASSERT_OK(f.tables->release(1));
  expectSound(f, 0);
}

TEST(BlockTablesError, APageReleasedByOthersIsReported) {
  PoolFixture f(16, 1);
  ASSERT_OK(f.fill(0, 7, 5));
  ASSERT_OK(f.pool->release(targetTable, f.tables->entry(targetTable, 0, 0)));
  expectError(f.tables->release(0), StatusCode::FailedPrecondition,
              "request 7 (slot 0): page 0 of class 'target' is free already");
  EXPECT_EQ(f.pool->freeChunkCount(), f.pool->chunkCount());
}

TEST(BlockTablesError, SpecsThatCannotWork) {
  std::unique_ptr<Device> device = *openDevice("host");
  PagePool pool = *PagePool::create(4096, 1024, {{"kv", 256}});
  auto fail = [&](TableSpec spec, const std::string &text) {
    expectError(BlockTables::create(*device, pool, nullptr, 1, {spec}).status(),
                StatusCode::InvalidArgument, text);
  };
  fail({TableKind::Linear, 16, 0, 0, 0},
       "table of class 'kv' has entries 0; it must be positive");
  fail({TableKind::Linear, 0, 4, 0, 0},
       "table of class 'kv' has pageTokens 0; it must be positive");
  fail({TableKind::Linear, 1 << 16, 1 << 16, 0, 0},
       "table of class 'kv' has room for 4294967296 rows");
  fail({TableKind::Ring, 16, 4, 0, 0},
       "table of class 'kv' has window 0 and uncommittedRows 0");
  fail({TableKind::Ring, 16, 4, 61, 5},
       "table of class 'kv' has a ring of 64 rows; window and uncommittedRows "
       "need 65");
  expectError(BlockTables::create(*device, pool, nullptr, 1, {}).status(),
              StatusCode::InvalidArgument, "0 table specs for 1 page classes");
  expectError(BlockTables::create(*device, pool, nullptr, 0,
                                  {{TableKind::Linear, 16, 4, 0, 0}})
                  .status(),
              StatusCode::InvalidArgument, "slots 0; it must be positive");
}
