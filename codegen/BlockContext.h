//===- BlockContext.h - What a block knows, as emitted code -----*- C++ -*-===//
//
// Every lowering of a program needs the same facts of the block it generates:
// which request, which kv head, how long, where a row lies in memory, whether a
// row sees a key. They are emitted here once, in arith and llvm operations, so
// that the host and every GPU lowering agree on addresses and masks.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_CODEGEN_BLOCKCONTEXT_H
#define TOKENTILE_CODEGEN_BLOCKCONTEXT_H

#include "codegen/KernelABI.h"
#include "codegen/WorkItems.h"
#include "dialect/AttnOps.h"

#include "mlir/IR/Builders.h"

namespace tokentile {

/// Row counts of a plan. Row `r` of a kv head is query token `r / group`, query
/// head `kv head * group + r % group`.
struct RowShape {
  explicit RowShape(attn::KernelOp plan);

  int64_t group;
  /// tokens * group.
  int64_t rows;
  /// Rows of one block's tile; a multiple of 16 on a GPU.
  int64_t rowsPerBlock;
  int64_t rowBlocks;
  int64_t paddedRows() const { return rowsPerBlock * rowBlocks; }
};

/// Units of rows that the merges of a launch share.
struct MergeUnits {
  /// Rows of one head in a unit; the last one of a head may have less.
  int64_t rows;
  /// The launch may have several requests whose parts are not fixed.
  bool several;
  mlir::Value count;
};

/// Emits the facts of one block. Sweeps call `findItem` first, merges
/// `findUnit`, at a point that dominates all later uses. Integers are i32
/// unless they are addresses or strides (i64, bytes).
class BlockContext {
public:
  /// `args` points to a KernelArgs; `team` are the lanes that run the program;
  /// `globalSpace` is the address space of device memory (1 on a GPU).
  BlockContext(mlir::OpBuilder &builder, mlir::Location loc,
               attn::ProgramOp program, mlir::Value args, const LaneTeam &team,
               unsigned globalSpace);

  /// Gives block `x` of a sweep its item. Returns i1: there is one. If not, the
  /// block ends.
  mlir::Value findItem(mlir::OpBuilder &b, mlir::Value x);

  /// Instead of one item gives block `x` a range of tiles. Returns how many
  /// items it has, one after another. Each then begins with `beginInRange`,
  /// which returns where the next one's request begins; the first one's is
  /// `rangeStart`. What sweeps, and not only copies, `leaves` the division of
  /// the batch to the merge.
  mlir::Value findRange(mlir::OpBuilder &b, mlir::Value x);
  mlir::Value rangeStart() const { return range.start; }
  mlir::Value beginInRange(mlir::OpBuilder &b, mlir::Value index,
                           mlir::Value start, bool leaves);

  /// For a merge, before it waits for the sweep; reads lengths, columns and
  /// positions only. Returns i1: the launch has several requests, and the order
  /// in which parts are added is free; null if that cannot be.
  mlir::Value prepareMerge(mlir::OpBuilder &b);
  /// Units of `rows` rows: block x has units x, x + stride, .... Without
  /// `several` the launch has one request, or the plan fixes the parts, and
  /// `prepareMerge` was called.
  MergeUnits countUnits(mlir::OpBuilder &b, int64_t rows, bool several);
  mlir::Value unitStride(mlir::OpBuilder &b);
  /// Gives a block unit `number`. Reads lengths, columns and positions, which
  /// no sweep writes, and with `several` `division`. Returns i1: its request is
  /// to be merged. If not, the sweep has written its rows.
  mlir::Value findUnit(mlir::OpBuilder &b, const MergeUnits &units,
                       mlir::Value number);
  /// What the sweep has left of a request; before the wait a guess, which lies
  /// within the workspace.
  RequestParts readDivision(mlir::OpBuilder &b, mlir::Value request);
  /// Parts of the request of a merge from now on.
  void setParts(RequestParts given);
  /// For a merge, the slot of part `index` of its rows.
  mlir::Value slotOfPart(mlir::OpBuilder &b, mlir::Value index);

  attn::KernelOp plan;
  RowShape shape;

  mlir::Value request;
  mlir::Value kvHead;
  /// First row of the block, or of a merge's unit, within its kv head.
  mlir::Value firstRow;
  /// Part of the request, of how many, and the slot of its partial result. With
  /// one part `slot` is -1 - request, so that behind the loop over tiles it
  /// says all that a sweep has to know of its item. Pieces always have a slot.
  /// For a merge `parts` are those of its rows, at `slotOfPart`.
  mlir::Value part;
  mlir::Value parts;
  mlir::Value slot;
  /// Tiles of the item, for a sweep: [firstTile, endTile).
  mlir::Value firstTile;
  mlir::Value endTile;
  /// Keys in all, keys before the block, query tokens, first query token.
  mlir::Value length;
  mlir::Value context;
  mlir::Value columns;
  mlir::Value tokenBase;
  mlir::Value minPosition;
  mlir::Value maxPosition;
  /// The oldest key that some row's window admits; null without a window. The
  /// slots of older keys may have been given away.
  mlir::Value oldestKey;

  /// For a merge of several requests what `findUnit` read.
  RequestParts division;

  /// First key row of contiguous keys, else null.
  mlir::Value keyOffset;

  //===--- Rows
  //------------------------------------------------------------===//

