//===- ElementsTest.cpp - Decoding and rounding of stored elements --------===//

#include "test/numerics/TinyProblem.h"

#include <cmath>
#include <cstring>

using namespace tokentile;
using namespace tokentile::attn;

namespace {

TEST(Elements, EveryHalfSurvivesARoundTrip) {
  for (ElementKind kind : {ElementKind::BF16, ElementKind::FP16})
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      double value = decodeHalf(uint16_t(bits), kind);
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(decodeHalf(encodeHalf(value, kind), kind)));
      else
        EXPECT_EQ(encodeHalf(value, kind), bits);
    }
}

TEST(Elements, RoundsToNearestTiesToEven) {
  EXPECT_EQ(roundTo(1.0 + std::ldexp(1, -8), ElementKind::BF16), 1.0);
  EXPECT_EQ(roundTo(1.0 + 3 * std::ldexp(1, -8), ElementKind::BF16),
            1.0 + 2 * std::ldexp(1, -7));
  EXPECT_EQ(roundTo(1.0 + std::ldexp(1, -11), ElementKind::FP16), 1.0);
  EXPECT_EQ(roundTo(std::ldexp(1.5, -24), ElementKind::FP16),
            std::ldexp(2, -24));
  EXPECT_EQ(roundTo(65519.0, ElementKind::FP16), 65504.0);
  EXPECT_EQ(roundTo(-65520.0, ElementKind::FP16), -HUGE_VAL);
  EXPECT_EQ(
      roundTo(1.0 + roundingUnit(ElementKind::BF16) / 2, ElementKind::BF16),
      1.0);
}

TEST(Elements, E4M3) {
  EXPECT_EQ(decodeE4M3(0x38), 1.0);
  EXPECT_EQ(decodeE4M3(0xb9), -1.125);
  EXPECT_EQ(decodeE4M3(0x7e), 448.0);
  EXPECT_EQ(decodeE4M3(0x01), std::ldexp(1, -9));
  EXPECT_TRUE(std::isnan(decodeE4M3(0x7f)));
}

/// One key whose value row is stored as `values` says.
std::string quantised(const std::string &values) {
  return "heads<1 over 1, dim 64> tokens<1> sees<prefix all, suffix causal> "
         "keys<bf16> values<" +
         values + "> paging<contiguous>";
}

TEST(Elements, Int8RowsByGroup) {
  TinyProblem tiny(quantised("int8 scale group of 32"), 1);
  int8_t rows[64] = {};
  rows[0] = -100;
  rows[63] = 3;
  float scales[] = {0.5, 8};
  tiny.in.values.rows = rows;
  tiny.in.values.scales = scales;
  ReferenceResult result = tiny.run();
  EXPECT_EQ(result.output[0], -50.0);
  EXPECT_EQ(result.output[63], 24.0);
}

TEST(Elements, NaiveResultRoundsDecodedRowsToTheQuerysType) {
  TinyProblem tiny(quantised("int8 scale group of 64"), 1);
  // 101 * 2.5 = 252.5 has nine significant bits, bf16 eight.
  int8_t rows[64] = {101};
  float scale = 2.5;
  tiny.in.values.rows = rows;
  tiny.in.values.scales = &scale;
  ReferenceResult result = tiny.run();
  EXPECT_EQ(result.output[0], 252.5);
  EXPECT_EQ(result.naiveOutput[0], 252.0);
}

TEST(Elements, E4M3RowsByHead) {
  TinyProblem tiny(quantised("e4m3 scale head"), 1);
  uint8_t rows[64] = {0xb9};
  float scale = 2;
  tiny.in.values.rows = rows;
  tiny.in.values.scales = &scale;
  EXPECT_EQ(tiny.run().output[0], -2.25);
}

TEST(Elements, NVFP4RowsBySixteen) {
  TinyProblem tiny(quantised("nvfp4 scale group of 16"), 1);
  // Elements 16 and 17 share a byte; the low half comes first.
  uint8_t rows[32] = {};
  rows[8] = 0x7 | 0x9 << 4;
  uint8_t scales[] = {0x38, 0x40, 0x38, 0x38};
  tiny.in.values.rows = rows;
  tiny.in.values.scales = scales;
  tiny.in.values.factor = 0.25;
  ReferenceResult result = tiny.run();
  EXPECT_EQ(result.output[16], 6 * 2 * 0.25);
  EXPECT_EQ(result.output[17], -0.5 * 2 * 0.25);
}

TEST(Elements, HadamardIsUndone) {
  TinyProblem tiny(quantised("e4m3 scale tensor rotated hadamard"), 1);
  // A row of ones is the rotation of 8 in element 0.
  uint8_t rows[64];
  std::memset(rows, 0x38, sizeof(rows));
  float scale = 1;
  tiny.in.values.rows = rows;
  tiny.in.values.scales = &scale;
  ReferenceResult result = tiny.run();
  EXPECT_NEAR(result.output[0], 8.0, 1e-14);
  EXPECT_NEAR(result.output[1], 0.0, 1e-14);
}

TEST(Elements, DenseBlocksOfQuantisedRowsAreRefused) {
  // The dialect has no place for their scales.
  TinyProblem tiny(quantised("e4m3 scale tensor") + " block<dense>", 2);
  EXPECT_TRUE(failed(tiny.evaluate()));
  EXPECT_EQ(tiny.error, "'attn.kernel' op expected 'keys' and 'values' of bf16 "
                        "or fp16 for 'block' dense, got e4m3\n");
}

} // namespace
