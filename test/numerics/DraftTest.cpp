//===- DraftTest.cpp - The attention of block-diffusion drafts ------------===//
//
// A draft proposes a block: its rows see the context and one another, by
// window of each row's own position or all. The keys come in two shapes:
//
//   paged   [context in pages, perhaps a ring] + [block rows, dense], a column
//           count for each request of a fixed bucket
//   joined  [context, block rows] in contiguous rows with offsets, and packed
//           query tokens with offsets of their own
//
// Published heads and blocks, ragged and padded batches, on the host and, with
// fewer kv heads, lane by lane. All of them take one sweep.
//
//===----------------------------------------------------------------------===//

#include "runtime/JitCompiler.h"
#include "test/numerics/LaneRunner.h"
#include "test/numerics/Random.h"
#include "test/numerics/Runner.h"
#include "test/numerics/SpecText.h"

#include <gtest/gtest.h>

using namespace tokentile;

namespace {

constexpr int32_t window = 100;

struct Draft {
  int64_t queryHeads, kvHeads;
  int64_t block;
  bool joined, windowed, sink;

  std::string text() const {
    // What a window of 100 needs of a ring beside a dense block.
    std::string ring = windowed ? " ring 112" : "";
    return "attn.kernel @draft heads<" + std::to_string(queryHeads) + " over " +
           std::to_string(kvHeads) + ", dim 128> tokens<" +
           std::to_string(block) + "> sees<prefix " +
           (windowed ? "symmetric within " + std::to_string(window)
                     : std::string("all")) +
           ", suffix bidirectional> keys<bf16> values<bf16> " +
           (joined ? "paging<contiguous> block<in_pages> query<bf16 "
                     "token_major columns packed lengths total>"
                   : "paging<nhd page 16" + ring +
                         "> block<dense> query<bf16 token_major columns "
                         "counted>") +
           (sink ? " sink" : "");
  }
};

/// `contexts` with a whole block each; -1 is padding, which has nothing.
Case makeBatch(const Draft &draft, const std::vector<int32_t> &contexts) {
  Case batch;
  batch.specText = draft.text();
  batch.batch = int32_t(contexts.size());
  batch.seed = uint64_t(draft.block * 100 + draft.queryHeads);
  for (int32_t context : contexts) {
    int32_t columns = context < 0 ? 0 : int32_t(draft.block);
    batch.contexts.push_back(std::max(0, context));
    batch.columns.push_back(columns);
    batch.lengths.push_back(batch.contexts.back() +
                            (draft.joined ? columns : 0));
  }
  return batch;
}

std::vector<Draft> drafts(int shape) {
  std::vector<Draft> all;
  for (auto [queryHeads, kvHeads] : {std::pair(32, 8), {64, 8}, {32, 4}})
    for (int64_t block : {8, 9, 10, 16, 17})
      all.push_back({queryHeads, kvHeads, block, shape % 2 == 1, shape >= 2,
                     all.size() % 2 == 1});
  return all;
}

void runOnHost(const Draft &draft, const std::vector<int32_t> &contexts) {
  mlir::MLIRContext context;
  SpecModule spec = parseSpec(context, draft.text());
  ASSERT_TRUE(spec.kernel) << spec.error;
  std::string error;
  auto problem =
      Problem::create(spec.kernel, makeBatch(draft, contexts), error);
  ASSERT_TRUE(problem) << error;
  auto device = *openDevice("host");
  auto compiled = compileKernel(draft.text(), "host");
  ASSERT_TRUE(compiled.ok()) << compiled.status().toString();
  auto kernel = *device->load(*compiled);
  Runner runner = *Runner::create(*device);
  StatusOr<Outcome> outcome = runner.run(*kernel, *problem);
  ASSERT_TRUE(outcome.ok()) << outcome.status().toString();
  EXPECT_TRUE(outcome->comparison.ok) << outcome->comparison.message;
}

class DraftAttention : public testing::TestWithParam<int> {};

TEST_P(DraftAttention, OnTheHost) {
  for (const Draft &draft : drafts(GetParam()))
    runOnHost(draft, {-1, 0, 97, 260});
}

TEST_P(DraftAttention, LaneByLaneInOneSweep) {
  for (Draft draft : drafts(GetParam())) {
    draft.queryHeads /= draft.kvHeads;
    draft.kvHeads = 1;
    auto lanes = LaneRunner::create(draft.text(), "sm_100a");
    ASSERT_TRUE(bool(lanes)) << llvm::toString(lanes.takeError());
    EXPECT_EQ((*lanes)->getInfo().sweeps, 1) << draft.text();
    std::string error;
    auto problem = Problem::create((*lanes)->getSpec(),
                                   makeBatch(draft, {-1, 150, 30}), error);
    ASSERT_TRUE(problem) << error;
    (*lanes)->multiprocessors = 4;
    auto outcome = (*lanes)->run(*problem);
    ASSERT_TRUE(bool(outcome)) << llvm::toString(outcome.takeError());
    EXPECT_TRUE(outcome->comparison.ok) << outcome->comparison.message;
  }
}

TEST_P(DraftAttention, SixtyFourRequestsOfWhichManyArePadding) {
  Random random(5, uint64_t(GetParam()));
  std::vector<int32_t> contexts(64, -1);
  for (int32_t &context : contexts)
    if (!random.oneIn(3))
      context = int32_t(random.range(0, 150));
  Draft draft = drafts(GetParam())[1];
  draft.sink = true;
  runOnHost(draft, contexts);
}

const char *nameOfShape(int shape) {
  const char *names[] = {"PagedFull", "JoinedFull", "PagedWindow",
                         "JoinedWindow"};
  return names[shape];
}

INSTANTIATE_TEST_SUITE_P(Shapes, DraftAttention, testing::Range(0, 4),
                         [](const auto &info) {
                           return nameOfShape(info.param);
                         });

} // namespace
