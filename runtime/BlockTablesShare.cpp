//===- BlockTablesShare.cpp - Requests between steps ----------------------===//
//
// Admission, release, truncation, prefix sharing and moves.
//
//===----------------------------------------------------------------------===//

#include "runtime/BlockTables.h"

#include <algorithm>

using namespace tokentile;

/// Releases the entries that a request of `tokens` rows does not hold, latest
/// first, so that the pool hands them out again in the same order.
Status BlockTables::trim(int32_t slot, int64_t tokens) {
  Status result;
  for (int32_t table = pool.classes() - 1; table >= 0; --table) {
    int32_t &held = requests[slot].held[table];
    for (int32_t keep = entriesFor(table, tokens, 1); held > keep; --held) {
      Status status = pool.release(table, entry(table, slot, held - 1));
      mirror.write(word(table, slot, held - 1), 0);
      if (result.ok() && !status.ok())
        result = fail(slot, status.code(), status.message());
    }
  }
  return result;
}

Status BlockTables::admit(int32_t slot, int64_t id) {
  if (Status status = checkEmpty(slot); !status.ok())
    return status;
  requests[slot].live = true;
  requests[slot].id = id;
  return Status();
}

Status BlockTables::release(int32_t slot) {
  if (Status status = checkLive(slot); !status.ok())
    return status;
  Status status = trim(slot, 0);
  mirror.write(slot, 0);
  Request &request = requests[slot];
  request.live = false;
  request.reserved = 0;
  std::fill(request.firstIntact.begin(), request.firstIntact.end(), 0);
  return status;
}

Status BlockTables::truncate(int32_t slot, int32_t tokens) {
  if (Status status = checkIdle(slot); !status.ok())
    return status;
  if (Status status = checkPrefix(slot, tokens); !status.ok())
    return status;
  mirror.write(slot, tokens);
  std::vector<int32_t> &firstIntact = requests[slot].firstIntact;
  if (tokens == 0)
    std::fill(firstIntact.begin(), firstIntact.end(), 0);
  return trim(slot, tokens);
}

Status BlockTables::share(int32_t from, int32_t to, int64_t id,
                          int32_t tokens) {
  if (Status status = checkIdle(from); !status.ok())
    return status;
  if (Status status = checkPrefix(from, tokens); !status.ok())
    return status;
  if (Status status = admit(to, id); !status.ok())
    return status;
  mirror.write(to, tokens);
  if (tokens > 0)
    requests[to].firstIntact = requests[from].firstIntact;
  for (int32_t table = 0; table < pool.classes(); ++table)
    for (int32_t i = 0; i < entriesFor(table, tokens, 1); ++i) {
      int32_t page = entry(table, from, i);
      if (Status status = pool.retain(table, page); !status.ok())
        return fail(from, status.code(), status.message());
      mirror.write(word(table, to, i), page);
      requests[to].held[table] = i + 1;
    }
  return Status();
}

Status BlockTables::move(int32_t from, int32_t to) {
  if (Status status = checkLive(from); !status.ok())
    return status;
  if (Status status = checkEmpty(to); !status.ok())
    return status;
  std::swap(requests[from], requests[to]);
  mirror.write(to, length(from));
  mirror.write(from, 0);
  for (int32_t table = 0; table < pool.classes(); ++table)
    for (int32_t i = 0; i < held(table, to); ++i) {
      mirror.write(word(table, to, i), entry(table, from, i));
      mirror.write(word(table, from, i), 0);
    }
  return Status();
}
