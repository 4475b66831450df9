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

#define GET_OP_CLASSES
#include "dialect/AttnOps.h.inc"

#endif // TOKENTILE_DIALECT_ATTNOPS_H
