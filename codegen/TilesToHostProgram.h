//===- TilesToHostProgram.h - One program as a host function ----*- C++ -*-===//

#ifndef TOKENTILE_CODEGEN_TILESTOHOSTPROGRAM_H
#define TOKENTILE_CODEGEN_TILESTOHOSTPROGRAM_H

#include "dialect/AttnOps.h"

namespace tokentile::host {

/// Emits an llvm.func of the program's name before the program, which stays.
/// Fails with a diagnostic at an operation that has no lowering.
mlir::LogicalResult lowerToFunction(attn::ProgramOp program);

} // namespace tokentile::host

#endif // TOKENTILE_CODEGEN_TILESTOHOSTPROGRAM_H
