//===- ProblemTest.cpp - Problems are hostile, and fair -------------------===//

#include "test/numerics/SpecText.h"
#include "test/numerics/TiledKernel.h"

#include "mlir/IR/MLIRContext.h"
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

using namespace tokentile;

namespace {

struct Built {
  explicit Built(const Case &testCase)
      : spec(parseSpec(context, testCase.specText)) {
    std::string error = spec.error;
    if (spec.kernel)
      problem = Problem::create(spec.kernel, testCase, error);
    EXPECT_TRUE(problem) << error << "\n" << testCase.describe();
  }

  mlir::MLIRContext context;
  SpecModule spec;
  std::unique_ptr<Problem> problem;
};

/// An honest kernel passes on every case, whatever its tile and splits: the
/// bounds are not too tight, no poison lies where it may be read, and the
/// parameter block leads to the same numbers as the reference.
class HonestKernel : public testing::TestWithParam<int> {};

TEST_P(HonestKernel, Passes) {
  for (int i = 0; i < 15; ++i) {
    int index = GetParam() * 15 + i;
    Built built(makeCase(7, index));
    ASSERT_TRUE(built.problem);
    runTiledKernel(*built.problem, built.spec.kernel, 16 << index % 3,
                   1 + index % 4);
    Comparison verdict = built.problem->check();
    EXPECT_TRUE(verdict.ok) << "case " << index << ": " << verdict.message;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, HonestKernel, testing::Range(0, 8));

Case pagedCase() {
  Case testCase;
  testCase.specText =
      "attn.kernel @numerics heads<4 over 2, dim 64> tokens<3> sees<prefix "
      "all, suffix causal> keys<bf16> values<fp16> paging<page_major page 16> "
      "block<in_pages> query<bf16 token_major columns counted> "
      "output<bf16 token_major with lse>";
  testCase.batch = 2;
  testCase.contexts = {20, 0};
  testCase.columns = {3, 1};
  testCase.lengths = {20, 0};
  testCase.rowGap = 16;
  testCase.seed = 5;
  return testCase;
}

TEST(Problem, TheSameSeedGivesTheSameBytes) {
  Built one(pagedCase()), two(pagedCase());
  for (const HostTensor &tensor : one.problem->getTensors()) {
    const HostTensor &other = two.problem->getTensor(tensor.name);
    ASSERT_EQ(tensor.bytes, other.bytes);
    EXPECT_EQ(std::memcmp(tensor.data(), other.data(), tensor.bytes), 0)
        << tensor.name;
  }
}

TEST(Problem, PoisonsWhatMustNotBeRead) {
  Built built(pagedCase());
  Problem &problem = *built.problem;
  KernelArgs args = problem.getHostArgs();
  // Request 0 has 23 keys in two pages, request 1 one key; tails are absurd.
  for (int64_t i = 0; i < args.tableStride; ++i) {
    EXPECT_EQ(args.table[i] >= 0 && args.table[i] < args.poolPages, i < 2);
    EXPECT_EQ(args.table[args.tableStride + i] >= 0 &&
                  args.table[args.tableStride + i] < args.poolPages,
              i < 1);
  }
  EXPECT_GT(args.poolPages, 3);
  // Everything in the pool but 24 keys of two heads is NaN.
  const HostTensor &keys = problem.getTensor("keys");
  int64_t numbers = 0;
  for (int64_t i = 0; i < keys.bytes; i += 2)
    numbers += keys.data()[i] != 0xff || keys.data()[i + 1] != 0xff;
  EXPECT_EQ(numbers, 24 * 2 * 64);
  // Masked columns of the query, too.
  auto *row =
      static_cast<const uint8_t *>(args.query) + 4 * args.queryTokenStride;
  EXPECT_EQ(row[0], 0xff);
}

TEST(Problem, UnwrittenOutputsFail) {
  Built built(pagedCase());
  EXPECT_FALSE(built.problem->check().ok);
}

TEST(Problem, WritesOutsideTheRowsFail) {
  for (const char *name : {"output", "lse", "keys"})
    for (bool before : {false, true}) {
      Built built(pagedCase());
      runTiledKernel(*built.problem, built.spec.kernel, 16, 1);
      EXPECT_TRUE(built.problem->check().ok);
      HostTensor &tensor = built.problem->getTensor(name);
      *(before ? tensor.data() - 1 : tensor.data() + tensor.bytes) = 0;
      Comparison verdict = built.problem->check();
      EXPECT_FALSE(verdict.ok);
      EXPECT_NE(verdict.message.find(std::string("'") + name + "' was written"),
                std::string::npos)
          << verdict.message;
    }
}

TEST(Problem, WritesIntoTheGapBetweenRowsFail) {
  Built built(pagedCase());
  runTiledKernel(*built.problem, built.spec.kernel, 16, 1);
  built.problem->getTensor("output").data()[64 * 2] = 0;
  EXPECT_FALSE(built.problem->check().ok);
}

TEST(Problem, RefusesACaseThatDoesNotFitTheSpec) {
  Case testCase = pagedCase();
  testCase.columns = {4, 1};
  mlir::MLIRContext context;
  SpecModule spec = parseSpec(context, testCase.specText);
  std::string error;
  EXPECT_FALSE(Problem::create(spec.kernel, testCase, error));
  EXPECT_EQ(error, "the case has a request of 4 columns for a spec of 3 "
                   "tokens");
}

} // namespace
