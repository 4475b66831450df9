//===- LaunchTest.cpp - Checks and arguments of a launch ------------------===//

#include "TestKernel.h"

using namespace tokentile;
using namespace tokentile::test;

namespace {

/// Launches `info` with bounds {2, 100}, three parts, and arguments that
/// `change` has spoilt.
template <typename Change>
Status launchWith(KernelInfo info, Change change) {
  info.splitPolicy = SplitPolicy::Count;
  info.splitValue = 3;
  TestSetup setup(info);
  TestTensors tensors;
  LaunchArgs args = tensors.args();
  change(args);
  return launch(*plan(*setup.kernel, {2, 100}), args, *setup.stream);
}

/// Expects that a null and a misaligned pointer are each refused by name.
template <typename Field>
void expectNeeded(const KernelInfo &info, const char *name, Field field) {
  std::string quoted = std::string("pointer '") + name + "' ";
  expectError(launchWith(info, [&](LaunchArgs &args) { args.*field = {}; }),
              StatusCode::InvalidArgument, quoted + "is null");
  alignas(16) char memory[32];
  auto shift = [&](LaunchArgs &args) {
    using Pointer = std::remove_reference_t<decltype(args.*field)>;
    args.*field = (Pointer)(void *)(memory + 4);
  };
  expectError(launchWith(info, shift), StatusCode::InvalidArgument,
              quoted + "is not 16-byte aligned");
}

} // namespace

TEST(Launch, ValidArgumentsPass) {
  ASSERT_OK(launchWith(testInfo(), [](LaunchArgs &) {}));
}

TEST(Launch, PointersOfEveryKernel) {
  expectNeeded(testInfo(), "query", &LaunchArgs::query);
  expectNeeded(testInfo(), "output", &LaunchArgs::output);
  expectNeeded(testInfo(), "keys", &LaunchArgs::keys);
  expectNeeded(testInfo(), "values", &LaunchArgs::values);
  expectNeeded(testInfo(), "lengths", &LaunchArgs::lengths);
  expectNeeded(testInfo(), "table", &LaunchArgs::table);
  expectNeeded(testInfo(), "workspace", &LaunchArgs::workspace);
}

TEST(Launch, LogSumExpIsNeeded) {
  KernelInfo info = testInfo();
  info.logSumExp = true;
  expectNeeded(info, "logSumExp", &LaunchArgs::logSumExp);
}

TEST(Launch, LogSumExpThatIsNotWrittenIsRefused) {
  alignas(16) float lse[4];
  expectError(
      launchWith(testInfo(), [&](LaunchArgs &args) { args.logSumExp = lse; }),
      StatusCode::InvalidArgument, "'verify' does not write it");
}

TEST(Launch, SinksAreNeeded) {
  KernelInfo info = testInfo();
  info.sink = true;
  expectNeeded(info, "sinks", &LaunchArgs::sinks);
}

TEST(Launch, SinksThatAreNotReadAreRefused) {
  alignas(16) float sinks[8] = {};
  expectError(
      launchWith(testInfo(), [&](LaunchArgs &args) { args.sinks = sinks; }),
      StatusCode::InvalidArgument, "'verify' does not read it");
}

TEST(Launch, TableOfARingIsOfItsPages) {
  KernelInfo info = testInfo();
  info.window = 30;
  info.ring = 48;
  for (int64_t stride : {2, 4, 7})
    expectError(
        launchWith(info, [&](LaunchArgs &args) { args.tableStride = stride; }),
        StatusCode::OutOfRange,
        "tableStride " + std::to_string(stride) +
            " is not that of kernel 'verify', whose ring of 48 keys "
            "has 3 entries");
  ASSERT_OK(launchWith(info, [](LaunchArgs &args) { args.tableStride = 3; }));
}

TEST(Launch, DenseBlockIsNeeded) {
  KernelInfo info = testInfo();
  info.denseBlock = true;
  expectNeeded(info, "blockKeys", &LaunchArgs::blockKeys);
  expectError(
      launchWith(info, [](LaunchArgs &args) { args.blockKeys = args.keys; }),
      StatusCode::InvalidArgument, "pointer 'blockValues' is null");
}

TEST(Launch, ColumnsAreNeeded) {
  KernelInfo info = testInfo();
  info.columns = Columns::Counted;
  expectNeeded(info, "columns", &LaunchArgs::columns);
}

TEST(Launch, PositionsAreNeeded) {
  KernelInfo info = testInfo();
  info.positionsGiven = true;
  expectNeeded(info, "positions", &LaunchArgs::positions);
}

TEST(Launch, KeyOffsetsAreNeeded) {
  KernelInfo info = testInfo();
  info.pageOrder = PageOrder::Contiguous;
  expectNeeded(info, "keyOffsets", &LaunchArgs::keyOffsets);
}

