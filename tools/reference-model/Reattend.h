//===- Reattend.h - The fallback that attends everything again --*- C++ -*-===//
//
// How an engine without a batched draft kernel proposes for several requests
// (vllm.cpp #2087): it copies the context of every request and the block rows
// behind one another, and attends with every row of that, context rows too,
// though only the block rows' results are used. Kept as the baseline that it
// is: a warp for each (row, head), keys one by one, no split.
//
// Compiled by the host compiler and, as text, by NVRTC; see OpBodies.h.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TOOLS_REFERENCEMODEL_REATTEND_H
#define TOKENTILE_TOOLS_REFERENCEMODEL_REATTEND_H

#ifndef __CUDACC_RTC__
#include "tools/reference-model/OpBodies.h"
#endif

namespace tokentile::reference {

/// Slots, each of at most `maxKeys` keys, block included; the combined tensors
/// have rows slot * maxKeys + key. Pages are page-major.
struct ReattendArgs {
  /// Block rows: [slots, width, heads or kvHeads, dim].
  const Bf16 *query;
  const Bf16 *blockKeys;
  const Bf16 *blockValues;
  Bf16 *output;
  /// Page 0 of the layer's keys and values.
  const char *keys;
  const char *values;
  const int *table;
  const int *lengths;
  const int *counts;
  /// Combined rows, written by gather.
  Bf16 *allQueries;
  Bf16 *allKeys;
  Bf16 *allValues;
  Bf16 *allOutputs;
  int64_t tableStride;
  int64_t pageBytes;
  int pageTokens;
  int maxKeys;
  int width;
  int heads;
  int kvHeads;
  int dim;
  /// Keys within `window` of a row's own position, 0 for all.
  int window;
  float scale;
};

/// Row index here: slot * maxKeys + key.
TOKENTILE_SERVICE void gatherKey(const Team &team, const ReattendArgs &a,
                                 int32_t x, int32_t, int32_t) {
  int64_t index = x;
  int64_t slot = index / a.maxKeys;
  int key = int(index % a.maxKeys), context = a.lengths[slot];
  int count = a.counts[slot];
  if (!count || key >= context + count)
    return;
  bool isBlock = key >= context;
  int64_t row = slot * a.width + key - context;
  int64_t page =
      isBlock ? 0 : a.table[slot * a.tableStride + key / a.pageTokens];
  for (int i = team.rank(); i < a.kvHeads * a.dim; i += team.size()) {
    int64_t within =
        (int64_t)(i / a.dim * a.pageTokens + key % a.pageTokens) * a.dim +
        i % a.dim;
    int64_t to = index * a.kvHeads * a.dim + i;
    int64_t from = row * a.kvHeads * a.dim + i;
    a.allKeys[to] = isBlock
                        ? a.blockKeys[from]
                        : ((const Bf16 *)(a.keys + page * a.pageBytes))[within];
    a.allValues[to] =
        isBlock ? a.blockValues[from]
                : ((const Bf16 *)(a.values + page * a.pageBytes))[within];
  }
  for (int i = team.rank(); i < a.heads * a.dim; i += team.size())
    a.allQueries[index * a.heads * a.dim + i] =
        isBlock ? a.query[row * a.heads * a.dim + i] : Bf16(0);
}

/// The sum over a team of one warp, or of one thread.
TOKENTILE_SERVICE float sumOfWarp(float value) {
#ifdef __CUDACC_RTC__
  for (int32_t lane = 16; lane > 0; lane /= 2)
    value += __shfl_xor_sync(~0u, value, lane);
#endif
  return value;
}

/// Elements of a head that one thread holds.
#ifdef __CUDACC_RTC__
constexpr int32_t ownElements = 8;
#else
constexpr int32_t ownElements = 256;
#endif

/// Row index here: (slot * maxKeys + key) * heads + head. A team is a warp.
TOKENTILE_SERVICE void attendHead(const Team &team, const ReattendArgs &a,
                                  int32_t x, int32_t, int32_t) {
  int64_t index = x;
  int head = int(index % a.heads), own = int(index / a.heads % a.maxKeys);
  int64_t slot = index / a.heads / a.maxKeys;
  int context = a.lengths[slot], count = a.counts[slot];
  int keys = context + count;
  if (!count || own >= keys)
    return;
  int kvHead = head / (a.heads / a.kvHeads);
  int first = a.window && own - a.window + 1 > 0 ? own - a.window + 1 : 0;
  int end = a.window && own + a.window < keys ? own + a.window : keys;
  const Bf16 *query = a.allQueries + index * a.dim;
  float out[ownElements] = {}, most = -1e30f, sum = 0;
  for (int key = first; key < end; ++key) {
    int64_t row = ((slot * a.maxKeys + key) * a.kvHeads + kvHead) * a.dim;
    float dot = 0;
    for (int i = team.rank(); i < a.dim; i += team.size())
      dot += fromBf16(query[i]) * fromBf16(a.allKeys[row + i]);
    float score = sumOfWarp(dot) * a.scale;
    float next = score > most ? score : most;
    float keep = expf(most - next), weight = expf(score - next);
    most = next;
    sum = sum * keep + weight;
    for (int e = 0, i = team.rank(); i < a.dim; ++e, i += team.size())
      out[e] = out[e] * keep + weight * fromBf16(a.allValues[row + i]);
  }
  int64_t block = slot * a.width + own - context;
  Bf16 *to = own >= context ? a.output + (block * a.heads + head) * a.dim
                            : a.allOutputs + index * a.dim;
  for (int e = 0, i = team.rank(); i < a.dim; ++e, i += team.size())
    to[i] = toBf16(out[e] / sum);
}

TOKENTILE_SERVICE_KERNEL(gatherKey, ReattendArgs)
TOKENTILE_SERVICE_KERNEL(attendHead, ReattendArgs)

} // namespace tokentile::reference

#endif // TOKENTILE_TOOLS_REFERENCEMODEL_REATTEND_H
