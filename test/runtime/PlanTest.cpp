//===- PlanTest.cpp - Work, grids and workspaces --------------------------===//

#include "TestKernel.h"
#include "runtime/KernelChecks.h"

using namespace tokentile;
using namespace tokentile::test;

namespace {

struct WorkCase {
  const char *what;
  SplitPolicy policy;
  int32_t value, kvHeads, rowBlocks, window;
  Bounds bounds;
  int32_t multiprocessors;
  int32_t items, slots;
  int64_t partials;
};

constexpr SplitPolicy automatic = SplitPolicy::Auto;

// keyTile is 32 and tokens 3 throughout.
const WorkCase workCases[] = {
    {"fills the device", automatic, 0, 2, 1, 0, {1, 100000}, 132, 66, 132, 66},
    {"counts row blocks", automatic, 0, 2, 3, 0, {1, 100000}, 132, 22, 132, 22},
    {"rounds down", automatic, 0, 5, 1, 0, {1, 100000}, 132, 26, 132, 26},
    {"has a slot", automatic, 0, 200, 1, 0, {1, 100000}, 132, 1, 132, 0},
    {"stops at the tiles", automatic, 0, 2, 1, 0, {1, 100}, 132, 4, 132, 4},
    {"one tile is whole", automatic, 0, 2, 1, 0, {1, 1}, 132, 1, 132, 0},
    {"stops at 256", automatic, 0, 1, 1, 0, {1, 1000000}, 1000, 256, 1000, 256},
    {"sees the window", automatic, 0, 2, 1, 128, {1, 100000}, 132, 10, 132, 10},
    {"a wide window", automatic, 0, 2, 1, 4096, {1, 100}, 132, 4, 132, 4},
    {"does not overflow",
     automatic,
     0,
     2,
     1,
     0x7fffffff,
     {1, 0x7fffffff},
     132,
     66,
     132,
     66},
    // A batch: two rounds of parts if there are bytes for them, one if not.
    {"long requests", automatic, 0, 4, 1, 0, {8, 100000}, 132, 74, 132, 74},
    {"short requests", automatic, 0, 4, 1, 0, {8, 1000}, 132, 41, 132, 41},
    {"many requests", automatic, 0, 4, 1, 0, {600, 1000}, 132, 666, 132, 132},
    {"one a block", automatic, 0, 4, 1, 0, {33, 384}, 132, 33, 132, 0},
    {"fewer", automatic, 0, 4, 1, 0, {32, 384}, 132, 80, 132, 80},
    {"longer", automatic, 0, 4, 1, 0, {33, 385}, 132, 86, 132, 86},
    {"tiny requests", automatic, 0, 4, 1, 0, {600, 128}, 132, 600, 132, 0},
    {"too long to divide",
     automatic,
     0,
     4,
     1,
     0,
     {2, 32 * ((1 << 15) + 1)},
     132,
     2,
     132,
     0},
    {"too many to divide",
     automatic,
     0,
     4,
     1,
     0,
     {2049, 32 << 15},
     132,
     2049,
     132,
     0},
    {"takes a count", SplitPolicy::Count, 7, 2, 1, 0, {1, 10}, 132, 7, 7, 7},
    {"a count of one", SplitPolicy::Count, 1, 2, 1, 0, {9, 10}, 132, 9, 1, 0},
    {"takes a size", SplitPolicy::Keys, 512, 2, 1, 0, {1, 1025}, 132, 3, 3, 3},
    {"merges one piece", SplitPolicy::Keys, 512, 2, 1, 0, {4, 9}, 132, 4, 1, 4},
    // The smallest piece has 8 tiles.
    {"pieces of one size",
     SplitPolicy::Pieces,
     33,
     2,
     1,
     0,
     {3, 33 * 256},
     132,
     3 * 33,
     33,
     3 * 33},
    {"few pieces",
     SplitPolicy::Pieces,
     33,
     2,
     1,
     0,
     {3, 7 * 256 - 1},
     132,
     3 * 7,
     7,
     3 * 7},
    {"pieces of two sizes",
     SplitPolicy::Pieces,
     33,
     2,
     1,
     0,
     {3, 33 * 256 + 1},
     132,
     2 * 3 * 33,
     33,
     2 * 3 * 33},
    {"pieces of a window",
     SplitPolicy::Pieces,
     33,
     2,
     1,
     3000,
     {1, 64 * 1920},
     132,
     25,
     25,
     25},
    {"pieces of a wide window",
     SplitPolicy::Pieces,
     33,
     2,
     1,
     30000,
     {1, 64 * 1920},
     132,
     2 * 36,
     36,
     2 * 36},
    {"each its pieces",
     SplitPolicy::Keys,
     512,
     2,
     1,
     0,
     {64, 1024},
     132,
     128,
     2,
     128},
};

KernelInfo infoOf(const WorkCase &test) {
  KernelInfo info = testInfo();
  // Tiles of 64 KiB.
  info.headDim = 16384 / info.keyTile;
  info.splitPolicy = test.policy;
  info.splitValue = test.value;
  info.kvHeads = test.kvHeads;
  info.rowBlocks = test.rowBlocks;
  info.window = test.window;
  return info;
}

KernelInfo countedParts(int32_t parts) {
  KernelInfo info = testInfo();
  info.splitPolicy = SplitPolicy::Count;
  info.splitValue = parts;
  return info;
}

} // namespace

