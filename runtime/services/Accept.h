//===- Accept.h - Which drafts are kept, and what is emitted ----*- C++ -*-===//
//
// Exact rejection: whatever the drafts, what is emitted is distributed as if
// the target had decoded alone. Draft d of row i, drawn from q, is kept with
// probability min(1, p(d) / q(d)), where p is the target's distribution after
// row i. At the first draft that is not kept a token is drawn from max(p - q,
// 0), normalised; after the last draft one is drawn from p. At temperature 0
// this is: keep while draft and greatest logit agree, then emit that one.
//
// The commit is here too: the slot's length advances over the rows whose tokens
// stay, and the state after the last of them becomes the slot's.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_SERVICES_ACCEPT_H
#define TOKENTILE_RUNTIME_SERVICES_ACCEPT_H

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
  /// The row whose logits were not finite, plus 1; then nothing is committed.
  int32_t badRow;
};

struct AcceptArgs {
  const StepRequest *requests;
  const int32_t *tokens;
  const int32_t *columns;
  const int32_t *lengths;
  /// [batch, width, vocabulary]; not read for prompts.
  const float *logits;
  RowStats *stats;
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

/// Block (i, b): statistics of row i of request b, if it is used.
TOKENTILE_SERVICE void acceptStats(const Team &team, const AcceptArgs &a,
                                   int32_t i, int32_t b, int32_t) {
  if (i >= a.columns[b])
    return;
  int64_t row = int64_t(b) * a.width + i;
  RowStats stats = rowStats(team, a.logits + row * a.vocabulary, a.vocabulary,
                            a.requests[b].temperature);
  if (team.rank() == 0)
    a.stats[row] = stats;
}

TOKENTILE_SERVICE_KERNEL(acceptStats, AcceptArgs)

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
  TOKENTILE_SERVICE const RowStats &stats(int32_t i) const {
    return a.stats[b * a.width + i];
  }
  TOKENTILE_SERVICE const float *logits(int32_t i) const {
    return a.logits + (int64_t(b) * a.width + i) * a.vocabulary;
  }
  /// Draft i is row 1 + i.
  TOKENTILE_SERVICE int32_t draft(int32_t i) const {
    return a.tokens[b * a.width + 1 + i];
  }
  /// Position of the token that row `i` of the batch predicts.
  TOKENTILE_SERVICE int32_t predicted(int32_t i) const {
    return a.lengths[b] + i + 1;
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

  /// The token that row `i` emits itself; `rejected` says that draft i was not
  /// kept.
  TOKENTILE_SERVICE int32_t emit(const Team &team, int32_t i,
                                 bool rejected) const {
    float temperature = request().temperature;
    RowStats row = stats(i);
    const float *from = logits(i);
    if (temperature == 0)
      return row.best;
    int32_t token = -1;
    if (rejected)
      token = draw(team, a.vocabulary, request().seed, predicted(i),
                   Purpose::Emit, [&](int32_t v) {
                     float rest = probability(from[v], row, temperature) -
                                  draftProbability(a, b, i, draft(i), v);
                     return rest > 0 ? logf(rest) : -INFINITY;
                   });
    // Nothing may be left of p - q by rounding only: then p and q are equal.
    if (token < 0)
      token =
          draw(team, a.vocabulary, request().seed, predicted(i), Purpose::Emit,
               [&](int32_t v) { return (from[v] - row.max) / temperature; });
    return token;
  }

  TOKENTILE_SERVICE bool stops(int32_t token) const {
    bool stop = false;
    for (int32_t each : request().stops)
      stop |= each == token;
    return stop;
  }
};

/// The least i < count for which `holds(i)`, or `count`.
template <typename Predicate>
TOKENTILE_SERVICE int32_t firstOf(const Team &team, int32_t count,
                                  const Predicate &holds) {
  Best first = {0, -1};
  for (int32_t i = team.rank(); i < count; i += team.size())
    if (holds(i))
      first = better(first, {float(-i), i});
  first = team.best(first);
  return first.index < 0 ? count : first.index;
}

/// Advances a slot over committed rows, as BlockTables::commit does.
TOKENTILE_SERVICE void commit(const AcceptArgs &a, int32_t slot, int32_t rows) {
  a.slotLengths[slot] += rows;
  if (a.prompt || rows < 2)
    return;
  for (int32_t c = 0; c < maxTables; ++c)
    if (a.slotStates[c]) {
      int32_t *entries = a.slotStates[c] + slot * a.stateStrides[c];
      int32_t last = entries[rows - 1];
      entries[rows - 1] = entries[0];
      entries[0] = last;
    }
}

/// Decides about a request with drafts, or none; `emitted` has room for each
/// draft and one.
TOKENTILE_SERVICE StepResult decide(const Team &team, const Acceptance &self,
                                    int32_t drafts, int32_t *emitted) {
  StepResult result = {0, 0, 0, 0};
  int32_t bad = firstOf(team, drafts + 1,
                        [&](int32_t i) { return self.stats(i).best < 0; });
  if (bad <= drafts) {
    result.badRow = bad + 1;
    return result;
  }
  result.kept =
      firstOf(team, drafts, [&](int32_t i) { return !self.keeps(i); });
  int32_t last = self.emit(team, result.kept, result.kept < drafts);
  int32_t limit = self.request().emitLimit;
  for (bool stopped = false;
       result.emitted <= result.kept && result.emitted < limit && !stopped;
       ++result.emitted) {
    int32_t token =
        result.emitted < result.kept ? self.draft(result.emitted) : last;
    stopped = self.stops(token);
    if (team.rank() == 0)
      emitted[result.emitted] = token;
  }
  result.committed = result.emitted;
  return result;
}

/// Block b decides about request b.
TOKENTILE_SERVICE void accept(const Team &team, const AcceptArgs &a, int32_t b,
                              int32_t, int32_t) {
  int32_t columns = a.columns[b];
  int32_t *words = a.results + int64_t(b) * a.resultStride;
  StepResult result = {0, 0, 0, 0};
  if (a.prompt)
    result.committed = columns;
  else if (columns > 0)
    result = decide(team, {a, b}, columns - 1,
                    words + sizeof(StepResult) / sizeof(int32_t));
  if (team.rank() != 0)
    return;
  a.accepted[b] = result.committed;
  if (result.committed > 0)
    commit(a, a.requests[b].slot, result.committed);
  *reinterpret_cast<StepResult *>(words) = result;
}

TOKENTILE_SERVICE_KERNEL(accept, AcceptArgs)

} // namespace tokentile::services

#endif // TOKENTILE_RUNTIME_SERVICES_ACCEPT_H
