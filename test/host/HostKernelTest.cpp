//===- HostKernelTest.cpp - Host kernels against plain attention ----------===//
//
// Programs over tiles, run by the host engine on small batches: one test for
// each axis that the lowering treats in its own way.
//
//===----------------------------------------------------------------------===//

#include "HostProblem.h"

#include "codegen/HostEngine.h"
#include "codegen/Registration.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <chrono>
#include <gtest/gtest.h>

using namespace tokentile;
using namespace tokentile::test;

static mlir::MLIRContext &sharedContext() {
  static mlir::MLIRContext *context = [] {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    return new mlir::MLIRContext(registry,
                                 mlir::MLIRContext::Threading::DISABLED);
  }();
  return *context;
}

static llvm::Expected<HostCode> compile(const Spec &spec) {
  auto module =
      mlir::parseSourceString<mlir::ModuleOp>(tilesOf(spec), &sharedContext());
  if (!module)
    return llvm::createStringError("the test's own module does not parse");
  return jitHostModule(*module, "k_sweep", "k_merge");
}

static void launch(const Spec &spec, const HostCode &code,
                   const KernelArgs &args) {
  for (int x = 0; x < args.items * spec.kvHeads * spec.rowBlocks; ++x)
    code.sweep(&args, x);
  for (int x = 0; x < args.mergeBlocks; ++x)
    code.merge(&args, x);
}

static void run(const Spec &spec) {
  auto code = compile(spec);
  ASSERT_TRUE(bool(code)) << llvm::toString(code.takeError());
  ::testing::Test::RecordProperty("lowering_us", code->times.lowering * 1e3);
  ::testing::Test::RecordProperty("optimization_us",
                                  code->times.optimization * 1e3);
  ::testing::Test::RecordProperty("generation_us",
                                  code->times.generation * 1e3);
  Problem problem(spec);
  launch(spec, *code, problem.args());
  EXPECT_EQ(problem.check(), "");
}

TEST(HostKernel, RaggedBatchAtTileAndPageEdges) {
  Spec spec;
  spec.contexts = {0, 1, 12, 59, 60, 61, 124, 300};
  run(spec);
}

TEST(HostKernel, SixHeadsShareAKeyHead) {
  Spec spec;
  spec.queryHeads = 6;
  spec.kvHeads = 1;
  spec.dim = 256;
  spec.tokens = 3;
  run(spec);
}

TEST(HostKernel, OneQueryRow) {
  Spec spec;
  spec.queryHeads = spec.kvHeads = 2;
  spec.tokens = 1;
  spec.dim = 128;
  spec.contexts = {0, 63, 64, 200};
  run(spec);
}

TEST(HostKernel, SevenRowsAndSmallTiles) {
  Spec spec;
  spec.queryHeads = 7;
  spec.kvHeads = 1;
  spec.tokens = 1;
  spec.keyTile = 16;
  spec.contexts = {5, 77};
  run(spec);
}

TEST(HostKernel, HalfPrecision) {
  Spec spec;
  spec.query = spec.keys = spec.values = spec.output = Element::Float16;
  run(spec);
}

TEST(HostKernel, MixedElements) {
  Spec spec;
  spec.keys = spec.output = Element::Float16;
  spec.dim = 128;
  run(spec);
}

TEST(HostKernel, DenseBlockBehindPages) {
  Spec spec;
  spec.dense = true;
  spec.causal = false;
  spec.contexts = {0, 15, 16, 63, 64, 190};
  run(spec);
}

TEST(HostKernel, SymmetricWindow) {
  Spec spec;
  spec.window = 20;
  spec.symmetric = true;
  spec.causal = false;
  spec.contexts = {3, 19, 20, 150};
  run(spec);
}

TEST(HostKernel, LeftWindowShorterThanATile) {
  Spec spec;
  spec.window = 5;
  spec.parts = 3;
  spec.contexts = {200, 61, 0};
  run(spec);
}

TEST(HostKernel, SplitsAndTheirMerge) {
  Spec spec;
  spec.parts = 3;
  spec.contexts = {0, 30, 64, 200, 500};
  run(spec);
}

