//===- DraftSamplerTest.cpp - Draft tokens out of draft logits ------------===//

#include "runtime/DraftSampler.h"
#include "TestKernel.h"

#include <cmath>
#include <map>

using namespace tokentile;
using namespace tokentile::test;

namespace {

constexpr int32_t batch = 3, width = 5, drafts = width - 1, vocabulary = 5;

class DraftSamplerTest : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    StatusOr<std::unique_ptr<Device>> opened = openDevice(GetParam());
    if (!opened.ok())
      GTEST_SKIP() << opened.status().toString();
    device = *std::move(opened);
    stream = *device->createStream();
  }

  template <typename T>
  T *upload(const std::vector<T> &values) {
    size_t bytes = values.size() * sizeof(T);
    buffers.push_back(*device->allocate(bytes));
    void *to = buffers.back().data();
    EXPECT_TRUE(device->copyToDevice(to, values.data(), bytes).ok());
    return buffers.back().as<T>();
  }
  template <typename T>
  void download(std::vector<T> &values, const T *from) {
    size_t bytes = values.size() * sizeof(T);
    EXPECT_TRUE(device->copyToHost(values.data(), from, bytes).ok());
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
  std::vector<Buffer> buffers;
};

/// The greatest logit, or a draw from the probabilities that it tells.
TEST_P(DraftSamplerTest, TellsWhatItDrewFrom) {
  StatusOr<DraftSampler> sampler = DraftSampler::create(*device);
  ASSERT_TRUE(sampler.ok()) << sampler.status().toString();
  std::vector<float> logits(batch * drafts * vocabulary);
  for (size_t i = 0; i < logits.size(); ++i)
    logits[i] = float(i * 7 % 5) / 2;
  std::vector<float> temperatures = {0, 0, 1}, probabilities(logits.size());
  std::vector<int32_t> lengths(batch), tokens(batch * width, -1);
  std::map<int32_t, int32_t> counts;
  constexpr int32_t draws = 4000;
  StepBatch step;
  step.shape = {batch, width, false};
  step.temperatures = upload(temperatures);
  step.draftProbabilities = upload(probabilities);
  step.tokens = upload(tokens);
  const float *source = upload(logits);
  int32_t *lengthMemory = upload(lengths);
  uint64_t *seedMemory = upload(std::vector<uint64_t>(batch));
  step.lengths = lengthMemory;
  step.seeds = seedMemory;
  for (int32_t seed = 0; seed < draws; ++seed) {
    std::vector<uint64_t> seeds(batch, seed);
    ASSERT_OK(device->copyToDevice(seedMemory, seeds.data(), batch * 8));
    ASSERT_OK(sampler->sample(step, source, vocabulary, DraftDistribution::Full,
                              *stream));
    ASSERT_OK(stream->synchronize());
    download(tokens, step.tokens);
    counts[tokens[2 * width + 1]] += 1;
  }
  download(probabilities, step.draftProbabilities);
  float sum = 0;
  for (int32_t v = 0; v < vocabulary; ++v) {
    float p = probabilities[2 * drafts * vocabulary + v];
    sum += p;
    EXPECT_NEAR(counts[v] / float(draws), p, 4 * std::sqrt(p / draws)) << v;
  }
  EXPECT_NEAR(sum, 1, 1e-5);
  for (int32_t i = 0; i < drafts; ++i) {
    auto first = logits.begin() + i * vocabulary;
    EXPECT_EQ(tokens[1 + i],
              std::max_element(first, first + vocabulary) - first);
  }
  EXPECT_EQ(tokens[0], -1);
  expectError(sampler->sample(step, source, vocabulary,
                              DraftDistribution::Sparse, *stream),
              StatusCode::InvalidArgument, "sparse");
}

/// What it says of a row without a finite logit must be so as well: acceptance
/// would be biased by what lay there before.
TEST_P(DraftSamplerTest, ARowThatIsNotFiniteIsCertainOfItsToken) {
  StatusOr<DraftSampler> sampler = DraftSampler::create(*device);
  ASSERT_TRUE(sampler.ok()) << sampler.status().toString();
  std::vector<float> logits(batch * drafts * vocabulary, 1);
  constexpr int32_t bad = (2 * drafts + 1) * vocabulary;
  logits[bad + 3] = NAN;
  std::vector<float> probabilities(logits.size(), 0.125f);
  std::vector<int32_t> tokens(batch * width, -1);
  StepBatch step;
  step.shape = {batch, width, false};
  step.temperatures = upload(std::vector<float>(batch, 1));
  step.draftProbabilities = upload(probabilities);
  step.tokens = upload(tokens);
  step.lengths = upload(std::vector<int32_t>(batch));
  step.seeds = upload(std::vector<uint64_t>(batch));
  ASSERT_OK(sampler->sample(step, upload(logits), vocabulary,
                            DraftDistribution::Full, *stream));
  ASSERT_OK(stream->synchronize());
  download(tokens, step.tokens);
  download(probabilities, step.draftProbabilities);
  EXPECT_EQ(tokens[2 * width + 2], 0);
  EXPECT_EQ(std::vector<float>(probabilities.begin() + bad,
                               probabilities.begin() + bad + vocabulary),
            (std::vector<float>{1, 0, 0, 0, 0}));
  EXPECT_FLOAT_EQ(probabilities[bad - 1], 0.2f);
}

INSTANTIATE_TEST_SUITE_P(Runtime, DraftSamplerTest,
                         testing::Values("host", "cuda"),
                         [](const auto &info) { return info.param; });

} // namespace
