//===- HostDeviceTest.cpp - Launches, copies and graphs on the host -------===//

#include "TestKernel.h"
#include "runtime/ThreadPool.h"

#include <atomic>
#include <cstring>
#include <thread>

using namespace tokentile;
using namespace tokentile::test;

namespace {

// The pair below stands for an attention kernel of two kv heads: each block of
// the sweep writes its request's length and its part into its own partial
// result, and the merge adds those of its request and head into each of twelve
// rows of output[request, head].

KernelInfo sumInfo(int32_t parts) {
  KernelInfo info = testInfo();
  info.splitPolicy = SplitPolicy::Count;
  info.splitValue = parts;
  return info;
}

size_t partialIndex(const KernelArgs *args, int32_t request, int32_t part,
                    int32_t head) {
  return (size_t(request) * args->slots + part) * 2 + head;
}

void sumSweep(const KernelArgs *args, int32_t x) {
  int32_t head = x % 2, request = x / 2 % args->batch;
  int32_t part = x / 2 / args->batch;
  if (args->slots == 1)
    static_cast<float *>(args->output)[request * 2 + head] =
        float(args->lengths[request]);
  else
    static_cast<float *>(
        args->partialOutput)[partialIndex(args, request, part, head)] =
        float(args->lengths[request] + part);
}

void sumMerge(const KernelArgs *args, int32_t x) {
  for (int32_t row = x; row < 12 * 2 * args->batch; row += args->mergeBlocks) {
    int32_t head = row / 12 % 2, request = row / 24;
    float sum = 0;
    for (int32_t part = 0; part < args->slots; ++part)
      sum += static_cast<const float *>(
          args->partialOutput)[partialIndex(args, request, part, head)];
    static_cast<float *>(args->output)[row] = sum;
  }
}

/// Tensors for the pair, with 5 requests.
struct SumTensors {
  TestTensors common;
  alignas(16) float output[5 * 2 * 12] = {};
  alignas(16) int32_t lengths[5] = {10, 20, 30, 40, 50};
  std::vector<char> memory = std::vector<char>(1 << 20);

  LaunchArgs args() {
    LaunchArgs args = common.args();
    args.output = output;
    args.lengths = lengths;
    uintptr_t start = (reinterpret_cast<uintptr_t>(memory.data()) + 255) / 256;
    args.workspace = reinterpret_cast<void *>(start * 256);
    args.workspaceBytes = (1 << 20) - 256;
    return args;
  }
};

} // namespace

TEST(HostLaunch, SweepAlone) {
  TestSetup setup(sumInfo(1), sumSweep, sumMerge);
  SumTensors tensors;
  ASSERT_OK(
      launch(*plan(*setup.kernel, {5, 100}), tensors.args(), *setup.stream));
  for (int z = 0; z < 5; ++z)
    for (int y = 0; y < 2; ++y)
      EXPECT_EQ(tensors.output[z * 2 + y], tensors.lengths[z]);
}

TEST(HostLaunch, SweepThenMerge) {
  TestSetup setup(sumInfo(4), sumSweep, sumMerge);
  SumTensors tensors;
  ASSERT_OK(
      launch(*plan(*setup.kernel, {5, 100}), tensors.args(), *setup.stream));
  for (int z = 0; z < 5; ++z)
    for (int at = 0; at < 2 * 12; ++at)
      EXPECT_EQ(tensors.output[z * 24 + at], 4 * tensors.lengths[z] + 6);
}

TEST(HostGraph, ReplaysFrozenArgumentsAndReadsMemoryAnew) {
  TestSetup setup(sumInfo(4), sumSweep, sumMerge);
  SumTensors tensors;
  ASSERT_OK(setup.stream->beginCapture());
  LaunchArgs args = tensors.args();
  Plan planned = *plan(*setup.kernel, {5, 100});
  ASSERT_OK(launch(planned, args, *setup.stream));
  // Poison what the launch was given: the recording must not look at it.
  std::memset(static_cast<void *>(&args), 0xff, sizeof(args));
  std::memset(static_cast<void *>(&planned), 0xff, sizeof(planned));
  StatusOr<std::unique_ptr<Graph>> graph = setup.stream->endCapture();
  ASSERT_OK(graph.status());
  EXPECT_EQ(tensors.output[0], 0) << "recording must not execute";

  ASSERT_OK((*graph)->replay(*setup.stream));
  EXPECT_EQ(tensors.output[0], 4 * 10 + 6);
  // The graph stays right while lengths change in place.
  tensors.lengths[0] = 11;
  ASSERT_OK((*graph)->replay(*setup.stream));
  EXPECT_EQ(tensors.output[0], 4 * 11 + 6);
}

TEST(HostGraph, KeepsTheCodeAlive) {
  TestSetup setup(sumInfo(1));
  CompiledKernel compiled;
  compiled.info = sumInfo(1);
  compiled.sweep = sumSweep;
  std::weak_ptr<void> code;
  {
    auto held = std::make_shared<int>(1);
    code = held;
    compiled.code = held;
  }
  std::unique_ptr<Kernel> kernel = *setup.device->load(compiled);
  compiled = CompiledKernel();
  EXPECT_FALSE(code.expired());
  kernel.reset();
  EXPECT_TRUE(code.expired());
}

