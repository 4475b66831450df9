//===- PlanTest.cpp - Splits, grids and workspaces ------------------------===//

#include "TestKernel.h"
#include "runtime/KernelChecks.h"

using namespace tokentile;
using namespace tokentile::test;

namespace {

struct SplitCase {
  const char *what;
  SplitPolicy policy;
  int32_t value, kvHeads, rowBlocks, window;
  Bounds bounds;
  int32_t multiprocessors;
  int32_t splits;
};

// keyTile is 32 and tokens 3 throughout.
const SplitCase splitCases[] = {
    {"fills the device", SplitPolicy::Auto, 0, 2, 1, 0, {1, 100000}, 132, 66},
    {"counts row blocks", SplitPolicy::Auto, 0, 2, 3, 0, {1, 100000}, 132, 22},
    {"counts requests", SplitPolicy::Auto, 0, 2, 1, 0, {8, 100000}, 132, 8},
    {"rounds down", SplitPolicy::Auto, 0, 5, 1, 0, {1, 100000}, 132, 26},
    {"is at least one", SplitPolicy::Auto, 0, 8, 1, 0, {64, 100000}, 132, 1},
    {"stops at the tiles", SplitPolicy::Auto, 0, 2, 1, 0, {1, 100}, 132, 4},
    {"stops at one tile", SplitPolicy::Auto, 0, 2, 1, 0, {1, 1}, 132, 1},
    {"stops at 256", SplitPolicy::Auto, 0, 1, 1, 0, {1, 1000000}, 1000, 256},
    {"sees the window only",
     SplitPolicy::Auto,
     0,
     2,
     1,
     128,
     {1, 100000},
     132,
     10},
    {"ignores a wide window",
     SplitPolicy::Auto,
     0,
     2,
     1,
     4096,
     {1, 100},
     132,
     4},
    {"does not overflow",
     SplitPolicy::Auto,
     0,
     2,
     1,
     0x7fffffff,
     {1, 0x7fffffff},
     132,
     66},
    {"takes a count", SplitPolicy::Count, 7, 2, 1, 0, {1, 10}, 132, 7},
    {"takes a size", SplitPolicy::Keys, 512, 2, 1, 0, {1, 1025}, 132, 3},
    {"size ignores the batch",
     SplitPolicy::Keys,
     512,
     2,
     1,
     0,
     {64, 1024},
     132,
     2},
};

KernelInfo infoOf(const SplitCase &test) {
  KernelInfo info = testInfo();
  info.splitPolicy = test.policy;
  info.splitValue = test.value;
  info.kvHeads = test.kvHeads;
  info.rowBlocks = test.rowBlocks;
  info.window = test.window;
  return info;
}

KernelInfo countedSplits(int32_t splits) {
  KernelInfo info = testInfo();
  info.splitPolicy = SplitPolicy::Count;
  info.splitValue = splits;
  return info;
}

} // namespace

TEST(ChooseSplits, Table) {
  for (const SplitCase &test : splitCases)
    EXPECT_EQ(chooseSplits(infoOf(test), test.bounds, test.multiprocessors),
              test.splits)
        << test.what;
}

TEST(Plan, OneSplitNeedsNoWorkspace) {
  TestSetup setup(countedSplits(1));
  StatusOr<Plan> planned = plan(*setup.kernel, {2, 100});
  ASSERT_OK(planned.status());
  EXPECT_EQ(planned->splits, 1);
  EXPECT_EQ(planned->workspaceBytes, 0);
}

TEST(Plan, GridsAndWorkspace) {
  KernelInfo info = countedSplits(3);
  info.rowBlocks = 2;
  info.paddedRows = 5;
  info.headDim = 72;
  TestSetup setup(info);
  StatusOr<Plan> planned = plan(*setup.kernel, {4, 100});
  ASSERT_OK(planned.status());
  EXPECT_EQ(planned->kernel, setup.kernel.get());
  EXPECT_EQ(planned->sweepGrid.x, 3);
  EXPECT_EQ(planned->sweepGrid.y, 2 * 2);
  EXPECT_EQ(planned->sweepGrid.z, 4);
  EXPECT_EQ(planned->mergeGrid.x, 12);
  EXPECT_EQ(planned->mergeGrid.y, 2);
  EXPECT_EQ(planned->mergeGrid.z, 4);
  // 4 * 2 * 3 * 5 partial rows of 72 floats are 34560 bytes, which is 135 times
  // 256; two floats for each are 960 bytes.
  EXPECT_EQ(planned->statsOffset, 34560);
  EXPECT_EQ(planned->workspaceBytes, 34560 + 1024);
}

TEST(Plan, PartialOutputIsPaddedTo256) {
  KernelInfo info = countedSplits(2);
  info.kvHeads = 1;
  info.paddedRows = 1;
  info.headDim = 8;
  TestSetup setup(info);
  StatusOr<Plan> planned = plan(*setup.kernel, {1, 100});
  ASSERT_OK(planned.status());
  EXPECT_EQ(planned->statsOffset, 256);
  EXPECT_EQ(planned->workspaceBytes, 512);
}

TEST(Plan, LargeWorkspacesDoNotOverflow) {
  KernelInfo info = countedSplits(256);
  info.paddedRows = 256;
  info.headDim = 512;
  TestSetup setup(info);
  StatusOr<Plan> planned = plan(*setup.kernel, {65535, 100});
  ASSERT_OK(planned.status());
  EXPECT_EQ(planned->statsOffset, int64_t(65535) * 2 * 256 * 256 * 512 * 4);
}

TEST(Plan, WorkspaceMustFitTheAddressSpace) {
  KernelInfo info = countedSplits(1 << 20);
  info.paddedRows = 1 << 20;
  info.headDim = 254;
  TestSetup setup(info);
  // 2 * 2^20 * 2^20 rows of 2^10 bytes are 2^51 for a request.
  EXPECT_TRUE(plan(*setup.kernel, {1 << 11, 100}).ok());
  expectError(plan(*setup.kernel, {(1 << 11) + 1, 100}).status(),
              StatusCode::OutOfRange,
              "batch 2049, kvHeads 2 and splits 1048576 make a workspace of "
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
  expectError(plan(*setup.kernel, {1, 100}).status(), StatusCode::OutOfRange,
              "kvHeads * rowBlocks 80000 is not within 1 .. 65535");
}

TEST(Plan, SplitsOfAllTilesMustFit32Bits) {
  KernelInfo info = testInfo();
  info.splitPolicy = SplitPolicy::Count;
  info.splitValue = 1 << 20;
  TestSetup setup(info);
  // 4096 tiles of 32 keys: their product with the splits is 2^32.
  expectError(plan(*setup.kernel, {1, 4096 * 32}).status(),
              StatusCode::OutOfRange,
              "splits 1048576 is not within 1 .. 1048575");
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
  info.pageSize = 0;
  expectError(checkLoadable(info, host), StatusCode::InvalidArgument,
              "pageSize 0");
  info = testInfo();
  info.splitPolicy = SplitPolicy::Keys;
  expectError(checkLoadable(info, host), StatusCode::InvalidArgument,
              "splitValue 0");
}
