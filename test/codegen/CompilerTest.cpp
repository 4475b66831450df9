//===- CompilerTest.cpp - From a spec to a kernel, in process -------------===//

#include "SpecBuilder.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;
using namespace tokentile::test;

namespace {

Spec small() {
  Spec spec;
  spec.queryHeads = 10;
  spec.kvHeads = 2;
  spec.dim = 64;
  spec.tokens = 3;
  return spec;
}

template <typename T>
std::string errorOf(llvm::Expected<T> result) {
  return result ? "" : llvm::toString(result.takeError());
}

class CompilerTest : public testing::Test {
protected:
  llvm::Expected<CompileResult> compileText(const Spec &spec,
                                            StringRef chip = "sm_90a") {
    auto module = parseSpec(spec.text(), "spec.mlir", *context);
    if (!module)
      return module.takeError();
    return compile(std::move(*module), chip);
  }

  template <typename Op>
  int64_t count(ModuleOp module) {
    int64_t found = 0;
    module.walk([&](Op) { ++found; });
    return found;
  }

  std::unique_ptr<MLIRContext> context = createContext();
};

} // namespace

//===----------------------------------------------------------------------===//
// parseSpec
//===----------------------------------------------------------------------===//

TEST_F(CompilerTest, AnErrorOfParsingHasItsPlace) {
  EXPECT_EQ(errorOf(parseSpec("\n  attn.kernel @k 5", "a.mlir", *context)),
            "a.mlir:2:18: custom op 'attn.kernel' expected 'heads'");
}

TEST_F(CompilerTest, AVerifierSaysWhatIsWrong) {
  Spec spec = small();
  spec.kvHeads = 3;
  std::string error = errorOf(parseSpec(spec.text(), "a.mlir", *context));
  EXPECT_EQ(error, "a.mlir:1:21: custom op 'attn.kernel' expected 'query' "
                   "divisible by 'kv', got 10 over 3");
}

TEST_F(CompilerTest, TheContextOutlivesAnError) {
  EXPECT_NE(errorOf(parseSpec("attn.kernel", "a.mlir", *context)), "");
  EXPECT_EQ(errorOf(parseSpec(small().text(), "a.mlir", *context)), "");
}

//===----------------------------------------------------------------------===//
// lowerTo
//===----------------------------------------------------------------------===//

TEST_F(CompilerTest, EachLevelHoldsItsOwnOperations) {
  for (Level level : {Level::Spec, Level::Plan, Level::Tiles, Level::Staged,
                      Level::Machine, Level::Nvvm}) {
    auto module = parseSpec(small().text(), "a.mlir", *context);
    ASSERT_TRUE(bool(module));
    llvm::Error error = lowerTo(**module, level, "sm_90a");
    ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
    bool programs = level == Level::Tiles || level == Level::Staged;
    EXPECT_EQ(count<KernelOp>(**module), level <= Level::Staged);
    EXPECT_EQ(count<ProgramOp>(**module), programs ? 2 : 0);
    EXPECT_EQ(count<LoadTileOp>(**module), level == Level::Tiles ? 2 : 0);
    EXPECT_EQ(count<AllocSharedOp>(**module), level == Level::Staged ? 3 : 0);
    EXPECT_EQ(count<gpu::GPUModuleOp>(**module), level >= Level::Machine);
    EXPECT_EQ(count<scf::ForOp>(**module) > 0,
              programs || level == Level::Machine);
  }
}

TEST_F(CompilerTest, TheHostHasNoStagedLevel) {
  auto module = parseSpec(small().text(), "a.mlir", *context);
  ASSERT_TRUE(bool(module));
  EXPECT_EQ(llvm::toString(lowerTo(**module, Level::Staged, "host")),
            "the host has no staged level and below; tiles is its last");
}

TEST_F(CompilerTest, ARefusalIsTheError) {
  Spec spec = small();
  spec.rest = "latent";
  EXPECT_EQ(errorOf(compileText(spec)),
            "spec.mlir:1:1: 'attn.kernel' op the generator does not cover "
            "'latent' true yet; separate planes work");
}

//===----------------------------------------------------------------------===//
// compile
//===----------------------------------------------------------------------===//

