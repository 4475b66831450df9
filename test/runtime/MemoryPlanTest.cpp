//===- MemoryPlanTest.cpp - How many requests fit -------------------------===//

#include "TestKernel.h"

#include "runtime/MemoryPlan.h"

using namespace tokentile;
using namespace tokentile::test;

namespace {

constexpr int64_t mib = 1 << 20;
constexpr int64_t poolBytes = 64'000'000'000;
constexpr int64_t stateBytes = 144 * mib;

CacheGroup linear(std::string name, int64_t tokenBytes) {
  CacheGroup group;
  group.name = std::move(name);
  group.tokenBytes = tokenBytes;
  group.pageTokens = 64;
  return group;
}

/// Qwen3.8-27B: 16 of 64 layers have full attention, 4 kv heads of 256.
CacheGroup target() { return linear("target", kvTokenBytes(16, 4, 256, 2)); }

/// DFlash2: 5 layers with a window of 2048, 8 kv heads of 128. Block rows are
/// a dense segment.
CacheGroup draft() {
  CacheGroup group = linear("draft", kvTokenBytes(5, 8, 128, 2));
  group.kind = TableKind::Ring;
  group.window = 2048;
  return group;
}

CacheGroup state(std::string name, int64_t bytes, int32_t snapshots) {
  CacheGroup group;
  group.name = std::move(name);
  group.kind = TableKind::State;
  group.stateBytes = bytes;
  group.snapshots = snapshots;
  return group;
}

ModelShape qwen27b() {
  return {"qwen3.8-27b", {target(), draft(), state("state", stateBytes, 0)}};
}

Workload concurrency32() { return {32, 9, 1024, 512}; }

MemoryPlan planOk(const ModelShape &model, const Workload &workload,
                  int64_t bytes) {
  StatusOr<MemoryPlan> plan = planMemory(model, workload, bytes);
  EXPECT_TRUE(plan.ok()) << plan.status().toString();
  return plan.ok() ? *plan : MemoryPlan();
}

} // namespace

TEST(MemoryPlan, OnePoolServesConcurrency32) {
  MemoryPlan plan = planOk(qwen27b(), concurrency32(), poolBytes);
  EXPECT_TRUE(plan.servable) << plan.reason;
  EXPECT_EQ(plan.chunkBytes, stateBytes);
  EXPECT_EQ(plan.needs[0].pagesPerRequest, 25);
  EXPECT_EQ(plan.needs[1].pagesPerRequest, 25);
  EXPECT_EQ(plan.needs[2].pagesPerRequest, 9);
  EXPECT_EQ(plan.tables[1].entries, 32);
  EXPECT_EQ(plan.requests, 42);
  EXPECT_EQ(plan.largestContext, 9016);
  EXPECT_EQ(plan.shortClass, "state");
  EXPECT_EQ(plan.reason,
            "43 requests need 427 chunks of 150994944 bytes and the pool has "
            "423: class 'state' is short, by 603979776 bytes");
}

// Bookkeeping needs no memory: this is the real geometry.
TEST(MemoryPlan, PoolAndTablesKeepThePlan) {
  MemoryPlan shorter = planOk(qwen27b(), concurrency32(), poolBytes);
  Workload longest = {32, 9, shorter.largestContext, 0};
  MemoryPlan plan = planOk(qwen27b(), longest, poolBytes);
  ASSERT_TRUE(plan.servable) << plan.reason;
  StatusOr<std::unique_ptr<Device>> device = openDevice("host");
  ASSERT_OK(device.status());
  StatusOr<PagePool> pool =
      PagePool::create(plan.poolBytes, plan.chunkBytes, plan.classes);
  ASSERT_OK(pool.status());
  StatusOr<BlockTables> tables =
      BlockTables::create(**device, *pool, nullptr, 42, plan.tables);
  ASSERT_OK(tables.status());
  // Once with 42 short requests, once with 32 long ones.
  for (auto [requests, rows] : {std::pair{42, 1024 + 512}, {32, 9016}}) {
    for (int32_t slot = 0; slot < requests; ++slot) {
      ASSERT_OK(tables->admit(slot, slot));
      ASSERT_OK(tables->append(slot, rows - 1));
      ASSERT_OK(tables->commit(slot, rows - 1));
    }
    for (int32_t slot = 0; slot < requests; ++slot)
      ASSERT_OK(tables->propose(slot, 9));
    for (int32_t slot = 0; slot < requests; ++slot)
      ASSERT_OK(tables->release(slot));
    EXPECT_EQ(pool->freeChunkCount(), pool->chunkCount());
  }
}

