//===- Sample.h - Distributions of rows of logits ---------------*- C++ -*-===//
//
// A row's distribution is softmax(logits / temperature), or all on the greatest
// logit (the lowest index of equals) if the temperature is 0.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_SERVICES_SAMPLE_H
#define TOKENTILE_RUNTIME_SERVICES_SAMPLE_H

#ifndef __CUDACC_RTC__
#include "runtime/services/Step.h"
#endif

namespace tokentile::services {

/// What a distribution needs beside the logits. `best` is -1 if a logit is NaN
/// or infinite, or if all are minus infinity.
struct RowStats {
  float max;
  float sum;
  int32_t best;
};

TOKENTILE_SERVICE RowStats rowStats(const Team &team, const float *logits,
                                    int32_t vocabulary, float temperature) {
  Best best = {0, -1};
  for (int32_t v = team.rank(); v < vocabulary; v += team.size()) {
    float value = logits[v] == logits[v] ? logits[v] : INFINITY;
    best = better(best, {value, v});
  }
  best = team.best(best);
  if (best.value == INFINITY || best.value == -INFINITY)
    return {0, 1, -1};
  float sum = 0;
  if (temperature > 0)
    for (int32_t v = team.rank(); v < vocabulary; v += team.size())
      sum += expf((logits[v] - best.value) / temperature);
  return {best.value, team.sum(sum), best.index};
}

TOKENTILE_SERVICE float probability(float logit, const RowStats &stats,
                                    float temperature) {
  return expf((logit - stats.max) / temperature) / stats.sum;
}

/// Draws from log weights, `logWeight(v)` being -INFINITY for none. Returns -1
/// if all are.
template <typename LogWeight>
TOKENTILE_SERVICE int32_t draw(const Team &team, int32_t vocabulary,
                               uint64_t seed, int32_t position, Purpose purpose,
                               const LogWeight &logWeight) {
  Best best = {0, -1};
  for (int32_t quad = team.rank(); 4 * quad < vocabulary; quad += team.size()) {
    Random4 noise = random4(seed, position, purpose, quad);
    for (int32_t i = 0; i < 4 && 4 * quad + i < vocabulary; ++i) {
      float weight = logWeight(4 * quad + i);
      if (weight != -INFINITY)
        best = better(best, {weight + gumbel(noise.words[i]), 4 * quad + i});
    }
  }
  return team.best(best).index;
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
  RowStats stats = rowStats(team, logits, a.vocabulary, temperature);
  int32_t token = stats.best;
  if (temperature > 0 && stats.best >= 0) {
    for (int32_t v = team.rank(); v < a.vocabulary; v += team.size())
      a.probabilities[first + v] = probability(logits[v], stats, temperature);
    token = draw(
        team, a.vocabulary, a.seeds[b], a.lengths[b] + 1 + i, Purpose::Draft,
        [&](int32_t v) { return (logits[v] - stats.max) / temperature; });
  }
  // A row without a finite logit proposes nothing in particular.
  if (team.rank() == 0)
    a.tokens[b * (a.drafts + 1) + 1 + i] = token >= 0 ? token : 0;
}

TOKENTILE_SERVICE_KERNEL(sampleDrafts, DraftSampleArgs)

} // namespace tokentile::services

#endif // TOKENTILE_RUNTIME_SERVICES_SAMPLE_H