  /// Query token of row `row` of the kv head, not clamped.
  mlir::Value tokenOfRow(mlir::OpBuilder &b, mlir::Value row);
  /// i1: the row belongs to a query token the request has.
  mlir::Value rowIsLive(mlir::OpBuilder &b, mlir::Value row);
  /// Position of the row's token; of the last live token for other rows.
  mlir::Value positionOfRow(mlir::OpBuilder &b, mlir::Value row);
  /// i64 address of the row's query or output, `dim` elements long.
  mlir::Value queryAddress(mlir::OpBuilder &b, mlir::Value row);
  mlir::Value outputAddress(mlir::OpBuilder &b, mlir::Value row);
  /// i64 address of the row's float in the log-sum-exp tensor.
  mlir::Value logSumExpAddress(mlir::OpBuilder &b, mlir::Value row);
  /// The sink of the row's head in units of log2, f32. Padding rows have one
  /// too.
  mlir::Value sinkOfRow(mlir::OpBuilder &b, mlir::Value row);
  /// i64 address of a row's partial output, `dim` elements, at slot `slot`.
  mlir::Value partialAddress(mlir::OpBuilder &b, mlir::Value slot,
                             mlir::Value row);
  /// i64 address of a row's four statistics at slot `slot`.
  mlir::Value statsAddress(mlir::OpBuilder &b, mlir::Value slot,
                           mlir::Value row);
  /// Bytes of an element of a partial output.
  int64_t partialElementBytes() const {
    return globalSpace == 1 ? gpuPartialBytes : sizeof(float);
  }

  //===--- Keys
  //------------------------------------------------------------===//

  /// i64 address of the table entry for logical page `page`, modulo the pages
  /// of a ring.
  mlir::Value tableAddress(mlir::OpBuilder &b, mlir::Value page);
  /// i64 address of the row of key `key` in the pages; `pageId` is its table
  /// entry (ignored for contiguous keys).
  mlir::Value keyAddress(mlir::OpBuilder &b, attn::Plane plane,
                         mlir::Value pageId, mlir::Value key);
  /// i64 address of the row of key `key`, which lies in the dense block.
  mlir::Value denseAddress(mlir::OpBuilder &b, attn::Plane plane,
                           mlir::Value key);
  /// i1: the request has key `key` and some row's window admits it. Memory of
  /// other keys may hold anything and is not read.
  mlir::Value keyIsHeld(mlir::OpBuilder &b, mlir::Value key);
  /// i1: a row at `position` sees key `key`.
  mlir::Value sees(mlir::OpBuilder &b, mlir::Value position, mlir::Value key);

  /// Loads field `offset` (of KernelArgs, by offsetof) as `type`.
  mlir::Value field(mlir::OpBuilder &b, size_t offset, mlir::Type type);
  mlir::Value constant(mlir::OpBuilder &b, int64_t value);
  mlir::Value constant64(mlir::OpBuilder &b, int64_t value);
  mlir::Value extend(mlir::OpBuilder &b, mlir::Value value);
  /// Pointer to device memory at the i64 address.
  mlir::Value pointer(mlir::OpBuilder &b, mlir::Value address);
  /// Loads an i32 from the global i64 address `address` + 4 * `index`.
  mlir::Value loadI32(mlir::OpBuilder &b, mlir::Value address,
                      mlir::Value index);

private:
  /// What lengths and columns say of a request.
  struct Facts {
    mlir::Value columns, tokenBase, length, context, minPosition, maxPosition;
  };
  Facts factsOf(mlir::OpBuilder &b, mlir::Value request);
  void emitPositions(mlir::OpBuilder &b, Facts &facts);
  RequestTiles tilesOf(mlir::OpBuilder &b, const Facts &facts);
  mlir::Value findHead(mlir::OpBuilder &b, mlir::Value x);
  RequestTiles setRequest(mlir::OpBuilder &b, mlir::Value wanted);
  void setItem(mlir::OpBuilder &b, const WorkItem &found,
               const RequestTiles &tiles);
  bool hasPieces() const;
  void findPieces(mlir::OpBuilder &b);
  void leaveDivision(mlir::OpBuilder &b, const WorkItem &item);
  mlir::Value divisionAddress(mlir::OpBuilder &b, mlir::Value request);
  void emitPools(mlir::OpBuilder &b);
  mlir::Value slotIndex(mlir::OpBuilder &b, mlir::Value slot);
  mlir::Value outputTokenBase(mlir::OpBuilder &b);
  mlir::Value rowAddress(mlir::OpBuilder &b, mlir::Value base,
                         mlir::Value firstToken, mlir::Value tokenStride,
                         mlir::Value headStride, mlir::Value row);

  mlir::Location loc;
  attn::ProgramOp program;
  mlir::Value args;
  const LaneTeam &team;
  unsigned globalSpace;
  /// Null if every request is one item.
  attn::ItemOp item;
  std::unique_ptr<WorkItems> work;
  WorkRange range;
  mlir::Value isFirstHead;
  mlir::Value positions;
  /// For a merge, where among `slots` the first piece of its row is.
  mlir::Value firstPiece;
  /// Start of the block's kv head in each pool, page stride, dense segment.
  mlir::Value pool[2], pageStride[2], dense[2];
  mlir::Value tableRow;
};

} // namespace tokentile

#endif // TOKENTILE_CODEGEN_BLOCKCONTEXT_H
