//===- AttnAttrs.td - The axes of an attention spec -------------*- tablegen -*-===//
//
// Each attribute is one axis of the product that a spec spans. Constraints are
// numbered in dialect/README.md.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_DIALECT_ATTNATTRS_TD
#define TOKENTILE_DIALECT_ATTNATTRS_TD

include "dialect/AttnDialect.td"
include "dialect/AttnEnums.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/TensorEncoding.td"

class Attn_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Attn_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

class Attn_EnumAttr<EnumInfo info, string mnemonic>
    : EnumAttr<Attn_Dialect, info, mnemonic> {
  let assemblyFormat = "`<` $value `>`";
}

// An integer that reads as "left open" when it is zero.
defvar Attn_Open = DefaultValuedParameter<"int64_t", "0">;

// An enum that has a value when nothing is said.
class Attn_Defaulted<EnumInfo info, string value> : EnumParameter<info> {
  let defaultValue = "::tokentile::attn::" # value;
}

// A word that is said or not.
def Attn_Flag : AttrOrTypeParameter<"bool", ""> {
  let defaultValue = "false";
}

//===----------------------------------------------------------------------===//
// Problem
//===----------------------------------------------------------------------===//

def Attn_HeadsAttr : Attn_Attr<"Heads", "heads"> {
  let summary = "query heads, key-value heads and head dimension";
  let description = [{
    `query` heads share `kv` heads in groups of `query / kv`; query head `h`
    reads kv head `h / group`. `dim` counts elements of a query and key row;
    `value_dim` those of a value row and is `dim` when left out.

    Example: `heads<24 over 4, dim 256>`
  }];
  let parameters = (ins "int64_t":$query, "int64_t":$kv, "int64_t":$dim,
                        Attn_Open:$valueDim);
  let assemblyFormat = [{
    `<` $query `over` $kv `,` `dim` $dim (`value_dim` $valueDim^)? `>`
  }];
  let extraClassDeclaration = [{
    /// Query heads that share one kv head.
    int64_t getGroup() const { return getQuery() / getKv(); }
  }];
  let genVerifyDecl = 1;
}

def Attn_SeesAttr : Attn_Attr<"Sees", "sees"> {
  let summary = "which keys a query row sees";
  let description = [{
    Let `p` be the row's position and `k` a key's. `prefix left within w` admits
    `p - k < w`, `prefix symmetric within w` admits `|p - k| < w`, each for the row's
    own `p` and for every key, block rows included. `suffix causal` admits
    `k <= p`; `suffix bidirectional` admits every row of the block;
    `suffix ancestors` admits the block rows of a bitset given per row. Keys at
    or past the request's length are never seen.

    Example: `sees<prefix symmetric within 2048, suffix bidirectional>`
  }];
  let parameters = (ins EnumParameter<Attn_PrefixKind>:$prefix,
                        Attn_Open:$window,
                        EnumParameter<Attn_SuffixKind>:$suffix);
  let assemblyFormat = [{
    `<` `prefix` $prefix (`within` $window^)? `,` `suffix` $suffix `>`
  }];
  let genVerifyDecl = 1;
}

def Attn_StorageAttr : Attn_Attr<"Storage", "storage"> {
  let summary = "how key or value rows are stored";
  let description = [{
    `element` is the stored type; quantised elements carry what shares a scale
    (`scale row`, `head`, `tensor`, or `group` of `of` elements) and may have
    been rotated by a Hadamard matrix over the head dimension.

    Example: `storage<int8 scale group of 64 rotated hadamard>`
  }];
  let parameters = (ins
    EnumParameter<Attn_ElementKind>:$element,
    Attn_Defaulted<Attn_ScaleKind, "ScaleKind::None">:$scale,
    Attn_Open:$group,
    Attn_Defaulted<Attn_Rotation, "Rotation::None">:$rotation);
  let assemblyFormat = [{
    `<` $element (`scale` $scale^)? (`of` $group^)? (`rotated` $rotation^)? `>`
  }];
  let genVerifyDecl = 1;
}

