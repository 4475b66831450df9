//===- Compiler.h - From a spec to a kernel, in process ---------*- C++ -*-===//
//
// What the runtime and the tools call. One compile takes a module with one
// attn.kernel to PTX or to host code, through the same pipelines that
// ninfer-opt registers.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_CODEGEN_COMPILER_H
#define TOKENTILE_CODEGEN_COMPILER_H

#include "codegen/KernelABI.h"
#include "dialect/AttnOps.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>
#include <vector>

namespace tokentile {

/// The levels a module can be printed at; see codegen/README.md.
enum class Level { Spec, Plan, Tiles, Staged, Machine, Nvvm };

/// Milliseconds of each phase of one compile, in order.
struct PhaseTime {
  std::string phase;
  double milliseconds;
};

/// A compiled kernel: PTX for a GPU, functions for the host.
struct CompileResult {
  KernelInfo info;
  std::string ptx;
  HostKernelFn sweep = nullptr;
  HostKernelFn merge = nullptr;
  /// Keeps host code alive.
  std::shared_ptr<void> code;
  std::vector<PhaseTime> times;
};

/// The error that refuses a sound spec, since the generator does not cover an
/// axis of it or no schedule fits: `error.isA<NotCovered>()`.
class NotCovered : public llvm::ErrorInfo<NotCovered, llvm::StringError> {
public:
  static char ID;
  explicit NotCovered(const llvm::Twine &message)
      : ErrorInfo(message, std::make_error_code(std::errc::not_supported)) {}
};

/// A context with every dialect we use.
std::unique_ptr<mlir::MLIRContext> createContext();

/// Parses a module from text or reports the first diagnostic as the error, one
/// line with file, line and column.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
parseSpec(llvm::StringRef text, llvm::StringRef name,
          mlir::MLIRContext &context);

/// Lowers the module in place from a spec to `level` for `chip`.
llvm::Error lowerTo(mlir::ModuleOp module, Level level, llvm::StringRef chip);

/// Compiles the one attn.kernel of a module; the module is consumed.
llvm::Expected<CompileResult> compile(mlir::OwningOpRef<mlir::ModuleOp> module,
                                      llvm::StringRef chip);

/// A host object file with both functions.
llvm::Expected<std::string>
compileHostObject(mlir::OwningOpRef<mlir::ModuleOp> module);

/// Launch facts of a plan.
KernelInfo describeKernel(attn::KernelOp plan);

} // namespace tokentile

#endif // TOKENTILE_CODEGEN_COMPILER_H
