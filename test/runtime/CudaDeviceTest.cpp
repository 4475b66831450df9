//===- CudaDeviceTest.cpp - The same interface on a GPU -------------------===//
//
// Skipped, with the reason, where there is no GPU.
//
//===----------------------------------------------------------------------===//

#include "TestKernel.h"
#include "runtime/Nvrtc.h"

using namespace tokentile;
using namespace tokentile::test;

namespace {

// Stand-ins for a generated pair. The sweep's block x stores x at
// partialOutput[x] (byte 96 of the parameter block). The merge adds one to the
// partial result of the last item (their number is at byte 204) and stores that
// at output (byte 8).
const char *pairSweep = R"(
.address_size 64
.visible .entry pair_sweep(.param .align 8 .b8 args[232]) {
  .reg .b64 %p<3>;
  .reg .b32 %x;
  ld.param.b64 %p0, [args+96];
  mov.u32 %x, %ctaid.x;
  mul.wide.u32 %p1, %x, 4;
  add.u64 %p2, %p0, %p1;
  st.global.b32 [%p2], %x;
  ret;
}
.visible .entry pair_merge(.param .align 8 .b8 args[232]) {
  .reg .b64 %p<4>;
  .reg .b32 %n<3>;
)";
const char *pairMerge = R"(
  ld.param.b64 %p0, [args+96];
  ld.param.b64 %p3, [args+8];
  ld.param.b32 %n0, [args+204];
  mul.wide.u32 %p1, %n0, 4;
  add.u64 %p2, %p0, %p1;
  ld.global.b32 %n1, [%p2+-4];
  add.u32 %n2, %n1, 1;
  st.global.b32 [%p3], %n2;
  ret;
}
)";
static_assert(offsetof(KernelArgs, partialOutput) == 96 &&
              offsetof(KernelArgs, output) == 8 &&
              offsetof(KernelArgs, items) == 204 && sizeof(KernelArgs) == 232);

/// The pair for a device: with the overlapped merge where there is one.
CompiledKernel pairKernel(const DeviceFacts &facts) {
  bool overlap = chipNumber(facts.chip) >= 90;
  CompiledKernel compiled;
  compiled.info = testInfo();
  compiled.info.chip = overlap ? "sm_90" : "sm_80";
  compiled.info.sweepSymbol = "pair_sweep";
  compiled.info.mergeSymbol = "pair_merge";
  compiled.info.splitPolicy = SplitPolicy::Count;
  compiled.info.splitValue = 3;
  compiled.info.sharedBytes = 64 * 1024;
  compiled.ptx = ".version 7.8\n.target " + compiled.info.chip + pairSweep +
                 (overlap ? "  griddepcontrol.wait;" : "") + pairMerge;
  return compiled;
}

class CudaDeviceTest : public testing::Test {
protected:
  void SetUp() override {
    StatusOr<std::unique_ptr<Device>> opened = openDevice("cuda");
    if (!opened.ok())
      GTEST_SKIP() << opened.status().toString();
    device = *std::move(opened);
    stream = *device->createStream();
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
};

} // namespace

TEST_F(CudaDeviceTest, Facts) {
  EXPECT_EQ(device->facts().kind, DeviceKind::Cuda);
  EXPECT_GE(chipNumber(device->facts().chip), 50);
  EXPECT_GT(device->facts().multiprocessors, 0);
  EXPECT_GE(device->facts().sharedBytesPerBlock, 48 * 1024);
  EXPECT_GT(device->facts().l2Bytes, 0);
}

TEST_F(CudaDeviceTest, CopiesAndFill) {
  Buffer buffer = *device->allocate(8);
  Buffer pinned = *device->allocatePinned(8);
  int32_t in[2] = {1, 2};
  ASSERT_OK(device->copyToDevice(buffer.data(), in, 8));
  ASSERT_OK(stream->fill(buffer.data(), 0xff, 4));
  ASSERT_OK(stream->copyToHost(pinned.data(), buffer.data(), 8));
  ASSERT_OK(stream->synchronize());
  EXPECT_EQ(pinned.as<int32_t>()[0], -1);
  EXPECT_EQ(pinned.as<int32_t>()[1], 2);
}

TEST_F(CudaDeviceTest, AllocationThatCannotBe) {
  expectError(device->allocate(size_t(1) << 50).status(),
              StatusCode::ResourceExhausted, "1125899906842624 bytes");
}

TEST_F(CudaDeviceTest, EventsMeasureTime) {
  Buffer buffer = *device->allocate(1 << 26);
  std::unique_ptr<Event> start = *device->createEvent();
  std::unique_ptr<Event> end = *device->createEvent();
  ASSERT_OK(stream->record(*start));
  ASSERT_OK(stream->fill(buffer.data(), 1, buffer.size()));
  ASSERT_OK(stream->record(*end));
  ASSERT_OK(end->synchronize());
  EXPECT_GT(*end->elapsedMicroseconds(*start), 1.0);
}

