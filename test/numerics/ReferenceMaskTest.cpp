//===- ReferenceMaskTest.cpp - Which keys a row sees, by exact means ------===//
//
// With zero queries and keys a row is the exact mean of the values it sees.
// Value 0 of key k is k and value 1 is k squared, so that the two means tell
// any interval (and most other sets) apart.
//
//===----------------------------------------------------------------------===//

#include "test/numerics/TinyProblem.h"

#include <functional>

using namespace tokentile;
using namespace tokentile::attn;

namespace {

using Sees = std::function<bool(int64_t position, int64_t key, int64_t row)>;

/// Eight keys of context and a block of four.
constexpr int64_t committed = 8, tokens = 4, length = committed + tokens;

struct MaskProblem : TinyProblem {
  explicit MaskProblem(const std::string &sees,
                       const std::string &query = "<bf16 token_major>")
      : TinyProblem("heads<2 over 1, dim 64> tokens<4> sees<" + sees +
                        "> keys<bf16> values<bf16> paging<contiguous> query" +
                        query,
                    length, tokens, 2) {
    for (int64_t key = 0; key < length; ++key) {
      setValue(key, 0, 0, double(key));
      setValue(key, 0, 1, double(key * key));
    }
  }

  /// Compares with a predicate over (position, key, block row or less than 0).
  void expect(const Sees &sees, std::vector<int64_t> at = {}) {
    ReferenceResult result = run();
    for (int64_t j = 0; j < tokens; ++j) {
      int64_t position = at.empty() ? committed + j : at[j];
      double sum = 0, squares = 0, count = 0;
      for (int64_t key = 0; key < length; ++key) {
        if (!sees(position, key, key - committed))
          continue;
        sum += double(key);
        squares += double(key * key);
        count += 1;
      }
      for (int64_t head = 0; head < 2; ++head) {
        int64_t row = j * 2 + head;
        EXPECT_EQ(result.rows[row].keys, count) << "token " << j;
        EXPECT_NEAR(result.output[row * dim], sum / count, 1e-12);
        EXPECT_NEAR(result.output[row * dim + 1], squares / count, 1e-12);
      }
    }
  }
};

TEST(ReferenceMask, CausalSeesUpToItself) {
  MaskProblem("prefix all, suffix causal")
      .expect([](int64_t p, int64_t k, int64_t) { return k <= p; });
}

TEST(ReferenceMask, BidirectionalSeesTheWholeBlock) {
  MaskProblem("prefix all, suffix bidirectional")
      .expect([](int64_t, int64_t, int64_t) { return true; });
}

TEST(ReferenceMask, LeftWindowMovesWithEachRow) {
  // Row j sees keys 6 + j to 8 + j.
  MaskProblem problem("prefix left within 3, suffix causal");
  problem.expect(
      [](int64_t p, int64_t k, int64_t) { return k >= p - 2 && k <= p; });
  ReferenceResult result = problem.run();
  EXPECT_EQ(result.output[0], 7.0);
  EXPECT_EQ(result.output[3 * 2 * TinyProblem::dim], 10.0);
}

TEST(ReferenceMask, LeftWindowOfABidirectionalBlockSeesAhead) {
  MaskProblem("prefix left within 3, suffix bidirectional")
      .expect([](int64_t p, int64_t k, int64_t) { return k > p - 3; });
}

TEST(ReferenceMask, SymmetricWindowCutsBothSides) {
  MaskProblem("prefix symmetric within 2, suffix bidirectional")
      .expect([](int64_t p, int64_t k, int64_t) {
        return k >= p - 1 && k <= p + 1;
      });
}

TEST(ReferenceMask, SymmetricWindowOfACausalBlockLooksBackOnly) {
  MaskProblem("prefix symmetric within 2, suffix causal")
      .expect(
          [](int64_t p, int64_t k, int64_t) { return k == p || k == p - 1; });
}

TEST(ReferenceMask, WindowLongerThanTheContextCutsNothing) {
  MaskProblem("prefix left within 4096, suffix causal")
      .expect([](int64_t p, int64_t k, int64_t) { return k <= p; });
}

TEST(ReferenceMask, WindowOfOneSeesItselfOnly) {
  MaskProblem("prefix symmetric within 1, suffix bidirectional")
      .expect([](int64_t p, int64_t k, int64_t) { return k == p; });
}

TEST(ReferenceMask, PositionsMayBeGiven) {
  MaskProblem problem("prefix left within 3, suffix causal",
                      "<bf16 token_major positions given>");
  std::vector<int32_t> given = {8, 9, 9, 3};
  problem.in.positions = given.data();
  problem.expect(
      [](int64_t p, int64_t k, int64_t) { return k > p - 3 && k <= p; },
      {8, 9, 9, 3});
}

TEST(ReferenceMask, LengthsTotalCountTheBlock) {
  MaskProblem problem("prefix all, suffix causal",
                      "<bf16 token_major lengths total>");
  problem.lengths = {int32_t(length)};
  problem.expect([](int64_t p, int64_t k, int64_t) { return k <= p; });
}

TEST(ReferenceMask, AncestorsAdmitTheBitsOfARow) {
  MaskProblem problem("prefix all, suffix ancestors");
  // 0 <- 1, 0 <- 2 <- 3.
  std::vector<uint32_t> bits = {1, 3, 5, 13};
  problem.in.ancestors = bits.data();
  problem.expect([&](int64_t p, int64_t, int64_t row) {
    return row < 0 || (bits[p - committed] >> row & 1);
  });
}

TEST(ReferenceMask, PackedRowsAreFoundByOffsets) {
  TinyProblem tiny("heads<1 over 1, dim 64> tokens<2> sees<prefix all, suffix "
                   "causal> keys<bf16> values<bf16> paging<contiguous> "
                   "query<bf16 token_major columns packed>",
                   8, 3);
  // Request 0 has one row over keys 0 to 2, request 1 two over keys 4 to 7.
  std::vector<int32_t> offsets = {0, 1, 3};
  tiny.in.columns = offsets.data();
  tiny.in.batch = 2;
  tiny.lengths = {2, 2};
  tiny.keyOffsets = {0, 4, 8};
  for (int64_t key = 0; key < 8; ++key)
    tiny.setValue(key, 0, 0, double(key));
  ReferenceResult result = tiny.run();
  EXPECT_EQ(result.tokens, 3);
  EXPECT_EQ(result.output[0], 1.0);
  EXPECT_EQ(result.output[TinyProblem::dim], 5.0);
  EXPECT_EQ(result.output[2 * TinyProblem::dim], 5.5);
}

} // namespace
