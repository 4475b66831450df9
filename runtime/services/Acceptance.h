//===- Acceptance.h - Keeping and drawing tokens by rejection ---*- C++ -*-===//
//
// Exact rejection: whatever the drafts, what is emitted is distributed as if
// the target had decoded alone. Draft d of row i, drawn from q, is kept with
// probability min(1, p(d) / q(d)), where p is the target's distribution after
// row i. At the first draft that is not kept a token is drawn from max(p - q,
// 0), normalised; after the last draft one is drawn from p. At temperature 0
// this is: keep while draft and greatest logit agree, then emit that one.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_SERVICES_ACCEPTANCE_H
#define TOKENTILE_RUNTIME_SERVICES_ACCEPTANCE_H

#ifndef __CUDACC_RTC__
#include "runtime/services/Sample.h"
#endif

namespace tokentile::services {

/// As DraftDistribution (SpecModel.h).
enum class DraftKind : int32_t { OneHot, Full, Sparse };

/// What the device says about one request of a step; `drafts` + 1 tokens, of
/// which `emitted` count, follow each in memory.
struct StepResult {
  /// Rows that became part of the request.
  int32_t committed;
  int32_t emitted;
  /// Drafts that were kept, before the limit and stop tokens cut them off.
  int32_t kept;
  /// The row whose logits are needed and not finite, plus 1; then nothing is
  /// committed.
  int32_t badRow;
};

struct AcceptArgs {
  const StepRequest *requests;
  const int32_t *tokens;
  const int32_t *columns;
  const int32_t *lengths;
  /// [batch, width, vocabulary]; not read for prompts.
  const float *logits;
  /// [batch, width, parts], [batch, width] and [batch, parts].
  RowStats *partStats;
  RowStats *stats;
  Best *draws;
  const float *draftProbabilities;
  const int32_t *draftSupport;
  /// StepResult and tokens, `resultStride` words for each request.
  int32_t *results;
  int32_t *accepted;
  /// Of BlockTables: lengths, and the tables of state classes with snapshots,
  /// or null.
  int32_t *slotLengths;
  int32_t *slotStates[maxTables];
  int64_t stateStrides[maxTables];
  DraftKind draftKind;
  int32_t support;
  int32_t batch;
  int32_t width;
  int32_t vocabulary;
  int32_t resultStride;
  /// Rows hold a prompt: all are committed, none emits.
  int32_t prompt;
};

/// The draft's probability of token `v` in the place of row (b, 1 + i), where
/// it proposed `proposed`.
TOKENTILE_SERVICE float draftProbability(const AcceptArgs &a, int32_t b,
                                         int32_t i, int32_t proposed,
                                         int32_t v) {
  int64_t row = int64_t(b) * (a.width - 1) + i;
  if (a.draftKind == DraftKind::Full)
    return a.draftProbabilities[row * a.vocabulary + v];
  if (a.draftKind == DraftKind::OneHot)
    return v == proposed ? 1.0f : 0.0f;
  for (int32_t s = 0; s < a.support; ++s)
    if (a.draftSupport[row * a.support + s] == v)
      return a.draftProbabilities[row * a.support + s];
  return 0.0f;
}

/// One request of an acceptance.
struct Acceptance {
  const AcceptArgs &a;
  int32_t b;

  TOKENTILE_SERVICE const StepRequest &request() const { return a.requests[b]; }
  TOKENTILE_SERVICE int32_t drafts() const { return a.columns[b] - 1; }
  TOKENTILE_SERVICE StepResult &result() const {
    return *reinterpret_cast<StepResult *>(a.results +
                                           int64_t(b) * a.resultStride);
  }
  TOKENTILE_SERVICE int32_t *emitted() const {
    return reinterpret_cast<int32_t *>(&result() + 1);
  }
  TOKENTILE_SERVICE RowStats &stats(int32_t i) const {
    return a.stats[b * a.width + i];
  }
  TOKENTILE_SERVICE const float *logits(int32_t i) const {
    return a.logits + (int64_t(b) * a.width + i) * a.vocabulary;
  }
  /// Draft i is row 1 + i.
  TOKENTILE_SERVICE int32_t draft(int32_t i) const {
    return a.tokens[b * a.width + 1 + i];
  }
  /// Position of the token that row `i` predicts.
  TOKENTILE_SERVICE int32_t predicted(int32_t i) const {
    return a.lengths[b] + i + 1;
  }

  TOKENTILE_SERVICE RowStats joinedStats(int32_t i) const {
    int32_t parts = partsOf(a.vocabulary);
    const RowStats *each = a.partStats + (int64_t(b) * a.width + i) * parts;
    RowStats stats = each[0];
    for (int32_t part = 1; part < parts; ++part)
      stats = joined(stats, each[part], request().temperature);
    return stats;
  }

  TOKENTILE_SERVICE bool keeps(int32_t i) const {
    int32_t token = draft(i);
    if (token < 0 || token >= a.vocabulary)
      return false;
    if (request().temperature == 0)
      return token == stats(i).best;
    float p = probability(logits(i)[token], stats(i), request().temperature);
    float q = draftProbability(a, b, i, token, token);
    uint32_t word =
        random4(request().seed, predicted(i), Purpose::Accept, 0).words[0];
    return uniform(word) * q < p;
  }

  /// A draw from what follows row `i`, within a span.
  TOKENTILE_SERVICE Best drawNext(const Team &team, int32_t i,
                                  Span span) const {
    const float *from = logits(i);
    RowStats row = stats(i);
    float temperature = request().temperature;
    return draw(team, span, request().seed, predicted(i), Purpose::Emit,
                [&](int32_t v) { return (from[v] - row.max) / temperature; });
  }

  /// The same where draft `i` was not kept: of what the target gives a token
  /// beyond what the draft gave it.
  TOKENTILE_SERVICE Best drawInstead(const Team &team, int32_t i,
                                     Span span) const {
    const float *from = logits(i);
    RowStats row = stats(i);
    float temperature = request().temperature;
    int32_t rejected = draft(i);
    return draw(team, span, request().seed, predicted(i), Purpose::Emit,
                [&](int32_t v) {
                  float rest = probability(from[v], row, temperature) -
                               draftProbability(a, b, i, rejected, v);
                  return rest > 0 ? logf(rest) : -INFINITY;
                });
  }

  /// The token after the drafts that were kept.
  TOKENTILE_SERVICE int32_t lastToken(const Team &team) const {
    int32_t kept = result().kept;
    if (request().temperature == 0)
      return stats(kept).best;
    Best best = {0, -1};
    for (int32_t part = 0; part < partsOf(a.vocabulary); ++part)
      best = better(best, a.draws[b * partsOf(a.vocabulary) + part]);
    // Nothing is left of p - q only by rounding, where p and q are equal.
    if (best.index < 0)
      best = drawNext(team, kept, {0, a.vocabulary});
    return best.index;
  }

  TOKENTILE_SERVICE bool stops(int32_t token) const {
    bool stop = false;
    for (int32_t each : request().stops)
      stop |= each == token;
    return stop;
  }
};

} // namespace tokentile::services

#endif // TOKENTILE_RUNTIME_SERVICES_ACCEPTANCE_H
