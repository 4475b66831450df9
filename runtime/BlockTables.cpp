//===- BlockTables.cpp - Batched page tables and lengths ------------------===//
//
// The transaction of a step: reserve, upload, commit. BlockTablesShare.cpp has
// what happens between steps, BlockTablesChecks.cpp what may be asked for.
//
//===----------------------------------------------------------------------===//

#include "runtime/BlockTables.h"

#include <algorithm>

using namespace tokentile;

namespace {

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Words of `count` int32, padded so that the next array starts 256-byte
/// aligned.
int64_t paddedWords(int64_t count) { return ceilDiv(count, 64) * 64; }

} // namespace

StatusOr<BlockTables> BlockTables::create(Device &device, PagePool &pool,
                                          void *memory, int32_t slots,
                                          std::vector<TableSpec> specs) {
  if (int32_t(specs.size()) != pool.classes())
    return Status(StatusCode::InvalidArgument,
                  std::to_string(specs.size()) + " table specs for " +
                      std::to_string(pool.classes()) +
                      " page classes; give one for each");
  if (slots < 1)
    return Status(StatusCode::InvalidArgument,
                  "slots " + std::to_string(slots) + "; it must be positive");
  int64_t words = paddedWords(slots);
  for (size_t i = 0; i < specs.size(); ++i) {
    if (Status status = checkSpec(pool, int32_t(i), specs[i]); !status.ok())
      return status;
    words += paddedWords(int64_t(slots) * specs[i].entries);
  }
  StatusOr<TableMirror> mirror = TableMirror::create(device, words);
  if (!mirror.ok())
    return mirror.status();
  return BlockTables(pool, memory, *std::move(mirror), slots, std::move(specs));
}

BlockTables::BlockTables(PagePool &pool, void *memory, TableMirror mirror,
                         int32_t slots, std::vector<TableSpec> tableSpecs)
    : pool(pool), memory(static_cast<char *>(memory)),
      mirror(std::move(mirror)), specs(std::move(tableSpecs)), requests(slots) {
  int64_t words = paddedWords(slots);
  for (const TableSpec &spec : specs) {
    firstWord.push_back(words);
    words += paddedWords(int64_t(slots) * spec.entries);
  }
  for (Request &request : requests) {
    request.held.resize(specs.size());
    request.firstIntact.resize(specs.size());
  }
}

std::string BlockTables::nameOf(int32_t slot) const {
  return "request " + std::to_string(requests[slot].id) + " (slot " +
         std::to_string(slot) + ")";
}

Status BlockTables::fail(int32_t slot, StatusCode code,
                         const std::string &cause) const {
  return Status(code, nameOf(slot) + ": " + cause);
}

/// Entries that a request of `tokens` rows holds; `stateRows` of them may each
/// need their own state.
int32_t BlockTables::entriesFor(int32_t table, int64_t tokens,
                                int32_t stateRows) const {
  const TableSpec &spec = specs[table];
  if (tokens == 0)
    return 0;
  if (spec.kind == TableKind::State)
    return std::clamp(stateRows, 1, spec.entries);
  return int32_t(
      std::min<int64_t>(spec.entries, ceilDiv(tokens, spec.pageTokens)));
}

/// Plans a new page for entry `index`, if it has none or shares the one it has.
Status BlockTables::addEdit(int32_t slot, int32_t table, int32_t index,
                            std::vector<Edit> &edits) {
  bool copy = index < held(table, slot);
  if (copy && pool.references(table, entry(table, slot, index)) == 1)
    return Status();
  StatusOr<int32_t> page = pool.allocate(table);
  if (!page.ok())
    return fail(slot, page.status().code(), page.status().message());
  edits.push_back({table, index, *page, copy});
  return Status();
}

/// Plans the pages of the entries that `rows` rows after the length are
/// written to, so that the request then holds `entries` entries.
Status BlockTables::planEdits(int32_t slot, int32_t table, int32_t rows,
                              int32_t entries, std::vector<Edit> &edits) {
  const TableSpec &spec = specs[table];
  int64_t first = 0, end = entries;
  if (spec.kind != TableKind::State) {
    int64_t length = mirror.read(slot);
    first = length / spec.pageTokens;
    end = ceilDiv(length + rows, spec.pageTokens);
    // A ring is written once over at most.
    first = std::max(first, end - spec.entries);
  }
  for (int64_t page = first; page < end; ++page)
    if (Status status =
            addEdit(slot, table, int32_t(page % spec.entries), edits);
        !status.ok())
      return status;
  return Status();
}

