//===- AcceptTest.cpp - The kernels of acceptance, one by one -------------===//

#include "runtime/services/Accept.h"
#include "TestKernel.h"
#include "runtime/ServiceKernel.h"

#include <cmath>
#include <cstring>
#include <map>

using namespace tokentile;
using namespace tokentile::services;
using namespace tokentile::test;

namespace {

constexpr int32_t batch = 3, width = 5, drafts = width - 1, vocabulary = 20'003;
constexpr int32_t slots = 4, support = 3;
constexpr int32_t head = sizeof(StepResult) / 4, stride = head + width;

/// A step of three requests in slots 2, none and 0.
struct Scene {
  std::vector<StepRequest> requests = std::vector<StepRequest>(batch);
  std::vector<int32_t> tokens = std::vector<int32_t>(batch * width, 1);
  std::vector<int32_t> columns = {width, 0, 3};
  std::vector<int32_t> lengths = {10, 0, 20};
  std::vector<float> logits =
      std::vector<float>(batch * width * vocabulary, NAN);
  std::vector<float> probabilities;
  std::vector<int32_t> candidates;
  std::vector<int32_t> slotLengths = {20, 77, 10, 77};
  /// Entries of a state class with snapshots.
  std::vector<int32_t> states = std::vector<int32_t>(slots * width);
  DraftKind kind = DraftKind::OneHot;
  bool prompt = false;
  // Results.
  std::vector<int32_t> results = std::vector<int32_t>(batch * stride, -7);
  std::vector<int32_t> accepted = std::vector<int32_t>(batch, -7);
  std::vector<RowStats> stats = std::vector<RowStats>(batch * width);

  Scene() {
    for (int32_t b = 0; b < batch; ++b) {
      requests[b] = {uint64_t(b) + 99, b == 1 ? -1 : 2 - b, columns[b], 100, 0,
                     {-1, -1, -1, -1}};
      for (int32_t i = 0; i < columns[b]; ++i)
        for (int32_t v = 0; v < vocabulary; ++v)
          logit(b, i, v) = float((v * 31 + i * 7 + b) % 20011) / 20011;
    }
    for (size_t i = 0; i < states.size(); ++i)
      states[i] = int32_t(100 + i);
  }
  float &logit(int32_t b, int32_t i, int32_t v) {
    return logits[(b * width + i) * vocabulary + v];
  }
  int32_t best(int32_t b, int32_t i) {
    float *row = &logit(b, i, 0);
    return int32_t(std::max_element(row, row + vocabulary) - row);
  }
  StepResult result(int32_t b) const {
    StepResult result;
    std::memcpy(&result, &results[b * stride], sizeof(result));
    return result;
  }
  std::vector<int32_t> emitted(int32_t b) const {
    auto first = results.begin() + b * stride + head;
    return {first, first + result(b).emitted};
  }
};

class AcceptTest : public testing::TestWithParam<const char *> {
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
    if (values.empty())
      return nullptr;
    buffers.push_back(*device->allocate(values.size() * sizeof(T)));
    EXPECT_TRUE(device
                    ->copyToDevice(buffers.back().data(), values.data(),
                                   values.size() * sizeof(T))
                    .ok());
    return buffers.back().as<T>();
  }
  template <typename T>
  void download(std::vector<T> &values, const T *from) {
    EXPECT_TRUE(
        device->copyToHost(values.data(), from, values.size() * sizeof(T))
            .ok());
  }

  void launch(const char *name,
              ServiceKernel<AcceptArgs>::HostFunction function, Extent grid,
              const AcceptArgs &args) {
    if (!kernels.count(name)) {
      auto kernel = ServiceKernel<AcceptArgs>::create(*device, name, function);
      ASSERT_OK(kernel.status());
      kernels[name] = *std::move(kernel);
    }
    ASSERT_OK(kernels[name].launch(grid, partThreads, args, *stream));
  }

