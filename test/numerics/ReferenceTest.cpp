//===- ReferenceTest.cpp - The fp64 meaning of a spec, by hand ------------===//

#include "test/numerics/TinyProblem.h"

#include <cmath>

using namespace tokentile;
using namespace tokentile::attn;

namespace {

/// Two keys of scores 0 and ln 2, so that their weights are 1/3 and 2/3, and
/// values 3 and 6.
void setTwoKeys(TinyProblem &tiny) {
  tiny.setQuery(0, 0, 0, 1);
  tiny.setKey(1, 0, 0, 1);
  tiny.setValue(0, 0, 5, 3);
  tiny.setValue(1, 0, 5, 6);
}

const std::string twoKeys =
    "heads<1 over 1, dim 64> tokens<1> sees<prefix all, suffix causal> "
    "keys<bf16> values<bf16> paging<contiguous> ";
const std::string scaledByLn2 = "scale<0.69314718055994531> ";

TEST(Reference, WeighsTwoKeys) {
  TinyProblem tiny(twoKeys + scaledByLn2, 2);
  setTwoKeys(tiny);
  ReferenceResult result = tiny.run();
  EXPECT_NEAR(result.output[5], 5.0, 1e-14);
  EXPECT_EQ(result.output[4], 0.0);
  EXPECT_NEAR(result.logSumExp[0], std::log(3.0), 1e-14);
  EXPECT_EQ(result.rows[0].keys, 2);
  EXPECT_NEAR(result.rows[0].absolute, 5.0, 1e-14);
  EXPECT_NEAR(result.rows[0].square, 1.0 + 16.0, 1e-13);
}

TEST(Reference, NaiveResultRoundsProbabilitiesAndOutput) {
  TinyProblem tiny(twoKeys + scaledByLn2, 2);
  setTwoKeys(tiny);
  ReferenceResult result = tiny.run();
  // Probabilities are 1/2 and 1 before the sum of 1.5 divides them: exact.
  EXPECT_EQ(result.naiveOutput[5], 5.0);
  tiny.setValue(0, 0, 5, 1);
  tiny.setValue(1, 0, 5, 1.0078125);
  result = tiny.run();
  EXPECT_NEAR(result.output[5], 1.0 + 2.0 / 3.0 / 128.0, 1e-14);
  EXPECT_EQ(result.naiveOutput[5], 1.0078125);
}

TEST(Reference, NaiveResultRoundsTheQueryToTheKeysType) {
  std::string clauses =
      "heads<1 over 1, dim 64> tokens<1> sees<prefix all, suffix causal> "
      "keys<bf16> values<bf16> paging<contiguous> query<fp16 token_major> "
      "output<bf16 token_major with lse> scale<1.0>";
  TinyProblem tiny(clauses, 1);
  // 1 + 2^-10 is an fp16 and rounds to 1 in bf16.
  tiny.query[0] = encodeHalf(1.0009765625, ElementKind::FP16);
  tiny.setKey(0, 0, 0, 1);
  ReferenceResult result = tiny.run();
  EXPECT_EQ(result.logSumExp[0], 1.0009765625);
  EXPECT_EQ(result.naiveLogSumExp[0], 1.0);
}

TEST(Reference, CountsTheSinkOnce) {
  TinyProblem tiny(twoKeys + scaledByLn2 + "sink", 2);
  setTwoKeys(tiny);
  float sink = 0;
  tiny.in.sinks = &sink;
  ReferenceResult result = tiny.run();
  EXPECT_NEAR(result.output[5], 15.0 / 4.0, 1e-14);
  EXPECT_NEAR(result.logSumExp[0], std::log(4.0), 1e-14);
  EXPECT_NEAR(result.naiveOutput[5], 15.0 / 4.0, 1e-2);
}

TEST(Reference, CapsScaledScores) {
  TinyProblem tiny(twoKeys + "scale<2.0> softcap<1.5>", 2);
  setTwoKeys(tiny);
  double weight = std::exp(1.5 * std::tanh(2.0 / 1.5));
  EXPECT_NEAR(tiny.run().output[5], (3 + 6 * weight) / (1 + weight), 1e-14);
}

TEST(Reference, EmptyRowsYieldWhatTheSpecSays) {
  for (bool nan : {false, true}) {
    std::string empty = nan ? "nan" : "zero";
    TinyProblem tiny(twoKeys +
                         "query<bf16 token_major lengths total> "
                         "output<bf16 token_major with lse empty " +
                         empty + ">",
                     2);
    tiny.lengths = {0};
    ReferenceResult result = tiny.run();
    EXPECT_EQ(std::isnan(result.output[5]), nan);
    EXPECT_EQ(std::isnan(result.naiveOutput[5]), nan);
    EXPECT_EQ(result.logSumExp[0], -HUGE_VAL);
    EXPECT_EQ(result.rows[0].keys, 0);
  }
}

TEST(Reference, EmptyRowsIgnoreTheSink) {
  TinyProblem tiny(twoKeys + "query<bf16 token_major lengths total> sink", 2);
  float sink = 1;
  tiny.in.sinks = &sink;
  tiny.lengths = {0};
  EXPECT_EQ(tiny.run().logSumExp[0], -HUGE_VAL);
}

TEST(Reference, MaskedColumnsAreZeroEvenWhereEmptyRowsAreNaN) {
  TinyProblem tiny("heads<1 over 1, dim 64> tokens<2> sees<prefix all, suffix "
                   "causal> keys<bf16> values<bf16> paging<contiguous> "
                   "query<bf16 token_major columns counted> "
                   "output<bf16 token_major with lse empty nan>",
                   3, 2);
  int32_t count = 1;
  tiny.in.columns = &count;
  tiny.query[TinyProblem::dim] = 0xffff;
  ReferenceResult result = tiny.run();
  EXPECT_EQ(result.rows[0].keys, 2);
  EXPECT_EQ(result.output[TinyProblem::dim], 0.0);
  EXPECT_EQ(result.logSumExp[1], -HUGE_VAL);
}

TEST(Reference, QueryHeadsReadTheirKvHead) {
  TinyProblem tiny("heads<6 over 2, dim 64> tokens<1> sees<prefix all, suffix "
                   "causal> keys<bf16> values<bf16> paging<contiguous>",
                   1, 1, 6, 2);
  tiny.setValue(0, 0, 0, 1);
  tiny.setValue(0, 1, 0, 2);
  ReferenceResult result = tiny.run();
  for (int head = 0; head < 6; ++head)
    EXPECT_EQ(result.output[head * TinyProblem::dim], head < 3 ? 1 : 2);
}

TEST(Reference, WalksThePageTable) {
  for (bool wide : {false, true}) {
    TinyProblem tiny(
        std::string("heads<1 over 1, dim 64> tokens<1> sees<prefix "
                    "all, suffix causal> keys<bf16> values<bf16> "
                    "paging<page_major page 16 ids ") +
            (wide ? "i64>" : "i32>"),
        48);
    // Key 0 lies in page 2, key 16 in page 0; page 1 is never read.
    std::fill(tiny.valueRows.begin() + 16 * TinyProblem::dim,
              tiny.valueRows.begin() + 32 * TinyProblem::dim, 0xffff);
    tiny.setValue(32, 0, 0, 34);
    int32_t narrowTable[] = {2, 0, 2147480000};
    int64_t wideTable[] = {2, 0, 2147480000};
    tiny.in.table = wide ? static_cast<void *>(wideTable) : narrowTable;
    tiny.in.tableStride = 3;
    tiny.in.keys.pageStride = tiny.in.values.pageStride =
        16 * TinyProblem::dim * 2;
    tiny.lengths = {16};
    EXPECT_EQ(tiny.run().output[0], 2.0);
  }
}

TEST(Reference, RingWrapsKeys) {
  TinyProblem tiny("heads<1 over 1, dim 64> tokens<1> sees<prefix left within "
                   "2, suffix causal> keys<bf16> values<bf16> "
                   "paging<page_major page 16 ring 32>",
                   32);
  int32_t table[] = {0, 1};
  tiny.in.table = table;
  tiny.in.keys.pageStride = tiny.in.values.pageStride =
      16 * TinyProblem::dim * 2;
  // Keys 32 and 33 lie where 0 and 1 were.
  tiny.setValue(0, 0, 0, 1);
  tiny.setValue(1, 0, 0, 4);
  tiny.lengths = {33};
  EXPECT_EQ(tiny.run().output[0], 2.5);
}

TEST(Reference, DenseBlockFollowsTheContext) {
  TinyProblem tiny("heads<1 over 1, dim 64> tokens<2> sees<prefix all, suffix "
                   "causal> keys<bf16> values<bf16> paging<contiguous> "
                   "block<dense>",
                   3, 2);
  std::vector<uint16_t> keys(2 * TinyProblem::dim);
  std::vector<uint16_t> values(2 * TinyProblem::dim);
  values[0] = TinyProblem::bits(5);
  values[TinyProblem::dim] = TinyProblem::bits(9);
  tiny.in.keys.block = keys.data();
  tiny.in.values.block = values.data();
  tiny.setValue(0, 0, 0, 1);
  tiny.setValue(1, 0, 0, 100);
  ReferenceResult result = tiny.run();
  EXPECT_EQ(result.output[0], 3.0);
  EXPECT_EQ(result.output[TinyProblem::dim], 5.0);
}

TEST(Reference, LatentValuesAreTheFrontOfTheKeys) {
  TinyProblem tiny("heads<1 over 1, dim 64 value_dim 32> tokens<1> sees<prefix "
                   "all, suffix causal> keys<bf16> values<bf16> "
                   "paging<contiguous> latent",
                   1);
  tiny.setKey(0, 0, 31, 7);
  ReferenceResult result = tiny.run();
  EXPECT_EQ(result.dim, 32);
  EXPECT_EQ(result.output[31], 7.0);
}

TEST(Reference, BoundOfTheLaunchClampsTheLength) {
  TinyProblem tiny(twoKeys, 2);
  setTwoKeys(tiny);
  tiny.in.maxKeys = 1;
  ReferenceResult result = tiny.run();
  EXPECT_EQ(result.rows[0].keys, 1);
  EXPECT_EQ(result.output[5], 3.0);
}

TEST(Reference, NamesWhatItLacks) {
  TinyProblem tiny(twoKeys + "sink", 2);
  EXPECT_TRUE(failed(tiny.evaluate()));
  EXPECT_EQ(tiny.error,
            "'attn.kernel' op reference needs the tensor of 'sink'");
}

TEST(Reference, RefusesMoreColumnsThanTokens) {
  TinyProblem tiny(twoKeys + "query<bf16 token_major columns counted>", 2);
  int32_t count = 2;
  tiny.in.columns = &count;
  EXPECT_TRUE(failed(tiny.evaluate()));
  EXPECT_EQ(tiny.error, "'attn.kernel' op request 0 has 2 columns of 1");
}

} // namespace
