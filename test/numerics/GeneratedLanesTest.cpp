//===- GeneratedLanesTest.cpp - GPU kernels, lane by lane -----------------===//
//
// Random specs with random schedules, lowered for a GPU and run on the lane
// executor. A failing case names its index; run it alone with
// --gtest_filter=*Lanes*/<shard>.
//
//===----------------------------------------------------------------------===//

#include "test/numerics/LaneCases.h"
#include "test/numerics/LaneRunner.h"

#include <gtest/gtest.h>

#include <set>

using namespace tokentile;

namespace {

constexpr uint64_t seed = 11;
constexpr int shards = 16;
constexpr int kernelsPerShard = 6;
constexpr int batches = 3;

class GeneratedLanes : public testing::TestWithParam<int> {};

void runCase(LaneRunner &runner, const Case &testCase) {
  std::string error;
  auto problem = Problem::create(runner.getSpec(), testCase, error);
  ASSERT_TRUE(problem) << error;
  auto outcome = runner.run(*problem);
  ASSERT_TRUE(bool(outcome)) << llvm::toString(outcome.takeError()) << "\n"
                             << testCase.describe();
  EXPECT_TRUE(outcome->comparison.ok) << outcome->comparison.message;
  EXPECT_EQ(outcome->ldmatrixConflicts, 0) << testCase.describe();
  EXPECT_EQ(outcome->unlandedCopies, 0) << testCase.describe();
}

TEST_P(GeneratedLanes, AgreeWithTheReference) {
  for (int i = 0; i < kernelsPerShard; ++i) {
    int index = GetParam() * kernelsPerShard + i;
    std::unique_ptr<LaneRunner> runner;
    for (int batch = 0; batch < batches; ++batch) {
      LaneCase lane = makeLaneCase(seed, index, batch);
      SCOPED_TRACE("lane case " + std::to_string(index) + " batch " +
                   std::to_string(batch) + " of seed " + std::to_string(seed) +
                   " for " + lane.chip);
      if (!runner) {
        auto made = LaneRunner::create(lane.testCase.specText, lane.chip);
        ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
        runner = std::move(*made);
      }
      runCase(*runner, lane.testCase);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, GeneratedLanes, testing::Range(0, shards));

TEST(LaneCases, CoverTheLowering) {
  std::set<std::string> specs, pairs;
  std::string all;
  for (int index = 0; index < shards * kernelsPerShard; ++index) {
    LaneCase lane = makeLaneCase(seed, index, 0);
    specs.insert(lane.testCase.specText);
    all += lane.testCase.specText + "\n";
    for (auto [one, other] : {std::pair("keys<bf16>", "query<fp16"),
                              {"keys<fp16>", "query<bf16"},
                              {"page 16>", "key_tile 64"},
                              {"block<dense>", "prefix left"},
                              {"contiguous", "block<dense>"},
                              {"key_warps 4", "query registers"},
                              {"row_blocks 2", "split<"}})
      if (lane.testCase.specText.find(one) != std::string::npos &&
          lane.testCase.specText.find(other) != std::string::npos)
        pairs.insert(std::string(one) + " with " + other);
  }
  EXPECT_GE(specs.size(), 60u);
  EXPECT_EQ(pairs.size(), 7u) << testing::PrintToString(pairs);
  for (const char *text : {"dim 64>",
                           "dim 128>",
                           "dim 256>",
                           "row_warps 1 ",
                           "row_warps 2 ",
                           "row_warps 3 ",
                           "row_warps 4 ",
                           "row_warps 5 ",
                           "row_warps 6 ",
                           "row_warps 7 ",
                           "row_warps 8 ",
                           "key_warps 1 ",
                           "key_warps 2 ",
                           "key_warps 4 ",
                           "key_tile 16 ",
                           "key_tile 32 ",
                           "key_tile 64 ",
                           "key_tile 128 ",
                           "stages 2 ",
                           "stages 4 ",
                           "query shared>",
                           "query registers>",
                           "row_blocks 2 max_sweeps 2",
                           "keys<bf16> values<bf16>",
                           "keys<bf16> values<fp16>",
                           "keys<fp16> values<bf16>",
                           "keys<fp16> values<fp16>",
                           "page_major page 16>",
                           "page 256",
                           " ring ",
                           " sink split<",
                           "head_major page",
                           "slot_stride",
                           "contiguous",
                           "block<dense> query<bf16",
                           "block<in_pages> query<fp16",
                           "prefix left within 5,",
                           "prefix symmetric",
                           "suffix bidirectional",
                           "positions given",
                           "columns packed",
                           "columns counted",
                           "lengths total",
                           "split<count of",
                           "split<keys of",
                           "with lse empty nan"})
    EXPECT_NE(all.find(text), std::string::npos) << text;
}

} // namespace