def Attn_PagingAttr : Attn_Attr<"Paging", "paging"> {
  let summary = "how keys are found: page size, order of axes, ring";
  let description = [{
    Key `k` of a request lies in slot `k mod page` of page
    `table[b][k div page]`. `page_major` pools are [pages, kv heads, page, dim],
    `head_major` [kv heads, pages, page, dim], `nhd` [pages, page, kv heads,
    dim] with an optional distance in bytes between two slots; `contiguous`
    keys are [keys, kv heads, dim] and start at `key_offsets[b]`. `ring` wraps
    positions modulo that many keys; `ids` is the type of a page id.

    Example: `paging<page_major page 64>`
  }];
  let parameters = (ins
    EnumParameter<Attn_PageOrderKind>:$order,
    Attn_Open:$page,
    Attn_Open:$slotStride,
    Attn_Open:$ring,
    Attn_Defaulted<Attn_IndexKind, "IndexKind::I32">:$ids);
  let assemblyFormat = [{
    `<` $order (`page` $page^)? (`slot_stride` $slotStride^)? (`ring` $ring^)?
    (`ids` $ids^)? `>`
  }];
  let genVerifyDecl = 1;
}

def Attn_BlockAttr : Attn_EnumAttr<Attn_BlockKind, "block"> {
  let summary = "where the keys of the query block lie";
  let description = [{
    `in_pages`: appended behind the context. `dense`: a segment of its own,
    [query tokens, kv heads, dim], that follows the paged context.

    Example: `block<dense>`
  }];
}

def Attn_QueryAttr : Attn_Attr<"Query", "query"> {
  let summary = "the query tensor and what describes its rows";
  let description = [{
    `columns uniform`: every request has `tokens` rows; `counted`: a count per
    request, the other columns are masked; `packed`: rows are packed and found
    by offsets. `positions given`: one per query token, otherwise token `j` of
    a request stands at `context + j`. `lengths total` count the block rows,
    `lengths context` do not. Queries meet the keys in the keys' element type.

    Example: `query<bf16 token_major columns packed lengths total>`
  }];
  let parameters = (ins
    EnumParameter<Attn_ElementKind>:$element,
    EnumParameter<Attn_RowOrder>:$order,
    Attn_Defaulted<Attn_ColumnsKind, "ColumnsKind::Uniform">:$columns,
    Attn_Defaulted<Attn_PositionsKind, "PositionsKind::FromLengths">:$positions,
    Attn_Defaulted<Attn_LengthsKind, "LengthsKind::Context">:$lengths);
  let assemblyFormat = [{
    `<` $element $order (`columns` $columns^)? (`positions` $positions^)?
    (`lengths` $lengths^)? `>`
  }];
  let genVerifyDecl = 1;
}

def Attn_OutputAttr : Attn_Attr<"Output", "output"> {
  let summary = "the output tensor and what else is returned";
  let description = [{
    `with lse` also returns the natural log-sum-exp of each row as fp32. A row that
    sees no key yields `empty zero` or `empty nan`; its log-sum-exp is minus
    infinity.

    Example: `output<bf16 token_major with lse>`
  }];
  let parameters = (ins
    EnumParameter<Attn_ElementKind>:$element,
    EnumParameter<Attn_RowOrder>:$order,
    Attn_Defaulted<Attn_ExtraResult, "ExtraResult::None">:$extra,
    Attn_Defaulted<Attn_EmptyKind, "EmptyKind::Zero">:$empty);
  let assemblyFormat = [{
    `<` $element $order (`with` $extra^)? (`empty` $empty^)? `>`
  }];
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

def Attn_SplitAttr : Attn_Attr<"Split", "split"> {
  let summary = "how the keys of a request are divided";
  let description = [{
    `auto`: by the planner, from the batch and the processor. `count of n`: n
    pieces. `keys of n`: pieces of n keys counted from key 0, so that a row's
    result does not depend on the rest of the batch. `pieces of n`: the same, of
    a size that grows with a row's position, so that it has about n of them. A
    block whose rows have pieces of two sizes sweeps the keys once for each.

    Example: `split<keys of 2048>`
  }];
  let parameters = (ins EnumParameter<Attn_SplitKind>:$kind, Attn_Open:$value);
  let assemblyFormat = "`<` $kind (`of` $value^)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Whether parts are pieces of whole tiles, counted from key 0.
    bool isSized() const {
      return getKind() == SplitKind::Keys || getKind() == SplitKind::Pieces;
    }
  }];
}