TEST(Launch, WorkspaceTooSmall) {
  // 2 * 2 * 3 * 16 partial rows of 64 floats, four floats for each, and a
  // division of each request in 256 bytes.
  expectError(launchWith(testInfo(),
                         [](LaunchArgs &args) { args.workspaceBytes = 52479; }),
              StatusCode::ResourceExhausted,
              "workspace has 52479 bytes and the plan needs 52480");
  ASSERT_OK(launchWith(testInfo(),
                       [](LaunchArgs &args) { args.workspaceBytes = 52480; }));
}

TEST(Launch, StridesAreWholeCopies) {
  expectError(
      launchWith(testInfo(), [](LaunchArgs &args) { args.keyHeadStride = 24; }),
      StatusCode::InvalidArgument,
      "keyHeadStride 24 is not a multiple of 16 bytes");
}

TEST(Launch, TableTooShort) {
  expectError(
      launchWith(testInfo(), [](LaunchArgs &args) { args.tableStride = 6; }),
      StatusCode::OutOfRange,
      "tableStride 6 with pageSize 16 is too short for 100 keys; it must be "
      "at least 7");
}

TEST(Launch, DenseBlockOfKnownSizeNeedsNoPages) {
  KernelInfo info = testInfo();
  info.denseBlock = true;
  info.tokens = 4;
  auto sixPages = [](LaunchArgs &args) {
    args.blockKeys = args.blockValues = args.keys;
    args.tableStride = 6;
  };
  ASSERT_OK(launchWith(info, sixPages));
  // A request may have no block rows, so its context may fill the bound.
  info.columns = Columns::Counted;
  expectError(launchWith(info,
                         [&](LaunchArgs &args) {
                           sixPages(args);
                           args.columns = args.lengths;
                         }),
              StatusCode::OutOfRange, "must be at least 7");
}

TEST(Launch, HeadMajorPagesNeedThePoolSize) {
  KernelInfo info = testInfo();
  info.pageOrder = PageOrder::HeadMajor;
  expectError(launchWith(info, [](LaunchArgs &) {}),
              StatusCode::InvalidArgument,
              "head-major pages need poolPages or keyHeadStride");
}

TEST(Launch, PackedHeadMajorQueryNeedsItsTokens) {
  KernelInfo info = testInfo();
  info.columns = Columns::Packed;
  info.queryHeadMajor = true;
  expectError(
      launchWith(info, [](LaunchArgs &args) { args.columns = args.lengths; }),
      StatusCode::InvalidArgument,
      "packed head-major query needs queryTokens or queryHeadStride");
}

TEST(Launch, StreamOfAnotherDevice) {
  TestSetup setup(testInfo()), other(testInfo());
  TestTensors tensors;
  expectError(
      launch(*plan(*setup.kernel, {2, 100}), tensors.args(), *other.stream),
      StatusCode::InvalidArgument, "belong to different devices");
}

TEST(Launch, EmptyPlan) {
  TestSetup setup(testInfo());
  expectError(launch(Plan(), LaunchArgs(), *setup.stream),
              StatusCode::InvalidArgument, "plan is empty");
}

TEST(Launch, ScalarsAndWorkspace) {
  TestTensors tensors;
  KernelInfo info = testInfo();
  info.splitPolicy = SplitPolicy::Count;
  info.splitValue = 3;
  TestSetup setup(info);
  LaunchArgs args = tensors.args();
  args.poolPages = 99;
  ASSERT_OK(launch(*plan(*setup.kernel, {2, 100}), args, *setup.stream));
  EXPECT_EQ(seenArgs.batch, 2);
  EXPECT_EQ(seenArgs.items, 2 * 3);
  EXPECT_EQ(seenArgs.slots, 3);
  // 12 rows of 2 heads of 2 requests, or 8 blocks a multiprocessor.
  EXPECT_EQ(seenArgs.mergeBlocks,
            std::min(48, 8 * setup.device->facts().multiprocessors));
  EXPECT_EQ(seenArgs.maxKeys, 100);
  EXPECT_EQ(seenArgs.poolPages, 99);
  EXPECT_EQ(seenArgs.tableStride, 7);
  EXPECT_EQ((char *)seenArgs.partialOutput, tensors.workspace);
  EXPECT_EQ((char *)seenArgs.partialStats,
            tensors.workspace + 2 * 2 * 3 * 16 * 64 * 4);
  EXPECT_EQ((char *)seenArgs.divisions,
            tensors.workspace + 2 * 2 * 3 * 16 * (64 + 4) * 4);
}

TEST(Launch, DefaultQueryStrides) {
  KernelInfo info = testInfo();
  info.outputHeadMajor = true;
  ASSERT_OK(launchWith(info, [](LaunchArgs &) {}));
  EXPECT_EQ(seenArgs.queryTokenStride, 8 * 128);
  EXPECT_EQ(seenArgs.queryHeadStride, 128);
  EXPECT_EQ(seenArgs.outputTokenStride, 128);
  EXPECT_EQ(seenArgs.outputHeadStride, 2 * 3 * 128);
  ASSERT_OK(launchWith(info, [](LaunchArgs &args) { args.queryTokens = 50; }));
  EXPECT_EQ(seenArgs.outputHeadStride, 50 * 128);
}

