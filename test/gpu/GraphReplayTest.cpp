//===- GraphReplayTest.cpp - One recorded launch, many steps --------------===//
//
// An engine records a launch once and replays it while requests grow, shrink,
// come and go. Only device memory changes between replays: keys, lengths,
// columns, positions, tables. Runs on the host always, and on a GPU where there
// is one. TOKENTILE_TEST_REPLAYS says how many replays of each graph.
//
//===----------------------------------------------------------------------===//

#include "test/gpu/Recording.h"
#include "test/numerics/SpecText.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <random>

using namespace tokentile;

namespace {

constexpr int32_t batch = 3;
constexpr int32_t maxKeys = 1100;

/// What requests look like at one step.
struct Step {
  std::vector<int32_t> contexts, columns;
};

const std::vector<Step> edgeSteps = {
    {{0, 1, 15}, {4, 4, 4}},      {{16, 63, 1000}, {4, 1, 3}},
    {{17, 1000, 0}, {4, 2, 4}},   {{64, 0, 127}, {1, 0, 4}},
    {{0, 0, 0}, {0, 0, 0}},       {{1000, 1001, 1002}, {4, 3, 2}},
    {{128, 129, 130}, {2, 2, 2}},
};

/// Enough that every step also follows the longest ones.
int replaysFor(size_t steps) {
  const char *text = std::getenv("TOKENTILE_TEST_REPLAYS");
  return text ? std::atoi(text) : int(2 * steps);
}

/// The steps at edges, and more of them at random for more replays.
std::vector<Step> drawSteps(int replays, std::mt19937 &random) {
  std::vector<Step> steps = edgeSteps;
  for (int i = 0; i < replays / 100; ++i) {
    Step step;
    for (int32_t b = 0; b < batch; ++b) {
      step.columns.push_back(int32_t(random() % 5));
      step.contexts.push_back(int32_t(random() % (maxKeys - 4)));
    }
    steps.push_back(step);
  }
  return steps;
}

Case makeStep(const std::string &spec, const Step &step, uint64_t seed) {
  Case testCase;
  testCase.specText = spec;
  testCase.batch = batch;
  testCase.contexts = testCase.lengths = step.contexts;
  testCase.columns = step.columns;
  testCase.seed = seed;
  return testCase;
}

/// Device, mask, and what the launch is planned for: much longer requests are
/// divided into ranges of tiles where the kernel has them.
class GraphReplay : public testing::TestWithParam<
                        std::tuple<std::string, std::string, int32_t>> {};

TEST_P(GraphReplay, StaysRightWhileLengthsAndTablesChange) {
  auto [name, rest, bound] = GetParam();
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
  int replays = replaysFor(edgeSteps.size());
  ASSERT_GT(replays, 0) << "TOKENTILE_TEST_REPLAYS is a count";
  std::mt19937 random(1);
  std::vector<Step> steps = drawSteps(replays, random);
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
  Status recorded = recording.record(text, {batch, bound}, all);
  ASSERT_TRUE(recorded.ok()) << recorded.toString();
  for (int i = 0; i < replays; ++i) {
    // In order at first, then so that every step follows every other one.
    size_t at =
        size_t(i) < 2 * all.size() ? i % all.size() : random() % all.size();
    Status status = recording.replay(*all[at]);
    ASSERT_TRUE(status.ok()) << status.toString();
    Comparison verdict = all[at]->check();
    ASSERT_TRUE(verdict.ok)
        << "replay " << i << " step " << at << ": " << verdict.message;
  }
  std::printf("%d replays of one graph with %zu steps, each checked\n", replays,
              all.size());
}

INSTANTIATE_TEST_SUITE_P(
    Devices, GraphReplay,
    testing::Combine(testing::Values("host", "cuda"),
                     testing::Values("all, suffix causal> ",
                                     "left within 100, suffix causal> ",
                                     "symmetric within 30, suffix "
                                     "bidirectional> "),
                     testing::Values(maxKeys, 50000)),
    [](const auto &info) {
      std::string prefix = std::get<1>(info.param);
      return std::get<0>(info.param) + "_" +
             prefix.substr(0, prefix.find_first_of(" ,")) + "_" +
             std::to_string(std::get<2>(info.param));
    });

} // namespace