TEST(HostKernel, MaskedColumnsAreZero) {
  Spec spec;
  spec.counted = true;
  spec.contexts = {10, 64, 0, 100};
  spec.columns = {2, 0, 0, 4};
  run(spec);
  spec.parts = 2;
  run(spec);
}

TEST(HostKernel, PackedColumnsLeaveTheirNeighboursAlone) {
  Spec spec;
  spec.packed = true;
  spec.contexts = {10, 64, 0, 100};
  spec.columns = {2, 0, 4, 1};
  run(spec);
  spec.parts = 2;
  run(spec);
}

TEST(HostKernel, GivenPositionsDecideWhatIsSeen) {
  Spec spec;
  spec.given = true;
  spec.contexts = {0, 7, 130};
  run(spec);
  spec.counted = true;
  spec.columns = {0, 2, 4};
  run(spec);
}

// Odd tokens stand so far away that a window shows them nothing.
TEST(HostKernel, EmptyRowsAreZeroOrNaN) {
  Spec spec;
  spec.given = true;
  spec.oddOffset = 1000;
  spec.window = 40;
  spec.contexts = {5, 130};
  for (bool nan : {false, true})
    for (int parts : {1, 3}) {
      spec.emptyNaN = nan;
      spec.parts = parts;
      run(spec);
    }
}

// Before position 0 a causal row sees nothing either.
TEST(HostKernel, NoLogSumExpUnlessAskedFor) {
  Spec spec;
  spec.given = true;
  spec.oddOffset = -1000;
  spec.lse = false;
  run(spec);
}

TEST(HostKernel, RowBlocksWithPaddingRows) {
  Spec spec;
  spec.queryHeads = 10;
  spec.tokens = 3;
  spec.rowBlocks = 4;
  run(spec);
  spec.parts = 2;
  run(spec);
}

TEST(HostKernel, InterleavedPagesAndContiguousKeys) {
  Spec spec;
  spec.order = "nhd";
  spec.page = 128;
  spec.contexts = {127, 128, 300};
  run(spec);
  spec.order = "contiguous";
  spec.page = 0;
  run(spec);
}

TEST(HostKernel, RunsAgainBitForBit) {
  Spec spec;
  spec.parts = 3;
  spec.contexts = {500};
  auto first = compile(spec), second = compile(spec);
  ASSERT_TRUE(bool(first) && bool(second));
  Problem one(spec), two(spec);
  launch(spec, *first, one.args());
  launch(spec, *second, two.args());
  EXPECT_EQ(memcmp(one.args().output, two.args().output, 4 * 4 * 64 * 2), 0);
}

TEST(HostEngine, EmitsAnObjectForAnotherProcessor) {
  Spec spec;
  auto module =
      mlir::parseSourceString<mlir::ModuleOp>(tilesOf(spec), &sharedContext());
  ASSERT_TRUE(module);
  auto object = emitHostObject(*module, "x86-64-v3");
  ASSERT_TRUE(bool(object)) << llvm::toString(object.takeError());
  EXPECT_EQ(object->substr(0, 4), "\x7f"
                                  "ELF");
  EXPECT_NE(object->find("k_sweep"), std::string::npos);
}

TEST(HostEngine, NamesAMissingFunction) {
  Spec spec;
  auto module =
      mlir::parseSourceString<mlir::ModuleOp>(tilesOf(spec), &sharedContext());
  auto code = jitHostModule(*module, "absent", "");
  ASSERT_FALSE(bool(code));
  std::string message = llvm::toString(code.takeError());
  EXPECT_NE(message.find("absent"), std::string::npos) << message;
}

TEST(HostEngine, SaysWhatTheLoweringDoesNotCover) {
  Spec spec;
  std::string text = tilesOf(spec);
  text.insert(text.find("split<"), "softcap<5.0> ");
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &sharedContext());
  ASSERT_TRUE(module);
  auto code = jitHostModule(*module, "k_sweep", "k_merge");
  ASSERT_FALSE(bool(code));
  EXPECT_EQ(
      llvm::toString(code.takeError()),
      "lowering to the host failed: 'attn.kernel' op the generator does not "
      "cover 'softcap' 5.000000e+00 yet; none works");
}