TEST_F(CompilerTest, TwoCompilesGiveTheSamePtx) {
  for (const char *chip : {"sm_80", "sm_90a", "sm_121a"}) {
    auto first = compileText(small(), chip),
         second = compileText(small(), chip);
    ASSERT_TRUE(bool(first)) << llvm::toString(first.takeError());
    ASSERT_TRUE(bool(second)) << llvm::toString(second.takeError());
    EXPECT_EQ(first->ptx, second->ptx);
    EXPECT_EQ(first->info.spec, second->info.spec);
  }
}

TEST_F(CompilerTest, AnotherContextGivesTheSamePtx) {
  auto first = compileText(small());
  ASSERT_TRUE(bool(first));
  context = createContext();
  auto second = compileText(small());
  ASSERT_TRUE(bool(second));
  EXPECT_EQ(first->ptx, second->ptx);
}

TEST_F(CompilerTest, PtxNamesItsEntriesAndChip) {
  auto result = compileText(small(), "sm_120a");
  ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
  for (std::string text :
       {".target sm_120a", ".entry k_sweep(", ".entry k_merge("})
    EXPECT_NE(result->ptx.find(text), std::string::npos) << text;
  EXPECT_EQ(result->sweep, nullptr);
  EXPECT_EQ(result->info.chip, "sm_120a");
}

TEST_F(CompilerTest, HostCodeIsCallable) {
  auto result = compileText(small(), "host");
  ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
  EXPECT_NE(result->sweep, nullptr);
  EXPECT_NE(result->merge, nullptr);
  EXPECT_TRUE(result->ptx.empty());
  EXPECT_EQ(result->info.threads, 1);
  EXPECT_EQ(result->info.sharedBytes, 0);
}

TEST_F(CompilerTest, EachPhaseHasATime) {
  auto phases = [](const CompileResult &result) {
    std::vector<std::string> names;
    for (const PhaseTime &time : result.times) {
      EXPECT_GE(time.milliseconds, 0);
      names.push_back(time.phase);
    }
    return names;
  };
  auto gpu = compileText(small());
  ASSERT_TRUE(bool(gpu));
  EXPECT_EQ(phases(*gpu),
            (std::vector<std::string>{"plan", "tiles", "staged", "machine",
                                      "nvvm", "optimization", "backend"}));
  auto host = compileText(small(), "host");
  ASSERT_TRUE(bool(host));
  EXPECT_EQ(phases(*host),
            (std::vector<std::string>{"plan", "tiles", "lowering",
                                      "optimization", "backend"}));
}

TEST_F(CompilerTest, OneKernelIsCompiledAtOnce) {
  std::string two = small().text() + "\n" + small().text();
  two.replace(two.rfind("@k"), 2, "@other");
  auto module = parseSpec(two, "a.mlir", *context);
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  EXPECT_EQ(errorOf(compile(std::move(*module), "sm_90a")),
            "expected one attn.kernel, got 2");
}

//===----------------------------------------------------------------------===//
// describeKernel
//===----------------------------------------------------------------------===//

TEST_F(CompilerTest, FactsSayWhatTheSpecSays) {
  Spec spec = small();
  spec.sees = "prefix symmetric within 512, suffix bidirectional";
  spec.keys = "fp16";
  spec.paging = "nhd page 32";
  spec.rest = "block<dense> query<fp16 head_major columns packed positions "
              "given lengths total> output<bf16 token_major with lse> "
              "split<count of 5>";
  auto result = compileText(spec);
  ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
  const KernelInfo &info = result->info;
  EXPECT_EQ(info.name, "k");
  EXPECT_EQ(info.sweepSymbol, "k_sweep");
  EXPECT_EQ(info.mergeSymbol, "k_merge");
  EXPECT_EQ(info.queryHeads, 10);
  EXPECT_EQ(info.kvHeads, 2);
  EXPECT_EQ(info.headDim, 64);
  EXPECT_EQ(info.tokens, 3);
  EXPECT_EQ(info.queryElement, Element::Float16);
  EXPECT_EQ(info.outputElement, Element::BFloat16);
  EXPECT_EQ(info.keyElement, Element::Float16);
  EXPECT_EQ(info.valueElement, Element::BFloat16);
  EXPECT_TRUE(info.queryHeadMajor);
  EXPECT_FALSE(info.outputHeadMajor);
  EXPECT_EQ(info.pageOrder, PageOrder::TokenMajor);
  EXPECT_EQ(info.pageSize, 32);
  EXPECT_EQ(info.keySlotStride, 2 * 64 * 2);
  EXPECT_EQ(info.columns, Columns::Packed);
  EXPECT_TRUE(info.denseBlock);
  EXPECT_TRUE(info.positionsGiven);
  EXPECT_TRUE(info.lengthsTotal);
  EXPECT_TRUE(info.logSumExp);
  EXPECT_EQ(info.window, 512);
  EXPECT_EQ(info.splitPolicy, SplitPolicy::Count);
  EXPECT_EQ(info.splitValue, 5);
}

