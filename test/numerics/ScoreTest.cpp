//===- ScoreTest.cpp - Score regions in the reference ---------------------===//

#include "test/numerics/TinyProblem.h"

#include <cmath>

using namespace tokentile;
using namespace tokentile::attn;

namespace {

/// Three keys of context and one of the block, all of score zero before the
/// region; value 0 of key k is k.
struct ScoreProblem : TinyProblem {
  explicit ScoreProblem(const std::string &body)
      : TinyProblem("heads<2 over 1, dim 64> tokens<1> sees<prefix all, suffix "
                    "causal> keys<bf16> values<bf16> paging<contiguous> score "
                    "{ ^bb0(%s: f32, %h: index, %q: index, %k: index): " +
                        body + " }",
                    4, 1, 2) {
    for (int64_t key = 0; key < 4; ++key)
      setValue(key, 0, 0, double(key));
  }
};

TEST(Score, BiasByDistanceAndHead) {
  // The score is (head + 1) * (k - q) * ln 2, as ALiBi has it.
  ScoreProblem problem(R"(
    %one = arith.constant 1 : index
    %ln2 = arith.constant 0.69314718 : f32
    %slope = arith.addi %h, %one : index
    %distance = arith.subi %k, %q : index
    %steps = arith.muli %slope, %distance : index
    %narrow = arith.index_cast %steps : index to i32
    %real = arith.sitofp %narrow : i32 to f32
    %bias = arith.mulf %real, %ln2 : f32
    %sum = arith.addf %s, %bias : f32
    attn.yield %sum : f32)");
  ReferenceResult result = problem.run();
  double half = (3 + 2 / 2.0 + 1 / 4.0) / (1 + 1 / 2.0 + 1 / 4.0 + 1 / 8.0);
  double quarter =
      (3 + 2 / 4.0 + 1 / 16.0) / (1 + 1 / 4.0 + 1 / 16.0 + 1 / 64.0);
  EXPECT_NEAR(result.output[0], half, 1e-7);
  EXPECT_NEAR(result.output[TinyProblem::dim], quarter, 1e-7);
}

TEST(Score, MaskByMinusInfinity) {
  ScoreProblem problem(R"(
    %two = arith.constant 2 : index
    %never = arith.constant 0xFF800000 : f32
    %odd = arith.remsi %k, %two : index
    %zero = arith.constant 0 : index
    %even = arith.cmpi eq, %odd, %zero : index
    %score = arith.select %even, %s, %never : f32
    attn.yield %score : f32)");
  EXPECT_NEAR(problem.run().output[0], 1.0, 1e-14);
}

TEST(Score, RowsWithoutAFiniteScoreAreEmpty) {
  ScoreProblem problem(R"(
    %never = arith.constant 0xFF800000 : f32
    attn.yield %never : f32)");
  ReferenceResult result = problem.run();
  EXPECT_EQ(result.output[0], 0.0);
  EXPECT_EQ(result.logSumExp[0], -HUGE_VAL);
}

TEST(Score, KnowsMathAndComparisons) {
  ScoreProblem problem(R"(
    %three = arith.constant 3 : index
    %narrow = arith.index_cast %k : index to i32
    %real = arith.sitofp %narrow : i32 to f32
    %e = math.exp %real : f32
    %l = math.log %e : f32
    %limit = arith.constant 2.5 : f32
    %far = arith.cmpf ogt, %l, %limit : f32
    %flag = arith.extui %far : i1 to i32
    %extra = arith.uitofp %flag : i32 to f32
    attn.yield %extra : f32)");
  double e = std::exp(1.0);
  EXPECT_NEAR(problem.run().output[0], (0 + 1 + 2 + 3 * e) / (3 + e), 1e-12);
}

TEST(Score, DivisionThatArithLeavesUndefined) {
  ScoreProblem problem(R"(
    %zero = arith.constant 0 : index
    %minus = arith.constant -1 : index
    %five = arith.constant 5 : index
    %least = arith.constant -9223372036854775808 : index
    %never = arith.constant 0xFF800000 : f32
    %a = arith.divsi %least, %minus : index
    %b = arith.remsi %least, %minus : index
    %c = arith.divsi %five, %zero : index
    %d = arith.remsi %five, %zero : index
    %e = math.absi %least : index
    %a_ok = arith.cmpi eq, %a, %least : index
    %b_ok = arith.cmpi eq, %b, %zero : index
    %c_ok = arith.cmpi eq, %c, %minus : index
    %d_ok = arith.cmpi eq, %d, %five : index
    %e_ok = arith.cmpi eq, %e, %least : index
    %ab = arith.andi %a_ok, %b_ok : i1
    %cd = arith.andi %c_ok, %d_ok : i1
    %abcd = arith.andi %ab, %cd : i1
    %ok = arith.andi %abcd, %e_ok : i1
    %score = arith.select %ok, %s, %never : f32
    attn.yield %score : f32)");
  EXPECT_NEAR(problem.run().output[0], 1.5, 1e-14);
}

TEST(Score, ConversionToIntegersSaturates) {
  ScoreProblem problem(R"(
    %large = arith.constant 1.0e30 : f32
    %infinite = arith.constant 0xFF800000 : f32
    %nan = arith.constant 0x7FC00000 : f32
    %real = arith.constant -2.75 : f32
    %a = arith.fptosi %large : f32 to i32
    %b = arith.fptosi %infinite : f32 to i64
    %c = arith.fptosi %nan : f32 to i32
    %d = arith.fptosi %real : f32 to i8
    %most = arith.constant 2147483647 : i32
    %least = arith.constant -9223372036854775808 : i64
    %zero = arith.constant 0 : i32
    %two = arith.constant -2 : i8
    %a_ok = arith.cmpi eq, %a, %most : i32
    %b_ok = arith.cmpi eq, %b, %least : i64
    %c_ok = arith.cmpi eq, %c, %zero : i32
    %d_ok = arith.cmpi eq, %d, %two : i8
    %ab = arith.andi %a_ok, %b_ok : i1
    %cd = arith.andi %c_ok, %d_ok : i1
    %ok = arith.andi %ab, %cd : i1
    %score = arith.select %ok, %s, %infinite : f32
    attn.yield %score : f32)");
  EXPECT_NEAR(problem.run().output[0], 1.5, 1e-14);
}

TEST(Score, NamesAnOperationItDoesNotKnow) {
  ScoreProblem problem(R"(
    %a = math.atan %s : f32
    attn.yield %a : f32)");
  EXPECT_TRUE(failed(problem.evaluate()));
  EXPECT_EQ(problem.error, "'math.atan' op is unknown to the reference inside "
                           "a 'score' region");
}

} // namespace
