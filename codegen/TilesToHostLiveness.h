//===- TilesToHostLiveness.h - May a tile be overwritten? -------*- C++ -*-===//
//
// Tiles are values, buffers are memory: an operation may write its result over
// an operand only where no later read wants the operand.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_CODEGEN_TILESTOHOSTLIVENESS_H
#define TOKENTILE_CODEGEN_TILESTOHOSTLIVENESS_H

#include "mlir/IR/Operation.h"

namespace tokentile::host {

/// True if nothing reads `tile` once `op` has begun, other than `op` itself
/// through a single operand, or an scf.if through its regions.
bool diesAt(mlir::Value tile, mlir::Operation *op);

} // namespace tokentile::host

#endif // TOKENTILE_CODEGEN_TILESTOHOSTLIVENESS_H