TEST_F(CompilerTest, FactsOfALaunchAreThoseOfThePlan) {
  Spec spec = small();
  spec.rest = "schedule<mma key_tile 32 row_warps 1 key_warps 2 stages 3>";
  auto result = compileText(spec);
  ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
  const KernelInfo &info = result->info;
  EXPECT_EQ(info.rows, 15);
  EXPECT_EQ(info.paddedRows, 16);
  EXPECT_EQ(info.rowBlocks, 1);
  EXPECT_EQ(info.sweeps, 1);
  EXPECT_EQ(info.keyTile, 32);
  EXPECT_EQ(info.threads, 64);
  EXPECT_EQ(info.mergeThreads, 8 * 64 / 8);
  EXPECT_EQ(info.partialElementBytes, 2);
  EXPECT_EQ(info.sharedBytes, (16 + 2 * 3 * 32) * 64 * 2);
  EXPECT_EQ(info.mergeSlices, 1);
  EXPECT_EQ(info.mergeBlocksPerSm, 5);
  // Sums and statistics of two warps.
  EXPECT_EQ(info.mergeSharedBytes, 2 * 64 * 4 + 2 * 8);
  EXPECT_EQ(info.blocksPerSm, 1);
  EXPECT_EQ(info.keyBytesPerToken(), 2 * 64 * 2 * 2);
}

/// As many as make no more blocks than an H200 has multiprocessors, of 64
/// dimensions at least; but what `invariant` sums must not depend on tokens.
TEST_F(CompilerTest, FewRowsAreMergedInSlices) {
  auto slices = [&](int64_t tokens, int64_t dim, const char *rest) {
    Spec spec;
    spec.queryHeads = 16;
    spec.kvHeads = 2;
    spec.dim = dim;
    spec.tokens = tokens;
    spec.rest = rest;
    auto result = compileText(spec);
    return result ? result->info.mergeSlices : -1;
  };
  EXPECT_EQ(slices(1, 256, ""), 4);
  EXPECT_EQ(slices(2, 256, ""), 4);
  EXPECT_EQ(slices(4, 256, ""), 2);
  EXPECT_EQ(slices(8, 256, ""), 1);
  EXPECT_EQ(slices(1, 128, ""), 2);
  EXPECT_EQ(slices(1, 64, ""), 1);
  EXPECT_EQ(slices(1, 256, "split<pieces of 8>"), 1);
}

TEST_F(CompilerTest, ThePlanInTheFactsCompilesToTheSameKernel) {
  auto first = compileText(small());
  ASSERT_TRUE(bool(first));
  auto module = parseSpec(first->info.spec, "plan.mlir", *context);
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  auto second = compile(std::move(*module), "");
  ASSERT_TRUE(bool(second)) << llvm::toString(second.takeError());
  EXPECT_EQ(first->ptx, second->ptx);
}

TEST_F(CompilerTest, RowBlocksPadTogether) {
  // Row tiles have 16 rows, products of a warpgroup 64, two of them at most.
  struct {
    const char *lowering;
    int64_t group;
    int32_t padded;
  } cases[] = {{"mma", 5, 320}, {"wgmma", 10, 768}};
  for (auto [lowering, group, padded] : cases) {
    Spec spec = small();
    spec.tokens = 64;
    spec.queryHeads = group * spec.kvHeads;
    spec.rest = "schedule<" + std::string(lowering) + " max_sweeps 2>";
    auto result = compileText(spec);
    ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
    EXPECT_EQ(result->info.rows, 64 * group);
    EXPECT_EQ(result->info.rowBlocks, 2);
    EXPECT_EQ(result->info.sweeps, 2);
    EXPECT_EQ(result->info.paddedRows, padded);
  }
}
