//===- AttnOps.h - Operations of the attn dialect ---------------*- C++ -*-===//
//
// The spec (`attn.kernel`), programs over tiles, and the staged operations.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_DIALECT_ATTNOPS_H
#define TOKENTILE_DIALECT_ATTNOPS_H

#include "dialect/AttnDialect.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace tokentile::attn {

/// Whether `op` stands in that region, "producers" or "consumers", of the
/// nearest `attn.roles` around it.
bool standsAmong(mlir::Operation *op, llvm::StringRef role);

} // namespace tokentile::attn

#define GET_OP_CLASSES
#include "dialect/AttnOps.h.inc"

namespace tokentile::attn {

/// Checks that a partial result fits together: `max` and `sum` have one entry
/// for each row of `output`. Emits an error on `op` otherwise.
mlir::LogicalResult verifyPartial(mlir::Operation *op, mlir::Value max,
                                  mlir::Value sum, mlir::Value output);

} // namespace tokentile::attn

#endif // TOKENTILE_DIALECT_ATTNOPS_H
