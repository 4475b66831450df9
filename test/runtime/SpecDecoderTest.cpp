//===- SpecDecoderTest.cpp - Speculative output is the target's -----------===//
//
// Greedy output equals plain decode token for token, whatever the drafts; and
// what a step leaves behind is what plain decode leaves.
//
//===----------------------------------------------------------------------===//

#include "FakeModel.h"

#include <random>
#include <set>

using namespace tokentile;
using namespace tokentile::test;

namespace {

std::vector<int32_t> randomPrompt(std::mt19937 &random, int32_t length,
                                  int32_t vocabulary) {
  std::vector<int32_t> prompt(length);
  for (int32_t &token : prompt)
    token = int32_t(random() % uint32_t(vocabulary));
  return prompt;
}

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

/// A world of four slots with drafts of 7.
class SpecDecoderTest : public testing::Test {
protected:
  SpecDecoderTest() {
    options.slots = 4;
    spec.batches = {1, 2, 4};
    spec.drafts = {7};
    spec.promptWidth = 8;
  }
  SpecRequest request(int64_t id, int32_t length, int32_t maxTokens) {
    SpecRequest result;
    result.id = id;
    result.prompt = randomPrompt(random, length, options.vocabulary);
    result.maxTokens = maxTokens;
    return result;
  }
  std::vector<int32_t> plain(const SpecRequest &request) {
    return plainDecode(options, request.prompt, request.maxTokens,
                       request.stops);
  }

