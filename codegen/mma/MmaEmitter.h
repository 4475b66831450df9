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
#include "codegen/mma/Lane.h"

#include "llvm/ADT/DenseMap.h"

namespace tokentile {

class MmaEmitter {
public:
  /// `b` stands in an empty function; `args` is its parameter block and
  /// `shared` its shared memory.
  MmaEmitter(Lane &b, attn::ProgramOp program, mlir::Value args,
             mlir::Value shared);

  /// Emits the program; fails with an error on an operation it does not know.
  mlir::LogicalResult emit();

private:
  using Value = mlir::Value;

  mlir::LogicalResult emitBlock(mlir::Block &block);
  mlir::LogicalResult emitOp(mlir::Operation &op);
  mlir::LogicalResult emitFor(mlir::scf::ForOp op);
  mlir::LogicalResult emitIf(mlir::scf::IfOp op);
  void emitScalar(mlir::Operation &op);
  void emitSplat(mlir::arith::ConstantOp op);

  void emit(attn::RequestOp op);
  void emit(attn::SplitIdOp op);
  // MmaCopies.cpp
  void emit(attn::CopyQueryOp op);
  void emit(attn::LookupPagesOp op);
  void emit(attn::AsyncCopyOp op);
  void emit(attn::AsyncWaitOp op);
  void emit(attn::ViewOp op);
  // MmaProducts.cpp
  void emit(attn::ReadQueryOp op);
  void emit(attn::ScoresOp op);
  void emit(attn::AccumulateOp op);
  // MmaSoftmax.cpp
  void emit(attn::MaskOp op);
  void emit(attn::SoftmaxOp op);
  // MmaResults.cpp
  void emit(attn::ReduceWarpsOp op);
  void emit(attn::StoreResultOp op);

  //===--- Helpers
  //---------------------------------------------------------===//

  Registers &registers(Value value) { return map[value]; }
  Value single(Value value) { return map[value][0]; }
  int64_t keysPerWarp() const { return keyTile / keyWarps; }
  mlir::Type element(attn::StorageAttr storage);
  /// Threads that copy `rows` rows of a tile.
  layout::CopyShape copyShape(int64_t rows) const;
  void copyRows(attn::AsyncCopyOp op, bool whole);
  /// Calls `body` where this thread takes part in copies of `shape`.
  void whenCopying(layout::CopyShape shape, llvm::function_ref<void()> body);
  Value copyTarget(Value base, layout::CopyShape shape, int64_t j);

  /// How this lane addresses an operand in shared memory: the byte of its row
  /// and of the swizzled chunk, for each of the places a chunk can swap to.
  struct Operand {
    Registers places;
  };
  Operand operand(Value firstRow, Value row, Value chunk);
  /// Address of 16 columns `step` (of 16) in tile `base`, `rows` rows below.
  Value operandAddress(const Operand &operand, Value base, int64_t rows,
                       int64_t step);
  Registers loadQuery(Value source, int64_t step);

  void storePartial(attn::StoreResultOp op, Value sum[2]);
  void storeOutput(attn::StoreResultOp op, Value sum[2]);

  Lane &b;
  attn::ProgramOp program;
  attn::KernelOp plan;
  Value args, shared;
  int64_t rowWarps, keyWarps, keyTile, dim;
  std::unique_ptr<BlockContext> block;
  llvm::DenseMap<Value, Registers> map;

  Value thread, lane, warp, rowWarp, keyWarp;
  /// The two rows of this lane's accumulators and their positions.
  Value row[2], position[2];
  Operand queryOperand, keyOperand, valueOperand;
};

/// Emits a merge: one block, one row.
void emitMerge(Lane &b, attn::ProgramOp program, mlir::Value args,
               mlir::Value shared);

/// The merge is a programmatic dependent launch: it starts before the sweep
/// has ended and waits for it (sm_90 and newer).
bool mergeIsDependent(attn::KernelOp plan);

/// Threads of a merge block, and the bytes of shared memory it needs.
int64_t mergeThreads(attn::KernelOp plan);
int64_t mergeSharedBytes(attn::KernelOp plan);

/// The factor on an output row whose sum is `sum`.
mlir::Value outputFactor(Lane &b, attn::KernelOp plan, mlir::Value sum);
/// Natural log-sum-exp from a maximum in log2 units and a sum.
mlir::Value logSumExp(Lane &b, mlir::Value max, mlir::Value sum);
/// i1: the output tensor has a place for `row`.
mlir::Value rowHasPlace(Lane &b, BlockContext &block, mlir::Value row);

} // namespace tokentile

#endif // TOKENTILE_CODEGEN_MMA_MMAEMITTER_H
