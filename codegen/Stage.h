//===- Stage.h - Tiles to staged --------------------------------*- C++ -*-===//
//
// Places the tiles of one sweep in shared memory and registers. For mma every
// warp copies and multiplies (Stage.cpp); for wgmma warps divide into producers
// and consumers (StageRoles.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_CODEGEN_STAGE_H
#define TOKENTILE_CODEGEN_STAGE_H

#include "codegen/Schedule.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace tokentile {

class Stager {
public:
  explicit Stager(attn::ProgramOp program);

  /// Stages the program in place; fails with an error on one that is not a
  /// sweep of attn-tile.
  mlir::LogicalResult run();

private:
  using Value = mlir::Value;

  Value constant(int64_t value);
  mlir::RankedTensorType fragment(mlir::Type type, attn::FragmentKind kind);
  /// A buffer of `stages` slots for `tile` with that encoding in shared memory.
  Value allocate(int64_t offset, int64_t stages, mlir::RankedTensorType tile,
                 int64_t swizzle = 8, int64_t panel = 0);
  mlir::LogicalResult findLoop();
  void encodeFragments();
  Value lookup(Value tile);
  /// Replaces a load by a view of slot `slot`.
  void viewInstead(attn::LoadTileOp load, Value buffer, Value slot);

  // All warps copy and multiply.
  void stageQuery();
  void readQuery();
  void copyTile(Value tile, Value pages, Value slot);
  void pipeline();
  void meetAtEnd();
  void meetAtTile();

  // Producers copy, consumers multiply.
  void stageRoles();
  void emitProducers(mlir::Block &block, Value keyRing, Value valueRing);
  Value turnOf(Value tile);
  void consume(attn::LoadTileOp load, mlir::Operation *lastUse, Value buffer,
               Value ring);

  attn::ProgramOp program;
  attn::KernelOp plan;
  attn::ScheduleAttr schedule;
  MmaSchedule mma;
  SharedLayout layout;
  mlir::ImplicitLocOpBuilder b;
  mlir::scf::ForOp loop;
  attn::LoadTileOp loadKeys, loadValues;
  attn::LookupPagesOp lookupPages;
  Value query, keyBuffer, valueBuffer, turnsTaken;
};

} // namespace tokentile

#endif // TOKENTILE_CODEGEN_STAGE_H
