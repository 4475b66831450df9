//===- SpecSamplingTest.cpp - Sampled output has the target's law ---------===//
//
// The first three tokens of many requests against the exact joint probabilities
// of the target, by a chi-square test, for every kind of draft distribution.
//
//===----------------------------------------------------------------------===//

#include "FakeModel.h"

#include <cmath>

using namespace tokentile;
using namespace tokentile::test;

namespace {

constexpr int32_t vocabulary = 6, emittedTokens = 3, sequences = 216;

FakeOptions samplingOptions(DraftDistribution kind, const char *device) {
  FakeOptions options;
  options.device = device;
  options.slots = 32;
  options.vocabulary = vocabulary;
  options.maxTokens = 16;
  options.distribution = kind;
  options.support = kind == DraftDistribution::Sparse ? 3 : 0;
  options.agreement = 500;
  return options;
}

SpecRequest sampled(int64_t id, float temperature) {
  SpecRequest request;
  request.id = id;
  request.prompt = {1, 4, 2};
  request.maxTokens = emittedTokens;
  request.temperature = temperature;
  request.seed = uint64_t(id) * 7919;
  return request;
}

std::unique_ptr<SpecDecoder> decoderOf(FakeWorld &world, int32_t drafts) {
  SpecOptions spec;
  spec.batches = {1, 32};
  spec.drafts = {drafts};
  spec.promptBatch = 8;
  return world.decoder(spec);
}

/// Joint probability of every sequence, first token most significant.
std::vector<double> exactLaw(const FakeOptions &options, double temperature) {
  std::vector<double> law(sequences);
  for (int32_t s = 0; s < sequences; ++s) {
    std::vector<int32_t> history = {1, 4, 2};
    law[s] = 1;
    for (int32_t token : {s / 36, s / 6 % 6, s % 6}) {
      law[s] *= nextProbabilities(options, history, temperature)[token];
      history.push_back(token);
    }
  }
  return law;
}

/// How many standard deviations the statistic lies above what chance gives
/// (Wilson and Hilferty's cube root). Rare sequences count as one.
double chiSquareDeviation(const std::vector<double> &law,
                          const std::vector<int64_t> &counts, int64_t total) {
  double statistic = 0, restLaw = 0;
  int64_t restCount = 0, cells = 0;
  auto add = [&](double probability, int64_t count) {
    double expected = probability * double(total);
    statistic +=
        (double(count) - expected) * (double(count) - expected) / expected;
    ++cells;
  };
  for (int32_t s = 0; s < sequences; ++s) {
    if (law[s] * double(total) >= 8) {
      add(law[s], counts[s]);
      continue;
    }
    restLaw += law[s];
    restCount += counts[s];
  }
  if (restLaw * double(total) >= 8)
    add(restLaw, restCount);
  double freedom = double(cells) - 1, spread = 2 / (9 * freedom);
  return (std::cbrt(statistic / freedom) - (1 - spread)) / std::sqrt(spread);
}

double deviation(FakeWorld &world, int32_t drafts, float temperature,
                 int64_t total) {
  std::unique_ptr<SpecDecoder> decoder = decoderOf(world, drafts);
  for (int64_t id = 0; id < total; ++id)
    EXPECT_TRUE(decoder->submit(sampled(id, temperature)).ok());
  Outcome outcome = runAll(*decoder);
  std::vector<int64_t> counts(sequences);
  for (const auto &[id, tokens] : outcome.tokens) {
    EXPECT_EQ(tokens.size(), size_t(emittedTokens));
    counts[tokens[0] * 36 + tokens[1] * 6 + tokens[2]] += 1;
  }
  return chiSquareDeviation(exactLaw(world.options, temperature), counts,
                            total);
}

using Case = std::tuple<DraftDistribution, int32_t, float, const char *>;
class Sampling : public testing::TestWithParam<Case> {};

TEST_P(Sampling, HasTheTargetsLaw) {
  auto [kind, drafts, temperature, device] = GetParam();
  FakeWorld world(samplingOptions(kind, device));
  if (!world.device)
    GTEST_SKIP() << "no device " << device;
  EXPECT_LT(deviation(world, drafts, temperature, 30'000), 4.5);
  EXPECT_EQ(world.pagesInUse(), 0);
}

std::string caseName(const testing::TestParamInfo<Case> &info) {
  const char *kinds[] = {"OneHot", "Full", "Sparse"};
  return std::string(kinds[int(std::get<0>(info.param))]) + "Drafts" +
         std::to_string(std::get<1>(info.param)) + "Temperature" +
         std::to_string(int(100 * std::get<2>(info.param))) +
         std::get<3>(info.param);
}

constexpr DraftDistribution allKinds[] = {DraftDistribution::OneHot,
                                          DraftDistribution::Full,
                                          DraftDistribution::Sparse};
INSTANTIATE_TEST_SUITE_P(Host, Sampling,
                         testing::Combine(testing::ValuesIn(allKinds),
                                          testing::Values(0, 1, 4),
                                          testing::Values(1.0f, 0.6f),
                                          testing::Values("host")),
                         caseName);
INSTANTIATE_TEST_SUITE_P(Gpu, Sampling,
                         testing::Combine(testing::ValuesIn(allKinds),
                                          testing::Values(4),
                                          testing::Values(1.0f),
                                          testing::Values("cuda")),
                         caseName);

/// The test sees a draft that tells other probabilities than it drew from.
TEST(SpecSampling, TheTestSeesABias) {
  for (DraftDistribution kind :
       {DraftDistribution::Full, DraftDistribution::Sparse}) {
    FakeOptions options = samplingOptions(kind, "host");
    options.lies = true;
    FakeWorld world(options);
    EXPECT_GT(deviation(world, 4, 1.0f, 30'000), 10) << int(kind);
  }
}

TEST(SpecSampling, DoesNotDependOnTheBatch) {
  for (DraftDistribution kind : allKinds) {
    FakeWorld world(samplingOptions(kind, "host"));
    std::unique_ptr<SpecDecoder> together = decoderOf(world, 4);
    for (int64_t id = 0; id < 40; ++id)
      ASSERT_OK(together->submit(sampled(id, id % 3 ? 1.0f : 0.0f)));
    Outcome outcome = runAll(*together);
    std::unique_ptr<SpecDecoder> alone = decoderOf(world, 4);
    for (int64_t id : {0, 7, 39}) {
      ASSERT_OK(alone->submit(sampled(id, id % 3 ? 1.0f : 0.0f)));
      EXPECT_EQ(runAll(*alone).tokens[id], outcome.tokens[id]);
    }
    EXPECT_EQ(outcome.tokens[39],
              plainDecode(world.options, {1, 4, 2}, emittedTokens));
  }
}

} // namespace
