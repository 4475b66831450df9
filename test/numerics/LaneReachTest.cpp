//===- LaneReachTest.cpp - What the lane tests execute --------------------===//
//
// An operation that no case reaches is not tested. For kernels that differ in
// what is generated, a few batches reach every operation.
//
//===----------------------------------------------------------------------===//

#include "test/numerics/LaneRunner.h"

#include <gtest/gtest.h>

#include <map>

using namespace tokentile;

namespace {

class LanesReach : public testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    text = "attn.kernel @reach " + GetParam();
    auto made = LaneRunner::create(text, "sm_100a");
    ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
    runner = std::move(*made);
  }

  /// Runs one batch as if planned for so many multiprocessors.
  void launch(std::vector<int32_t> contexts, int32_t multiprocessors,
              Numbers numbers = Numbers::Normal, int32_t fewer = 0);

  std::string text;
  std::unique_ptr<LaneRunner> runner;
  uint64_t seed = 0;
};

/// Where columns vary, later requests have fewer, down to none, and the first
/// `fewer` less than all.
Case makeBatch(attn::KernelOp spec, const std::string &text,
               std::vector<int32_t> contexts, uint64_t seed, int32_t fewer) {
  attn::QueryAttr query = spec.getQueryOrDefault();
  Case testCase;
  testCase.specText = text;
  testCase.batch = int32_t(contexts.size());
  testCase.seed = seed;
  for (int32_t b = 0; b < testCase.batch; ++b) {
    int32_t columns = int32_t(spec.getTokens());
    if (query.getColumns() != attn::ColumnsKind::Uniform)
      columns = std::max(0, columns - (b + fewer) % (columns + 1));
    testCase.columns.push_back(columns);
    bool total = query.getLengths() == attn::LengthsKind::Total;
    testCase.lengths.push_back(contexts[b] + (total ? columns : 0));
  }
  testCase.contexts = std::move(contexts);
  return testCase;
}

void LanesReach::launch(std::vector<int32_t> contexts, int32_t multiprocessors,
                        Numbers numbers, int32_t fewer) {
  Case testCase = makeBatch(runner->getSpec(), text, contexts, ++seed, fewer);
  testCase.numbers = numbers;
  std::string error;
  auto problem = Problem::create(runner->getSpec(), testCase, error);
  ASSERT_TRUE(problem) << error;
  runner->multiprocessors = multiprocessors;
  auto outcome = runner->run(*problem);
  ASSERT_TRUE(bool(outcome)) << llvm::toString(outcome.takeError());
  EXPECT_TRUE(outcome->comparison.ok) << outcome->comparison.message;
}

TEST_P(LanesReach, EveryOperation) {
  int32_t tile = runner->getInfo().keyTile;
  // Every fill of the pipeline, with and without a tail.
  std::vector<int32_t> contexts;
  for (int32_t tiles = 0; tiles < 7; ++tiles)
    for (int32_t more : {0, 5})
      contexts.push_back(tiles * tile + more);
  launch(contexts, 1);
  // Past the window, and with a maximum that never moves.
  launch({runner->getInfo().window + 100, 3}, 1, Numbers::Mean);
  // A part that some row does not see: the last, and the first of a window.
  launch({tile - 1}, 4);
  launch({2 * tile}, 4, Numbers::Normal, /*fewer=*/1);
  if (int32_t window = runner->getInfo().window)
    launch({window + 2 * tile - 3}, 400);
  // A plan that divides nothing.
  bool hasPieces = runner->getInfo().splitPolicy == SplitPolicy::Pieces;
  runner->adjustWork = [](KernelArgs &args) {
    args.items = args.batch;
    args.mergeBlocks = 0;
  };
  if (!hasPieces)
    launch({1, 2}, 4);
  runner->adjustWork = nullptr;
  // Rows that have pieces of two sizes.
  if (hasPieces)
    launch({4 * 256 - 2}, 4);
  // More parts than the merge takes at once, in rounds that are not whole.
  launch({25 * tile}, 400);
  launch({27 * tile}, 400);
  launch({27 * tile, 0}, 12);
  // More requests than a warp looks at together.
  std::vector<int32_t> many(34, 1);
  many.back() = 27 * tile;
  launch(many, 400);
  std::map<std::string, int> counts;
  for (mlir::Operation *op : runner->unreached())
    ++counts[op->getName().getStringRef().str()];
  std::string names;
  for (auto &[name, count] : counts)
    names += name + " x" + std::to_string(count) + "\n";
  EXPECT_EQ(names, "");
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, LanesReach,
    testing::Values(
        "heads<6 over 1, dim 64> tokens<3> sees<prefix all, suffix causal> "
        "keys<bf16> values<bf16> paging<page_major page 16>",
        "heads<4 over 1, dim 128> tokens<7> sees<prefix left within 900, "
        "suffix causal> keys<bf16> values<fp16> paging<nhd page 32> "
        "block<dense> query<fp16 token_major columns counted> output<fp16 "
        "token_major with lse empty nan> schedule<auto key_tile 32 key_warps "
        "2 query registers>",
        "heads<5 over 1, dim 64> tokens<5> sees<prefix symmetric within 1800, "
        "suffix bidirectional> keys<fp16> values<bf16> paging<contiguous> "
        "query<bf16 head_major columns packed positions given> output<bf16 "
        "head_major with lse> schedule<auto key_tile 64 key_warps 4>",
        "heads<16 over 1, dim 256> tokens<4> sees<prefix all, suffix causal> "
        "keys<bf16> values<bf16> paging<head_major page 64> query<bf16 "
        "token_major lengths total> schedule<auto key_tile 16 row_blocks 2 "
        "max_sweeps 2 "
        "query shared>",
        "heads<4 over 1, dim 64> tokens<4> sees<prefix left within 2000, "
        "suffix causal> keys<bf16> values<bf16> paging<page_major page 16> "
        "query<bf16 token_major columns counted> split<pieces of 4>"),
    [](const auto &info) { return "Kernel" + std::to_string(info.index); });

} // namespace