  /// Runs acceptance and reads back what it changed.
  void run(Scene &scene) {
    buffers.clear();
    AcceptArgs args = {};
    args.requests = upload(scene.requests);
    args.tokens = upload(scene.tokens);
    args.columns = upload(scene.columns);
    args.lengths = upload(scene.lengths);
    args.logits = upload(scene.logits);
    int32_t parts = partsOf(vocabulary);
    args.partStats = upload(std::vector<RowStats>(batch * width * parts));
    args.stats = upload(scene.stats);
    args.draws = upload(std::vector<Best>(batch * parts));
    args.draftProbabilities = upload(scene.probabilities);
    args.draftSupport = upload(scene.candidates);
    args.results = upload(scene.results);
    args.accepted = upload(scene.accepted);
    args.slotLengths = upload(scene.slotLengths);
    args.slotStates[1] = upload(scene.states);
    args.stateStrides[1] = width;
    args.draftKind = scene.kind;
    args.support = support;
    args.batch = batch;
    args.width = width;
    args.vocabulary = vocabulary;
    args.resultStride = stride;
    args.prompt = scene.prompt;
    if (!scene.prompt) {
      launch("acceptStats", acceptStats, {parts, width, batch}, args);
      launch("acceptDrafts", acceptDrafts, {batch, 1, 1}, args);
      launch("acceptDraw", acceptDraw, {parts, batch, 1}, args);
    }
    launch("accept", services::accept, {batch, 1, 1}, args);
    ASSERT_OK(stream->synchronize());
    download(scene.results, args.results);
    download(scene.accepted, args.accepted);
    download(scene.stats, args.stats);
    download(scene.slotLengths, args.slotLengths);
    download(scene.states, args.slotStates[1]);
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
  std::vector<Buffer> buffers;
  std::map<std::string, ServiceKernel<AcceptArgs>> kernels;
};

TEST_P(AcceptTest, KeepsGreedyDraftsAndAdvancesTheSlot) {
  Scene scene;
  for (int32_t i = 0; i < drafts; ++i)
    scene.tokens[1 + i] = scene.best(0, i);
  scene.tokens[3] += 1; // draft 2 is wrong
  scene.tokens[2 * width + 1] = -5;
  run(scene);
  EXPECT_EQ(scene.result(0).kept, 2);
  EXPECT_EQ(scene.emitted(0),
            (std::vector<int32_t>{scene.best(0, 0), scene.best(0, 1),
                                  scene.best(0, 2)}));
  // A draft beyond the vocabulary is not kept.
  EXPECT_EQ(scene.result(2).kept, 0);
  EXPECT_EQ(scene.emitted(2), std::vector<int32_t>{scene.best(2, 0)});
  EXPECT_EQ(scene.accepted, (std::vector<int32_t>{3, 0, 1}));
  EXPECT_EQ(scene.slotLengths, (std::vector<int32_t>{21, 77, 13, 77}));
  // The state after row 2 is now that of slot 2; other slots keep theirs.
  std::vector<int32_t> states = Scene().states;
  std::swap(states[2 * width], states[2 * width + 2]);
  EXPECT_EQ(scene.states, states);
  // Padding commits nothing.
  EXPECT_EQ(scene.result(1).committed + scene.result(1).emitted, 0);
}

TEST_P(AcceptTest, LimitsAndStopTokensClampTheCommit) {
  Scene scene;
  for (int32_t b : {0, 2})
    for (int32_t i = 0; i < drafts; ++i)
      scene.tokens[b * width + 1 + i] = scene.best(b, i);
  scene.requests[0].emitLimit = 2;
  scene.requests[2].stops[3] = scene.best(2, 1);
  run(scene);
  EXPECT_EQ(scene.result(0).kept, drafts);
  EXPECT_EQ(scene.result(0).emitted, 2);
  EXPECT_EQ(scene.result(2).kept, 2);
  EXPECT_EQ(scene.emitted(2).back(), scene.best(2, 1));
  EXPECT_EQ(scene.accepted, (std::vector<int32_t>{2, 0, 2}));
  // The token after the last draft, where nothing clamps.
  Scene whole;
  for (int32_t i = 0; i < drafts; ++i)
    whole.tokens[1 + i] = whole.best(0, i);
  run(whole);
  EXPECT_EQ(whole.result(0).emitted, width);
  EXPECT_EQ(whole.emitted(0).back(), whole.best(0, drafts));
}

TEST_P(AcceptTest, PromptsCommitEveryRow) {
  Scene scene;
  scene.prompt = true;
  run(scene);
  EXPECT_EQ(scene.accepted, (std::vector<int32_t>{width, 0, 3}));
  EXPECT_EQ(scene.slotLengths, (std::vector<int32_t>{23, 77, 15, 77}));
  EXPECT_EQ(scene.result(0).emitted, 0);
  EXPECT_EQ(scene.states, Scene().states);
}

TEST_P(AcceptTest, NamesTheRowThatIsNotFinite) {
  for (float bad : {NAN, INFINITY}) {
    Scene scene;
    for (int32_t i = 0; i < drafts; ++i)
      scene.tokens[1 + i] = scene.best(0, i);
    scene.logit(0, 3, 12'345) = bad;
    run(scene);
    EXPECT_EQ(scene.result(0).badRow, 4);
    EXPECT_EQ(scene.result(0).committed, 0);
    EXPECT_EQ(scene.slotLengths[2], 10);
    EXPECT_EQ(scene.result(2).badRow, 0);
  }
  Scene scene;
  for (int32_t v = 0; v < vocabulary; ++v)
    scene.logit(2, 0, v) = -INFINITY;
  run(scene);
  EXPECT_EQ(scene.result(2).badRow, 1);
}

/// A rejected draft may be a token after which the target is not finite.
TEST_P(AcceptTest, RowsThatPlainDecodeLacksMayHoldAnything) {
  for (float temperature : {0.0f, 1.0f}) {
    Scene rejected;
    rejected.requests[0].temperature = temperature;
    rejected.tokens[1] = -1;
    Scene stopped = rejected;
    stopped.tokens[1] = stopped.best(0, 0);
    stopped.logit(0, 0, stopped.tokens[1]) = 1000;
    stopped.requests[0].stops[0] = stopped.tokens[1];
    for (Scene *scene : {&rejected, &stopped}) {
      Scene want = *scene;
      run(want);
      for (int32_t i = 1; i < width; ++i)
        scene->logit(0, i, 7) = NAN;
      run(*scene);
      EXPECT_EQ(scene->result(0).badRow, 0);
      EXPECT_EQ(scene->result(0).committed, 1);
      EXPECT_EQ(scene->emitted(0), want.emitted(0));
    }
  }
}

TEST_P(AcceptTest, StatisticsOfPartsJoin) {
  ASSERT_GT(partsOf(vocabulary), 2);
  Scene scene;
  scene.requests[0].temperature = 0.7f;
  // A part without any weight, and one that outweighs the others.
  for (int32_t v = partOf(vocabulary, 1).first; v < partOf(vocabulary, 1).end;
       ++v)
    scene.logit(0, 1, v) = -INFINITY;
  scene.logit(0, 2, vocabulary - 1) = 9;
  run(scene);
  for (int32_t i = 0; i < width; ++i) {
    const float *logits = &scene.logit(0, i, 0);
    double max = logits[scene.best(0, i)], sum = 0;
    for (int32_t v = 0; v < vocabulary; ++v)
      sum += std::exp((logits[v] - max) / 0.7f);
    EXPECT_EQ(scene.stats[i].best, scene.best(0, i)) << "row " << i;
    EXPECT_EQ(scene.stats[i].max, float(max)) << "row " << i;
    EXPECT_NEAR(scene.stats[i].sum / sum, 1, 1e-5) << "row " << i;
  }
}

/// Tokens of all parts are drawn as often as they should be.
TEST_P(AcceptTest, DrawsFromEveryPart) {
  std::map<int32_t, double> law = {{3, 0.1}, {9'000, 0.3}, {19'000, 0.6}};
  std::map<int32_t, int32_t> counts;
  constexpr int32_t steps = 150;
  for (uint64_t step = 0; step < steps; ++step) {
    Scene scene;
    scene.columns = {1, 0, 1};
    for (int32_t b : {0, 2}) {
      scene.requests[b].temperature = 1;
      scene.requests[b].seed = 2 * step + uint64_t(b == 2);
      std::fill_n(&scene.logit(b, 0, 0), vocabulary, -INFINITY);
      for (auto [token, probability] : law)
        scene.logit(b, 0, token) = float(std::log(probability));
    }
    run(scene);
    for (int32_t b : {0, 2})
      counts[scene.emitted(b).back()] += 1;
  }
  for (auto [token, p] : law)
    EXPECT_NEAR(counts[token], 2 * steps * p,
                4.5 * std::sqrt(2 * steps * p * (1 - p)))
        << "token " << token;
  EXPECT_EQ(counts.size(), law.size());
}

/// A draft that drew from the target's own law is always kept.
TEST_P(AcceptTest, EqualDistributionsKeepEverything) {
  Scene scene;
  scene.kind = DraftKind::Full;
  scene.probabilities.resize(batch * drafts * vocabulary);
  for (int32_t b : {0, 2}) {
    scene.requests[b].temperature = 0.5f;
    for (int32_t i = 0; i < drafts && i < scene.columns[b]; ++i) {
      double sum = 0;
      for (int32_t v = 0; v < vocabulary; ++v)
        sum += std::exp(double(scene.logit(b, i, v)) * 2);
      for (int32_t v = 0; v < vocabulary; ++v)
        scene.probabilities[(b * drafts + i) * vocabulary + v] =
            float(std::exp(double(scene.logit(b, i, v)) * 2) / sum * 0.99999);
      scene.tokens[b * width + 1 + i] = (i * 97 + b) % vocabulary;
    }
  }
  run(scene);
  EXPECT_EQ(scene.result(0).kept, drafts);
  EXPECT_EQ(scene.result(2).kept, 2);
}

/// What the target cannot emit is neither kept nor drawn, and what replaces a
/// rejected draft is drawn where p exceeds q only.
TEST_P(AcceptTest, DrawsTheResidualOnly) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Scene scene;
    scene.kind = DraftKind::Sparse;
    scene.probabilities.assign(batch * drafts * support, 1.0f / support);
    scene.candidates.resize(batch * drafts * support);
    for (int32_t i = 0; i < batch * drafts * support; ++i)
      scene.candidates[i] = 10 + i % support;
    // Three tokens are possible: 10 less often than the draft says, 11 more
    // often, 16500 beside the support. The draft proposed 12, which is not.
    for (int32_t v = 0; v < vocabulary; ++v)
      scene.logit(0, 0, v) = -INFINITY;
    scene.logit(0, 0, 10) = std::log(0.2f);
    scene.logit(0, 0, 11) = std::log(0.5f);
    scene.logit(0, 0, 16'500) = std::log(0.3f);
    scene.tokens[1] = 12;
    scene.requests[0].temperature = 1;
    scene.requests[0].seed = seed;
    run(scene);
    EXPECT_EQ(scene.result(0).kept, 0);
    int32_t token = scene.emitted(0).back();
    EXPECT_TRUE(token == 11 || token == 16'500) << token;
  }
}

INSTANTIATE_TEST_SUITE_P(Runtime, AcceptTest, testing::Values("host", "cuda"),
                         [](const auto &info) { return info.param; });

} // namespace