Status BlockTables::reserve(int32_t slot, int32_t rows, bool speculative) {
  if (Status status = checkIdle(slot); !status.ok())
    return status;
  if (Status status = checkRows(slot, rows, speculative); !status.ok())
    return status;
  int64_t end = int64_t(length(slot)) + rows;
  std::vector<Edit> edits;
  for (int32_t table = 0; table < pool.classes(); ++table) {
    int32_t entries = entriesFor(table, end, speculative ? rows : 1);
    Status status = planEdits(slot, table, rows, entries, edits);
    if (status.ok())
      continue;
    for (; !edits.empty(); edits.pop_back())
      if (Status undo = pool.release(edits.back().table, edits.back().page);
          !undo.ok())
        return fail(slot, undo.code(), undo.message());
    return status;
  }

  Request &request = requests[slot];
  for (const Edit &edit : edits) {
    int64_t at = word(edit.table, slot, edit.index);
    if (edit.copy) {
      copies.push_back({edit.table, mirror.read(at), edit.page});
      if (Status status = pool.release(edit.table, mirror.read(at));
          !status.ok())
        return fail(slot, status.code(), status.message());
    } else {
      request.held[edit.table] += 1;
    }
    mirror.write(at, edit.page);
  }
  request.reserved = rows;
  request.speculative = speculative;
  return Status();
}

/// Notes that rows up to position `end` were written in order: a ring has lost
/// the positions that it held a turn ago.
void BlockTables::noteWritten(int32_t slot, int64_t end) {
  for (size_t i = 0; i < specs.size(); ++i)
    if (specs[i].kind == TableKind::Ring) {
      int64_t rows = int64_t(specs[i].entries) * specs[i].pageTokens;
      int32_t &first = requests[slot].firstIntact[i];
      first = int32_t(std::max<int64_t>(first, end - rows));
    }
}

Status BlockTables::commit(int32_t slot, int32_t rows, bool deviceAdvanced) {
  if (Status status = checkLive(slot); !status.ok())
    return status;
  Request &request = requests[slot];
  if (request.reserved == 0)
    return fail(slot, StatusCode::FailedPrecondition,
                "nothing to commit; append or propose rows first");
  if (rows < 0 || rows > request.reserved)
    return fail(slot, StatusCode::OutOfRange,
                "cannot commit " + std::to_string(rows) + " rows; " +
                    std::to_string(request.reserved) + " are reserved");
  if (!request.speculative && rows != 0 && rows != request.reserved)
    return fail(slot, StatusCode::InvalidArgument,
                "cannot commit " + std::to_string(rows) + " of " +
                    std::to_string(request.reserved) +
                    " appended rows; propose rows that may be rejected");

  auto set = [&](int64_t at, int32_t value) {
    if (deviceAdvanced)
      mirror.adopt(at, value);
    else
      mirror.write(at, value);
  };
  int32_t length = mirror.read(slot) + rows;
  if (request.speculative && rows > 1)
    for (int32_t table = 0; table < pool.classes(); ++table)
      if (specs[table].kind == TableKind::State && specs[table].entries > 1) {
        int32_t accepted = entry(table, slot, rows - 1);
        set(word(table, slot, rows - 1), entry(table, slot, 0));
        set(word(table, slot, 0), accepted);
      }
  set(slot, length);
  // Rejected rows may have been written to a ring that takes uncommitted rows.
  for (size_t i = 0; i < specs.size(); ++i)
    if (rows > 0 && request.speculative && specs[i].uncommittedRows > 0)
      noteWritten(slot, int64_t(length) - rows + request.reserved);
  noteWritten(slot, length);
  request.reserved = 0;
  return trim(slot, length);
}

Status BlockTables::upload(Stream &stream) {
  for (const PageCopy &copy : copies) {
    int64_t bytes = pool.pageClass(copy.table).pageBytes;
    if (Status status =
            stream.copyOnDevice(memory + copy.to * bytes,
                                memory + copy.from * bytes, size_t(bytes));
        !status.ok())
      return status;
  }
  copies.clear();
  return mirror.upload(stream);
}
