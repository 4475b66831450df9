//===- HostEngine.h - Host kernels as machine code --------------*- C++ -*-===//
//
// Turns a module at the tiles level into machine code of the processor: in
// process by LLVM's ORC, or as an object file.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_CODEGEN_HOSTENGINE_H
#define TOKENTILE_CODEGEN_HOSTENGINE_H

#include "codegen/KernelABI.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>

namespace mlir {
class DialectRegistry;
class ModuleOp;
} // namespace mlir

namespace tokentile {

/// Wall-clock milliseconds of the phases of one compilation.
struct HostTimes {
  /// Tiles to the LLVM dialect to LLVM IR.
  double lowering = 0;
  /// LLVM's optimizer.
  double optimization = 0;
  /// Code generation and linking.
  double generation = 0;
};

/// A kernel in memory. The functions live as long as `keepAlive` does and may
/// run on any number of threads at a time. They need stack for their tiles:
/// about 4 bytes for each element of the query, output, key and value tiles.
struct HostCode {
  HostKernelFn sweep = nullptr;
  HostKernelFn merge = nullptr;
  std::shared_ptr<void> keepAlive;
  HostTimes times;
};

/// Registers what the functions below translate with.
void registerHostTranslations(mlir::DialectRegistry &registry);

/// Compiles `module` for this processor. It is at the tiles level, or what
/// attn-tiles-to-host made of it; it is lowered in place. A symbol may be
/// empty, and its function is then null. Not for concurrent use of one
/// MLIRContext.
llvm::Expected<HostCode> jitHostModule(mlir::ModuleOp module,
                                       llvm::StringRef sweepSymbol,
                                       llvm::StringRef mergeSymbol);

/// The same as the bytes of an object file, for `cpu` (LLVM's name, such as
/// "x86-64-v3"), or for this processor when it is empty.
llvm::Expected<std::string> emitHostObject(mlir::ModuleOp module,
                                           llvm::StringRef cpu = "");

} // namespace tokentile

#endif // TOKENTILE_CODEGEN_HOSTENGINE_H
