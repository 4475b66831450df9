//===- Accept.h - What a step emits and commits -----------------*- C++ -*-===//
//
// Acceptance.h in four kernels, since one block is slow on a large vocabulary:
//
//   acceptStats   statistics of each part of each row
//   acceptDrafts  how many drafts of each request are kept
//   acceptDraw    the draw of a token, in each part
//   accept        what is emitted, and the commit: the slot's length advances
//                 over the rows whose tokens stay, and the state after the last
//                 of them becomes the slot's
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_SERVICES_ACCEPT_H
#define TOKENTILE_RUNTIME_SERVICES_ACCEPT_H

#ifndef __CUDACC_RTC__
#include "runtime/services/Acceptance.h"
#endif

namespace tokentile::services {

/// Block (part, i, b): statistics of a part of row i of request b.
TOKENTILE_SERVICE void acceptStats(const Team &team, const AcceptArgs &a,
                                   int32_t part, int32_t i, int32_t b) {
  if (i >= a.columns[b])
    return;
  int64_t row = int64_t(b) * a.width + i;
  RowStats stats =
      rowStats(team, a.logits + row * a.vocabulary, partOf(a.vocabulary, part),
               a.requests[b].temperature);
  if (team.rank() == 0)
    a.partStats[row * partsOf(a.vocabulary) + part] = stats;
}

TOKENTILE_SERVICE_KERNEL(acceptStats, AcceptArgs)

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

/// Block b: how many drafts of request b are kept.
TOKENTILE_SERVICE void acceptDrafts(const Team &team, const AcceptArgs &a,
                                    int32_t b, int32_t, int32_t) {
  if (a.columns[b] == 0)
    return;
  Acceptance self = {a, b};
  for (int32_t i = team.rank(); i <= self.drafts(); i += team.size())
    self.stats(i) = self.joinedStats(i);
  team.sync();
  StepResult result = {0, 0, 0, 0};
  // Rows of rejected drafts, and those behind a stop token, do not exist in
  // plain decode: whatever they hold.
  int32_t end = firstOf(team, self.drafts(), [&](int32_t i) {
    return self.stats(i).best < 0 || !self.keeps(i);
  });
  int32_t stop =
      firstOf(team, end, [&](int32_t i) { return self.stops(self.draft(i)); });
  if (stop == end && self.stats(end).best < 0)
    result.badRow = end + 1;
  else
    result.kept = end;
  if (team.rank() == 0)
    self.result() = result;
}

TOKENTILE_SERVICE_KERNEL(acceptDrafts, AcceptArgs)

/// Block (part, b): the draw of request b in a part of the vocabulary.
TOKENTILE_SERVICE void acceptDraw(const Team &team, const AcceptArgs &a,
                                  int32_t part, int32_t b, int32_t) {
  Acceptance self = {a, b};
  if (a.columns[b] == 0 || self.request().temperature == 0 ||
      self.result().badRow > 0)
    return;
  int32_t kept = self.result().kept;
  Span span = partOf(a.vocabulary, part);
  Best best = kept < self.drafts() ? self.drawInstead(team, kept, span)
                                   : self.drawNext(team, kept, span);
  if (team.rank() == 0)
    a.draws[b * partsOf(a.vocabulary) + part] = best;
}

TOKENTILE_SERVICE_KERNEL(acceptDraw, AcceptArgs)

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

/// Writes the tokens of a request that are emitted, and counts them.
TOKENTILE_SERVICE void emit(const Acceptance &self, int32_t last,
                            StepResult &result) {
  int32_t *tokens = self.emitted();
  int32_t limit = self.request().emitLimit;
  for (int32_t i = 0; i <= result.kept && i < limit; ++i) {
    tokens[i] = i < result.kept ? self.draft(i) : last;
    result.emitted = i + 1;
    if (self.stops(tokens[i]))
      break;
  }
  result.committed = result.emitted;
}

/// Block b: what request b emits, and its commit.
TOKENTILE_SERVICE void accept(const Team &team, const AcceptArgs &a, int32_t b,
                              int32_t, int32_t) {
  Acceptance self = {a, b};
  StepResult result = {0, 0, 0, 0};
  int32_t last = 0;
  if (!a.prompt && a.columns[b] > 0) {
    result = self.result();
    if (result.badRow == 0)
      last = self.lastToken(team);
  }
  if (team.rank() != 0)
    return;
  if (a.prompt)
    result.committed = a.columns[b];
  else if (a.columns[b] > 0 && result.badRow == 0)
    emit(self, last, result);
  a.accepted[b] = result.committed;
  if (result.committed > 0)
    commit(a, a.requests[b].slot, result.committed);
  self.result() = result;
}

TOKENTILE_SERVICE_KERNEL(accept, AcceptArgs)

} // namespace tokentile::services

#endif // TOKENTILE_RUNTIME_SERVICES_ACCEPT_H
