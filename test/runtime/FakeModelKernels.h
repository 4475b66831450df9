//===- FakeModelKernels.h - A model of a few lines --------------*- C++ -*-===//
//
// Logits that are a hash of the latest tokens, which the model reads back from
// its caches, so that a wrong page, length or append changes the output. In the
// style of runtime/services: host and CUDA share it.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TEST_RUNTIME_FAKEMODELKERNELS_H
#define TOKENTILE_TEST_RUNTIME_FAKEMODELKERNELS_H

#ifndef __CUDACC_RTC__
#include "runtime/services/Accept.h"
#include "runtime/services/PageAddress.h"
#endif

namespace tokentile::fake {

using namespace tokentile::services;

/// Tokens that logits depend on, the current one included; the rest of the
/// history is in the recurrent state, if there is one.
constexpr int32_t memoryTokens = 6;

TOKENTILE_SERVICE uint32_t mix(uint32_t hash, uint32_t value) {
  hash = (hash ^ value) * 0x9E3779B1u;
  return hash ^ (hash >> 15);
}

TOKENTILE_SERVICE float logitOf(uint32_t hash, int32_t v) {
  return float(mix(mix(hash, 77), uint32_t(v)) >> 16) * (4.0f / 65536) - 2;
}

TOKENTILE_SERVICE int32_t greedyOf(uint32_t hash, int32_t vocabulary) {
  Best best = {0, -1};
  for (int32_t v = 0; v < vocabulary; ++v)
    best = better(best, {logitOf(hash, v), v});
  return best.index;
}

/// The latest tokens, oldest first.
struct Recent {
  int32_t tokens[memoryTokens];
  int32_t count = 0;

