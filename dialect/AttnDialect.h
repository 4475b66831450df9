//===- AttnDialect.h - The attn dialect -------------------------*- C++ -*-===//
//
// Declares the dialect, its attributes and its types. Operations are in
// AttnOps.h. What everything means is in dialect/README.md.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_DIALECT_ATTNDIALECT_H
#define TOKENTILE_DIALECT_ATTNDIALECT_H

#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/TensorEncoding.h"

#include "dialect/AttnEnums.h.inc"

#include "dialect/AttnDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/AttnAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/AttnTypes.h.inc"

#endif // TOKENTILE_DIALECT_ATTNDIALECT_H
