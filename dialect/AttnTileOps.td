//===- AttnTileOps.td - Programs over whole tiles ---------------*- tablegen -*-===//
//
// What one block of a launch does, over whole tiles: R rows, K keys, D
// dimensions. There is no thread, warp or lane here. The same operations stand
// at the staged level, where the encodings of their tensors say in which
// registers or in which shared memory they live.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_DIALECT_ATTNTILEOPS_TD
#define TOKENTILE_DIALECT_ATTNTILEOPS_TD

include "dialect/AttnOps.td"

// C52
def Attn_InsideProgram
    : PredOpTrait<"it stands inside an 'attn.program'",
                  CPred<"$_op.getParentOfType<::tokentile::attn::ProgramOp>()">>;

class Attn_ProgramPart<string mnemonic, list<Trait> traits = []>
    : Attn_Op<mnemonic, !listconcat([Attn_InsideProgram], traits)>;

// Rows by columns, of any element.
def Attn_Tile : RankedTensorOf<
    [AnyType], [HasStaticShapePred, HasAnyRankOfPred<[2]>], "static 2-D tensor">;

// Scores and outputs, which are fp32.
def Attn_Matrix : RankedTensorOf<
    [F32], [HasStaticShapePred, HasAnyRankOfPred<[2]>], "static 2-D tensor">;

// One fp32 number for each row.
def Attn_Rows : RankedTensorOf<
    [F32], [HasStaticShapePred, HasAnyRankOfPred<[1]>], "static 1-D tensor">;

def Attn_PageIds : RankedTensorOf<
    [I32], [HasStaticShapePred, HasAnyRankOfPred<[1]>], "static 1-D tensor">;

