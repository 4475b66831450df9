//===- SpecText.h - Parsing a spec ------------------------------*- C++ -*-===//

#ifndef TOKENTILE_TEST_NUMERICS_SPECTEXT_H
#define TOKENTILE_TEST_NUMERICS_SPECTEXT_H

#include "dialect/AttnOps.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace tokentile {

/// A module that holds one spec.
struct SpecModule {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// The first kernel of the module; null if `error` says why.
  attn::KernelOp kernel;
  std::string error;
};

/// Loads what a spec may use (attn, arith, scf and math) into `context` and
/// parses `text`, the text of a module or of an `attn.kernel`.
SpecModule parseSpec(mlir::MLIRContext &context, llvm::StringRef text);

} // namespace tokentile

#endif // TOKENTILE_TEST_NUMERICS_SPECTEXT_H
