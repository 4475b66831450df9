//===- StepGraphTest.cpp - Capture once, replay, count --------------------===//

#include "runtime/StepGraph.h"
#include "TestKernel.h"
#include "runtime/Append.h"

using namespace tokentile;
using namespace tokentile::services;
using namespace tokentile::test;

namespace {

class StepGraphTest : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    StatusOr<std::unique_ptr<Device>> opened = openDevice(GetParam());
    if (!opened.ok())
      GTEST_SKIP() << opened.status().toString();
    device = *std::move(opened);
    stream = *device->createStream();
    graphs.emplace(*stream);
    memory = *device->allocate(64);
    pinned = *device->allocatePinned(64);
  }

  /// Copies in, doubles nothing, copies out: enough to count.
  Status roundTrip(Stream &to) {
    if (Status status = to.copyToDevice(memory.data(), pinned.data(), 4);
        !status.ok())
      return status;
    return to.copyToHost(pinned.as<char>() + 32, memory.data(), 4);
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
  std::optional<StepGraph> graphs;
  Buffer memory, pinned;
};

TEST_P(StepGraphTest, ReplaysWhatWasRecordedAndReadsMemoryThen) {
  auto work = [&](Stream &to) { return roundTrip(to); };
  ASSERT_OK(graphs->capture({4, 3, false}, work));
  for (int32_t value : {17, -5}) {
    *pinned.as<int32_t>() = value;
    ASSERT_OK(graphs->replay({4, 3, false}));
    ASSERT_OK(stream->synchronize());
    EXPECT_EQ(pinned.as<int32_t>()[8], value);
  }
  const StreamCounters &done = stream->counters();
  EXPECT_EQ(done.captures, 1);
  EXPECT_EQ(done.graphLaunches, 2);
  EXPECT_EQ(done.copiesToDevice, 2);
  EXPECT_EQ(done.copiesToHost, 2);
  EXPECT_EQ(done.synchronizations, 2);
  EXPECT_EQ(done.kernelLaunches, 0);
}

/// Arguments are frozen when recorded; where they lay may be reused at once.
TEST_P(StepGraphTest, TemporariesMayBePoisonedAfterTheCapture) {
  StatusOr<Appender> appender = Appender::create(*device);
  ASSERT_TRUE(appender.ok()) << appender.status().toString();
  std::vector<float> source = {1, 2, 3, 4};
  std::vector<int32_t> words = {0, 2, 1}; // page id, length, count
  Buffer rows = *device->allocate(16), index = *device->allocate(12);
  Buffer pool = *device->allocate(64);
  ASSERT_OK(device->copyToDevice(rows.data(), source.data(), 16));
  ASSERT_OK(device->copyToDevice(index.data(), words.data(), 12));
  ASSERT_OK(device->fill(pool.data(), 0, 64));
  auto args = std::make_unique<AppendArgs>();
  args->keys = {rows.data(), 4, 4, Scalar::Float32};
  args->values = args->keys;
  args->keyPages = {pool.data(), 64, 16, 16, Scalar::Float32};
  args->valuePages = args->keyPages;
  args->table = {index.as<int32_t>(), 1, 4};
  args->lengths = index.as<int32_t>() + 1;
  args->counts = index.as<int32_t>() + 2;
  args->batch = args->width = args->kvHeads = 1;
  args->headDim = 4;
  ASSERT_OK(graphs->capture(
      {1, 1, false}, [&](Stream &to) { return appender->append(*args, to); }));
  std::fill_n(reinterpret_cast<char *>(args.get()), sizeof(AppendArgs),
              char(0xEE));
  args.reset();
  ASSERT_OK(graphs->replay({1, 1, false}));
  ASSERT_OK(stream->synchronize());
  std::vector<float> seen(16);
  ASSERT_OK(device->copyToHost(seen.data(), pool.data(), 64));
  EXPECT_EQ(std::vector<float>(seen.begin() + 8, seen.begin() + 12), source);
}

TEST_P(StepGraphTest, NeverCapturesTwiceNorStaysInAFailedCapture) {
  auto work = [&](Stream &to) { return roundTrip(to); };
  expectError(graphs->capture({1, 1, false},
                              [](Stream &) {
                                return Status(StatusCode::OutOfRange, "no");
                              }),
              StatusCode::OutOfRange, "no");
  ASSERT_OK(stream->synchronize());
  EXPECT_EQ(graphs->captures(), 0);
  ASSERT_OK(graphs->capture({1, 1, false}, work));
  expectError(graphs->capture({1, 1, false}, work),
              StatusCode::FailedPrecondition, "was captured before");
  EXPECT_EQ(graphs->captures(), 1);
  expectError(graphs->replay({1, 2, false}), StatusCode::NotFound,
              "decode step of batch 1 and width 2 was not captured");
  expectError(graphs->replay({1, 1, true}), StatusCode::NotFound,
              "prompt step");
}

INSTANTIATE_TEST_SUITE_P(Runtime, StepGraphTest,
                         testing::Values("host", "cuda"),
                         [](const auto &info) { return info.param; });

} // namespace
