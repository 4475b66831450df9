//===- MmaEmitter.h - From staged programs to lanes -------------*- C++ -*-===//
//
// Emits the code of one lane for a staged sweep. Every tensor becomes the
// registers that `codegen/Layout.h` gives this lane; every buffer becomes an
// offset into shared memory. One method an operation.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_CODEGEN_MMA_MMAEMITTER_H
#define TOKENTILE_CODEGEN_MMA_MMAEMITTER_H

#include "codegen/BlockContext.h"
#include "codegen/Layout.h"
#include "codegen/Schedule.h"
#include "codegen/mma/Lane.h"
#include "codegen/mma/WarpTeam.h"

#include "llvm/ADT/DenseMap.h"

namespace tokentile {

/// Emits a sweep by mma.sync. The wgmma lowering derives from it, since its
/// accumulators have the same layout.
class MmaEmitter {
public:
  /// `b` stands in an empty function; `args` is its parameter block and
  /// `shared` its shared memory.
  MmaEmitter(Lane &b, attn::ProgramOp program, mlir::Value args,
             mlir::Value shared);

  virtual ~MmaEmitter() = default;

  /// Emits the program; fails with an error on an operation it does not know.
  mlir::LogicalResult emit();

protected:
  using Value = mlir::Value;

  /// Begins to bring into the cache what the first copies wait for.
  virtual void emitPrefetch();
  /// The lane within the last warp of the block; negative in other warps.
  Value helper();
  void prefetchTable(Value lane);
  /// Gives block `x` its work. Returns i1: there is some.
  virtual Value findWork(Value x);
  /// Emits the program for the item that the block has found.
  virtual mlir::LogicalResult emitItem();
  /// Where the threads that multiply meet.
  virtual void meet() { b.barrier(); }
  /// Emits which thread of the block this is.
  void beginThread();
  /// Emits the rows of this lane and their positions.
  void beginRows();
  mlir::LogicalResult emitBlock(mlir::Block &block);
  virtual mlir::LogicalResult emitOp(mlir::Operation &op);
  mlir::LogicalResult emitFor(mlir::scf::ForOp op);
  mlir::LogicalResult emitIf(mlir::scf::IfOp op);
  void emitScalar(mlir::Operation &op);
  void emitSplat(mlir::arith::ConstantOp op);

  void emit(attn::RequestOp op);
  void emit(attn::ItemOp op);
  // MmaCopies.cpp
  void emit(attn::CopyQueryOp op);
  virtual void emit(attn::LookupPagesOp op);
  void emit(attn::AsyncCopyOp op);
  void emit(attn::AsyncWaitOp op);
  virtual void emit(attn::BarrierOp op);
  void emit(attn::ViewOp op);
  /// The table entry of the page that key `key` lies in; the last page's for
  /// later keys.
  Value lookupPage(Value key);
  /// i1: the pages hold all keys of tile `tile`, or `keys` keys from `first`
  /// on.
  Value isWhole(Value tile);
  Value areWhole(Value first, int64_t keys);
  // MmaProducts.cpp
  void emit(attn::ReadQueryOp op);
  virtual void emit(attn::ScoresOp op);
  virtual void emit(attn::AccumulateOp op);
  /// The output scaled by `alpha`.
  Registers rescale(attn::AccumulateOp op);
  // MmaSoftmax.cpp
  void emit(attn::MaskOp op);
  void emit(attn::AgreeMaxOp op);
  void emit(attn::SoftmaxOp op);
  void emit(attn::ShareOp op);
  void emit(attn::AgreeSumOp op);
  // MmaResults.cpp
  void emit(attn::ReduceWarpsOp op);
  void emit(attn::AddSinkOp op);
  void emit(attn::StoreResultOp op);

  //===--- Helpers
  //---------------------------------------------------------===//