TEST_F(CudaDeviceTest, LaunchAndReplayThePair) {
  StatusOr<std::unique_ptr<Kernel>> kernel =
      device->load(pairKernel(device->facts()));
  ASSERT_OK(kernel.status());
  StatusOr<Plan> planned = plan(**kernel, {2, 100});
  ASSERT_OK(planned.status());
  Buffer memory = *device->allocate(1024);
  Buffer workspace = *device->allocate(planned->workspace.bytes);
  LaunchArgs args;
  args.query = args.keys = args.values = memory.data();
  args.output = memory.data();
  args.table = args.lengths = memory.as<int32_t>();
  args.tableStride = 7;
  args.workspace = workspace.data();
  args.workspaceBytes = workspace.size();

  ASSERT_OK(stream->beginCapture());
  ASSERT_OK(launch(*planned, args, *stream));
  expectError(stream->synchronize(), StatusCode::FailedPrecondition,
              "while it is capturing");
  StatusOr<std::unique_ptr<Graph>> graph = stream->endCapture();
  ASSERT_OK(graph.status());
  for (int replay = 0; replay < 2; ++replay) {
    ASSERT_OK(device->fill(memory.data(), 0, memory.size()));
    ASSERT_OK(device->fill(workspace.data(), 0xff, workspace.size()));
    ASSERT_OK((*graph)->replay(*stream));
    ASSERT_OK(stream->synchronize());
    int32_t partial[3], merged;
    ASSERT_OK(device->copyToHost(partial, workspace.data(), sizeof(partial)));
    ASSERT_OK(device->copyToHost(&merged, memory.data(), sizeof(merged)));
    EXPECT_EQ(partial[0], 0);
    EXPECT_EQ(partial[1], 1);
    EXPECT_EQ(partial[2], 2);
    EXPECT_EQ(merged, planned->work.items);
  }
}

TEST_F(CudaDeviceTest, RefusedPtxCarriesTheDriversLog) {
  CompiledKernel compiled = pairKernel(device->facts());
  compiled.ptx = ".version 7.0\n.target sm_80\nnonsense\n";
  Status status = device->load(compiled).status();
  expectError(status, StatusCode::CompileError, "kernel 'verify' was refused");
  expectError(status, StatusCode::CompileError, "ptxas");
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
}

TEST_F(CudaDeviceTest, AbsentSymbol) {
  CompiledKernel compiled = pairKernel(device->facts());
  compiled.info.mergeSymbol = "absent";
  expectError(device->load(compiled).status(), StatusCode::NotFound,
              "no kernel 'absent'");
}

TEST_F(CudaDeviceTest, RawKernelFromSource) {
  StatusOr<std::string> image =
      compileCuda("extern \"C\" __global__ void add(int *to, int n) {"
                  "  atomicAdd(to, n); }",
                  "add.cu", device->facts().chip);
  if (image.status().code() == StatusCode::Unavailable)
    GTEST_SKIP() << image.status().toString();
  ASSERT_OK(image.status());
  std::unique_ptr<RawKernel> kernel = *device->loadRaw(*image, "add");
  Buffer sum = *device->allocate(4);
  ASSERT_OK(device->fill(sum.data(), 0, 4));
  void *to = sum.data();
  int32_t n = 3;
  void *params[] = {&to, &n};
  ASSERT_OK(kernel->launch({2, 1, 1}, {32, 1, 1}, 0, params, *stream));
  ASSERT_OK(stream->synchronize());
  int32_t result = 0;
  ASSERT_OK(device->copyToHost(&result, sum.data(), 4));
  EXPECT_EQ(result, 2 * 32 * 3);
}

TEST(Nvrtc, CompilesToACubin) {
  StatusOr<std::string> image =
      compileCuda("extern \"C\" __global__ void nothing() {}", "nothing.cu",
                  "sm_80", {"--use_fast_math"});
  if (image.status().code() == StatusCode::Unavailable)
    GTEST_SKIP() << image.status().toString();
  ASSERT_OK(image.status());
  EXPECT_EQ(image->substr(0, 4), "\x7f"
                                 "ELF");
}

TEST(Nvrtc, ErrorsCarryTheLog) {
  Status status = compileCuda("int main( {", "broken.cu", "sm_80").status();
  if (status.code() == StatusCode::Unavailable)
    GTEST_SKIP() << status.toString();
  expectError(status, StatusCode::CompileError,
              "source 'broken.cu' does not compile");
}
