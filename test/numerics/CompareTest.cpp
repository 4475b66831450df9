//===- CompareTest.cpp - The numerics rule catches planted faults ---------===//

#include "test/numerics/SpecText.h"
#include "test/numerics/TiledKernel.h"

#include "mlir/IR/MLIRContext.h"
#include <gtest/gtest.h>

#include <cmath>

using namespace tokentile;
using namespace tokentile::attn;

namespace {

/// A batch of two over some 150 keys, with numbers of each kind.
Case faultCase(const std::string &sees, Numbers numbers) {
  Case testCase;
  testCase.specText = "attn.kernel @numerics heads<6 over 2, dim 64> tokens<4> "
                      "sees<" +
                      sees +
                      "> keys<bf16> values<bf16> paging<nhd page 16> "
                      "output<bf16 token_major with lse>";
  testCase.batch = 2;
  testCase.contexts = {149, 77};
  testCase.columns = {4, 4};
  testCase.lengths = {149, 77};
  testCase.numbers = numbers;
  testCase.seed = 11;
  return testCase;
}

Comparison judge(const Case &testCase, Fault fault) {
  mlir::MLIRContext context;
  SpecModule spec = parseSpec(context, testCase.specText);
  EXPECT_TRUE(spec.kernel) << spec.error;
  std::string error;
  std::unique_ptr<Problem> problem =
      Problem::create(spec.kernel, testCase, error);
  EXPECT_TRUE(problem) << error;
  runTiledKernel(*problem, spec.kernel, 32, 3, fault);
  return problem->check();
}

struct Planted {
  Fault fault;
  const char *sees;
};

class PlantedFault : public testing::TestWithParam<Planted> {};

TEST_P(PlantedFault, IsCaughtWhateverTheNumbers) {
  auto [fault, sees] = GetParam();
  for (Numbers numbers :
       {Numbers::Normal, Numbers::Sharp, Numbers::Mean, Numbers::Growing}) {
    // A mean does not know which query asked, nor a merge of equal maxima
    // whether it rescaled.
    if (numbers == Numbers::Mean &&
        (fault == Fault::SwappedRows || fault == Fault::UnscaledMerge))
      continue;
    // Early keys, and keys of score zero, weigh e^-24 where scores grow.
    if (numbers == Numbers::Growing &&
        (fault == Fault::WrongPage || fault == Fault::UnmaskedTail))
      continue;
    Case testCase = faultCase(sees, numbers);
    Comparison honest = judge(testCase, Fault::None);
    EXPECT_TRUE(honest.ok) << honest.message;
    Comparison verdict = judge(testCase, fault);
    EXPECT_FALSE(verdict.ok) << testCase.describe();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Faults, PlantedFault,
    testing::Values(
        Planted{Fault::SharedWindow,
                "prefix left within 20, suffix bidirectional"},
        Planted{Fault::SwappedRows, "prefix all, suffix bidirectional"},
        Planted{Fault::WrongPage, "prefix all, suffix causal"},
        Planted{Fault::DroppedKey, "prefix all, suffix bidirectional"},
        Planted{Fault::UnmaskedTail, "prefix all, suffix bidirectional"},
        Planted{Fault::UnscaledMerge, "prefix all, suffix causal"}));

/// A reference of one token, two heads and two elements, done by hand.
ReferenceResult handMade() {
  ReferenceResult reference;
  reference.tokens = 1;
  reference.heads = 2;
  reference.dim = 2;
  reference.output = reference.naiveOutput = {1, 2, -1, 4};
  reference.naiveOutput[1] = 2.0078125;
  reference.logSumExp = reference.naiveLogSumExp = {1, -HUGE_VAL};
  ReferenceRow row;
  row.keys = 4;
  row.absolute = 2;
  row.square = 2;
  reference.rows = {row, row};
  return reference;
}

const Precision half = {0x1p-9, 0x1p-9};

TEST(Compare, AcceptsTheReferenceItself) {
  ReferenceResult reference = handMade();
  Comparison verdict =
      compare(reference, reference.output, {1, -HUGE_VAL}, half);
  EXPECT_TRUE(verdict.ok) << verdict.message;
  EXPECT_EQ(verdict.maxError, 0);
  EXPECT_EQ(verdict.naiveError, 0.0078125);
}

TEST(Compare, BoundsEachRowByItself) {
  ReferenceResult reference = handMade();
  // Row 0 may err by twice 2^-7 and more, row 1 by 12 / 1024 only.
  std::vector<double> output = reference.output;
  output[1] += 0.012;
  EXPECT_TRUE(compare(reference, output, {}, half).ok);
  output = reference.output;
  output[3] += 0.012;
  Comparison verdict = compare(reference, output, {}, half);
  EXPECT_FALSE(verdict.ok);
  EXPECT_NE(verdict.message.find("output differs at (token 0, head 1, d 1): "
                                 "got 4.012, expected 4, naive 4"),
            std::string::npos)
      << verdict.message;
}

TEST(Compare, MasksMustAgree) {
  ReferenceResult reference = handMade();
  std::vector<double> output = reference.output;
  output[2] = NAN;
  Comparison verdict = compare(reference, output, {}, half);
  EXPECT_FALSE(verdict.ok);
  EXPECT_NE(verdict.message.find("nan or inf mask differs at (token 0, head 1, "
                                 "d 0)"),
            std::string::npos);
  reference.output[2] = reference.naiveOutput[2] = NAN;
  EXPECT_TRUE(compare(reference, output, {}, half).ok);
  output[2] = -1;
  EXPECT_FALSE(compare(reference, output, {}, half).ok);
}

TEST(Compare, LogSumExpInAnotherBaseFails) {
  ReferenceResult reference = handMade();
  Comparison verdict = compare(reference, reference.output,
                               {1.4426950408889634, -HUGE_VAL}, half);
  EXPECT_FALSE(verdict.ok);
  EXPECT_NE(verdict.message.find("log-sum-exp differs"), std::string::npos);
  EXPECT_FALSE(compare(reference, reference.output, {1, 0}, half).ok);
}

TEST(Compare, CosineCatchesABiasThatNoRowShows) {
  // Each of many rows errs within its bound, all in the same direction.
  ReferenceResult reference = handMade();
  reference.tokens = 500;
  reference.output.clear();
  for (int i = 0; i < 2000; ++i)
    reference.output.push_back(i % 2 ? 1 : -1);
  reference.naiveOutput = reference.output;
  reference.rows.assign(1000, reference.rows[0]);
  reference.rows[0].square = 2;
  for (ReferenceRow &row : reference.rows)
    row.square = 0.5;
  std::vector<double> output = reference.output;
  for (double &value : output)
    value += 0.005;
  Comparison verdict = compare(reference, output, {}, half);
  EXPECT_LE(verdict.worstQuotient, 1.0);
  EXPECT_FALSE(verdict.ok);
  EXPECT_NE(verdict.message.find("cosine distance"), std::string::npos);
}

TEST(Compare, RefusesAnotherShape) {
  ReferenceResult reference = handMade();
  EXPECT_FALSE(compare(reference, {1, 2}, {}, half).ok);
}

} // namespace
