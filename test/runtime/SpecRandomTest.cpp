//===- SpecRandomTest.cpp - Random lives of requests ----------------------===//
//
// Requests are submitted, shared, preempted, resumed and cancelled at random in
// a pool that is often full. Output, lengths and pages are checked after every
// step against plain decode.
//
//===----------------------------------------------------------------------===//

#include "FakeModel.h"

#include <random>

using namespace tokentile;
using namespace tokentile::test;

namespace {

constexpr int32_t steps = 100'000;

class SpecRandom : public testing::TestWithParam<bool> {
protected:
  static FakeOptions optionsOf(bool withState) {
    FakeOptions options;
    options.slots = 6;
    options.maxTokens = 80;
    options.withState = withState;
    options.chunks = withState ? 17 : 15;
    return options;
  }
  static SpecOptions specOf() {
    SpecOptions spec;
    spec.batches = {1, 3, 6};
    spec.drafts = {0, 2, 5};
    spec.promptWidth = 9;
    spec.promptBatch = 2;
    return spec;
  }
  int32_t draw(int32_t below) { return int32_t(random() % uint32_t(below)); }

  struct Known {
    SpecRequest request;
    std::vector<int32_t> expected;
    std::vector<int32_t> seen;
    bool setAside = false;
  };

  void submit() {
    Known known;
    SpecRequest &request = known.request;
    request.id = nextId++;
    request.prompt.resize(1 + draw(30));
    for (int32_t &token : request.prompt)
      token = draw(world.options.vocabulary);
    if (!live.empty() && draw(2)) {
      auto source = std::next(live.begin(), draw(int32_t(live.size())));
      request.sharePrefixOf = source->first;
      const std::vector<int32_t> &tokens = *decoder->tokensOf(source->first);
      request.prompt.assign(tokens.begin(),
                            tokens.end() - draw(int32_t(tokens.size())));
      request.prompt.push_back(draw(world.options.vocabulary));
    }
    request.maxTokens = 1 + draw(40);
    if (draw(2))
      request.stops = {draw(world.options.vocabulary)};
    int64_t rows = int64_t(request.prompt.size()) + request.maxTokens - 1;
    Status status = decoder->submit(request);
    ASSERT_EQ(status.ok(), rows <= world.options.maxTokens)
        << status.toString();
    if (!status.ok())
      return;
    known.expected = plainDecode(world.options, request.prompt,
                                 request.maxTokens, request.stops);
    live[request.id] = std::move(known);
  }

  void disturb() {
    if (live.empty())
      return;
    auto at = std::next(live.begin(), draw(int32_t(live.size())));
    Known &known = at->second;
    if (draw(8) == 0) {
      ASSERT_OK(decoder->cancel(at->first));
      live.erase(at);
    } else if (known.setAside) {
      ASSERT_OK(decoder->resume(at->first));
      known.setAside = false;
    } else {
      ASSERT_OK(decoder->preempt(at->first));
      known.setAside = true;
    }
  }

  void step() {
    StatusOr<std::vector<SpecEvent>> events = decoder->step();
    ASSERT_TRUE(events.ok()) << events.status().toString();
    for (const SpecEvent &event : *events) {
      Known &known = live.at(event.id);
      known.seen.insert(known.seen.end(), event.tokens.begin(),
                        event.tokens.end());
      ASSERT_LE(known.seen.size(), known.expected.size());
      ASSERT_TRUE(std::equal(known.seen.begin(), known.seen.end(),
                             known.expected.begin()))
          << "request " << event.id;
      if (event.state == SpecState::Running)
        continue;
      ASSERT_NE(event.state, SpecState::Failed) << event.status.toString();
      ASSERT_EQ(known.seen.size(), known.expected.size());
      live.erase(event.id);
      ended += 1;
    }
  }

  /// Nothing is reserved between steps, and tables hold every page in use.
  void audit() {
    int64_t references = 0, poolReferences = 0;
    for (int32_t slot = 0; slot < world.options.slots; ++slot) {
      if (world.tables->live(slot)) {
        ASSERT_EQ(world.audit(slot, world.tables->length(slot)), "");
      }
      for (int32_t c = 0; c < world.tables->tables(); ++c)
        references += world.tables->held(c, slot);
    }
    for (int32_t c = 0; c < world.tables->tables(); ++c)
      poolReferences += world.pool->use(c).references;
    ASSERT_EQ(references, poolReferences);
  }

  std::mt19937 random{5};
  FakeWorld world{optionsOf(GetParam())};
  std::unique_ptr<SpecDecoder> decoder = world.decoder(specOf());
  std::map<int64_t, Known> live;
  int64_t nextId = 0, ended = 0;
};

TEST_P(SpecRandom, OutputIsPlainAndNothingLeaks) {
  for (int32_t i = 0; i < steps; ++i) {
    if (live.size() < 12 && draw(3) == 0)
      submit();
    if (draw(6) == 0)
      disturb();
    if (draw(4) == 0)
      ASSERT_OK(decoder->setDrafts(specOf().drafts[draw(3)]));
    step();
    audit();
    ASSERT_FALSE(HasFailure()) << "at step " << i;
  }
  // The test means something only if all of it happened.
  const SpecCounters &counters = decoder->counters();
  EXPECT_GT(ended, steps / 20);
  EXPECT_GT(counters.preemptions, steps / 100);
  EXPECT_GT(counters.sharedRows, steps / 10);
  for (auto &[id, known] : live)
    ASSERT_OK(decoder->cancel(id));
  EXPECT_TRUE(decoder->idle());
  EXPECT_EQ(world.pool->freeChunkCount(), world.pool->chunkCount());
}

INSTANTIATE_TEST_SUITE_P(Runtime, SpecRandom, testing::Bool(),
                         [](const auto &info) {
                           return info.param ? "WithState" : "WithoutState";
                         });

} // namespace
