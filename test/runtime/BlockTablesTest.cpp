//===- BlockTablesTest.cpp - Steps, sharing and rings ---------------------===//

#include "PoolFixture.h"

#include <set>

using namespace tokentile;
using namespace tokentile::test;

TEST(BlockTables, EmptySlotsAreInert) {
  PoolFixture f(16, 4);
  ASSERT_OK(f.fill(2, 7, 10));
  ASSERT_OK(f.upload());
  ASSERT_OK(f.tables->release(2));
  ASSERT_OK(f.upload());
  for (int32_t slot = 0; slot < 4; ++slot) {
    EXPECT_FALSE(f.tables->live(slot));
    EXPECT_EQ(f.tables->deviceLengths()[slot], 0);
    for (int32_t table = 0; table < 4; ++table)
      for (int32_t i = 0; i < f.tables->stride(table); ++i)
        EXPECT_EQ(
            f.tables->deviceTable(table)[slot * f.tables->stride(table) + i],
            0);
  }
  EXPECT_EQ(f.pool->freeChunkCount(), f.pool->chunkCount());
}

TEST(BlockTables, ARequestHoldsWhatItsRowsNeed) {
  PoolFixture f(16, 2);
  ASSERT_OK(f.fill(0, 7, 9));
  const int32_t held[] = {3, 3, 5, 1};
  for (int32_t table = 0; table < 4; ++table)
    EXPECT_EQ(f.tables->held(table, 0), held[table]);
  ASSERT_OK(f.tables->propose(0, 4));
  const int32_t reserved[] = {4, 3, 6, 4};
  for (int32_t table = 0; table < 4; ++table)
    EXPECT_EQ(f.tables->held(table, 0), reserved[table]);
  EXPECT_EQ(f.tables->reserved(0), 4);
  EXPECT_EQ(f.tables->length(0), 9);
}

TEST(BlockTables, RollbackLeavesWhatPlainDecodeWould) {
  for (int32_t width = 1; width <= maxWidth; ++width)
    for (int32_t accepted = 1; accepted <= width; ++accepted) {
      PoolFixture speculative(32, 2), plain(32, 2);
      for (PoolFixture *f : {&speculative, &plain})
        for (int32_t slot = 0; slot < 2; ++slot)
          ASSERT_OK(f->fill(slot, slot, 5 + slot));
      for (int32_t step = 0; step < 12; ++step) {
        int32_t slot = step % 2;
        ASSERT_OK(speculative.tables->propose(slot, width));
        ASSERT_OK(speculative.tables->commit(slot, accepted));
        for (int32_t i = 0; i < accepted; ++i) {
          ASSERT_OK(plain.tables->append(slot, 1));
          ASSERT_OK(plain.tables->commit(slot, 1));
        }
      }
      for (int32_t table = 0; table < 4; ++table) {
        EXPECT_EQ(speculative.pool->use(table).pages,
                  plain.pool->use(table).pages);
        for (int32_t slot = 0; slot < 2; ++slot) {
          EXPECT_EQ(speculative.tables->held(table, slot),
                    plain.tables->held(table, slot));
          for (int32_t i = plain.tables->held(table, slot);
               i < plain.tables->stride(table); ++i)
            EXPECT_EQ(speculative.tables->entry(table, slot, i), 0);
        }
      }
      EXPECT_EQ(speculative.tables->length(0), plain.tables->length(0));
    }
}

TEST(BlockTables, CommitOfNoRowsUndoesTheReservation) {
  PoolFixture f(16, 1);
  ASSERT_OK(f.fill(0, 7, 8));
  int32_t first = f.tables->entry(stateTable, 0, 0);
  int64_t pages = f.pool->use(targetTable).pages;
  ASSERT_OK(f.tables->propose(0, 5));
  ASSERT_OK(f.tables->commit(0, 0));
  EXPECT_EQ(f.tables->length(0), 8);
  EXPECT_EQ(f.tables->entry(stateTable, 0, 0), first);
  EXPECT_EQ(f.pool->use(targetTable).pages, pages);
}