TEST(HostGraph, RecordsCopiesInOrder) {
  TestSetup setup(testInfo());
  int32_t source = 1, middle = 0, target = 0;
  ASSERT_OK(setup.stream->beginCapture());
  ASSERT_OK(setup.stream->copyToDevice(&middle, &source, 4));
  ASSERT_OK(setup.stream->copyOnDevice(&target, &middle, 4));
  ASSERT_OK(setup.stream->fill(&middle, 0, 4));
  std::unique_ptr<Graph> graph = *setup.stream->endCapture();
  source = 42;
  ASSERT_OK(graph->replay(*setup.stream));
  EXPECT_EQ(target, 42);
  EXPECT_EQ(middle, 0);
}

TEST(HostGraph, CallsOutOfOrder) {
  TestSetup setup(testInfo());
  expectError(setup.stream->endCapture().status(),
              StatusCode::FailedPrecondition, "not capturing");
  ASSERT_OK(setup.stream->beginCapture());
  expectError(setup.stream->beginCapture(), StatusCode::FailedPrecondition,
              "capturing already");
  expectError(setup.stream->synchronize(), StatusCode::FailedPrecondition,
              "while it is capturing");
  std::unique_ptr<Graph> graph = *setup.stream->endCapture();
  ASSERT_OK(setup.stream->beginCapture());
  expectError(graph->replay(*setup.stream), StatusCode::FailedPrecondition,
              "end the capture first");
  TestSetup other(testInfo());
  expectError(graph->replay(*other.stream), StatusCode::InvalidArgument,
              "different devices");
}

TEST(HostDevice, BuffersAreAlignedAndMove) {
  std::unique_ptr<Device> device = *openDevice("host");
  Buffer buffer = *device->allocate(1000);
  EXPECT_EQ(buffer.size(), 1000u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 256, 0u);
  void *data = buffer.data();
  Buffer moved = std::move(buffer);
  EXPECT_EQ(moved.data(), data);
  moved = *device->allocatePinned(16);
  EXPECT_EQ(moved.size(), 16u);
  EXPECT_EQ(device->allocate(0)->data(), nullptr);
}

TEST(HostDevice, AllocationThatCannotBe) {
  std::unique_ptr<Device> device = *openDevice("host");
  expectError(device->allocate(SIZE_MAX).status(),
              StatusCode::ResourceExhausted, std::to_string(SIZE_MAX));
}

TEST(HostDevice, SynchronousCopies) {
  std::unique_ptr<Device> device = *openDevice("host");
  Buffer buffer = *device->allocate(8);
  int32_t in[2] = {1, 2}, out[2] = {};
  ASSERT_OK(device->copyToDevice(buffer.data(), in, 8));
  ASSERT_OK(device->fill(buffer.data(), 0xff, 4));
  ASSERT_OK(device->copyToHost(out, buffer.data(), 8));
  EXPECT_EQ(out[0], -1);
  EXPECT_EQ(out[1], 2);
}

TEST(HostDevice, EventsMeasureTime) {
  TestSetup setup(testInfo());
  std::unique_ptr<Event> start = *setup.device->createEvent();
  std::unique_ptr<Event> end = *setup.device->createEvent();
  expectError(end->elapsedMicroseconds(*start).status(),
              StatusCode::FailedPrecondition, "event has no time");
  ASSERT_OK(setup.stream->record(*start));
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  ASSERT_OK(setup.stream->record(*end));
  ASSERT_OK(setup.stream->wait(*end));
  ASSERT_OK(end->synchronize());
  EXPECT_GE(*end->elapsedMicroseconds(*start), 2000);
}

TEST(HostDevice, LoadNeedsFunctions) {
  std::unique_ptr<Device> device = *openDevice("host");
  CompiledKernel compiled;
  compiled.info = testInfo();
  compiled.sweep = captureArgs;
  expectError(device->load(compiled).status(), StatusCode::InvalidArgument,
              "kernel 'verify' has no host functions");
}

TEST(HostDevice, RefusesWhatIsOfAGpu) {
  std::unique_ptr<Device> device = *openDevice("host");
  expectError(device->borrowStream(nullptr).status(),
              StatusCode::InvalidArgument, "no native streams");
  expectError(device->loadRaw("", "append").status(), StatusCode::Unavailable,
              "kernel 'append' is a CUDA kernel");
}

TEST(ThreadPool, VisitsEachIndexOnceFromManyCallers) {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> visits(1000);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller)
    callers.emplace_back([&] {
      for (int round = 0; round < 20; ++round)
        pool.forEach(1000, [&](int64_t i) { ++visits[i]; });
    });
  for (std::thread &caller : callers)
    caller.join();
  for (const std::atomic<int> &count : visits)
    EXPECT_EQ(count, 60);
}