  TOKENTILE_SERVICE void push(int32_t token) {
    if (count == memoryTokens) {
      for (int32_t i = 1; i < memoryTokens; ++i)
        tokens[i - 1] = tokens[i];
      --count;
    }
    tokens[count++] = token;
  }
  TOKENTILE_SERVICE uint32_t hash(uint32_t state) const {
    uint32_t result = state;
    for (int32_t i = 0; i < count; ++i)
      result = mix(result, uint32_t(tokens[i]) + 1);
    return result;
  }
};

struct FakeArgs {
  int32_t *tokens;
  const int32_t *columns;
  const int32_t *lengths;
  const int32_t *accepted;
  const float *temperatures;
  const uint64_t *seeds;
  float *logits;
  /// [rows]: what the target hands to the draft.
  int32_t *taps;
  /// One word a row.
  PagedRows targetRows;
  PageTable targetTable;
  PagedRows draftRows;
  PageTable draftTable;
  /// Entries of the state class and the stride of its pages, or null.
  const int32_t *stateIds;
  int64_t stateStride;
  int64_t statePageBytes;
  float *draftProbabilities;
  int32_t *draftSupport;
  DraftKind kind;
  int32_t support;
  int32_t batch;
  int32_t width;
  int32_t vocabulary;
  int32_t prompt;
  /// How often in 1000 the draft proposes what the target would.
  int32_t agreement;
  /// The draft tells uniform probabilities, whatever it drew from.
  int32_t lies;
  /// Logits after this token are NaN; -1 for none.
  int32_t poison;
};

TOKENTILE_SERVICE int32_t *rowOf(const PagedRows &rows, const PageTable &table,
                                 int32_t b, int64_t position) {
  return static_cast<int32_t *>(rowAt(rows, table, b, position, 0));
}

TOKENTILE_SERVICE uint32_t *stateOf(const FakeArgs &a, int32_t b,
                                    int64_t entry) {
  int64_t page = a.stateIds[b * a.stateStride + entry];
  return reinterpret_cast<uint32_t *>(static_cast<char *>(a.targetRows.pool) +
                                      page * a.statePageBytes);
}

/// The state after the committed rows.
TOKENTILE_SERVICE uint32_t firstState(const FakeArgs &a, int32_t b) {
  return a.stateIds && a.lengths[b] > 0 ? *stateOf(a, b, 0) : 0;
}

/// Block b: writes the rows and states of a request, and its taps.
TOKENTILE_SERVICE void fakeWrite(const Team &team, const FakeArgs &a, int32_t b,
                                 int32_t, int32_t) {
  if (team.rank() != 0)
    return;
  uint32_t state = firstState(a, b);
  for (int32_t i = 0; i < a.width; ++i)
    a.taps[b * a.width + i] = -1;
  for (int32_t i = 0; i < a.columns[b]; ++i) {
    int32_t token = a.tokens[b * a.width + i];
    *rowOf(a.targetRows, a.targetTable, b, a.lengths[b] + i) = token;
    a.taps[b * a.width + i] = token;
    state = mix(state, uint32_t(token));
    if (a.stateIds && !a.prompt)
      *stateOf(a, b, i) = state;
  }
  if (a.stateIds && a.prompt && a.columns[b] > 0)
    *stateOf(a, b, 0) = state;
}

TOKENTILE_SERVICE_KERNEL(fakeWrite, FakeArgs)

/// Block (i, b): the logits of a row; NaN for padding.
TOKENTILE_SERVICE void fakeLogits(const Team &team, const FakeArgs &a,
                                  int32_t i, int32_t b, int32_t) {
  float *logits = a.logits + int64_t(b * a.width + i) * a.vocabulary;
  bool padding = i >= a.columns[b];
  if (padding || a.tokens[b * a.width + i] == a.poison) {
    for (int32_t v = team.rank(); v < a.vocabulary; v += team.size())
      logits[v] = floatOf(0x7fc00000u);
    return;
  }
  int32_t position = a.lengths[b] + i;
  Recent recent;
  for (int32_t p = position < memoryTokens ? 0 : position - memoryTokens + 1;
       p <= position; ++p)
    recent.push(*rowOf(a.targetRows, a.targetTable, b, p));
  uint32_t hash = recent.hash(a.stateIds ? *stateOf(a, b, i) : 0);
  for (int32_t v = team.rank(); v < a.vocabulary; v += team.size())
    logits[v] = logitOf(hash, v);
}

TOKENTILE_SERVICE_KERNEL(fakeLogits, FakeArgs)

/// Draws draft i of a request from a distribution of the draft's own.
TOKENTILE_SERVICE int32_t fakeDraw(const FakeArgs &a, int32_t b, int32_t i,
                                   uint32_t hash) {
  int32_t drafts = a.width - 1;
  bool full = a.kind == DraftKind::Full;
  int32_t count = full ? a.vocabulary : a.support;
  int64_t first = (int64_t(b) * drafts + i) * count;
  float sum = 0;
  for (int32_t s = 0; s < count; ++s)
    sum += expf(logitOf(hash ^ 5u, s));
  for (int32_t s = 0; s < count; ++s) {
    a.draftProbabilities[first + s] = expf(logitOf(hash ^ 5u, s)) / sum;
    if (!full)
      a.draftSupport[first + s] =
          int32_t((hash % uint32_t(a.vocabulary) + uint32_t(s)) %
                  uint32_t(a.vocabulary));
  }
  Random4 noise = random4(a.seeds[b], a.lengths[b] + 1 + i, Purpose::Draft, 0);
  float left = uniform(noise.words[0]);
  int32_t chosen = 0;
  while (chosen + 1 < count && left >= a.draftProbabilities[first + chosen])
    left -= a.draftProbabilities[first + chosen++];
  for (int32_t s = 0; s < count && a.lies; ++s)
    a.draftProbabilities[first + s] = 1.0f / float(count);
  return full ? chosen : a.draftSupport[first + chosen];
}

/// Block b: proposes for a request, out of the draft's ring.
TOKENTILE_SERVICE void fakePropose(const Team &team, const FakeArgs &a,
                                   int32_t b, int32_t, int32_t) {
  if (team.rank() != 0 || a.columns[b] == 0)
    return;
  int32_t length = a.lengths[b];
  Recent recent;
  for (int32_t p = length < memoryTokens ? 0 : length - memoryTokens + 1;
       p < length; ++p)
    recent.push(*rowOf(a.draftRows, a.draftTable, b, p));
  uint32_t state = firstState(a, b);
  int32_t token = a.tokens[b * a.width];
  for (int32_t i = 0; i + 1 < a.width; ++i) {
    recent.push(token);
    if (a.stateIds)
      state = mix(state, uint32_t(token));
    uint32_t hash = recent.hash(state);
    if (a.kind != DraftKind::OneHot && a.temperatures[b] > 0) {
      token = fakeDraw(a, b, i, hash);
    } else {
      token = greedyOf(hash, a.vocabulary);
      if (mix(hash, 1234567) % 1000 >= uint32_t(a.agreement))
        token = (token + 1) % a.vocabulary;
    }
    a.tokens[b * a.width + 1 + i] = token;
  }
}

TOKENTILE_SERVICE_KERNEL(fakePropose, FakeArgs)

/// Block b: appends the taps of the rows that were accepted.
TOKENTILE_SERVICE void fakeAppend(const Team &team, const FakeArgs &a,
                                  int32_t b, int32_t, int32_t) {
  // Threads write at once, so of rows that share a place only the last may.
  int32_t count = a.accepted[b];
  auto room = int32_t(a.draftTable.stride * a.draftTable.pageTokens);
  for (int32_t i = team.rank() + (count > room ? count - room : 0); i < count;
       i += team.size())
    *rowOf(a.draftRows, a.draftTable, b, a.lengths[b] + i) =
        a.taps[b * a.width + i];
}

TOKENTILE_SERVICE_KERNEL(fakeAppend, FakeArgs)

} // namespace tokentile::fake

#endif // TOKENTILE_TEST_RUNTIME_FAKEMODELKERNELS_H