TEST(BlockTables, CommitMakesTheAcceptedStateTheFirst) {
  PoolFixture f(16, 1);
  ASSERT_OK(f.fill(0, 7, 8));
  ASSERT_OK(f.tables->propose(0, 4));
  std::set<int32_t> pages;
  for (int32_t i = 0; i < 4; ++i)
    pages.insert(f.tables->entry(stateTable, 0, i));
  EXPECT_EQ(pages.size(), 4u);
  int32_t accepted = f.tables->entry(stateTable, 0, 2);
  ASSERT_OK(f.tables->commit(0, 3));
  EXPECT_EQ(f.tables->entry(stateTable, 0, 0), accepted);
  EXPECT_EQ(f.pool->use(stateTable).pages, 1);
}

TEST(BlockTables, WithInputReplayTheStateStays) {
  std::unique_ptr<Device> device = *openDevice("host");
  PagePool pool = *PagePool::create(4096, 1024, {{"state", 256}});
  BlockTables tables = *BlockTables::create(*device, pool, nullptr, 1,
                                            {{TableKind::State, 0, 1, 0, 0}});
  ASSERT_OK(tables.admit(0, 7));
  ASSERT_OK(tables.propose(0, 9));
  int32_t page = tables.entry(0, 0, 0);
  ASSERT_OK(tables.commit(0, 5));
  EXPECT_EQ(tables.entry(0, 0, 0), page);
  EXPECT_EQ(tables.held(0, 0), 1);
}

TEST(BlockTables, WhatTheDeviceAdvancedIsNotSentAgain) {
  PoolFixture f(16, 1);
  ASSERT_OK(f.fill(0, 7, 8));
  ASSERT_OK(f.upload());
  ASSERT_OK(f.tables->append(0, 1));
  ASSERT_OK(f.upload());
  ASSERT_OK(f.tables->commit(0, 1, /*deviceAdvanced=*/true));
  ASSERT_OK(f.upload());
  EXPECT_EQ(f.tables->length(0), 9);
  EXPECT_EQ(f.tables->deviceLengths()[0], 8);
}

TEST(BlockTables, ASharedPageIsCopiedBeforeItIsWritten) {
  PoolFixture f(16, 2);
  ASSERT_OK(f.fill(0, 7, 6));
  ASSERT_OK(f.upload());
  *f.row(targetTable, 0, 5) = 55;
  ASSERT_OK(f.tables->share(0, 1, 8, 6));
  EXPECT_EQ(f.pool->use(targetTable).pages, 2);
  EXPECT_EQ(f.pool->use(targetTable).references, 4);
  ASSERT_OK(f.tables->append(1, 1));
  ASSERT_OK(f.upload());
  *f.row(targetTable, 1, 6) = 66;
  ASSERT_OK(f.tables->commit(1, 1));
  EXPECT_EQ(f.tables->entry(targetTable, 0, 0),
            f.tables->entry(targetTable, 1, 0));
  EXPECT_NE(f.tables->entry(targetTable, 0, 1),
            f.tables->entry(targetTable, 1, 1));
  EXPECT_EQ(*f.row(targetTable, 1, 5), 55);
  EXPECT_NE(*f.row(targetTable, 0, 6), 66);
  // The first request is alone again and writes in place.
  int32_t page = f.tables->entry(targetTable, 0, 1);
  ASSERT_OK(f.tables->append(0, 1));
  EXPECT_EQ(f.tables->entry(targetTable, 0, 1), page);
}

TEST(BlockTables, RejectedRowsLeaveTheWindowAlone) {
  PoolFixture f(16, 1, /*withState=*/false);
  ASSERT_OK(f.tables->admit(0, 7));
  for (int32_t n = 0; n < 60;) {
    ASSERT_OK(f.tables->propose(0, maxWidth));
    ASSERT_OK(f.upload());
    // Block rows lie in the ring; all but the first are rejected.
    for (int32_t i = 0; i < maxWidth; ++i)
      *f.row(blockTable, 0, n + i) = i == 0 ? n : -1;
    for (int32_t p = std::max(0, n - window + 1); p <= n; ++p)
      ASSERT_EQ(*f.row(blockTable, 0, p), p);
    *f.row(draftTable, 0, n) = n;
    ASSERT_OK(f.tables->commit(0, 1));
    ++n;
    for (int32_t p = std::max(0, n - window + 1); p < n; ++p) {
      ASSERT_EQ(*f.row(blockTable, 0, p), p);
      ASSERT_EQ(*f.row(draftTable, 0, p), p);
    }
  }
  EXPECT_EQ(f.tables->held(draftTable, 0), 3);
}