TEST(PlanWork, Table) {
  for (const WorkCase &test : workCases) {
    SCOPED_TRACE(test.what);
    WorkPlan work = planWork(infoOf(test), test.bounds, test.multiprocessors);
    EXPECT_EQ(work.items, test.items);
    EXPECT_EQ(work.slots, test.slots);
    EXPECT_EQ(work.partials, test.partials);
    EXPECT_EQ(work.merges(), test.partials > 0);
  }
}

TEST(PlanWork, BlocksOfTheMerge) {
  KernelInfo info = countedParts(3);
  // A row of each kv head, and no more blocks than multiprocessors work on.
  EXPECT_EQ(planWork(info, {1, 100}, 132).mergeBlocks, 12 * 2);
  EXPECT_EQ(planWork(info, {4, 100}, 132).mergeBlocks, 12 * 2 * 4);
  EXPECT_EQ(planWork(info, {400, 100}, 132).mergeBlocks, 8 * 132);
  EXPECT_EQ(planWork(countedParts(1), {4, 100}, 132).mergeBlocks, 0);
  // Of several requests whose parts are not fixed eight rows.
  info.splitPolicy = SplitPolicy::Auto;
  EXPECT_EQ(planWork(info, {1, 100000}, 132).mergeBlocks, 12 * 2);
  EXPECT_EQ(planWork(info, {4, 100000}, 132).mergeBlocks, 2 * 2 * 4);
}

TEST(PlanWork, BlocksThatShareAMultiprocessorHaveMoreRounds) {
  KernelInfo info = infoOf({"", automatic, 0, 4, 1, 0, {}, 132, 0, 0, 0});
  // Tiles of 64 KiB: 3,125 and 32 of them.
  EXPECT_EQ(planWork(info, {8, 100000}, 132).items, 8 + 2 * 33);
  EXPECT_EQ(planWork(info, {16, 1024}, 132).items, 16 + 2 * 33 - 2);
  info.blocksPerSm = 2;
  EXPECT_EQ(planWork(info, {8, 100000}, 132).items, 8 + 4 * 33);
  EXPECT_EQ(planWork(info, {16, 1024}, 132).items, 16 + 2 * 33 - 2);
  EXPECT_EQ(planWork(info, {96, 1024}, 132).items, 96 + 96);
}

TEST(Plan, OnePartNeedsNoWorkspace) {
  TestSetup setup(countedParts(1));
  StatusOr<Plan> planned = plan(*setup.kernel, {2, 100});
  ASSERT_OK(planned.status());
  EXPECT_EQ(planned->work.items, 2);
  EXPECT_FALSE(planned->work.merges());
  EXPECT_EQ(planned->workspace.bytes, 0);
}

TEST(Plan, GridsAndWorkspace) {
  KernelInfo info = countedParts(3);
  info.rowBlocks = 2;
  info.paddedRows = 5;
  info.headDim = 72;
  TestSetup setup(info);
  StatusOr<Plan> planned = plan(*setup.kernel, {4, 100});
  ASSERT_OK(planned.status());
  EXPECT_EQ(planned->kernel, setup.kernel.get());
  // Items, kv heads, row blocks.
  EXPECT_EQ(planned->sweepGrid.x, 3 * 4 * 2 * 2);
  EXPECT_EQ(planned->sweepGrid.y, 1);
  EXPECT_EQ(planned->sweepGrid.z, 1);
  EXPECT_EQ(planned->mergeGrid.x, planned->work.mergeBlocks);
  // 4 * 2 * 3 * 5 partial rows of 72 floats are 34560 bytes, which is 135 times
  // 256; four floats for each are 1920 bytes, and four divisions 32.
  EXPECT_EQ(planned->workspace.statsOffset, 34560);
  EXPECT_EQ(planned->workspace.divisionsOffset, 34560 + 2048);
  EXPECT_EQ(planned->workspace.bytes, 34560 + 2048 + 256);
}

TEST(Plan, PartialOutputIsPaddedTo256) {
  KernelInfo info = countedParts(2);
  info.kvHeads = 1;
  info.paddedRows = 1;
  info.headDim = 8;
  TestSetup setup(info);
  StatusOr<Plan> planned = plan(*setup.kernel, {1, 100});
  ASSERT_OK(planned.status());
  EXPECT_EQ(planned->workspace.statsOffset, 256);
  EXPECT_EQ(planned->workspace.bytes, 768);
}

