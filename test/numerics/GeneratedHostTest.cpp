//===- GeneratedHostTest.cpp - Host kernels against the reference ---------===//
//
// Random specs, each compiled once and run on several batches. Every launch is
// repeated as a replayed graph, bit by bit the same. A failing case says how
// to run it alone.
//
//===----------------------------------------------------------------------===//

#include "runtime/JitCompiler.h"
#include "test/numerics/Runner.h"
#include "test/numerics/SpecText.h"

#include <gtest/gtest.h>

#include <set>

using namespace tokentile;

namespace {

constexpr uint64_t seed = 1;
constexpr int shards = 16;
constexpr int kernelsPerShard = 20;
constexpr int batches = 7;
static_assert(shards * kernelsPerShard >= 300);
static_assert(shards * kernelsPerShard * batches >= 2000);

/// The command that runs one case alone.
std::string rerun(int index, int batch) {
  return "rerun: ninfer-qualify --device=host --random=1 --first=" +
         std::to_string(index) + " --first-batch=" + std::to_string(batch) +
         " --seed=" + std::to_string(seed);
}

class GeneratedHost : public testing::TestWithParam<int> {
protected:
  void SetUp() override {
    device = *openDevice("host");
    StatusOr<Runner> made = Runner::create(*device);
    ASSERT_TRUE(made.ok()) << made.status().toString();
    runner = std::make_unique<Runner>(*std::move(made));
  }

  /// Runs all batches of one spec.
  void runKernel(int index) {
    std::string text = makeCase(seed, index).specText;
    mlir::MLIRContext context;
    SpecModule spec = parseSpec(context, text);
    ASSERT_TRUE(spec.kernel) << spec.error;
    StatusOr<CompiledKernel> compiled = compileKernel(text, "host");
    ASSERT_TRUE(compiled.ok()) << compiled.status().toString();
    StatusOr<std::unique_ptr<Kernel>> kernel = device->load(*compiled);
    ASSERT_TRUE(kernel.ok()) << kernel.status().toString();
    kernels.insert(text);
    for (int batch = 0; batch < batches; ++batch) {
      SCOPED_TRACE(rerun(index, batch));
      runCase(spec.kernel, **kernel, makeCase(seed, index, batch));
    }
  }

  void runCase(attn::KernelOp spec, const Kernel &kernel,
               const Case &testCase) {
    std::string error;
    auto problem = Problem::create(spec, testCase, error);
    ASSERT_TRUE(problem) << error << "\n" << testCase.describe();
    StatusOr<Outcome> outcome = runner->run(kernel, *problem);
    ASSERT_TRUE(outcome.ok()) << outcome.status().toString() << "\n"
                              << testCase.describe();
    EXPECT_TRUE(outcome->comparison.ok) << outcome->comparison.message;
    ++cases;
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Runner> runner;
  std::set<std::string> kernels;
  int cases = 0;
};

TEST_P(GeneratedHost, AgreesWithTheReference) {
  for (int i = 0; i < kernelsPerShard; ++i)
    runKernel(GetParam() * kernelsPerShard + i);
  EXPECT_EQ(cases, kernelsPerShard * batches);
  EXPECT_EQ(kernels.size(), size_t(kernelsPerShard));
}

INSTANTIATE_TEST_SUITE_P(Shards, GeneratedHost, testing::Range(0, shards));

TEST(GeneratedHostCases, AreEnoughAndDiffer) {
  std::set<std::string> specs, cases;
  for (int index = 0; index < shards * kernelsPerShard; ++index)
    for (int batch = 0; batch < batches; ++batch) {
      Case testCase = makeCase(seed, index, batch);
      specs.insert(testCase.specText);
      cases.insert(testCase.describe());
    }
  EXPECT_GE(specs.size(), 300u);
  EXPECT_GE(cases.size(), 2000u);
}

} // namespace
