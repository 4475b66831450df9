//===- GraphReplayTest.cpp - One recorded launch, many steps --------------===//
//
// An engine records a launch once and replays it while requests grow, shrink,
// come and go. Only device memory changes between replays: keys, lengths,
// columns, positions, tables. Runs on the host always, and on a GPU where there
// is one.
//
//===----------------------------------------------------------------------===//

#include "test/gpu/Recording.h"
#include "test/numerics/SpecText.h"

#include <gtest/gtest.h>

using namespace tokentile;

namespace {

constexpr int32_t batch = 3;
constexpr int32_t maxKeys = 1100;

/// What requests look like at one step.
struct Step {
  std::vector<int32_t> contexts, columns;
};

const Step steps[] = {
    {{0, 1, 15}, {4, 4, 4}},      {{16, 63, 1000}, {4, 1, 3}},
    {{17, 1000, 0}, {4, 2, 4}},   {{64, 0, 127}, {1, 0, 4}},
    {{0, 0, 0}, {0, 0, 0}},       {{1000, 1001, 1002}, {4, 3, 2}},
    {{128, 129, 130}, {2, 2, 2}},
};

Case makeStep(const std::string &spec, const Step &step, uint64_t seed) {
  Case testCase;
  testCase.specText = spec;
  testCase.batch = batch;
  testCase.contexts = testCase.lengths = step.contexts;
  testCase.columns = step.columns;
  testCase.seed = seed;
  return testCase;
}

class GraphReplay
    : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(GraphReplay, StaysRightWhileLengthsAndTablesChange) {
  auto [name, rest] = GetParam();
  StatusOr<std::unique_ptr<Device>> device = openDevice(name);
  if (!device.ok())
    GTEST_SKIP() << device.status().toString();
  std::string text =
      std::string("attn.kernel @replay heads<12 over 2, dim 128> tokens<4> ") +
      "sees<prefix " + rest +
      "keys<bf16> values<bf16> paging<page_major page "
      "16> block<in_pages> query<bf16 token_major columns counted> "
      "output<bf16 token_major with lse>";
  mlir::MLIRContext context;
  SpecModule spec = parseSpec(context, text);
  ASSERT_TRUE(spec.kernel) << spec.error;
  std::vector<std::unique_ptr<Problem>> problems;
  std::vector<Problem *> all;
  for (const Step &step : steps) {
    std::string error;
    problems.push_back(Problem::create(
        spec.kernel, makeStep(text, step, problems.size() + 1), error));
    ASSERT_TRUE(problems.back()) << error;
    all.push_back(problems.back().get());
  }
  Recording recording(**device);
  Status recorded = recording.record(text, {batch, maxKeys}, all);
  ASSERT_TRUE(recorded.ok()) << recorded.toString();
  // Twice, so that every step also follows the longest ones.
  for (int round = 0; round < 2; ++round)
    for (size_t i = 0; i < all.size(); ++i) {
      Status status = recording.replay(*all[i]);
      ASSERT_TRUE(status.ok()) << status.toString();
      Comparison verdict = all[i]->check();
      EXPECT_TRUE(verdict.ok)
          << "round " << round << " step " << i << ": " << verdict.message;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Devices, GraphReplay,
    testing::Combine(testing::Values("host", "cuda"),
                     testing::Values("all, suffix causal> ",
                                     "left within 100, suffix causal> ",
                                     "symmetric within 30, suffix "
                                     "bidirectional> ")),
    [](const auto &info) {
      std::string prefix = std::get<1>(info.param);
      return std::get<0>(info.param) + "_" +
             prefix.substr(0, prefix.find_first_of(" ,"));
    });

} // namespace