TEST(BlockTables, TruncationKeepsWhatTheRingStillHas) {
  PoolFixture f(16, 1, /*withState=*/false);
  ASSERT_OK(f.fill(0, 7, 30));
  // The smaller ring has positions 21 .. 29; 28 rows need 21 .. 27.
  ASSERT_OK(f.tables->truncate(0, 28));
  EXPECT_EQ(f.tables->length(0), 28);
  EXPECT_EQ(f.tables->held(targetTable, 0), 7);
  expectError(f.tables->truncate(0, 27), StatusCode::FailedPrecondition,
              "request 7 (slot 0): ring of class 'draft' starts at position "
              "21, and 27 rows need it from 20; recompute it");
  ASSERT_OK(f.tables->truncate(0, 0));
  EXPECT_EQ(f.pool->freeChunkCount(), f.pool->chunkCount());
  ASSERT_OK(f.tables->append(0, 4));
}

TEST(BlockTables, AMovedRequestKeepsItsRowsAndReservation) {
  PoolFixture f(16, 3);
  ASSERT_OK(f.fill(2, 7, 6));
  ASSERT_OK(f.tables->propose(2, 3));
  int32_t page = f.tables->entry(targetTable, 2, 1);
  ASSERT_OK(f.tables->move(2, 0));
  ASSERT_OK(f.upload());
  EXPECT_FALSE(f.tables->live(2));
  EXPECT_EQ(f.tables->deviceLengths()[0], 6);
  EXPECT_EQ(f.tables->deviceLengths()[2], 0);
  EXPECT_EQ(f.tables->entry(targetTable, 0, 1), page);
  EXPECT_EQ(f.tables->entry(targetTable, 2, 1), 0);
  ASSERT_OK(f.tables->commit(0, 2));
  EXPECT_EQ(f.tables->length(0), 8);
}

TEST(BlockTables, OnAGpu) {
  if (Status status = openDevice("cuda").status(); !status.ok())
    GTEST_SKIP() << status.toString();
  PoolFixture f(16, 2, /*withState=*/true, "cuda");
  ASSERT_OK(f.device->fill(f.memory.data(), 7, f.memory.size()));
  ASSERT_OK(f.fill(0, 7, 6));
  ASSERT_OK(f.device->fill(f.memory.as<char>(), 9, 512));
  ASSERT_OK(f.tables->share(0, 1, 8, 6));
  for (int32_t n = 6; n < maxTokens; ++n) {
    ASSERT_OK(f.tables->append(1, 1));
    ASSERT_OK(f.upload());
    ASSERT_OK(f.tables->commit(1, 1));
  }
  ASSERT_OK(f.upload());
  ASSERT_OK(f.stream->synchronize());
  int32_t lengths[2];
  ASSERT_OK(f.device->copyToHost(lengths, f.tables->deviceLengths(), 8));
  EXPECT_EQ(lengths[0], 6);
  EXPECT_EQ(lengths[1], maxTokens);
  for (int32_t table = 0; table < 4; ++table) {
    std::vector<int32_t> words(2 * f.tables->stride(table));
    ASSERT_OK(f.device->copyToHost(words.data(), f.tables->deviceTable(table),
                                   words.size() * 4));
    for (int32_t i = 0; i < int32_t(words.size()); ++i)
      EXPECT_EQ(words[i], f.tables->entry(table, 0, i));
  }
  // The copy of the shared page has its content, pages 0 and 1 being filled.
  char bytes[256];
  int64_t copy = f.tables->entry(targetTable, 1, 1);
  EXPECT_GT(copy, 1);
  ASSERT_OK(f.device->copyToHost(bytes, f.memory.as<char>() + copy * 256, 256));
  EXPECT_EQ(bytes[0], 9);
  EXPECT_EQ(bytes[255], 9);
}
