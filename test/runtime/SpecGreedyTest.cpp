//===- SpecGreedyTest.cpp - Speculative output is the target's ------------===//
//
// Greedy output equals plain decode token for token, for any batch, number of
// drafts and agreement.
//
//===----------------------------------------------------------------------===//

#include "FakeModel.h"

#include <set>

using namespace tokentile;
using namespace tokentile::test;

namespace {

/// Batch, drafts, graphs, device.
using Case = std::tuple<int32_t, int32_t, bool, const char *>;

class Greedy : public testing::TestWithParam<Case> {
protected:
  /// Decodes more requests than slots, with prompts of 1 to 40 tokens.
  void decode(int32_t agreement, bool withState) {
    auto [batch, drafts, graphs, device] = GetParam();
    FakeOptions options;
    options.device = device;
    options.slots = batch;
    options.agreement = agreement;
    options.withState = withState;
    FakeWorld world(options);
    SpecOptions spec;
    std::set<int32_t> batches = {1, (batch + 1) / 2, batch};
    spec.batches.assign(batches.begin(), batches.end());
    spec.drafts = {drafts};
    spec.promptWidth = 7;
    spec.promptBatch = std::min(batch, 2);
    spec.useGraphs = graphs;
    std::unique_ptr<SpecDecoder> decoder = world.decoder(spec);
    std::mt19937 random(batch * 100 + drafts);
    std::vector<SpecRequest> requests(batch + 2);
    for (size_t i = 0; i < requests.size(); ++i) {
      requests[i].id = 10 + int64_t(i);
      requests[i].prompt =
          randomPrompt(random, 1 + int32_t(random() % 40), options.vocabulary);
      requests[i].maxTokens = 1 + int32_t(random() % 40);
      if (i % 3 == 0)
        requests[i].stops = {5, 11};
      ASSERT_OK(decoder->submit(requests[i]));
    }
    Outcome outcome = runAll(*decoder);
    for (const SpecRequest &request : requests)
      check(request, outcome, options);
    EXPECT_EQ(world.pool->freeChunkCount(), world.pool->chunkCount());
    const SpecCounters &counters = decoder->counters();
    for (size_t i = 0; i < counters.drafted.size(); ++i) {
      if (agreement == 0) {
        EXPECT_EQ(counters.kept[i], 0) << "position " << i;
      }
      // A draft that always agrees is always kept: its ring has all it needs.
      if (agreement == 1000) {
        EXPECT_EQ(counters.kept[i], counters.drafted[i]) << "position " << i;
      }
    }
  }

  static void check(const SpecRequest &request, Outcome &outcome,
                    const FakeOptions &options) {
    std::vector<int32_t> expected =
        plainDecode(options, request.prompt, request.maxTokens, request.stops);
    EXPECT_EQ(outcome.tokens[request.id], expected) << "request " << request.id;
    bool stopped =
        std::count(request.stops.begin(), request.stops.end(), expected.back());
    EXPECT_EQ(outcome.last[request.id].state,
              stopped ? SpecState::Stopped : SpecState::LengthReached);
  }
};

TEST_P(Greedy, EqualsPlainDecode) {
  const char *device = std::get<3>(GetParam());
  if (!openDevice(device).ok())
    GTEST_SKIP() << "no device " << device;
  for (int32_t agreement : {0, 300, 900, 1000})
    for (bool withState : {false, true}) {
      SCOPED_TRACE(testing::Message()
                   << "agreement " << agreement << ", state " << withState);
      decode(agreement, withState);
    }
}

std::string caseName(const testing::TestParamInfo<Case> &info) {
  auto [batch, drafts, graphs, device] = info.param;
  return "Batch" + std::to_string(batch) + "Drafts" + std::to_string(drafts) +
         (graphs ? "" : "Eager") + device;
}

INSTANTIATE_TEST_SUITE_P(Host, Greedy,
                         testing::Combine(testing::Values(1, 2, 3, 8, 32),
                                          testing::Values(0, 1, 2, 4, 8, 15),
                                          testing::Values(true),
                                          testing::Values("host")),
                         caseName);
INSTANTIATE_TEST_SUITE_P(Eager, Greedy,
                         testing::Values(Case{3, 4, false, "host"}), caseName);
INSTANTIATE_TEST_SUITE_P(Gpu, Greedy,
                         testing::Combine(testing::Values(1, 32),
                                          testing::Values(0, 7, 15),
                                          testing::Values(true),
                                          testing::Values("cuda")),
                         caseName);

} // namespace
