//===- KernelModule.h - Kernels as functions of one lane --------*- C++ -*-===//
//
// What every GPU lowering shares: for each plan one gpu.module that declares
// shared memory and holds the sweep and the merge as llvm functions.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_CODEGEN_KERNELMODULE_H
#define TOKENTILE_CODEGEN_KERNELMODULE_H

#include "codegen/mma/Lane.h"
#include "dialect/AttnOps.h"

#include "mlir/IR/BuiltinOps.h"

namespace tokentile {

/// Pointers that a sweep begins with.
struct SweepParameters {
  /// KernelArgs.
  mlir::Value args;
  /// The block's dynamic shared memory.
  mlir::Value shared;
  /// Tensor maps of keys and values, for wgmma.
  mlir::Value maps[2];
  /// Blocks have ranges of tiles instead of single items.
  bool ranges = false;
};

using EmitSweep = llvm::function_ref<mlir::LogicalResult(
    Lane &, attn::ProgramOp, const SweepParameters &)>;

/// Lowers the programs whose plans say `lowering`, sweeps by `emitSweep`, and
/// erases them with their plans.
mlir::LogicalResult lowerPrograms(mlir::ModuleOp module,
                                  attn::LoweringKind lowering,
                                  EmitSweep emitSweep);

} // namespace tokentile

#endif // TOKENTILE_CODEGEN_KERNELMODULE_H
