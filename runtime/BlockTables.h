//===- BlockTables.h - Batched page tables and lengths ----------*- C++ -*-===//
//
// Which pages each request holds, in the form that kernels read: one table of
// page ids [slots, stride] for each page class, and lengths [slots], on the
// device. A request occupies a slot. A launch of batch B reads slots 0 .. B-1;
// slots beyond may hold requests that wait (move) or prefixes kept for reuse
// (share). An empty slot is inert: its length is 0 and its entries are 0.
//
// A step is a transaction:
//
//   propose or append    reserves pages for rows beyond the length
//   upload               sends copies on write and changed words
//   ... kernels of the step, on the same stream ...
//   commit               advances the length over the accepted rows and frees
//                        what only rejected rows needed
//
// A call that fails changes nothing. After a commit a request holds as many
// pages as if its rows had been appended one at a time.
//
// Sharing: `share` gives a prefix to another slot by reference. A page that
// rows are reserved in is copied first if another request holds it too.
//
// One thread at a time; the pool must outlive the tables.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_BLOCKTABLES_H
#define TOKENTILE_RUNTIME_BLOCKTABLES_H

#include "runtime/PagePool.h"
#include "runtime/TableMirror.h"

namespace tokentile {

/// What a request's pages of one class hold.
enum class TableKind {
  /// Every position: position p at entry p / pageTokens.
  Linear,
  /// The last positions only: position p at entry (p / pageTokens) modulo the
  /// entries, so at row p modulo (entries * pageTokens) of the ring.
  Ring,
  /// Recurrent state. Entry 0 is the state after the committed rows. With
  /// several entries, verify reads entry 0 and writes the state after its row
  /// i to entry i (row 0 in place); commit swaps the accepted entry into entry
  /// 0. With one entry, verify leaves it alone and the caller folds the
  /// accepted rows into it (input replay).
  State,
};

/// The table of one page class.
struct TableSpec {
  TableKind kind = TableKind::Linear;
  /// Positions in a page; unused for State.
  int32_t pageTokens = 0;
  /// Entries of a request: the stride of the table. State: the most rows of a
  /// proposal, or 1.
  int32_t entries = 0;
  /// Ring: the window in positions, a row's own included.
  int32_t window = 0;
  /// Ring: the most rows that lie in the ring before they are committed; 0 if
  /// only accepted rows are written, as when the block is a dense segment.
  /// window - 1 + uncommittedRows positions must fit, so that neither these
  /// rows nor rejected ones overwrite a row that a window still needs.
  int32_t uncommittedRows = 0;
};

class BlockTables {
public:
  /// Empty tables of `slots` slots; specs[i] is that of page class i. `memory`
  /// is the pool's buffer, where copies on write take place. InvalidArgument
  /// names the class whose spec cannot work.
  static StatusOr<BlockTables> create(Device &device, PagePool &pool,
                                      void *memory, int32_t slots,
                                      std::vector<TableSpec> specs);

  /// Puts a request of length 0 into an empty slot. `request` names it in
  /// errors; it need not be unique.
  Status admit(int32_t slot, int64_t request);
  /// Reserves `rows` rows after the length, all of which will be committed:
  /// prompt chunks and plain decode. State is updated in entry 0.
  Status append(int32_t slot, int32_t rows) {
    return reserve(slot, rows, /*speculative=*/false);
  }
  /// Reserves `rows` rows after the length, of which any prefix may be
  /// committed. OutOfRange if they exceed a table, ResourceExhausted if the
  /// pool has no page left; fewer rows may still fit.
  Status propose(int32_t slot, int32_t rows) {
    return reserve(slot, rows, /*speculative=*/true);
  }
  /// Ends the step: the first `rows` reserved rows become part of the request,
  /// all of them after append. 0 rows undo the reservation of a step that did
  /// not run. `deviceAdvanced` says that a kernel has already set the length
  /// and swapped the state entries on the device.
  Status commit(int32_t slot, int32_t rows, bool deviceAdvanced = false);
  /// Drops committed rows from position `tokens` on. FailedPrecondition if the
  /// ring or the state of that length is gone; 0 always works.
  Status truncate(int32_t slot, int32_t tokens);
  /// Puts a request into the empty slot `to` that shares the first `tokens`
  /// rows of `from`, which has no reservation. Fails as truncate does.
  Status share(int32_t from, int32_t to, int64_t request, int32_t tokens);
  /// Moves a request, and its reservation, to an empty slot.
  Status move(int32_t from, int32_t to);
  /// Drops the request, and its reservation, and empties the slot.
  Status release(int32_t slot);

