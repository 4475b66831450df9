//===- Append.h - Rows of keys and values into pages ------------*- C++ -*-===//
//
// Writes the first counts[b] rows of each request, and no other, to the pages
// at positions lengths[b] + i. The counts are read on the device: they are what
// acceptance committed, so rejected rows never reach a ring.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_SERVICES_APPEND_H
#define TOKENTILE_RUNTIME_SERVICES_APPEND_H

#ifndef __CUDACC_RTC__
#include "runtime/services/PageAddress.h"
#endif

namespace tokentile::services {

/// Projected rows: element d of head h of row (b, i) at index
/// (b * width + i) * rowStride + h * headStride + d.
struct SourceRows {
  const void *data;
  int64_t rowStride;
  int64_t headStride;
  Scalar type;
};

struct AppendArgs {
  SourceRows keys;
  SourceRows values;
  PagedRows keyPages;
  PagedRows valuePages;
  PageTable table;
  /// [batch] each.
  const int32_t *lengths;
  const int32_t *counts;
  int32_t batch;
  int32_t width;
  int32_t kvHeads;
  int32_t headDim;

  /// RMSNorm of each key row before RoPE: weights [headDim], or null.
  const void *keyNorm;
  Scalar keyNormType;
  float keyNormEpsilon;
  /// RoPE of each key row by its position, "neox" pairs (d, d + rotaryDim / 2):
  /// radians a position, [rotaryDim / 2], or null.
  const float *ropeFrequencies;
  int32_t rotaryDim;
};

/// Factor of RMSNorm of the first `dim` elements.
TOKENTILE_SERVICE float rmsFactor(const Team &team, const SourceRows &rows,
                                  int64_t first, int32_t dim, float epsilon) {
  float squares = 0;
  for (int32_t d = team.rank(); d < dim; d += team.size()) {
    float value = load(rows.type, rows.data, first + d);
    squares += value * value;
  }
  return 1.0f / sqrtf(team.sum(squares) / float(dim) + epsilon);
}

/// Element d of a key row as it is stored.
TOKENTILE_SERVICE float keyElement(const AppendArgs &a, int64_t first,
                                   float factor, int64_t position, int32_t d) {
  auto normalised = [&](int32_t e) {
    float value = load(a.keys.type, a.keys.data, first + e);
    return a.keyNorm ? value * factor * load(a.keyNormType, a.keyNorm, e)
                     : value;
  };
  if (!a.ropeFrequencies || d >= a.rotaryDim)
    return normalised(d);
  int32_t half = a.rotaryDim / 2;
  bool second = d >= half;
  float angle = float(position) * a.ropeFrequencies[second ? d - half : d];
  float other = normalised(second ? d - half : d + half);
  return normalised(d) * cosf(angle) + (second ? other : -other) * sinf(angle);
}

/// Block (i, head, b) writes one key row and one value row.
TOKENTILE_SERVICE void append(const Team &team, const AppendArgs &a, int32_t i,
                              int32_t head, int32_t b) {
  int32_t count = a.counts[b];
  // Of the rows that share a place of a ring only the last is written.
  bool overwritten = i < count - a.table.stride * a.table.pageTokens;
  if (i >= count || overwritten)
    return;
  int64_t row = int64_t(b) * a.width + i;
  int64_t position = int64_t(a.lengths[b]) + i;
  void *key = rowAt(a.keyPages, a.table, b, position, head);
  void *value = rowAt(a.valuePages, a.table, b, position, head);
  int64_t firstKey = row * a.keys.rowStride + head * a.keys.headStride;
  int64_t firstValue = row * a.values.rowStride + head * a.values.headStride;
  float factor =
      a.keyNorm ? rmsFactor(team, a.keys, firstKey, a.headDim, a.keyNormEpsilon)
                : 1.0f;
  for (int32_t d = team.rank(); d < a.headDim; d += team.size()) {
    store(a.keyPages.type, key, d,
          keyElement(a, firstKey, factor, position, d));
    store(a.valuePages.type, value, d,
          load(a.values.type, a.values.data, firstValue + d));
  }
}

TOKENTILE_SERVICE_KERNEL(append, AppendArgs)

} // namespace tokentile::services

#endif // TOKENTILE_RUNTIME_SERVICES_APPEND_H