  FakeOptions options;
  SpecOptions spec;
  std::mt19937 random{11};
};

TEST_F(SpecDecoderTest, StepsLeaveWhatPlainDecodeLeaves) {
  options.withState = true;
  FakeWorld world(options);
  std::unique_ptr<SpecDecoder> decoder = world.decoder(spec);
  ASSERT_OK(decoder->submit(request(1, 13, 60)));
  ASSERT_OK(decoder->submit(request(2, 1, 70)));
  for (int32_t i = 0; i < 100 && !decoder->idle(); ++i) {
    ASSERT_TRUE(decoder->step().ok());
    int64_t pages = 0;
    for (int32_t slot = 0; slot < 2; ++slot) {
      const std::vector<int32_t> *tokens = decoder->tokensOf(1 + slot);
      bool prompt =
          tokens && world.tables->length(slot) + 1 < int32_t(tokens->size());
      int32_t rows = !tokens  ? 0
                     : prompt ? world.tables->length(slot)
                              : int32_t(tokens->size()) - 1;
      EXPECT_EQ(world.audit(slot, rows), "") << "after step " << i;
      for (int32_t c = 0; c < world.tables->tables(); ++c)
        pages += world.tables->held(c, slot);
    }
    EXPECT_EQ(world.pagesInUse(), pages);
  }
  EXPECT_TRUE(decoder->idle());
}

TEST_F(SpecDecoderTest, AStepIsOneLaunchOneCopyAndOneWait) {
  FakeWorld world(options);
  std::unique_ptr<SpecDecoder> decoder = world.decoder(spec);
  int64_t captures = world.stream->counters().captures;
  EXPECT_EQ(captures, 4);
  for (int64_t id = 0; id < 4; ++id)
    ASSERT_OK(decoder->submit(request(id, 1, 100)));
  for (int32_t i = 0; i < 12; ++i) {
    ASSERT_TRUE(decoder->step().ok());
    const StreamCounters &step = decoder->counters().lastStep;
    EXPECT_EQ(step.graphLaunches, 1);
    EXPECT_EQ(step.kernelLaunches, 0);
    EXPECT_EQ(step.copiesToHost, 1);
    EXPECT_EQ(step.synchronizations, 1);
    EXPECT_EQ(step.captures, 0);
    // Requests and tokens, and at most a few runs of changed table words.
    EXPECT_LE(step.copiesToDevice, 3);
  }
  EXPECT_EQ(world.stream->counters().captures, captures);
}

TEST_F(SpecDecoderTest, PromptsAndDecodeTakeTurns) {
  FakeWorld world(options);
  std::unique_ptr<SpecDecoder> decoder = world.decoder(spec);
  SpecRequest first = request(1, 4, 40), second = request(2, 80, 10);
  ASSERT_OK(decoder->submit(first));
  ASSERT_TRUE(decoder->step().ok());
  ASSERT_OK(decoder->submit(second));
  int64_t steps = 0;
  for (size_t emitted = decoder->tokensOf(1)->size();
       decoder->tokensOf(1) && decoder->tokensOf(2)->size() == 80; ++steps) {
    ASSERT_TRUE(decoder->step().ok());
    if (!decoder->tokensOf(1))
      break;
    EXPECT_GT(decoder->tokensOf(1)->size(), emitted);
    emitted = decoder->tokensOf(1)->size();
    EXPECT_LE(decoder->counters().lastStep.graphLaunches, 2);
  }
  EXPECT_GT(steps, 3);
}

TEST_F(SpecDecoderTest, StopsInsideAcceptedDrafts) {
  options.agreement = 1000;
  FakeWorld world(options);
  std::unique_ptr<SpecDecoder> decoder = world.decoder(spec);
  SpecRequest given = request(1, 5, 50);
  std::vector<int32_t> all = plain(given);
  // The third token of the first block of eight, if it is the first such.
  given.stops = {all[2]};
  std::vector<int32_t> expected = plain(given);
  ASSERT_OK(decoder->submit(given));
  Outcome outcome = runAll(*decoder);
  EXPECT_EQ(outcome.tokens[1], expected);
  EXPECT_EQ(outcome.last[1].state, SpecState::Stopped);
  EXPECT_EQ(world.pagesInUse(), 0);
}

TEST_F(SpecDecoderTest, WidthChangesBetweenSteps) {
  spec.drafts = {0, 3, 7};
  FakeWorld world(options);
  std::unique_ptr<SpecDecoder> decoder = world.decoder(spec);
  SpecRequest given = request(1, 5, 60);
  ASSERT_OK(decoder->submit(given));
  Outcome outcome;
  for (int32_t i = 0; !decoder->idle(); ++i) {
    ASSERT_OK(decoder->setDrafts(spec.drafts[i % 3]));
    StatusOr<std::vector<SpecEvent>> events = decoder->step();
    ASSERT_TRUE(events.ok());
    collect(*events, outcome);
  }
  EXPECT_EQ(outcome.tokens[1], plain(given));
  expectError(decoder->setDrafts(8), StatusCode::OutOfRange,
              "drafts 8 were not captured; captured are 0, 3, 7");
}

TEST_F(SpecDecoderTest, PreemptedRequestsGoOnWhereTheyWere) {
  options.withState = true;
  FakeWorld world(options);
  std::unique_ptr<SpecDecoder> decoder = world.decoder(spec);
  SpecRequest one = request(1, 20, 40), two = request(2, 3, 60);
  ASSERT_OK(decoder->submit(one));
  ASSERT_OK(decoder->submit(two));
  Outcome outcome;
  for (int32_t i = 0; !decoder->idle() || i < 12; ++i) {
    if (i == 1 || i == 5)
      ASSERT_OK(decoder->preempt(1));
    if (i == 4 || i == 8)
      ASSERT_OK(decoder->resume(1));
    StatusOr<std::vector<SpecEvent>> events = decoder->step();
    ASSERT_TRUE(events.ok());
    collect(*events, outcome);
  }
  EXPECT_EQ(outcome.tokens[1], plain(one));
  EXPECT_EQ(outcome.tokens[2], plain(two));
  expectError(decoder->preempt(1), StatusCode::NotFound, "request 1");
  ASSERT_OK(decoder->submit(request(3, 3, 3)));
  expectError(decoder->resume(3), StatusCode::FailedPrecondition, "request 3");
  ASSERT_OK(decoder->preempt(3));
  expectError(decoder->preempt(3), StatusCode::FailedPrecondition, "set aside");
  ASSERT_OK(decoder->cancel(3));
  EXPECT_EQ(world.pagesInUse(), 0);
}

TEST_F(SpecDecoderTest, SharedPrefixesAreNotComputedAgain) {
  FakeWorld world(options);
  std::unique_ptr<SpecDecoder> decoder = world.decoder(spec);
  SpecRequest one = request(1, 30, 40), two = one;
  two.id = 2;
  two.sharePrefixOf = 1;
  two.prompt.push_back(3);
  ASSERT_OK(decoder->submit(one));
  Outcome outcome;
  for (int32_t i = 0; i < 5; ++i)
    collect(*decoder->step(), outcome);
  two.prompt = *decoder->tokensOf(1);
  two.maxTokens = 20;
  ASSERT_OK(decoder->submit(two));
  Outcome rest = runAll(*decoder);
  outcome.tokens[1].insert(outcome.tokens[1].end(), rest.tokens[1].begin(),
                           rest.tokens[1].end());
  EXPECT_EQ(outcome.tokens[1], plain(one));
  EXPECT_EQ(rest.tokens[2], plain(two));
  EXPECT_EQ(decoder->counters().sharedRows, int64_t(two.prompt.size()) - 1);
  EXPECT_EQ(decoder->counters().sharesRefused, 0);
  EXPECT_EQ(world.pagesInUse(), 0);
}

/// A state is that of its own length only: what cannot be shared is computed.
TEST_F(SpecDecoderTest, PrefixesThatAreGoneAreComputedAndCounted) {
  options.withState = true;
  FakeWorld world(options);
  std::unique_ptr<SpecDecoder> decoder = world.decoder(spec);
  SpecRequest one = request(1, 30, 40), two = request(2, 10, 20);
  std::copy_n(one.prompt.begin(), 9, two.prompt.begin());
  two.sharePrefixOf = 1;
  ASSERT_OK(decoder->submit(one));
  for (int32_t i = 0; i < 5; ++i)
    ASSERT_TRUE(decoder->step().ok());
  ASSERT_OK(decoder->submit(two));
  EXPECT_EQ(runAll(*decoder).tokens[2], plain(two));
  EXPECT_EQ(decoder->counters().sharedRows, 0);
  EXPECT_EQ(decoder->counters().sharesRefused, 1);
}

} // namespace
