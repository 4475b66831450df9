//===- JitCompilerTest.cpp - Compile, plan and launch in one process ------===//

#include "runtime/JitCompiler.h"

#include <gtest/gtest.h>

using namespace tokentile;

static const char *spec = R"(
attn.kernel @verify heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 16> split<count of 2>
)";

// The example of README.md, with tensors of zeros: the mean of zeros is zero.
TEST(JitCompiler, SpecToLaunch) {
  StatusOr<std::unique_ptr<Device>> device = openDevice("host");
  ASSERT_TRUE(device.ok());
  StatusOr<CompiledKernel> code = compileKernel(spec, (*device)->facts().chip);
  ASSERT_TRUE(code.ok()) << code.status().toString();
  EXPECT_EQ(code->info.rows, 4);
  StatusOr<std::unique_ptr<Kernel>> kernel = (*device)->load(*code);
  ASSERT_TRUE(kernel.ok()) << kernel.status().toString();
  StatusOr<Plan> planned = plan(**kernel, {/*batch=*/1, /*keys=*/64});
  ASSERT_TRUE(planned.ok()) << planned.status().toString();

  Buffer workspace = *(*device)->allocate(planned->workspace.bytes);
  Buffer zeros = *(*device)->allocate(1 << 16);
  Buffer output = *(*device)->allocate(2 * 4 * 64 * 2);
  ASSERT_TRUE((*device)->fill(zeros.data(), 0, zeros.size()).ok());
  ASSERT_TRUE((*device)->fill(output.data(), 0xff, output.size()).ok());
  LaunchArgs args;
  args.query = args.keys = args.values = zeros.data();
  args.output = output.data();
  args.table = args.lengths = zeros.as<int32_t>();
  args.tableStride = 4;
  args.workspace = workspace.data();
  args.workspaceBytes = planned->workspace.bytes;
  std::unique_ptr<Stream> stream = *(*device)->createStream();
  Status status = launch(*planned, args, *stream);
  ASSERT_TRUE(status.ok()) << status.toString();
  ASSERT_TRUE(stream->synchronize().ok());
  for (int i = 0; i < 2 * 4 * 64; ++i)
    EXPECT_EQ(output.as<uint16_t>()[i] & 0x7fff, 0);
}

TEST(JitCompiler, PtxForAGpuThatIsNotHere) {
  StatusOr<CompiledKernel> code = compileKernel(spec, "sm_90a");
  ASSERT_TRUE(code.ok()) << code.status().toString();
  EXPECT_EQ(code->info.chip, "sm_90a");
  EXPECT_NE(code->ptx.find(".entry verify_sweep"), std::string::npos);
}

TEST(JitCompiler, ErrorsAreOneLine) {
  Status status = compileKernel("attn.kernel @broken", "host").status();
  EXPECT_EQ(status.code(), StatusCode::InvalidArgument);
  EXPECT_NE(status.message().find("spec:1:"), std::string::npos);
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
}

TEST(JitCompiler, RefusalsHaveACodeOfTheirOwn) {
  std::string softcap = spec;
  softcap.insert(softcap.find("split"), "softcap<5.0> ");
  Status status = compileKernel(softcap, "sm_90a").status();
  EXPECT_EQ(status.code(), StatusCode::NotCovered) << status.toString();
  std::string rows = spec;
  rows.replace(rows.find("heads<4 over 2, dim 64> tokens<2>"), 33,
               "heads<32 over 2, dim 64> tokens<64>");
  status = compileKernel(rows, "sm_90a").status();
  EXPECT_EQ(status.code(), StatusCode::NotCovered) << status.toString();
}

TEST(JitCompiler, AScheduleForAnotherChipIsNoRefusal) {
  std::string other = std::string(spec) + "schedule<mma chip \"sm_80\">";
  Status status = compileKernel(other, "sm_90a").status();
  EXPECT_EQ(status.code(), StatusCode::InvalidArgument) << status.toString();
  EXPECT_NE(status.message().find("is for chip"), std::string::npos)
      << status.toString();
}

TEST(JitCompiler, UnknownChip) {
  Status status = compileKernel(spec, "sm_12").status();
  EXPECT_NE(status.message().find("sm_12"), std::string::npos)
      << status.toString();
}