def Attn_ScheduleAttr : Attn_Attr<"Schedule", "schedule"> {
  let summary = "how a kernel is made; every part may be left open";
  let description = [{
    The lowering is `host`, `mma`, `wgmma` (sm_90a) or `auto`; `chip` is "host"
    or a GPU such as "sm_90a". A tile is `key_tile` keys. On a
    GPU `row_warps` x `key_warps` warps divide its rows and keys, each row warp
    holds `row_tiles` tiles of 16 rows. Key warps `meet` at the `end`, adding up
    outputs of different keys, or at every `tile`, sharing probabilities and
    dividing the output's dimensions. `stages` tiles
    are in flight, and the query operand rests in `query` `shared` memory or
    `registers`. `row_blocks` blocks share the rows; each reads the keys again,
    so more than one needs `max_sweeps` to say so. With `invariant` a row's bits
    depend neither on the number of query tokens nor on the batch.

    Example: `schedule<mma chip "sm_90a" key_tile 64 stages 3>`
  }];
  let parameters = (ins
    EnumParameter<Attn_LoweringKind>:$lowering,
    OptionalParameter<"::mlir::StringAttr">:$chip,
    Attn_Open:$keyTile, Attn_Open:$rowWarps, Attn_Open:$rowTiles,
    Attn_Open:$keyWarps,
    Attn_Defaulted<Attn_MeetKind, "MeetKind::Auto">:$meet,
    Attn_Open:$stages, Attn_Open:$rowBlocks, Attn_Open:$maxSweeps,
    Attn_Defaulted<Attn_QueryPlace, "QueryPlace::Auto">:$query,
    Attn_Flag:$invariant);
  let assemblyFormat = [{
    `<` $lowering (`chip` $chip^)? (`key_tile` $keyTile^)?
    (`row_warps` $rowWarps^)? (`row_tiles` $rowTiles^)?
    (`key_warps` $keyWarps^)? (`meet` $meet^)? (`stages` $stages^)?
    (`row_blocks` $rowBlocks^)? (`max_sweeps` $maxSweeps^)?
    (`query` $query^)? `` custom<Invariant>($invariant) `>`
  }];
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Encodings of staged tensors
//===----------------------------------------------------------------------===//

def Attn_FragmentAttr : Attn_Attr<"Fragment", "fragment", [
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "a tensor distributed over the registers of a block's warps";
  let description = [{
    Warp `w` holds rows of row warp `w mod row_warps` and, for scores and
    probabilities, keys of key warp `w div row_warps`. An `output` or
    `statistics` fragment of several key warps is a partial sum in each of
    them; of `slices` each key warp holds whole sums of some dimensions. `codegen/Layout.h` maps (lane, register) to coordinates.

    Example: `tensor<96x64xf32, #attn.fragment<scores warps 6 by 1>>`
  }];
  let parameters = (ins EnumParameter<Attn_FragmentKind>:$kind,
                        "int64_t":$rowWarps, "int64_t":$keyWarps);
  let assemblyFormat = "`<` $kind `warps` $rowWarps `by` $keyWarps `>`";
  let genVerifyDecl = 1;
}

def Attn_SharedAttr : Attn_Attr<"Shared", "shared", [
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "a tensor in shared memory";
  let description = [{
    Rows lie one behind another; the 16-byte chunk `c` of row `r` stands at
    chunk `c xor (r mod swizzle)`, which frees ldmatrix of bank conflicts. With
    `panel` columns a row is cut into panels: eight rows of the first panel lie
    together, then the same rows of the next, then the next eight rows, and the
    chunk counts within its panel. That is what tensor maps write and wgmma
    reads.

    Example: `tensor<64x256xbf16, #attn.shared<swizzle 8 panel 64>>`
  }];
  let parameters = (ins "int64_t":$swizzle, Attn_Open:$panel);
  let assemblyFormat = "`<` `swizzle` $swizzle (`panel` $panel^)? `>`";
  let genVerifyDecl = 1;
}

#endif // TOKENTILE_DIALECT_ATTNATTRS_TD