TEST(Launch, DefaultPoolStrides) {
  struct {
    PageOrder order;
    int64_t slot, page, head;
  } cases[] = {
      {PageOrder::PageMajor, 128, 2 * 16 * 128, 16 * 128},
      {PageOrder::HeadMajor, 128, 16 * 128, 16 * 128 * 10},
      {PageOrder::TokenMajor, 256, 16 * 256, 128},
      {PageOrder::Contiguous, 256, 0, 128},
  };
  for (const auto &test : cases) {
    KernelInfo info = testInfo();
    info.pageOrder = test.order;
    info.keySlotStride = info.valueSlotStride = test.slot;
    ASSERT_OK(launchWith(info, [](LaunchArgs &args) {
      args.poolPages = 10;
      args.keyOffsets = args.lengths;
    }));
    EXPECT_EQ(seenArgs.keyPageStride, test.page);
    EXPECT_EQ(seenArgs.keyHeadStride, test.head);
    EXPECT_EQ(seenArgs.valuePageStride, test.page);
    EXPECT_EQ(seenArgs.valueHeadStride, test.head);
  }
}

TEST(Launch, GivenStridesWin) {
  ASSERT_OK(launchWith(testInfo(), [](LaunchArgs &args) {
    args.queryTokenStride = 16;
    args.queryHeadStride = 32;
    args.outputTokenStride = 48;
    args.outputHeadStride = 64;
    args.keyPageStride = 80;
    args.keyHeadStride = 96;
    args.valuePageStride = 112;
    args.valueHeadStride = 128;
  }));
  EXPECT_EQ(seenArgs.queryTokenStride, 16);
  EXPECT_EQ(seenArgs.queryHeadStride, 32);
  EXPECT_EQ(seenArgs.outputTokenStride, 48);
  EXPECT_EQ(seenArgs.outputHeadStride, 64);
  EXPECT_EQ(seenArgs.keyPageStride, 80);
  EXPECT_EQ(seenArgs.keyHeadStride, 96);
  EXPECT_EQ(seenArgs.valuePageStride, 112);
  EXPECT_EQ(seenArgs.valueHeadStride, 128);
}

TEST(CheckLengths, UniformContext) {
  TestSetup setup(testInfo());
  Plan planned = *plan(*setup.kernel, {2, 100});
  int32_t lengths[] = {0, 97};
  ASSERT_OK(checkLengths(planned, lengths, 2));
  lengths[1] = 98;
  expectError(checkLengths(planned, lengths, 2), StatusCode::OutOfRange,
              "request 1 has length 98, which makes 101 keys; the plan allows "
              "0 .. 100");
  lengths[1] = -1;
  expectError(checkLengths(planned, lengths, 2), StatusCode::OutOfRange,
              "request 1 has length -1");
  expectError(checkLengths(planned, lengths, 3), StatusCode::OutOfRange,
              "batch 3 exceeds the planned batch 2");
  expectError(checkLengths(planned, nullptr, 2), StatusCode::InvalidArgument,
              "pointer 'lengths' is null");
}

TEST(CheckLengths, TotalsIncludeTheBlock) {
  KernelInfo info = testInfo();
  info.lengthsTotal = true;
  TestSetup setup(info);
  int32_t lengths[] = {100, 100};
  ASSERT_OK(checkLengths(*plan(*setup.kernel, {2, 100}), lengths, 2));
}

TEST(CheckLengths, CountedColumns) {
  KernelInfo info = testInfo();
  info.columns = Columns::Counted;
  TestSetup setup(info);
  Plan planned = *plan(*setup.kernel, {2, 100});
  int32_t lengths[] = {99, 100};
  int32_t counts[] = {1, 0};
  ASSERT_OK(checkLengths(planned, lengths, 2, counts));
  counts[1] = 4;
  expectError(checkLengths(planned, lengths, 2, counts), StatusCode::OutOfRange,
              "request 1 has 4 query tokens; kernel 'verify' takes 0 .. 3");
  expectError(checkLengths(planned, lengths, 2), StatusCode::InvalidArgument,
              "pointer 'columns' is null");
}

TEST(CheckLengths, PackedColumns) {
  KernelInfo info = testInfo();
  info.columns = Columns::Packed;
  TestSetup setup(info);
  Plan planned = *plan(*setup.kernel, {2, 100});
  int32_t lengths[] = {97, 99};
  int32_t offsets[] = {0, 3, 4};
  ASSERT_OK(checkLengths(planned, lengths, 2, offsets));
  offsets[2] = 2;
  expectError(checkLengths(planned, lengths, 2, offsets),
              StatusCode::OutOfRange, "request 1 has -1 query tokens");
}
