//===- AttnOps.td - The attention spec --------------------------*- tablegen -*-===//

#ifndef TOKENTILE_DIALECT_ATTNOPS_TD
#define TOKENTILE_DIALECT_ATTNOPS_TD

include "dialect/AttnAttrs.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Attn_Op<string mnemonic, list<Trait> traits = []>
    : Op<Attn_Dialect, mnemonic, traits>;

def Attn_KernelOp : Attn_Op<"kernel", [Symbol, IsolatedFromAbove]> {
  let summary = "what an attention kernel computes and, if planned, how";
  let description = [{
    States one attention: for every request and every query row, the softmax
    of scaled products with all keys the row sees, applied to their values.
    `tokens` query tokens of one request are swept in one pass over the keys.
    Clauses come in the order of the grammar; one that is left out has the
    default that `dialect/README.md` names. The optional `score` region
    maps (score, query head, query position, key position) to a new score; it
    has no side effects and sees nothing outside.

    Example:

    ```mlir
    attn.kernel @verify_q24 heads<24 over 4, dim 256> tokens<16>
        sees<prefix all, suffix causal> keys<bf16> values<bf16>
        paging<page_major page 64>
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    Attn_HeadsAttr:$heads,
    I64Attr:$tokens,
    Attn_SeesAttr:$sees,
    Attn_StorageAttr:$keys,
    Attn_StorageAttr:$values,
    Attn_PagingAttr:$paging,
    OptionalAttr<Attn_BlockAttr>:$block,
    OptionalAttr<Attn_QueryAttr>:$query,
    OptionalAttr<Attn_OutputAttr>:$output,
    OptionalAttr<F64Attr>:$scale,
    OptionalAttr<F64Attr>:$softcap,
    UnitAttr:$sink,
    UnitAttr:$latent,
    OptionalAttr<Attn_SplitAttr>:$split,
    OptionalAttr<Attn_ScheduleAttr>:$schedule);
  let regions = (region AnyRegion:$score);
  let assemblyFormat = [{
    $sym_name `heads` `` $heads `tokens` `` `<` $tokens `>` `sees` `` $sees
    `keys` `` $keys `values` `` $values `paging` `` $paging
    (`block` `` $block^)? (`query` `` $query^)? (`output` `` $output^)?
    (`scale` `` `<` $scale^ `>`)? (`softcap` `` `<` $softcap^ `>`)?
    (`sink` $sink^)? (`latent` $latent^)?
    (`split` `` $split^)? (`schedule` `` $schedule^)?
    (`score` $score^)? attr-dict-with-keyword
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// Query rows that share one kv head: tokens x group.
    int64_t getRows() { return getTokens() * getHeads().getGroup(); }
    /// Elements of a value row.
    int64_t getValueDim();
    /// Factor on q.k, 1/sqrt(dim) unless given.
    double getScaleFactor();
    BlockKind getBlockKind();
    /// The clause, or its default.
    QueryAttr getQueryOrDefault();
    OutputAttr getOutputOrDefault();
    SplitAttr getSplitOrDefault();
    ScheduleAttr getScheduleOrDefault();
    /// Bytes between two keys of a page, from the page order.
    int64_t getSlotStride(StorageAttr storage, int64_t dim);
  }];
}

def Attn_YieldOp : Attn_Op<"yield", [Pure, Terminator, HasParent<"KernelOp">]> {
  let summary = "returns the new score from a score region";
  let description = [{
    Ends the `score` region of an `attn.kernel`. The score returned replaces
    the one passed in, before the mask.

    Example:

    ```mlir
    attn.yield %score : f32
    ```
  }];
  let arguments = (ins F32:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

#endif // TOKENTILE_DIALECT_ATTNOPS_TD
