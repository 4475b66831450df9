//===- LosslessTest.cpp - Speculation changes time, not tokens ------------===//
//
// Greedy output of the decoder with a draft is that of the target alone, one
// request at a time and one token a step: for every width, batch, agreement of
// the draft and route, from ragged prompts. Sampled output has the target's
// distribution.
//
//===----------------------------------------------------------------------===//

#include "test/reference/NaiveModel.h"
#include "tools/reference-model/SpecSession.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using namespace tokentile;
using namespace tokentile::reference;

namespace {

using TokenRows = std::vector<std::vector<int32_t>>;

constexpr int32_t requests = 32, mostDrafts = 15, maxTokens = 24;

TokenRows raggedPrompts(int32_t vocabulary) {
  TokenRows prompts;
  for (int32_t i = 0; i < requests; ++i) {
    std::vector<int32_t> &prompt = prompts.emplace_back();
    // 1 to 156 tokens: whole pages and chunks, and one more and less.
    for (int32_t j = 0; j < 1 + i * 5; ++j)
      prompt.push_back((i * 17 + j * 29 + j * j) % vocabulary);
  }
  return prompts;
}

class LosslessTest
    : public testing::TestWithParam<std::tuple<std::string, bool>> {
protected:
  void SetUp() override {
    StatusOr<std::unique_ptr<Device>> opened =
        openDevice(std::get<0>(GetParam()));
    if (!opened.ok())
      GTEST_SKIP() << opened.status().toString();
    device = *std::move(opened);
  }

  void makeRig(DraftRoute route) {
    ModelSource<TargetConfig> target{
        smallTarget(/*recurrent=*/std::get<1>(GetParam())), WeightSource(11)};
    ModelSource<DraftConfig> draft{smallDraft(target.config), WeightSource(12)};
    RigShape shape;
    shape.batch = requests;
    shape.drafts = mostDrafts;
    shape.tokens = 200;
    shape.chunk = 32;
    shape.promptBatch = 4;
    shape.pageTokens = 16;
    auto made = ReferenceRig::create(*device, shape, target, &draft, route);
    ASSERT_TRUE(made.ok()) << made.status().toString();
    rig = *std::move(made);
    prompts = raggedPrompts(target.config.vocabulary);
  }

  SessionResult run(int32_t batch, int32_t drafts, const TokenRows &prompts) {
    SessionOptions options;
    options.batch = batch;
    options.drafts = drafts;
    options.maxTokens = maxTokens;
    StatusOr<SessionResult> result =
        runSession(*device, *rig, options, prompts);
    EXPECT_TRUE(result.ok()) << result.status().toString();
    return result.ok() ? *result : SessionResult();
  }

  /// Decodes the first `batch` prompts with a draft that agrees so often.
  void expectLossless(int32_t batch, int32_t drafts, float probability) {
    SCOPED_TRACE("batch " + std::to_string(batch) + ", " +
                 std::to_string(drafts) + " drafts, agreement " +
                 std::to_string(probability));
    TokenRows some(prompts.begin(), prompts.begin() + batch);
    TokenRows want(plain.begin(), plain.begin() + batch);
    Buffer memory;
    StatusOr<Agreement> agreement =
        makeAgreement(*device, some, want, probability, memory);
    ASSERT_TRUE(agreement.ok()) << agreement.status().toString();
    rig->getDraft()->agree(*agreement);
    SessionResult result = run(batch, drafts, some);
    if (std::optional<Difference> difference =
            firstDifference(want, result.tokens))
      ADD_FAILURE() << "request " << difference->request << " differs at token "
                    << difference->position;
    const SpecCounters &counters = result.counters;
    EXPECT_EQ(counters.emitted, int64_t(batch) * maxTokens);
    if (probability == 0)
      EXPECT_EQ(counters.kept, std::vector<int64_t>(drafts, 0));
    if (probability == 1)
      EXPECT_EQ(counters.kept, counters.drafted);
    EXPECT_EQ(result.decodeStep.captures, 0);
    EXPECT_EQ(result.decodeStep.graphLaunches, 1);
    EXPECT_LE(result.decodeStep.copiesToHost, 1);
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<ReferenceRig> rig;
  TokenRows prompts, plain;
};

TEST_P(LosslessTest, GreedyOutputIsThatOfPlainDecode) {
  makeRig(DraftRoute::Batched);
  for (const std::vector<int32_t> &prompt : prompts)
    plain.push_back(run(1, 0, {prompt}).tokens.at(0));
  EXPECT_EQ(run(requests, 0, prompts).tokens, plain) << "plain, in a batch";
  const float agreements[] = {0, 0.5f, 0.8f, 0.95f, 1};
  for (int32_t drafts = 1; drafts <= mostDrafts; ++drafts)
    expectLossless(1 + drafts * 5 % 9, drafts, agreements[drafts % 5]);
  for (int32_t batch = 1; batch <= requests; batch += batch < 8 ? 1 : 6)
    expectLossless(batch, 1 + batch * 7 % mostDrafts, agreements[batch % 4]);
  expectLossless(requests, mostDrafts, 0.9f);
}

TEST_P(LosslessTest, OnEveryRoute) {
  for (DraftRoute route : {DraftRoute::Loop, DraftRoute::Reattend}) {
    makeRig(route);
    prompts.resize(3);
    plain = run(3, 0, prompts).tokens;
    expectLossless(3, 4, 0.7f);
  }
}

/// Upper bound of chi-square with so many degrees of freedom that a right
/// distribution exceeds once in a million runs (Wilson and Hilferty).
double chiSquareBound(double freedom) {
  double spread = 2 / (9 * freedom);
  return freedom * std::pow(1 - spread + 4.75 * std::sqrt(spread), 3);
}

TEST_P(LosslessTest, SampledOutputHasTheTargetsDistribution) {
  constexpr int32_t vocabulary = 8, drafts = 3, samples = 2048, batch = 64;
  constexpr float temperature = 0.7f;
  ModelSource<TargetConfig> target{smallTarget(std::get<1>(GetParam())),
                                   WeightSource(5)};
  target.config.vocabulary = vocabulary;
  ModelSource<DraftConfig> draft{smallDraft(target.config), WeightSource(6)};
  RigShape shape;
  shape.batch = batch;
  shape.drafts = drafts;
  shape.tokens = 32;
  shape.chunk = 16;
  shape.promptBatch = 16;
  shape.pageTokens = 16;
  auto made =
      ReferenceRig::create(*device, shape, target, &draft, DraftRoute::Batched);
  ASSERT_TRUE(made.ok()) << made.status().toString();
  rig = *std::move(made);
  std::vector<int32_t> prompt = {3, 1, 4, 1, 5};
  SessionOptions options;
  options.drafts = drafts;
  options.maxTokens = 2;
  options.temperature = temperature;
  options.seed = 1000;
  StatusOr<SessionResult> result =
      runSession(*device, *rig, options, TokenRows(samples, prompt));
  ASSERT_TRUE(result.ok()) << result.status().toString();
  EXPECT_GT(result->counters.kept[0], samples / 50);
  EXPECT_LT(result->counters.kept[0], samples);

  // Pairs of tokens: the second is decided behind an accepted draft or by the
  // next step.
  NaiveTarget naive(target.config, target.weights);
  auto chances = [&](const std::vector<int32_t> &tokens) {
    Row p = naive.run(tokens).logits.back();
    double sum = 0;
    for (double &value : p)
      sum += value = std::exp(value / temperature);
    for (double &value : p)
      value /= sum;
    return p;
  };
  std::vector<double> counts(vocabulary * vocabulary, 0);
  for (const std::vector<int32_t> &tokens : result->tokens)
    counts[tokens.at(0) * vocabulary + tokens.at(1)] += 1;
  Row first = chances(prompt);
  double square = 0, freedom = -1, restCount = 0, restWant = 0;
  auto addBin = [&](double count, double want) {
    square += (count - want) * (count - want) / want;
    freedom += 1;
  };
  for (int32_t a = 0; a < vocabulary; ++a) {
    std::vector<int32_t> tokens = prompt;
    tokens.push_back(a);
    Row second = chances(tokens);
    for (int32_t b = 0; b < vocabulary; ++b) {
      double want = samples * first[a] * second[b];
      double count = counts[a * vocabulary + b];
      if (want >= 8) {
        addBin(count, want);
      } else {
        restCount += count;
        restWant += want;
      }
    }
  }
  if (restWant > 0)
    addBin(restCount, restWant);
  EXPECT_GT(freedom, 10);
  EXPECT_LT(square, chiSquareBound(freedom)) << freedom << " degrees";
}

TEST(FirstDifference, NamesRequestAndToken) {
  const TokenRows want = {{1, 2}, {3, 4, 5}};
  auto at = [&](const TokenRows &got) {
    std::optional<Difference> difference = firstDifference(want, got);
    return difference ? std::to_string(difference->request) + ":" +
                            std::to_string(difference->position)
                      : "none";
  };
  EXPECT_EQ(at(want), "none");
  EXPECT_EQ(at({{1, 2}, {3, 0, 5}}), "1:1");
  EXPECT_EQ(at({{1, 2}, {3, 4}}), "1:2") << "it ended early";
  EXPECT_EQ(at({{1, 2, 9}, {3, 4, 5}}), "0:2") << "it went on";
  EXPECT_EQ(at({{1, 2}}), "1:0") << "a request is missing";
}

INSTANTIATE_TEST_SUITE_P(Devices, LosslessTest,
                         testing::Combine(testing::Values("host", "cuda"),
                                          testing::Bool()),
                         [](const auto &info) {
                           return std::get<0>(info.param) +
                                  (std::get<1>(info.param) ? "_recurrent"
                                                           : "_attention");
                         });

} // namespace
