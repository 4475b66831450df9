//===- WgmmaEmitter.h - From staged programs to warpgroups ------*- C++ -*-===//
//
// Emits a sweep for sm_90a. A warpgroup multiplies 64 rows, sixteen in each
// warp: the accumulators of wgmma are those of mma.m16n8k16, so masks, softmax
// and results are MmaEmitter's. Products, copies and roles are here.
//
// Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions",
// "mbarrier", "cp.async.bulk.tensor", "setmaxnreg".
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_CODEGEN_WGMMA_WGMMAEMITTER_H
#define TOKENTILE_CODEGEN_WGMMA_WGMMAEMITTER_H

#include "codegen/KernelModule.h"
#include "codegen/mma/MmaEmitter.h"

namespace tokentile {

class WgmmaEmitter final : public MmaEmitter {
public:
  WgmmaEmitter(Lane &b, attn::ProgramOp program,
               const SweepParameters &parameters);

  using MmaEmitter::emit;

private:
  void emitPrefetch() override;
  Value findWork(Value x) override;
  mlir::LogicalResult emitItem() override;
  mlir::LogicalResult emitOp(mlir::Operation &op) override;
  void meet() override;
  mlir::LogicalResult emitRoles(attn::RolesOp op);
  mlir::LogicalResult emitItems(attn::RolesOp roles, mlir::Block &role);
  mlir::LogicalResult emitRole(attn::RolesOp roles, mlir::Block &role);
  void emit(attn::BarrierOp op) override;
  // WgmmaCopies.cpp
  Value copyTarget(Value base, layout::CopyShape shape, int64_t j) override;
  void emit(attn::LookupPagesOp op) override;
  /// Initialises the barriers of a ring; one thread does.
  void beginRing(attn::AllocRingOp op);
  void emitRing(attn::AllocRingOp op);
  void emitAcquire(attn::AcquireOp op);
  void emitFill(attn::FillOp op);
  void emitAwait(attn::AwaitOp op);
  void emitRelease(attn::ReleaseOp op);
  // WgmmaProducts.cpp
  void emit(attn::ScoresOp op) override;
  void emit(attn::AccumulateOp op) override;

  /// The barriers of one turn, and whether its slot is used an odd time.
  struct Turn {
    Value slot, full, empty, parity;
  };
  Turn turn(Value ring, Value index);
  /// This producer, from 0; negative for a consumer.
  Value producer();
  /// Boxes of a tile.
  int64_t boxes() const;
  /// i1: this thread waits for slots and copies whole boxes; the first of those
  /// announces their bytes.
  Value isCopier();
  Value isLeader();
  /// Copies a tile through the tensor map.
  void copyWhole(attn::FillOp op, Value target, Value full);
  /// Copies a tile some rows of which are not held: boxes of rows that are held
  /// by the leader, the others by all producers.
  void copyRest(attn::FillOp op, Value target, Value full);
  void copyRows(attn::FillOp op, Value target, Value first, int64_t rows,
                Value page);
  /// Copies one box, whose first key is at slot `slot` of page `page`.
  void copyBox(attn::FillOp op, Value target, Value slot, Value page,
               Value full);
  int64_t boxBytes() const;
  /// The slot, in the first page of a tile, of its first key.
  Value firstSlot(Value firstKey);
  /// Byte of a chunk in a tile (layout::panelByte).
  Value panelByte(Value row, Value chunk);

  /// Emits PTX; operands stand for $0, $1, ... in order.
  void ptx(llvm::StringRef text, llvm::StringRef constraints,
           llvm::ArrayRef<Value> operands);
  /// Emits PTX that updates `registers`, which stand for $0, $1, ...; operands
  /// follow behind twice their number.
  Registers update(llvm::StringRef text, llvm::ArrayRef<Value> registers,
                   llvm::StringRef constraints = "",
                   llvm::ArrayRef<Value> operands = {});
  /// One wgmma onto the `acc.size() / 2` columns of 64 rows: `left` is a
  /// descriptor or four registers, `right` a descriptor; `transposed` if its
  /// rows are the depth; `fresh` if `acc` counts as zero.
  void multiply(llvm::MutableArrayRef<Value> acc, llvm::ArrayRef<Value> left,
                Value right, bool transposed, bool fresh, mlir::Type element);
  /// The descriptor of a tile of this sweep at byte `base`.
  Value descriptor(Value base);
  /// Meets `threads` threads at a named barrier.
  void meetAt(int64_t barrier, int64_t threads);

  Value maps[2];
  /// A block has a range of tiles, of so many items.
  bool ranges;
  Value items;
  /// attn.turns_taken.
  Value turnsTaken;
  Value warpgroup;
};

} // namespace tokentile

#endif // TOKENTILE_CODEGEN_WGMMA_WGMMAEMITTER_H
