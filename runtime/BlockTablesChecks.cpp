//===- BlockTablesChecks.cpp - What may be asked of block tables ----------===//
//
// The checks come before any change. A message names the request and the cause.
//
//===----------------------------------------------------------------------===//

#include "runtime/BlockTables.h"

#include <algorithm>
#include <limits>

using namespace tokentile;

Status BlockTables::checkSpec(const PagePool &pool, int32_t table,
                              const TableSpec &spec) {
  auto refuse = [&](const std::string &cause) {
    return Status(StatusCode::InvalidArgument, "table of class '" +
                                                   pool.pageClass(table).name +
                                                   "' has " + cause);
  };
  if (spec.entries < 1)
    return refuse("entries " + std::to_string(spec.entries) +
                  "; it must be positive");
  if (spec.kind == TableKind::State)
    return Status();
  if (spec.pageTokens < 1)
    return refuse("pageTokens " + std::to_string(spec.pageTokens) +
                  "; it must be positive");
  int64_t rows = int64_t(spec.entries) * spec.pageTokens;
  if (rows > std::numeric_limits<int32_t>::max())
    return refuse("room for " + std::to_string(rows) +
                  " rows; lengths are 32-bit");
  if (spec.kind == TableKind::Linear)
    return Status();
  if (spec.window < 1 || spec.uncommittedRows < 0)
    return refuse("window " + std::to_string(spec.window) +
                  " and uncommittedRows " +
                  std::to_string(spec.uncommittedRows) +
                  "; they must be at least 1 and 0");
  int64_t needed = int64_t(spec.window) - 1 + spec.uncommittedRows;
  if (rows < needed)
    return refuse("a ring of " + std::to_string(rows) +
                  " rows; window and uncommittedRows need " +
                  std::to_string(needed));
  return Status();
}

Status BlockTables::checkLive(int32_t slot) const {
  if (slot < 0 || slot >= slots())
    return Status(StatusCode::InvalidArgument,
                  "slot " + std::to_string(slot) +
                      " does not exist; the tables have 0 .. " +
                      std::to_string(slots() - 1));
  if (!requests[slot].live)
    return Status(StatusCode::FailedPrecondition,
                  "slot " + std::to_string(slot) +
                      " is empty; admit a request first");
  return Status();
}

Status BlockTables::checkEmpty(int32_t slot) const {
  if (slot < 0 || slot >= slots())
    return checkLive(slot);
  if (requests[slot].live)
    return fail(slot, StatusCode::FailedPrecondition,
                "occupies the slot; release or move it first");
  return Status();
}

Status BlockTables::checkIdle(int32_t slot) const {
  if (Status status = checkLive(slot); !status.ok())
    return status;
  if (reserved(slot) > 0)
    return fail(slot, StatusCode::FailedPrecondition,
                std::to_string(reserved(slot)) +
                    " rows are reserved; commit them first, or 0 of them");
  return Status();
}

/// Checks that the caches still have what a request of `tokens` rows needs.
Status BlockTables::checkPrefix(int32_t slot, int32_t tokens) const {
  if (tokens < 0 || tokens > length(slot))
    return fail(slot, StatusCode::OutOfRange,
                "no prefix of " + std::to_string(tokens) + " rows; it has " +
                    std::to_string(length(slot)));
  if (tokens == 0)
    return Status();
  for (size_t i = 0; i < specs.size(); ++i) {
    const TableSpec &spec = specs[i];
    const std::string &name = pool.pageClass(i).name;
    if (spec.kind == TableKind::State && tokens != length(slot))
      return fail(slot, StatusCode::FailedPrecondition,
                  "class '" + name + "' has the state after " +
                      std::to_string(length(slot)) + " rows, not after " +
                      std::to_string(tokens) + "; recompute it");
    int32_t first = std::max(0, tokens - spec.window + 1);
    if (spec.kind == TableKind::Ring && first < requests[slot].firstIntact[i])
      return fail(slot, StatusCode::FailedPrecondition,
                  "ring of class '" + name + "' starts at position " +
                      std::to_string(requests[slot].firstIntact[i]) + ", and " +
                      std::to_string(tokens) + " rows need it from " +
                      std::to_string(first) + "; recompute it");
  }
  return Status();
}

Status BlockTables::checkRows(int32_t slot, int32_t rows,
                              bool speculative) const {
  if (rows < 1)
    return fail(slot, StatusCode::InvalidArgument,
                "cannot reserve " + std::to_string(rows) +
                    " rows; reserve at least 1");
  int64_t end = int64_t(length(slot)) + rows;
  if (end > std::numeric_limits<int32_t>::max())
    return fail(slot, StatusCode::OutOfRange,
                std::to_string(end) + " rows; lengths are 32-bit");
  for (size_t i = 0; i < specs.size(); ++i) {
    const TableSpec &spec = specs[i];
    std::string table = "table of class '" + pool.pageClass(i).name + "'";
    int64_t capacity = int64_t(spec.entries) * spec.pageTokens;
    if (spec.kind == TableKind::Linear && end > capacity)
      return fail(slot, StatusCode::OutOfRange,
                  std::to_string(end) + " rows exceed its " + table +
                      ", which holds " + std::to_string(capacity) +
                      "; finish it or make the tables longer");
    if (!speculative)
      continue;
    int32_t limit = proposalLimit(spec);
    if (rows > limit)
      return fail(slot, StatusCode::OutOfRange,
                  std::to_string(rows) + " proposed rows exceed its " + table +
                      ", which takes " + std::to_string(limit) +
                      " uncommitted ones");
  }
  return Status();
}

int64_t BlockTables::capacity() const {
  int64_t rows = std::numeric_limits<int32_t>::max();
  for (const TableSpec &spec : specs)
    if (spec.kind == TableKind::Linear)
      rows = std::min(rows, int64_t(spec.entries) * spec.pageTokens);
  return rows;
}

/// The most proposed rows that a table takes.
int32_t BlockTables::proposalLimit(const TableSpec &spec) {
  if (spec.kind == TableKind::State && spec.entries > 1)
    return spec.entries;
  if (spec.kind == TableKind::Ring && spec.uncommittedRows > 0)
    return spec.uncommittedRows;
  return std::numeric_limits<int32_t>::max();
}

int32_t BlockTables::proposalLimit() const {
  int32_t rows = std::numeric_limits<int32_t>::max();
  for (const TableSpec &spec : specs)
    rows = std::min(rows, proposalLimit(spec));
  return rows;
}
