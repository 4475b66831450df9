//===- EdgesTest.cpp - Batches that ask for nothing -----------------------===//
//
// No query tokens in all, and nothing but padding: a launch succeeds, and what
// there is of an output is defined. Every kernel runs on the host and, lane by
// lane, as a GPU's.
//
//===----------------------------------------------------------------------===//

#include "runtime/JitCompiler.h"
#include "test/numerics/LaneRunner.h"
#include "test/numerics/Runner.h"

#include <gtest/gtest.h>

using namespace tokentile;

namespace {

/// A paged spec with these columns, lengths and order of rows.
std::string makeSpec(const std::string &columns, const std::string &order,
                     const std::string &rest) {
  return "attn.kernel @edge heads<8 over 2, dim 64> tokens<4> sees<prefix left "
         "within 20, suffix causal> keys<bf16> values<bf16> paging<page_major "
         "page 16> block<in_pages> query<bf16 " +
         order + " columns " + columns + " " + rest + "> output<bf16 " + order +
         " with lse empty nan> split<count of 3>";
}

Case makeBatch(const std::string &spec, std::vector<int32_t> contexts,
               std::vector<int32_t> columns, std::vector<int32_t> lengths) {
  Case testCase;
  testCase.specText = spec;
  testCase.batch = int32_t(contexts.size());
  testCase.contexts = std::move(contexts);
  testCase.columns = std::move(columns);
  testCase.lengths = std::move(lengths);
  return testCase;
}

void expectRight(const Case &testCase) {
  auto lanes = LaneRunner::create(testCase.specText, "sm_80");
  ASSERT_TRUE(bool(lanes)) << llvm::toString(lanes.takeError());
  std::string error;
  auto problem = Problem::create((*lanes)->getSpec(), testCase, error);
  ASSERT_TRUE(problem) << error;
  auto lane = (*lanes)->run(*problem);
  ASSERT_TRUE(bool(lane)) << llvm::toString(lane.takeError());
  EXPECT_TRUE(lane->comparison.ok) << lane->comparison.message;

  auto device = *openDevice("host");
  auto compiled = compileKernel(testCase.specText, "host");
  ASSERT_TRUE(compiled.ok()) << compiled.status().toString();
  auto kernel = *device->load(*compiled);
  Runner runner = *Runner::create(*device);
  StatusOr<Outcome> host = runner.run(*kernel, *problem);
  ASSERT_TRUE(host.ok()) << host.status().toString();
  EXPECT_TRUE(host->comparison.ok) << host->comparison.message;
}

TEST(Edges, NoQueryTokensInAll) {
  for (const char *order : {"token_major", "head_major"})
    for (const char *rest :
         {"positions from_lengths lengths context",
          "positions given lengths context", "lengths total"})
      expectRight(makeBatch(makeSpec("packed", order, rest), {0, 40, 7},
                            {0, 0, 0}, {0, 40, 7}));
}

TEST(Edges, NothingButPadding) {
  for (const char *order : {"token_major", "head_major"}) {
    // Requests without columns.
    expectRight(
        makeBatch(makeSpec("counted", order, ""), {0, 0}, {0, 0}, {0, 0}));
    // Whole blocks whose length is nothing: their rows see no key.
    expectRight(makeBatch(makeSpec("uniform", order, "lengths total"), {0, 0},
                          {4, 4}, {0, 0}));
    expectRight(makeBatch(makeSpec("packed", order, "lengths total"), {0, 0},
                          {3, 0}, {0, 0}));
  }
}

TEST(Edges, TotalLengthsShorterThanTheBlock) {
  for (const char *columns : {"uniform", "counted", "packed"})
    expectRight(makeBatch(makeSpec(columns, "token_major", "lengths total"),
                          {0, 0, 0}, {4, 4, 4}, {1, 3, 4}));
}

} // namespace
