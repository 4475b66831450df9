//===- AttnTypes.td - Types of the staged level -----------------*- tablegen -*-===//

#ifndef TOKENTILE_DIALECT_ATTNTYPES_TD
#define TOKENTILE_DIALECT_ATTNTYPES_TD

include "dialect/AttnDialect.td"
include "mlir/IR/AttrTypeBase.td"

def Attn_BufferType : TypeDef<Attn_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "shared memory for a number of tiles";
  let description = [{
    `stages` slots, each for one `tile`, whose encoding is `#attn.shared`.

    Example: `!attn.buffer<3 of tensor<64x256xbf16, #attn.shared<swizzle 8>>>`
  }];
  let parameters = (ins "int64_t":$stages, "::mlir::RankedTensorType":$tile);
  let assemblyFormat = "`<` $stages `of` $tile `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Bytes of one slot.
    int64_t getSlotBytes() const {
      return getTile().getNumElements() *
             getTile().getElementTypeBitWidth() / 8;
    }
    /// Bytes of all slots.
    int64_t getBytes() const { return getStages() * getSlotBytes(); }
  }];
}

def Attn_RingType : TypeDef<Attn_Dialect, "Ring"> {
  let mnemonic = "ring";
  let summary = "barriers that pass slots between producers and consumers";
  let description = [{
    One `full` and one `empty` barrier for each of `stages` slots.

    Example: `!attn.ring<2>`
  }];
  let parameters = (ins "int64_t":$stages);
  let assemblyFormat = "`<` $stages `>`";
  let genVerifyDecl = 1;
}

#endif // TOKENTILE_DIALECT_ATTNTYPES_TD
