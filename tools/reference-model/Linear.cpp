//===- Linear.cpp - A matrix product on the host --------------------------===//

#include "tools/reference-model/Linear.h"

#include <algorithm>
#include <vector>

using namespace tokentile;
using namespace tokentile::reference;

namespace {

/// Sixteen partial sums, added in a fixed order.
float dot(const float *x, const float *w, int32_t depth) {
  float sums[16] = {};
  for (int32_t i = 0; i < depth; i += 16)
    for (int32_t j = 0; j < 16; ++j)
      sums[j] += x[i + j] * w[i + j];
  for (int32_t half = 8; half > 0; half /= 2)
    for (int32_t j = 0; j < half; ++j)
      sums[j] += sums[j + half];
  return sums[0];
}

void widen(const Bf16 *from, int64_t count, float *to) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = fromBf16(from[i]);
}

void store(const LinearArgs &a, int64_t at, float value) {
  if (a.result == LinearArgs::Bf16Result)
    static_cast<Bf16 *>(a.out)[at] = toBf16(value);
  else if (a.result == LinearArgs::FloatResult)
    static_cast<float *>(a.out)[at] = value;
  else
    static_cast<float *>(a.out)[at] += value;
}

} // namespace

void reference::linearOnHost(const Team &, const LinearArgs &a, int32_t x,
                             int32_t, int32_t) {
  // Inputs are widened so many rows at a time.
  constexpr int32_t most = 64;
  int32_t first = x * hostLinearColumns;
  int32_t end = std::min(first + hostLinearColumns, a.columns);
  int64_t depth = a.depth;
  std::vector<float> inputs(size_t(most * depth)), weights(a.depth);
  for (int32_t from = 0; from < a.rows; from += most) {
    int32_t rows = std::min(most, a.rows - from);
    widen(a.in + from * depth, rows * depth, inputs.data());
    for (int32_t n = first; n < end; ++n) {
      widen(a.weight + n * depth, depth, weights.data());
      for (int32_t r = 0; r < rows; ++r)
        store(a, int64_t(from + r) * a.columns + n,
              dot(inputs.data() + r * depth, weights.data(), a.depth));
    }
  }
}
