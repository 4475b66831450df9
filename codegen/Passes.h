//===- Passes.h - Passes from spec to machine -------------------*- C++ -*-===//

#ifndef TOKENTILE_CODEGEN_PASSES_H
#define TOKENTILE_CODEGEN_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace tokentile {

#define GEN_PASS_DECL
#include "codegen/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "codegen/Passes.h.inc"

} // namespace tokentile

#endif // TOKENTILE_CODEGEN_PASSES_H
