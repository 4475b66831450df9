//===- SpecStepTest.cpp - What models see of a step -----------------------===//

#include "FakeModel.h"

using namespace tokentile;
using namespace tokentile::test;

namespace {

/// Passes everything on, and remembers what it was shown.
class Probe final : public TargetModel {
public:
  explicit Probe(TargetModel &inner) : inner(inner) {}
  int32_t vocabulary() const override { return inner.vocabulary(); }
  Status prepare(const StepShape &shape) override {
    return inner.prepare(shape);
  }
  Status forward(const StepBatch &batch, Stream &stream) override {
    shown = &batch;
    copies.push_back(batch);
    return inner.forward(batch, stream);
  }

  TargetModel &inner;
  const StepBatch *shown = nullptr;
  std::vector<StepBatch> copies;
};

class SpecStepTest : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    FakeOptions options;
    options.device = GetParam();
    options.slots = 4;
    options.withState = true;
    world.emplace(options);
    if (!world->device)
      GTEST_SKIP() << "no device " << GetParam();
    probe.emplace(world->target);
    SpecOptions spec;
    spec.batches = {4};
    spec.drafts = {3};
    StatusOr<std::unique_ptr<SpecDecoder>> made =
        SpecDecoder::create(*world->device, *world->tables, *probe,
                            &world->draft, spec, *world->stream);
    ASSERT_TRUE(made.ok()) << made.status().toString();
    decoder = *std::move(made);
    ASSERT_OK(decoder->warmUp());
  }

  template <typename T>
  std::vector<T> read(const T *from, size_t count) {
    std::vector<T> values(count);
    EXPECT_TRUE(
        world->device->copyToHost(values.data(), from, count * sizeof(T)).ok());
    return values;
  }

  std::optional<FakeWorld> world;
  std::optional<Probe> probe;
  std::unique_ptr<SpecDecoder> decoder;
};

TEST_P(SpecStepTest, PaddingIsInertAndLiveRowsAreGathered) {
  // Two long requests, then one is cancelled: its table words must go.
  for (int64_t id : {1, 2}) {
    SpecRequest request;
    request.id = id;
    request.prompt = {3, 1, 4, 1, 5, 9, 2, 6};
    request.maxTokens = 60;
    request.temperature = id == 2 ? 0.5f : 0.0f;
    request.seed = uint64_t(id) << 40;
    ASSERT_OK(decoder->submit(request));
  }
  for (int32_t i = 0; i < 4; ++i)
    ASSERT_TRUE(decoder->step().ok());
  ASSERT_OK(decoder->cancel(1));
  int32_t length = world->tables->length(1);
  int32_t anchor = decoder->tokensOf(2)->back();
  ASSERT_TRUE(decoder->step().ok());
  // The decode step was captured last. Slot 1 is entry 0 of the batch.
  const StepBatch &batch = probe->copies.back();
  ASSERT_EQ(batch.shape.batch, 4);
  EXPECT_EQ(read(batch.columns, 4), (std::vector<int32_t>{4, 0, 0, 0}));
  EXPECT_EQ(read(batch.lengths, 4), (std::vector<int32_t>{length, 0, 0, 0}));
  EXPECT_EQ(read(batch.positions, 4),
            (std::vector<int32_t>{length, length + 1, length + 2, length + 3}));
  EXPECT_EQ(read(batch.temperatures, 1)[0], 0.5f);
  EXPECT_EQ(read(batch.seeds, 1)[0], uint64_t(2) << 40);
  std::vector<int32_t> tokens = read(batch.tokens, 16);
  EXPECT_EQ(tokens[0], anchor);
  EXPECT_EQ(std::vector<int32_t>(tokens.begin() + 4, tokens.end()),
            std::vector<int32_t>(12, 0));
  EXPECT_EQ(read(batch.accepted, 4)[0], world->tables->length(1) - length);
  EXPECT_EQ(read(batch.accepted + 1, 3), std::vector<int32_t>(3, 0));
  for (const StepTable &table : batch.tables)
    EXPECT_EQ(read(table.ids + table.stride, 3 * table.stride),
              std::vector<int32_t>(3 * table.stride, 0));
  EXPECT_EQ(read(batch.tables[0].ids, 1)[0], world->tables->entry(0, 1, 0));
}

TEST_P(SpecStepTest, WhatModelsAreShownIsPoisonedAfterwards) {
  EXPECT_EQ(probe->copies.size(), 4u); // two shapes, run once and captured
  EXPECT_EQ(probe->shown->tokens, nullptr);
  EXPECT_EQ(probe->shown->columns, nullptr);
  EXPECT_EQ(probe->shown->logits, nullptr);
  EXPECT_TRUE(probe->shown->tables.empty());
  // Prompt steps come without logits.
  EXPECT_EQ(probe->copies[0].shape.prompt, true);
  EXPECT_EQ(probe->copies[0].logits, nullptr);
  EXPECT_NE(probe->copies[3].logits, nullptr);
}

INSTANTIATE_TEST_SUITE_P(Runtime, SpecStepTest, testing::Values("host", "cuda"),
                         [](const auto &info) { return info.param; });

} // namespace
