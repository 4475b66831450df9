//===- TilesToHost.h - Programs over tiles as host functions ----*- C++ -*-===//
//
// Declares the pass attn-tiles-to-host. Each attn.program becomes an llvm.func
// of type HostKernelFn; see Passes.td for the contract.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_CODEGEN_TILESTOHOST_H
#define TOKENTILE_CODEGEN_TILESTOHOST_H

#include "mlir/Pass/Pass.h"

namespace tokentile {

#define GEN_PASS_DECL_TILESTOHOSTPASS
#include "codegen/Passes.h.inc"

} // namespace tokentile

#endif // TOKENTILE_CODEGEN_TILESTOHOST_H
