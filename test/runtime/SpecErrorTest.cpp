//===- SpecErrorTest.cpp - What bad input gets ----------------------------===//
//
// An error names the request and the cause, the others go on, nothing leaks.
//
//===----------------------------------------------------------------------===//

#include "FakeModel.h"

#include <cmath>

using namespace tokentile;
using namespace tokentile::test;

namespace {

class SpecErrorTest : public testing::Test {
protected:
  SpecErrorTest() {
    options.slots = 4;
    spec.batches = {4};
    spec.drafts = {3};
    spec.promptWidth = 8;
  }
  SpecRequest request(int64_t id, int32_t length, int32_t maxTokens) const {
    SpecRequest result;
    result.id = id;
    for (int32_t i = 0; i < length; ++i)
      result.prompt.push_back(int32_t(id * 31 + i * i) % options.vocabulary);
    result.maxTokens = maxTokens;
    return result;
  }
  std::vector<int32_t> plain(const SpecRequest &request) {
    return plainDecode(options, request.prompt, request.maxTokens,
                       request.stops);
  }
  void expectCreateError(FakeWorld &world, StatusCode code,
                         const std::string &text) {
    expectError(SpecDecoder::create(*world.device, *world.tables, world.target,
                                    &world.draft, spec, *world.stream)
                    .status(),
                code, text);
  }