def Attn_ProgramOp : Attn_Op<"program", [
    Symbol, IsolatedFromAbove, NoTerminator, SingleBlock,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the sweep or the merge of a planned kernel";
  let description = [{
    A sweep runs once for each part of each request (`attn.item`), kv head and
    row block; a merge once for each row, or some rows, of a kv head of each
    request that has several parts. Which block does which is the launch's affair. `of` names the
    plan, in the same module, from which storages and strides are read.

    Example:

    ```mlir
    attn.program @verify_q24_sweep role<sweep> of @verify_q24 { ... }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       Attn_EnumAttr<Attn_ProgramRole, "role">:$role,
                       FlatSymbolRefAttr:$kernel);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `role` `` $role `of` $kernel $body attr-dict
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The plan this program belongs to, or null if there is none.
    KernelOp getPlan();
  }];
}

//===----------------------------------------------------------------------===//
// What a block knows
//===----------------------------------------------------------------------===//

def Attn_RequestOp : Attn_ProgramPart<"request", [Pure]> {
  let summary = "lengths and positions of this block's request";
  let description = [{
    `length` keys in all, block rows included, clamped to the bound of the
    launch; `context` keys before the block; `columns` query tokens; the
    smallest and largest position among them (0 and -1 without any).

    Example:

    ```mlir
    %length, %context, %columns, %first, %last = attn.request
    ```
  }];
  let results = (outs I32:$length, I32:$context, I32:$columns,
                      I32:$minPosition, I32:$maxPosition);
  let assemblyFormat = "attr-dict";
}

def Attn_ItemOp : Attn_ProgramPart<"item", [SingleBlock, IsolatedFromAbove]> {
  let summary = "which part of which request this run of the program has";
  let description = [{
    The region says which tiles of keys rows of a request see: from `length`,
    `context`, `columns` and the positions of the oldest and the newest of these
    rows, to `attn.yield_tiles`. It is evaluated for every request of a launch;
    from that all blocks conclude, each by itself, into how many parts a request
    is divided and who has which.

    In a sweep `first` to `end` are the tiles of the part that some row sees. If
    `attn.yield_tiles` says how many parts, or nothing, `part` counts from 0 to
    `parts - 1`. Of a request with several parts, part `p` leaves its partial
    result at workspace slot `slot`, which is `p` behind that of part 0; with one
    part it leaves none, and `slot` is `-1 - request`. With a number of parts,
    part `p` of `n` begins `tiles * p / n` tiles behind the request's first.
    Where nothing is said, parts follow from the lengths of all requests: at most
    one a tile, at least one, and one if dividing does not pay.

    If it says a size, `part` is the number of a piece, counted from key 0. Its
    partial result is left at `slot` even if it is the only one. Evaluated for
    the oldest row alone the region may yield another size than for all rows;
    then pieces of both sizes are swept, for the rows that have them.

    In a merge `part` is 0. A program without this operation runs once for each
    request.

    Example:

    ```mlir
    %request, %part, %parts, %slot, %first, %end = attn.item {
    ^bb0(%length: i32, %context: i32, %columns: i32, %oldest: i32, %newest: i32):
      %c0 = arith.constant 0 : i32
      %c64 = arith.constant 64 : i32
      %tiles = arith.ceildivui %length, %c64 : i32
      attn.yield_tiles %c0 to %tiles
    }
    ```
  }];
  let results = (outs I32:$request, I32:$part, I32:$parts, I32:$slot,
                      I32:$first, I32:$end);
  let regions = (region SizedRegion<1>:$tiles);
  let assemblyFormat = "$tiles attr-dict";
  let hasRegionVerifier = 1;
}

def Attn_YieldTilesOp : Attn_Op<"yield_tiles", [
    Pure, Terminator, HasParent<"ItemOp">, AttrSizedOperandSegments]> {
  let summary = "tiles of keys that some row of a request sees";
  let description = [{
    Ends the region of `attn.item`: the rows see tiles `first` to `end`, `end`
    excluded and not below `first`. With `in` the request has exactly so many
    parts; with `by` its parts are pieces of so many tiles.

    Example:

    ```mlir
    attn.yield_tiles %first to %end in %parts
    attn.yield_tiles %first to %end by %size
    ```
  }];
  let arguments = (ins I32:$first, I32:$end, Optional<I32>:$parts,
                       Optional<I32>:$size);
  let assemblyFormat = [{
    $first `to` $end (`in` $parts^)? (`by` $size^)? attr-dict
  }];
}

//===----------------------------------------------------------------------===//
// Tiles in, tiles out
//===----------------------------------------------------------------------===//

def Attn_LoadQueryOp : Attn_ProgramPart<"load_query"> {
  let summary = "this block's query rows, in the keys' element type";
  let description = [{
    Row `r` is query token `r div group`, head `kv head * group + r mod group`.
    Rows of masked columns and padding rows are zero.

    Example:

    ```mlir
    %q = attn.load_query : tensor<96x256xbf16>
    ```
  }];
  let results = (outs Attn_Tile:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Attn_LookupPagesOp : Attn_ProgramPart<"lookup_pages"> {
  let summary = "page ids of one tile of keys";
  let description = [{
    The table entries of the pages that tile `tile` touches. Entries past the
    request's last page are not read; their results are unspecified.

    Example:

    ```mlir
    %pages = attn.lookup_pages %t : tensor<1xi32>
    ```
  }];
  let arguments = (ins I32:$tile);
  let results = (outs Attn_PageIds:$pages);
  let assemblyFormat = "$tile attr-dict `:` type($pages)";
}

def Attn_LoadTileOp : Attn_ProgramPart<"load_tile"> {
  let summary = "gathers one tile of keys or values";
  let description = [{
    Keys `tile * K` to `tile * K + K - 1` of this block's kv head, from the
    pages or from the dense block. Rows at or past the request's length, and
    rows that no query row's window admits, are zero, whatever memory holds. Every such op is one read of those keys: the
    count of sweeps is the count of these ops for a plane.

    Example:

    ```mlir
    %k = attn.load_tile plane<keys> of %t through %pages
        : tensor<1xi32> -> tensor<64x256xbf16>
    ```
  }];
  let arguments = (ins Attn_EnumAttr<Attn_Plane, "plane">:$plane, I32:$tile,
                       Attn_PageIds:$pages);
  let results = (outs Attn_Tile:$result);
  let assemblyFormat = [{
    `plane` `` $plane `of` $tile `through` $pages attr-dict `:`
    type($pages) `->` type($result)
  }];
}

def Attn_StoreResultOp : Attn_ProgramPart<"store_result"> {
  let summary = "writes the output rows, or the partial result of a part";
  let description = [{
    Without `partial`: output row = `output / sum` (or what the spec says of an
    empty row), zero for masked columns, and the log-sum-exp if asked for.
    With `partial`: the three tensors as they are, to the slot of `attn.item` in
    the workspace; an output whose sum is zero is left unwritten and must not be
    read.

    Example:

    ```mlir
    attn.store_result %m, %l, %o partial
        : tensor<96xf32>, tensor<96xf32>, tensor<96x256xf32>
    ```
  }];
  let arguments = (ins Attn_Rows:$max, Attn_Rows:$sum,
                       Attn_Matrix:$output, UnitAttr:$partial);
  let assemblyFormat = [{
    $max `,` $sum `,` $output (`partial` $partial^)? attr-dict `:`
    type($max) `,` type($sum) `,` type($output)
  }];
  let hasVerifier = 1;
}

def Attn_MergePartialsOp : Attn_ProgramPart<"merge_partials"> {
  let summary = "combines the partial results of all parts of one row";
  let description = [{
    max = max_p m_p; sum = sum_p 2^(m_p - max) l_p; output likewise. Parts are
    added in the same order on every run.

    Example:

    ```mlir
    %m, %l, %o = attn.merge_partials
        : tensor<1xf32>, tensor<1xf32>, tensor<1x256xf32>
    ```
  }];
  let results = (outs Attn_Rows:$max, Attn_Rows:$sum,
                      Attn_Matrix:$output);
  let assemblyFormat = [{
    attr-dict `:` type($max) `,` type($sum) `,` type($output)
  }];
  let hasVerifier = 1;
}

def Attn_AddSinkOp : Attn_ProgramPart<"add_sink", [
    Pure, AllTypesMatch<["max", "newMax"]>, AllTypesMatch<["sum", "newSum"]>,
    AllTypesMatch<["output", "result"]>]> {
  let summary = "adds the sink of each row's head to its sum";
  let description = [{
    With c = sink * log2(e): max' = max(max, c);
    sum' = 2^(max - max') sum + 2^(c - max'); output' = 2^(max - max') output.
    A row that has seen no key, whose max is minus infinity, stays as it is. It
    stands once on the way to the output: before the store of a sweep that is
    its own merge, and behind the merge.

    Example:

    ```mlir
    %m1, %l1, %o1 = attn.add_sink %m, %l, %o
        : tensor<96xf32>, tensor<96xf32>, tensor<96x256xf32>
    ```
  }];
  let arguments = (ins Attn_Rows:$max, Attn_Rows:$sum, Attn_Matrix:$output);
  let results = (outs Attn_Rows:$newMax, Attn_Rows:$newSum,
                      Attn_Matrix:$result);
  let assemblyFormat = [{
    $max `,` $sum `,` $output attr-dict `:`
    type($max) `,` type($sum) `,` type($output)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Mathematics
//===----------------------------------------------------------------------===//

def Attn_ScoresOp : Attn_ProgramPart<"scores", [Pure]> {
  let summary = "S = Q K^T in fp32, unscaled";
  let description = [{
    `query` is [R, D], `keys` are [K, D], both of the keys' element type;
    products are exact and summed in fp32.

    Example:

    ```mlir
    %s = attn.scores %q, %k
        : tensor<96x256xbf16>, tensor<64x256xbf16> -> tensor<96x64xf32>
    ```
  }];
  let arguments = (ins Attn_Tile:$query, Attn_Tile:$keys);
  let results = (outs Attn_Matrix:$scores);
  let assemblyFormat = [{
    $query `,` $keys attr-dict `:` type($query) `,` type($keys) `->`
    type($scores)
  }];
  let hasVerifier = 1;
}

def Attn_MaskOp : Attn_ProgramPart<"mask", [
    AllTypesMatch<["scores", "result"]>]> {
  let summary = "sets the scores of unseen keys to minus infinity";
  let description = [{
    Score (r, j) of tile `tile` is kept if row `r` sees key `tile * K + j`, by
    the plan's `sees` clause and the request's length.

    Example:

    ```mlir
    %x = attn.mask %s of %t : tensor<96x64xf32>
    ```
  }];
  let arguments = (ins Attn_Matrix:$scores, I32:$tile);
  let results = (outs Attn_Matrix:$result);
  let assemblyFormat = [{
    $scores `of` $tile attr-dict `:` type($result)
  }];
}

def Attn_SoftmaxOp : Attn_ProgramPart<"softmax", [
    Pure, AllTypesMatch<["max", "sum", "alpha", "newMax", "newSum"]>]> {
  let summary = "one online step: probabilities and new statistics";
  let description = [{
    With c = scale * log2(e), x = S c: max' = max(max, max_j x_j);
    p_j = 2^(x_j - max'); alpha = 2^(max - max'); sum' = alpha sum + sum_j p_j.
    While a row has seen nothing its max is minus infinity, p is zero and alpha
    is one. Probabilities are rounded to the values' element type; the sum is
    not. With `agreed`, a staged tensor that key warps have agreed on, it stands
    for max_j x_j; sums stay apart.

    Example:

    ```mlir
    %p, %alpha, %m1, %l1 = attn.softmax %x, %m, %l
        : tensor<96x64xf32>, tensor<96xf32> -> tensor<96x64xbf16>
    ```
  }];
  let arguments = (ins Attn_Matrix:$scores, Attn_Rows:$max,
                       Attn_Rows:$sum, Optional<Attn_Rows>:$agreed);
  let results = (outs Attn_Tile:$probabilities, Attn_Rows:$alpha,
                      Attn_Rows:$newMax, Attn_Rows:$newSum);
  let assemblyFormat = [{
    $scores `,` $max `,` $sum (`agreed` $agreed^ `:` type($agreed))? attr-dict
    `:` type($scores) `,` type($max) `->` type($probabilities)
  }];
  let hasVerifier = 1;
}

def Attn_AccumulateOp : Attn_ProgramPart<"accumulate", [
    Pure, AllTypesMatch<["output", "result"]>]> {
  let summary = "O' = alpha O + P V in fp32";
  let description = [{
    `alpha` scales each row of `output`, as `attn.softmax` returned it.
    Probabilities and values are of the values' element type.

    Example:

    ```mlir
    %o1 = attn.accumulate %o, %alpha, %p, %v
        : tensor<96x256xf32>, tensor<96xf32>, tensor<96x64xbf16>,
          tensor<64x256xbf16>
    ```
  }];
  let arguments = (ins Attn_Matrix:$output, Attn_Rows:$alpha,
                       Attn_Tile:$probabilities, Attn_Tile:$values);
  let results = (outs Attn_Matrix:$result);
  let assemblyFormat = [{
    $output `,` $alpha `,` $probabilities `,` $values attr-dict `:`
    type($result) `,` type($alpha) `,` type($probabilities) `,` type($values)
  }];
  let hasVerifier = 1;
}

#endif // TOKENTILE_DIALECT_ATTNTILEOPS_TD