  /// Queues the copies on write and then the changed words of lengths and
  /// tables. Call it before the kernels of a step, on their stream, when every
  /// step that advances lengths on the device has been committed here, and not
  /// while capturing. Does nothing if nothing changed.
  Status upload(Stream &stream);

  int32_t slots() const { return int32_t(requests.size()); }
  bool live(int32_t slot) const { return requests[slot].live; }
  /// Committed rows.
  int32_t length(int32_t slot) const { return mirror.read(slot); }
  /// Rows reserved beyond them.
  int32_t reserved(int32_t slot) const { return requests[slot].reserved; }
  /// Entries in use.
  int32_t held(int32_t table, int32_t slot) const {
    return requests[slot].held[table];
  }
  int32_t entry(int32_t table, int32_t slot, int32_t index) const {
    return mirror.read(word(table, slot, index));
  }

  /// Device memory, constant while the tables live: KernelArgs::lengths and
  /// table of a class, and its KernelArgs::tableStride.
  const int32_t *deviceLengths() const { return mirror.device(0); }
  const int32_t *deviceTable(int32_t table) const {
    return mirror.device(firstWord[table]);
  }
  int64_t stride(int32_t table) const { return specs[table].entries; }
  const TableSpec &spec(int32_t table) const { return specs[table]; }
  /// For kernels that advance lengths and swap states of a step themselves, of
  /// which `commit` is then told.
  int32_t *writableLengths() { return mirror.device(0); }
  int32_t *writableTable(int32_t table) {
    return mirror.device(firstWord[table]);
  }

  /// The most rows of a request, which its linear tables bound.
  int64_t capacity() const;
  /// The most rows of a proposal, which states and rings bound.
  int32_t proposalLimit() const;
  int32_t tables() const { return int32_t(specs.size()); }

private:
  struct Request {
    bool live = false;
    int64_t id = 0;
    int32_t reserved = 0;
    bool speculative = false;
    /// By table: entries in use; the first position a ring still has.
    std::vector<int32_t> held;
    std::vector<int32_t> firstIntact;
  };
  /// A new page for one entry; copied from the old one if that is shared.
  struct Edit {
    int32_t table;
    int32_t index;
    int32_t page;
    bool copy;
  };
  struct PageCopy {
    int32_t table;
    int32_t from;
    int32_t to;
  };

  BlockTables(PagePool &pool, void *memory, TableMirror mirror, int32_t slots,
              std::vector<TableSpec> specs);
  static Status checkSpec(const PagePool &pool, int32_t table,
                          const TableSpec &spec);
  static int32_t proposalLimit(const TableSpec &spec);

  int64_t word(int32_t table, int32_t slot, int32_t index) const {
    return firstWord[table] + int64_t(slot) * specs[table].entries + index;
  }
  std::string nameOf(int32_t slot) const;
  Status fail(int32_t slot, StatusCode code, const std::string &cause) const;
  Status checkLive(int32_t slot) const;
  Status checkEmpty(int32_t slot) const;
  Status checkIdle(int32_t slot) const;
  Status checkRows(int32_t slot, int32_t rows, bool speculative) const;
  Status checkPrefix(int32_t slot, int32_t tokens) const;
  int32_t entriesFor(int32_t table, int64_t tokens, int32_t stateRows) const;

  Status reserve(int32_t slot, int32_t rows, bool speculative);
  Status planEdits(int32_t slot, int32_t table, int32_t rows, int32_t entries,
                   std::vector<Edit> &edits);
  Status addEdit(int32_t slot, int32_t table, int32_t index,
                 std::vector<Edit> &edits);
  void noteWritten(int32_t slot, int64_t end);
  Status trim(int32_t slot, int64_t tokens);

  PagePool &pool;
  char *memory;
  TableMirror mirror;
  std::vector<TableSpec> specs;
  std::vector<int64_t> firstWord;
  std::vector<Request> requests;
  std::vector<PageCopy> copies;
};

} // namespace tokentile

#endif // TOKENTILE_RUNTIME_BLOCKTABLES_H