  FakeOptions options;
  SpecOptions spec;
};

TEST_F(SpecErrorTest, ModelsAndOptionsThatDoNotFit) {
  options.draftVocabulary = 24;
  FakeWorld other(options);
  expectCreateError(other, StatusCode::InvalidArgument,
                    "vocabulary 24 of the draft is not that of the target, 23");
  options.draftVocabulary = 0;
  options.maxDrafts = 2;
  FakeWorld narrow(options);
  expectCreateError(narrow, StatusCode::OutOfRange,
                    "drafts 3; the draft proposes at most 2");
  options.maxDrafts = 15;
  options.withState = true;
  options.maxWidth = 3;
  FakeWorld shallow(options);
  expectCreateError(shallow, StatusCode::OutOfRange,
                    "the tables take at most 3 uncommitted rows");
  options = FakeOptions();
  options.slots = 4;
  FakeWorld world(options);
  spec.batches = {2, 5};
  expectCreateError(world, StatusCode::OutOfRange,
                    "batch 5; the tables have only 4 slots");
  spec.batches = {4, 2};
  expectCreateError(world, StatusCode::InvalidArgument, "ascending");
  spec.batches = {4};
  spec.promptWidth = 0;
  expectCreateError(world, StatusCode::InvalidArgument, "promptWidth 0");
  spec.promptWidth = 8;
  spec.drafts = {};
  expectCreateError(world, StatusCode::InvalidArgument, "drafts is empty");
  spec.drafts = {3};
  expectError(SpecDecoder::create(*world.device, *world.tables, world.target,
                                  nullptr, spec, *world.stream)
                  .status(),
              StatusCode::OutOfRange, "proposes at most 0");
}

TEST_F(SpecErrorTest, RequestsThatCannotBeServed) {
  FakeWorld world(options);
  std::unique_ptr<SpecDecoder> decoder = world.decoder(spec);
  auto refuse = [&](const SpecRequest &bad, StatusCode code,
                    const std::string &text) {
    expectError(decoder->submit(bad), code, "request 9: " + text);
  };
  refuse(request(9, 0, 4), StatusCode::InvalidArgument, "the prompt is empty");
  refuse(request(9, 4, 0), StatusCode::InvalidArgument, "maxTokens 0");
  refuse(request(9, 100, 30), StatusCode::OutOfRange,
         "a prompt of 100 and maxTokens 30 need 129 rows; the tables hold 128");
  SpecRequest bad = request(9, 4, 4);
  bad.prompt[2] = 23;
  refuse(bad, StatusCode::OutOfRange, "prompt token 2 is 23");
  bad = request(9, 4, 4);
  bad.stops = {1, 2, 3, 4, 5};
  refuse(bad, StatusCode::OutOfRange, "5 stop tokens");
  bad = request(9, 4, 4);
  bad.temperature = NAN;
  refuse(bad, StatusCode::InvalidArgument, "temperature");
  ASSERT_OK(decoder->submit(request(9, 100, 29)));
  refuse(request(9, 4, 4), StatusCode::InvalidArgument,
         "another one has this id");
  EXPECT_EQ(runAll(*decoder).tokens[9], plain(request(9, 100, 29)));
  expectError(decoder->cancel(9), StatusCode::NotFound, "request 9");
}

TEST_F(SpecErrorTest, CallsOutOfOrder) {
  FakeWorld world(options);
  StatusOr<std::unique_ptr<SpecDecoder>> decoder =
      SpecDecoder::create(*world.device, *world.tables, world.target,
                          &world.draft, spec, *world.stream);
  ASSERT_TRUE(decoder.ok());
  expectError((*decoder)->step().status(), StatusCode::FailedPrecondition,
              "call warmUp before");
  ASSERT_OK((*decoder)->warmUp());
  expectError((*decoder)->warmUp(), StatusCode::FailedPrecondition,
              "warm already");
}

/// A pool of 24 pages for requests that need up to 32 or so each.
TEST_F(SpecErrorTest, RequestBeyondThePoolFailsAloneAndByName) {
  options.chunks = 8; // of 4 target or 2 draft pages
  FakeWorld world(options);
  std::unique_ptr<SpecDecoder> decoder = world.decoder(spec);
  SpecRequest small = request(1, 10, 30), large = request(2, 90, 30),
              late = request(3, 12, 20);
  for (const SpecRequest &each : {small, large, late})
    ASSERT_OK(decoder->submit(each));
  Outcome outcome = runAll(*decoder);
  EXPECT_EQ(outcome.tokens[1], plain(small));
  EXPECT_EQ(outcome.tokens[3], plain(late));
  EXPECT_EQ(outcome.last[2].state, SpecState::Failed);
  expectError(outcome.last[2].status, StatusCode::ResourceExhausted,
              "request 2 (slot");
  expectError(outcome.last[2].status, StatusCode::ResourceExhausted,
              "class 'target'");
  EXPECT_EQ(world.pool->freeChunkCount(), world.pool->chunkCount());
}

/// Each fits alone, all together do not: they take turns.
TEST_F(SpecErrorTest, CrowdedPoolServesAllInTurn) {
  options.chunks = 12;
  options.withState = true;
  for (bool promptsFirst : {false, true}) {
    spec.promptsFirst = promptsFirst;
    FakeWorld world(options);
    std::unique_ptr<SpecDecoder> decoder = world.decoder(spec);
    std::vector<SpecRequest> requests;
    for (int64_t id = 0; id < 9; ++id) {
      requests.push_back(request(id, int32_t(5 + 7 * id % 40), 60));
      ASSERT_OK(decoder->submit(requests.back()));
    }
    Outcome outcome = runAll(*decoder, 5000);
    for (const SpecRequest &each : requests)
      EXPECT_EQ(outcome.tokens[each.id], plain(each)) << "request " << each.id;
    EXPECT_GT(decoder->counters().preemptions, 0);
    EXPECT_EQ(world.pool->freeChunkCount(), world.pool->chunkCount());
  }
}

TEST_F(SpecErrorTest, LogitsThatAreNotFiniteEndTheirRequest) {
  options.poison = 7;
  options.agreement = 1000;
  FakeWorld world(options);
  std::unique_ptr<SpecDecoder> decoder = world.decoder(spec);
  SpecRequest good = request(1, 5, 40), bad = request(2, 5, 40);
  bad.prompt.back() = 7;
  // The good one must not come across the poison itself.
  std::vector<int32_t> expected = plain(good);
  auto poisoned = std::find(expected.begin(), expected.end(), 7);
  good.maxTokens = int32_t(poisoned - expected.begin());
  ASSERT_GT(good.maxTokens, 3);
  expected.resize(good.maxTokens);
  ASSERT_OK(decoder->submit(good));
  ASSERT_OK(decoder->submit(bad));
  Outcome outcome = runAll(*decoder);
  EXPECT_EQ(outcome.tokens[1], expected);
  EXPECT_EQ(outcome.last[2].state, SpecState::Failed);
  expectError(outcome.last[2].status, StatusCode::DataError,
              "request 2: logits at position 4 are not finite");
  EXPECT_EQ(world.pagesInUse(), 0);
}

TEST_F(SpecErrorTest, FailedStepKeepsNoReservation) {
  spec.useGraphs = false;
  FakeWorld world(options);
  std::unique_ptr<SpecDecoder> decoder = world.decoder(spec);
  SpecRequest given = request(1, 20, 30);
  ASSERT_OK(decoder->submit(given));
  Outcome outcome;
  for (int32_t i = 0; i < 4; ++i)
    collect(*decoder->step(), outcome);
  int32_t rows = world.tables->length(0);
  world.failure = Status(StatusCode::DriverError, "the device is gone");
  expectError(decoder->step().status(), StatusCode::DriverError,
              "the device is gone");
  EXPECT_EQ(world.audit(0, rows), "");
  // Nothing ran, so the decoder can even go on.
  world.failure = Status();
  Outcome rest = runAll(*decoder);
  outcome.tokens[1].insert(outcome.tokens[1].end(), rest.tokens[1].begin(),
                           rest.tokens[1].end());
  EXPECT_EQ(outcome.tokens[1], plain(given));
}

TEST_F(SpecErrorTest, FailedCaptureIsReported) {
  FakeWorld world(options);
  StatusOr<std::unique_ptr<SpecDecoder>> decoder =
      SpecDecoder::create(*world.device, *world.tables, world.target,
                          &world.draft, spec, *world.stream);
  ASSERT_TRUE(decoder.ok());
  world.failure = Status(StatusCode::NotCovered, "no kernel for width 8");
  expectError((*decoder)->warmUp(), StatusCode::NotCovered, "width 8");
  ASSERT_OK(world.stream->synchronize());
}

} // namespace