TEST(MemoryPlan, InputReplayFitsLongerContexts) {
  // One checkpoint, and for each row the inputs of the recurrence (q, k, v of
  // 10,240 bf16 channels, two gates of 48 heads in fp32) of 48 layers.
  ModelShape model = qwen27b();
  model.groups[2].snapshots = 1;
  int64_t rowBytes = 48 * (10240 * 2 + 2 * 48 * 4);
  model.groups.push_back(state("replay", 9 * rowBytes, 1));
  MemoryPlan plan = planOk(model, concurrency32(), poolBytes);
  EXPECT_TRUE(plan.servable);
  EXPECT_EQ(plan.requests, 213);
  EXPECT_EQ(plan.largestContext, 27256);
}

// vllm.cpp #2007: the target's pool and the draft's are cut apart at the start
// and cannot lend to each other.
TEST(MemoryPlan, TwoEqualPoolsDoNotServeIt) {
  ModelShape targetOnly = {"target", {target(), qwen27b().groups[2]}};
  ModelShape draftOnly = {"draft", {draft()}};
  MemoryPlan first = planOk(targetOnly, concurrency32(), poolBytes / 2);
  MemoryPlan second = planOk(draftOnly, concurrency32(), poolBytes / 2);
  EXPECT_FALSE(first.servable);
  EXPECT_EQ(first.requests, 21);
  EXPECT_EQ(first.shortClass, "state");
  EXPECT_GT(second.requests, 700);
}

// ... and there each request's draft store is sized for the longest request
// the engine admits, here the model's 262,144 positions, instead of for its
// window and its length. No way to cut the bytes in two serves it.
TEST(MemoryPlan, TwoPoolsWithStoresOfFullLengthNeverServeIt) {
  ModelShape targetOnly = {"target", {target(), qwen27b().groups[2]}};
  ModelShape draftOnly = {"draft", {linear("draft", draft().tokenBytes)}};
  Workload stores = {32, 9, 262144, 0};
  for (int64_t percent = 1; percent < 100; ++percent) {
    int64_t draftBytes = poolBytes / 100 * percent;
    StatusOr<MemoryPlan> draftPlan = planMemory(draftOnly, stores, draftBytes);
    ASSERT_OK(draftPlan.status());
    MemoryPlan targetPlan =
        planOk(targetOnly, concurrency32(), poolBytes - draftBytes);
    EXPECT_FALSE(draftPlan->servable && targetPlan.servable) << percent;
  }
}

TEST(MemoryPlan, TooMuchIsAnAnswerThatNamesTheShortClass) {
  Workload workload = {64, 9, 1024, 512};
  MemoryPlan plan = planOk(qwen27b(), workload, poolBytes);
  EXPECT_FALSE(plan.servable);
  EXPECT_EQ(plan.requests, 42);
  EXPECT_EQ(plan.shortClass, "state");
  EXPECT_EQ(plan.largestContext, 0);
  EXPECT_EQ(plan.reason.rfind("64 requests need ", 0), 0u) << plan.reason;
  workload = {32, 1, 200'000, 0};
  plan = planOk(qwen27b(), workload, poolBytes);
  EXPECT_EQ(plan.shortClass, "target");
  EXPECT_EQ(plan.shortBytes % plan.chunkBytes, 0);
}

TEST(MemoryPlan, RingsCostNothingBeyondTheirWindow) {
  MemoryPlan plan = planOk({"draft", {draft()}}, {1, 9, 1024, 0}, mib * 1024);
  EXPECT_EQ(plan.largestContext, MemoryPlan::unbounded);
}

TEST(MemoryPlan, BadShapesAndWorkloads) {
  auto fail = [](CacheGroup group, Workload workload, StatusCode code,
                 const std::string &text) {
    expectError(planMemory({"m", {group}}, workload, mib * 1024).status(), code,
                text);
  };
  Workload one = {1, 1, 1, 1};
  fail(linear("kv", 0), one, StatusCode::InvalidArgument,
       "model 'm': group 'kv' has tokenBytes 0 and pageTokens 64");
  fail(state("s", 0, 0), one, StatusCode::InvalidArgument,
       "model 'm': group 's' has stateBytes 0 and snapshots 0");
  CacheGroup ring = draft();
  ring.window = 0;
  fail(ring, one, StatusCode::InvalidArgument,
       "model 'm': group 'draft' has window 0 and uncommittedRows 0");
  fail(target(), {0, 1, 1, 1}, StatusCode::InvalidArgument,
       "workload of 0 requests, width 1");
  fail(target(), {1, 1, 0, 0}, StatusCode::OutOfRange,
       "workload of 0 tokens a request");
  fail(state("s", 2048 * mib, 0), one, StatusCode::InvalidArgument,
       "model 'm': page pool of 1073741824 bytes has no number of chunks");
  expectError(planMemory({"m", {}}, one, mib).status(),
              StatusCode::InvalidArgument, "chunkBytes is 0");
}
