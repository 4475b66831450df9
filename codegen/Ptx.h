//===- Ptx.h - PTX from a gpu.module ----------------------------*- C++ -*-===//

#ifndef TOKENTILE_CODEGEN_PTX_H
#define TOKENTILE_CODEGEN_PTX_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/Support/Error.h"

#include <string>

namespace tokentile {

/// Milliseconds spent in LLVM.
struct PtxTimes {
  double optimization = 0;
  double backend = 0;
};

/// Compiles a module of the LLVM and NVVM dialects for the chip that its
/// `#nvvm.target` names.
llvm::Expected<std::string> emitPtx(mlir::gpu::GPUModuleOp module,
                                    PtxTimes *times = nullptr);

} // namespace tokentile

#endif // TOKENTILE_CODEGEN_PTX_H