  Registers &registers(Value value) { return map[value]; }
  Value single(Value value) { return map[value][0]; }
  int64_t keysPerWarp() const { return keyTile / mma.keyWarps; }
  /// Output dimensions that one warp holds.
  int64_t dimsPerWarp() const {
    return mma.meetAtTile ? dim / mma.keyWarps : dim;
  }
  /// Rows whose statistics one lane holds: two of each row tile.
  int64_t laneRows() const { return 2 * mma.rowTiles; }
  /// The row, of those, of register `reg` of a fragment of `columns` columns.
  int64_t rowOf(size_t reg, int64_t columns) const {
    int64_t perTile = columns / 2;
    return reg / perTile * 2 + reg % 4 / 2;
  }
  mlir::Type element(attn::StorageAttr storage);
  /// Threads that copy `rows` rows of a tile.
  layout::CopyShape copyShape(int64_t rows) const;
  void copyRows(attn::AsyncCopyOp op, bool whole);
  /// Calls `body` where this thread takes part in copies of `shape`.
  void whenCopying(layout::CopyShape shape, llvm::function_ref<void()> body);
  /// Where copy `j` of this thread goes in the tile at byte `base`.
  virtual Value copyTarget(Value base, layout::CopyShape shape, int64_t j);

  /// How this lane addresses an operand in shared memory: the byte of its row
  /// and of the swizzled chunk, for each of the places a chunk can swap to.
  struct Operand {
    int64_t rowBytes;
    Registers places;
  };
  /// `row` and `chunk` are this lane's part of ldmatrix; `firstColumn` begins a
  /// slice of 16, 32 or a multiple of 64 columns.
  Operand operand(int64_t columns, Value firstRow, Value row, Value chunk,
                  Value firstColumn = {});
  /// Address of 16 columns `step` (of 16) in tile `base`, `rows` rows below.
  Value operandAddress(const Operand &operand, Value base, int64_t rows,
                       int64_t step);
  /// The left operand of one step, for each row tile.
  Registers loadLeft(const Operand &operand, Value source, int64_t step);
  /// What each key warp says of each row of this lane, by way of `scratch`.
  llvm::SmallVector<Registers> exchange(Value scratch,
                                        llvm::ArrayRef<Value> mine);

  void storePartial(attn::StoreResultOp op, llvm::ArrayRef<Value> sum);
  void storeOutput(attn::StoreResultOp op, llvm::ArrayRef<Value> sum);
  /// The first output column of this warp.
  Value firstColumn();
  /// The largest magnitude in each row of this lane, of all its columns.
  Registers largestOutputs(llvm::ArrayRef<Value> output);
  /// i1, or null for all warps: this warp has a part of the result.
  Value holdsResult();

  Lane &b;
  attn::ProgramOp program;
  attn::KernelOp plan;
  Value args, shared;
  MmaSchedule mma;
  int64_t keyTile, dim;
  BlockTeam team;
  std::unique_ptr<BlockContext> block;
  llvm::DenseMap<Value, Registers> map;

  Value thread, lane, warp, rowWarp, keyWarp;
  /// The rows of this lane's accumulators and their positions.
  Registers row, position;
  Operand queryOperand, keyOperand, valueOperand, sharedOperand;
};

/// Emits a merge: one block, one row.
void emitMerge(Lane &b, attn::ProgramOp program, mlir::Value args,
               mlir::Value shared);

/// Columns of a block of a partial output (layout::partialPlace).
int64_t partialBlock(attn::KernelOp plan);

/// The merge is a programmatic dependent launch: it starts before the sweep
/// has ended and waits for it (sm_90 and newer).
bool mergeIsDependent(attn::KernelOp plan);

/// Threads of a merge block, blocks of it that a multiprocessor should hold,
/// and the bytes of shared memory that one needs.
int64_t mergeThreads(attn::KernelOp plan);
int64_t mergesPerSm(attn::KernelOp plan);
int64_t mergeSharedBytes(attn::KernelOp plan);
/// Blocks among which a merge of one request divides a row.
int64_t mergeSlices(attn::KernelOp plan);

/// What a sink does to a row whose maximum is `max` (attn.add_sink): the new
/// maximum, the factor on sum and output, and what is added to the sum.
struct SinkOfRow {
  mlir::Value newMax, factor, added;
};
SinkOfRow addSink(Lane &b, BlockContext &block, mlir::Value row,
                  mlir::Value max);

/// The factor on an output row whose sum is `sum`.
mlir::Value outputFactor(Lane &b, attn::KernelOp plan, mlir::Value sum);
/// Natural log-sum-exp from a maximum in log2 units and a sum.
mlir::Value logSumExp(Lane &b, mlir::Value max, mlir::Value sum);
/// i1: the output tensor has a place for `row`.
mlir::Value rowHasPlace(Lane &b, BlockContext &block, mlir::Value row);

} // namespace tokentile

#endif // TOKENTILE_CODEGEN_MMA_MMAEMITTER_H
