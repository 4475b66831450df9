//===- AttnDialect.td - The attn dialect ------------------------*- tablegen -*-===//
//
// The attn dialect states attention over a cached context declaratively and
// carries it down to a generated kernel. It bridges engines, which speak of
// heads, token tiles, windows and pages, and the gpu/nvvm or vector/llvm
// dialects, which speak of lanes and addresses.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_DIALECT_ATTNDIALECT_TD
#define TOKENTILE_DIALECT_ATTNDIALECT_TD

include "mlir/IR/DialectBase.td"

def Attn_Dialect : Dialect {
  let name = "attn";
  let cppNamespace = "::tokentile::attn";
  let summary = "Attention specs, tiles and staged tiles";
  let description = [{
    One `attn.kernel` says what is attended to and how keys are stored. The
    same op with every choice filled in is a *plan*. `attn.program` holds the
    generated form: first over whole *tiles* (plain tensors), then *staged*
    (tensors whose encodings say where they live, shared buffers, asynchronous
    copies). See `dialect/README.md` for the meaning of each axis and the
    numbered constraints.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
  }];
}

#endif // TOKENTILE_DIALECT_ATTNDIALECT_TD
