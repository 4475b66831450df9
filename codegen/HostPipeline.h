//===- HostPipeline.h - From tiles to the LLVM dialect, on the host -------===//

#ifndef TOKENTILE_CODEGEN_HOSTPIPELINE_H
#define TOKENTILE_CODEGEN_HOSTPIPELINE_H

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace tokentile {

/// Appends attn-tiles-to-host and the passes that leave only the LLVM dialect.
/// Runs on a module at the tiles level, or on what attn-tiles-to-host left.
void buildHostPipeline(mlir::OpPassManager &manager);

} // namespace tokentile

#endif // TOKENTILE_CODEGEN_HOSTPIPELINE_H
