//===- Sample.h - Distributions of rows of logits ---------------*- C++ -*-===//
//
// A row's distribution is softmax(logits / temperature), or all on the greatest
// logit (the lowest index of equals) if the temperature is 0.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_SERVICES_SAMPLE_H
#define TOKENTILE_RUNTIME_SERVICES_SAMPLE_H

#ifndef __CUDACC_RTC__
#include "runtime/services/Numbers.h"
#include "runtime/services/Step.h"
#endif

namespace tokentile::services {

/// Tokens [first, end) of a vocabulary.
struct Span {
  int32_t first;
  int32_t end;
};

/// Rows are worked on in parts, by a block of so many threads each. Blocks are
/// small, so that many share a multiprocessor: a part mostly waits for memory
/// and for its own reductions.
constexpr int32_t partThreads = 256;

/// How many parts there are depends on the vocabulary only, so that sums are
/// added in the same order in every batch.
TOKENTILE_SERVICE int32_t partsOf(int32_t vocabulary) {
  return (vocabulary + 8191) / 8192;
}

/// Part `part` of a vocabulary; starts at a multiple of 4.
TOKENTILE_SERVICE Span partOf(int32_t vocabulary, int32_t part) {
  int32_t parts = partsOf(vocabulary);
  int32_t size = ((vocabulary + parts - 1) / parts + 3) / 4 * 4;
  int32_t first = part * size, end = first + size;
  return {first < vocabulary ? first : vocabulary,
          end < vocabulary ? end : vocabulary};
}

/// What a distribution needs beside the logits: the greatest, its token, and
/// the sum of exp((logit - max) / temperature). `best` is -1 if there is none:
/// `max` is then infinite if a logit is infinite or NaN, and minus infinity if
/// all are.
struct RowStats {
  float max;
  float sum;
  int32_t best;
};

TOKENTILE_SERVICE RowStats rowStats(const Team &team, const float *logits,
                                    Span span, float temperature) {
  // Several loads before the first use: the latency of memory is what counts.
  constexpr int32_t loads = 8;
  Best best = {-INFINITY, -1};
  for (int32_t v = span.first + team.rank(); v < span.end;
       v += loads * team.size()) {
    float values[loads];
    for (int32_t i = 0; i < loads; ++i) {
      int32_t at = v + i * team.size();
      values[i] = at < span.end ? logits[at] : -INFINITY;
    }
    for (int32_t i = 0; i < loads; ++i) {
      float value = isNan(values[i]) ? INFINITY : values[i];
      if (value != -INFINITY)
        best = better(best, {value, v + i * team.size()});
    }
  }
  best = team.best(best);
  if (best.index < 0 || best.value == INFINITY)
    return {best.value, 0, -1};
  float sum = 0;
  if (temperature > 0)
    for (int32_t v = span.first + team.rank(); v < span.end; v += team.size())
      sum += expf((logits[v] - best.value) / temperature);
  return {best.value, team.sum(sum), best.index};
}

/// Statistics of two parts together, `a` before `b`.
TOKENTILE_SERVICE RowStats joined(const RowStats &a, const RowStats &b,
                                  float temperature) {
  if (a.max == INFINITY || b.best < 0)
    return b.max == INFINITY ? b : a;
  if (a.best < 0)
    return b;
  RowStats result = b.max > a.max ? b : a;
  if (temperature > 0)
    result.sum = a.sum * expf((a.max - result.max) / temperature) +
                 b.sum * expf((b.max - result.max) / temperature);
  return result;
}

TOKENTILE_SERVICE float probability(float logit, const RowStats &stats,
                                    float temperature) {
  return expf((logit - stats.max) / temperature) / stats.sum;
}

/// Draws from log weights of the tokens of a span, `logWeight(v)` being
/// -INFINITY for none: the index is -1 if all are. The best of several parts is
/// the draw from all of them.
template <typename LogWeight>
TOKENTILE_SERVICE Best draw(const Team &team, Span span, uint64_t seed,
                            int32_t position, Purpose purpose,
                            const LogWeight &logWeight) {
  Best best = {0, -1};
  for (int32_t quad = span.first / 4 + team.rank(); 4 * quad < span.end;
       quad += team.size()) {
    Random4 noise = random4(seed, position, purpose, quad);
    for (int32_t i = 0; i < 4 && 4 * quad + i < span.end; ++i) {
      float weight = logWeight(4 * quad + i);
      if (weight != -INFINITY)
        best = better(best, {weight + gumbel(noise.words[i]), 4 * quad + i});
    }
  }
  return team.best(best);
}

/// Draft tokens out of draft logits.
struct DraftSampleArgs {
  /// [batch, drafts, vocabulary]
  const float *logits;
  const float *temperatures;
  const uint64_t *seeds;
  const int32_t *lengths;
  /// [batch, drafts + 1]: rows 1 .. drafts are written.
  int32_t *tokens;
  /// [batch, drafts, vocabulary], or null for greedy drafts.
  float *probabilities;
  int32_t batch;
  int32_t drafts;
  int32_t vocabulary;
};

/// Block (i, b) draws draft i of request b.
TOKENTILE_SERVICE void sampleDrafts(const Team &team, const DraftSampleArgs &a,
                                    int32_t i, int32_t b, int32_t) {
  int64_t first = (int64_t(b) * a.drafts + i) * a.vocabulary;
  const float *logits = a.logits + first;
  float temperature = a.probabilities ? a.temperatures[b] : 0.0f;
  RowStats stats = rowStats(team, logits, {0, a.vocabulary}, temperature);
  int32_t token = stats.best;
  if (temperature > 0 && stats.best < 0) {
    // Acceptance is exact only if this is the law of the token below.
    for (int32_t v = team.rank(); v < a.vocabulary; v += team.size())
      a.probabilities[first + v] = v == 0 ? 1.0f : 0.0f;
  } else if (temperature > 0) {
    for (int32_t v = team.rank(); v < a.vocabulary; v += team.size())
      a.probabilities[first + v] = probability(logits[v], stats, temperature);
    token =
        draw(team, {0, a.vocabulary}, a.seeds[b], a.lengths[b] + 1 + i,
             Purpose::Draft,
             [&](int32_t v) { return (logits[v] - stats.max) / temperature; })
            .index;
  }
  // A row without a finite logit proposes nothing in particular.
  if (team.rank() == 0)
    a.tokens[b * (a.drafts + 1) + 1 + i] = token >= 0 ? token : 0;
}

TOKENTILE_SERVICE_KERNEL(sampleDrafts, DraftSampleArgs)

} // namespace tokentile::services

#endif // TOKENTILE_RUNTIME_SERVICES_SAMPLE_H
