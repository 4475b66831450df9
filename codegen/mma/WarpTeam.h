//===- WarpTeam.h - A warp as a team of lanes -------------------*- C++ -*-===//

#ifndef TOKENTILE_CODEGEN_MMA_WARPTEAM_H
#define TOKENTILE_CODEGEN_MMA_WARPTEAM_H

#include "codegen/LaneTeam.h"

namespace tokentile {

/// The 32 lanes of a warp, all of which run what is emitted. Every warp of a
/// block finds the same answers by itself, so none waits for another.
class WarpTeam : public LaneTeam {
public:
  int64_t count() const override { return 32; }
  Value lane(OpBuilder &b, mlir::Location loc) const override;
  Value speaks(OpBuilder &b, mlir::Location loc) const override;
  Value sum(OpBuilder &b, mlir::Location loc, Value v) const override;
  Value largest(OpBuilder &b, mlir::Location loc, Value v) const override;
  Value before(OpBuilder &b, mlir::Location loc, Value value) const override;
  Value of(OpBuilder &b, mlir::Location loc, Value v,
           Value lane) const override;
};

/// The warps of a block all of which start at one point: the first one works
/// out what takes long, and the others hear of it through shared memory. So
/// many instructions are worth two barriers.
class BlockTeam final : public WarpTeam {
public:
  /// `scratch` is shared memory that nothing else uses yet.
  explicit BlockTeam(Value scratch) : scratch(scratch) {}
  llvm::SmallVector<Value>
  once(mlir::ImplicitLocOpBuilder &b,
       llvm::function_ref<llvm::SmallVector<Value>()> body) const override;

private:
  Value scratch;
};

} // namespace tokentile

#endif // TOKENTILE_CODEGEN_MMA_WARPTEAM_H
