//===- SpecDecoderTest.cpp - Lives of requests, step by step --------------===//
//
// What a step leaves behind is what plain decode leaves, whatever happens to
// its requests.
//
//===----------------------------------------------------------------------===//

#include "FakeModel.h"

#include <random>

using namespace tokentile;
using namespace tokentile::test;

namespace {

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

TEST_F(SpecDecoderTest, PromptsFirstLetsRequestsDecodeTogether) {
  spec.promptsFirst = true;
  FakeWorld world(options);
  std::unique_ptr<SpecDecoder> decoder = world.decoder(spec);
  SpecRequest first = request(1, 4, 10), second = request(2, 80, 10);
  ASSERT_OK(decoder->submit(first));
  ASSERT_OK(decoder->submit(second));
  Outcome outcome;
  while (!decoder->idle()) {
    bool isFirst = decoder->counters().decodeSteps == 0;
    collect(*decoder->step(), outcome);
    // 3 rows of the first prompt and 79 of the second, 8 at a time.
    if (isFirst && decoder->counters().decodeSteps > 0) {
      EXPECT_EQ(decoder->counters().promptSteps, 1 + 10);
      EXPECT_FALSE(outcome.tokens[1].empty());
      EXPECT_FALSE(outcome.tokens[2].empty());
    }
  }
  EXPECT_EQ(outcome.tokens[1], plain(first));
  EXPECT_EQ(outcome.tokens[2], plain(second));
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
