//===- Cases.h - Seeded (spec, problem) pairs -------------------*- C++ -*-===//
//
// Draws cases from the product that a spec spans: heads and groups, token
// tiles, masks, storages, page orders, where block rows lie, ragged batches
// with lengths at page and tile edges. The same seed gives the same cases.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TEST_NUMERICS_CASES_H
#define TOKENTILE_TEST_NUMERICS_CASES_H

#include <cstdint>
#include <string>
#include <vector>

namespace tokentile {

/// How the numbers of a case are drawn.
enum class Numbers {
  /// Queries, keys and values are normal; the softmax is nearly flat.
  Normal,
  /// Queries are four times as large; few keys decide.
  Sharp,
  /// Queries and keys are zero and values are small integers: every row is the
  /// exact mean of the values it sees, so that a wrong mask cannot hide.
  Mean,
  /// Scores grow along the keys: the maximum moves in every tile.
  Growing,
  /// All scores lie far below zero.
  Negative,
};

/// Where values lie with respect to keys.
enum class Interleave {
  /// Pools of their own.
  None,
  /// Pages of keys and of values alternate: the page stride is doubled.
  Pages,
  /// Slots of keys and of values alternate; the spec carries the slot stride.
  Slots,
};

/// One case: a spec in the dialect's text (an `attn.kernel @numerics` whose
/// schedule is open) and a batch to run it on.
struct Case {
  std::string specText;
  int32_t batch = 0;
  /// Keys before the block, block rows, and the length as the spec counts it,
  /// of each request. A request that is padding has length 0. A total length
  /// may be less than the block: then there is no context.
  std::vector<int32_t> contexts;
  std::vector<int32_t> columns;
  std::vector<int32_t> lengths;
  /// `positions given`: token j of request b stands at
  /// max(0, contexts[b] + positionShift + j / positionStep).
  int32_t positionShift = 0;
  int32_t positionStep = 1;
  Interleave interleave = Interleave::None;
  Numbers numbers = Numbers::Normal;
  /// Bytes between two rows of the query and of the output, beyond the rows.
  int32_t rowGap = 0;
  /// Seed of the tensors.
  uint64_t seed = 0;

  /// One line that tells the case apart, for messages.
  std::string describe() const;
};

/// The first `count` cases of `seed`. A case depends on the seed and its own
/// index only.
std::vector<Case> makeCases(uint64_t seed, int count);

/// Case `index` of `seed`. Batches above 0 are other batches of its spec.
Case makeCase(uint64_t seed, int index, int batch = 0);

/// How large the contexts and shapes of a case may be.
enum class Size {
  /// Thousands of keys: for kernels that run at speed.
  Full,
  /// At most some 200 keys, two kv heads, three requests: for an interpreter.
  Small,
};
Case makeCase(uint64_t seed, int index, int batch, Size size);

} // namespace tokentile

#endif // TOKENTILE_TEST_NUMERICS_CASES_H