TEST(Plan, LargeWorkspacesDoNotOverflow) {
  KernelInfo info = countedParts(256);
  info.paddedRows = 256;
  info.headDim = 512;
  TestSetup setup(info);
  StatusOr<Plan> planned = plan(*setup.kernel, {65535, 100});
  ASSERT_OK(planned.status());
  EXPECT_EQ(planned->workspace.statsOffset,
            int64_t(65535) * 2 * 256 * 256 * 512 * 4);
}

TEST(Plan, WorkspaceMustFitTheAddressSpace) {
  KernelInfo info = countedParts(1 << 10);
  info.paddedRows = 1 << 30;
  info.headDim = 252;
  TestSetup setup(info);
  // 2 * 2^10 * 2^30 rows of 2^10 bytes are 2^51 for a request.
  EXPECT_TRUE(plan(*setup.kernel, {1 << 11, 100}).ok());
  expectError(plan(*setup.kernel, {(1 << 11) + 1, 100}).status(),
              StatusCode::OutOfRange,
              "kvHeads 2 and 2098176 partial results make a workspace of "
              "more than 2^62 bytes");
}

TEST(Plan, BoundsMustBePositive) {
  TestSetup setup(testInfo());
  expectError(plan(*setup.kernel, {0, 100}).status(), StatusCode::OutOfRange,
              "batch 0 is not within 1 .. 65535");
  expectError(plan(*setup.kernel, {2, 0}).status(), StatusCode::OutOfRange,
              "keys 0 is not within 1 .. ");
}

TEST(Plan, BatchMustFitTheGrid) {
  TestSetup setup(testInfo());
  expectError(plan(*setup.kernel, {65536, 100}).status(),
              StatusCode::OutOfRange, "batch 65536 is not within 1 .. 65535");
}

TEST(Plan, HeadsMustFitTheGrid) {
  KernelInfo info = testInfo();
  info.rowBlocks = 40000;
  TestSetup setup(info);
  EXPECT_TRUE(plan(*setup.kernel, {1, 100}).ok());
  expectError(plan(*setup.kernel, {65535, 100}).status(),
              StatusCode::OutOfRange,
              "kvHeads * rowBlocks 80000 is not within 1 .. 32768");
}

TEST(Plan, PartsOfAllTilesMustFit32Bits) {
  KernelInfo info = testInfo();
  info.splitPolicy = SplitPolicy::Count;
  info.splitValue = 1 << 20;
  TestSetup setup(info);
  // 4096 tiles of 32 keys: their product with the parts is 2^32.
  expectError(plan(*setup.kernel, {1, 4096 * 32}).status(),
              StatusCode::OutOfRange,
              "split count 1048576 is not within 1 .. 1048575");
  EXPECT_TRUE(plan(*setup.kernel, {1, 4095 * 32}).ok());
}

TEST(CheckLoadable, ChipOfAnotherGpu) {
  DeviceFacts facts;
  facts.kind = DeviceKind::Cuda;
  facts.name = "some GPU";
  facts.chip = "sm_86";
  KernelInfo info = testInfo();
  info.chip = "sm_90a";
  expectError(checkLoadable(info, facts), StatusCode::InvalidArgument,
              "compiled for chip 'sm_90a' and device 'some GPU' has chip "
              "'sm_86'");
}

TEST(CheckLoadable, TooMuchSharedMemory) {
  DeviceFacts facts;
  facts.kind = DeviceKind::Cuda;
  facts.chip = "sm_86";
  facts.sharedBytesPerBlock = 101376;
  KernelInfo info = testInfo();
  info.chip = "sm_80";
  info.sharedBytes = 101376;
  EXPECT_TRUE(checkLoadable(info, facts).ok());
  info.sharedBytes = 163840;
  expectError(checkLoadable(info, facts), StatusCode::ResourceExhausted,
              "needs 163840 bytes of shared memory and chip 'sm_86' allows "
              "101376");
}

TEST(CheckLoadable, FactsMustBePositive) {
  DeviceFacts host;
  host.chip = "host";
  KernelInfo info = testInfo();
  info.keyTile = 0;
  expectError(checkLoadable(info, host), StatusCode::InvalidArgument,
              "kernel 'verify' has keyTile 0; it must be positive");
  info = testInfo();
  info.mergeSlices = 0;
  expectError(checkLoadable(info, host), StatusCode::InvalidArgument,
              "mergeSlices 0");
  info = testInfo();
  info.mergeBlocksPerSm = -1;
  expectError(checkLoadable(info, host), StatusCode::InvalidArgument,
              "mergeBlocksPerSm -1");
  info = testInfo();
  info.pageSize = 0;
  expectError(checkLoadable(info, host), StatusCode::InvalidArgument,
              "pageSize 0");
  info = testInfo();
  info.splitPolicy = SplitPolicy::Keys;
  expectError(checkLoadable(info, host), StatusCode::InvalidArgument,
              "splitValue 0");
}
