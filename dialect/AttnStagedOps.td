//===- AttnStagedOps.td - Shared memory, copies, pipelines ------*- tablegen -*-===//
//
// What staging adds to a program over tiles: buffers in shared memory, copies
// that complete later, and the points at which a block waits. One vocabulary
// for every GPU lowering.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_DIALECT_ATTNSTAGEDOPS_TD
#define TOKENTILE_DIALECT_ATTNSTAGEDOPS_TD

include "dialect/AttnTileOps.td"
include "dialect/AttnTypes.td"

def Attn_AllocSharedOp : Attn_ProgramPart<"alloc_shared"> {
  let summary = "reserves shared memory for the whole program";
  let description = [{
    `offset` is the first byte in the block's shared memory, a multiple of
    1,024. Buffers whose lifetimes do not overlap may share bytes.

    Example:

    ```mlir
    %k = attn.alloc_shared at 0
        : !attn.buffer<3 of tensor<64x256xbf16, #attn.shared<swizzle 8>>>
    ```
  }];
  let arguments = (ins I64Attr:$offset);
  let results = (outs Attn_BufferType:$buffer);
  let assemblyFormat = "`at` $offset attr-dict `:` type($buffer)";
  let hasVerifier = 1;
}

def Attn_CopyQueryOp : Attn_ProgramPart<"copy_query"> {
  let summary = "begins to copy this block's query rows to shared memory";
  let description = [{
    As `attn.load_query`. The copy is part of the issuing threads' next
    committed group; a barrier must follow the wait.

    Example:

    ```mlir
    attn.copy_query to %q
        : !attn.buffer<1 of tensor<96x256xbf16, #attn.shared<swizzle 8>>>
    ```
  }];
  let arguments = (ins Attn_BufferType:$buffer);
  let assemblyFormat = "`to` $buffer attr-dict `:` type($buffer)";
  let hasVerifier = 1;
}

def Attn_AsyncCopyOp : Attn_ProgramPart<"async_copy"> {
  let summary = "begins to gather one tile into a slot of a buffer";
  let description = [{
    As `attn.load_tile`, into slot `slot`. The copy is part of the issuing
    threads' next committed group.

    Example:

    ```mlir
    attn.async_copy plane<keys> of %t through %pages to %k[%slot]
        : tensor<1xi32>,
          !attn.buffer<3 of tensor<64x256xbf16, #attn.shared<swizzle 8>>>
    ```
  }];
  let arguments = (ins Attn_EnumAttr<Attn_Plane, "plane">:$plane, I32:$tile,
                       Attn_PageIds:$pages, Attn_BufferType:$buffer,
                       I32:$slot);
  let assemblyFormat = [{
    `plane` `` $plane `of` $tile `through` $pages `to` $buffer `[` $slot `]`
    attr-dict `:` type($pages) `,` type($buffer)
  }];
}

def Attn_AsyncCommitOp : Attn_ProgramPart<"async_commit"> {
  let summary = "closes the current group of copies";
  let description = [{
    The copies that the issuing threads have begun since the last commit
    complete together; a group may be empty.

    Example:

    ```mlir
    attn.async_commit
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Attn_AsyncWaitOp : Attn_ProgramPart<"async_wait"> {
  let summary = "waits until at most `pending` newest groups are in flight";
  let description = [{
    Covers the copies of the waiting thread; a barrier makes them visible to
    the block.

    Example:

    ```mlir
    attn.async_wait pending 1
    ```
  }];
  let arguments = (ins I64Attr:$pending);
  let assemblyFormat = "`pending` $pending attr-dict";
  let hasVerifier = 1;
}

def Attn_BarrierOp : Attn_ProgramPart<"barrier"> {
  let summary = "all warps of the block meet";
  let description = [{
    What any warp wrote to shared memory before is seen by every warp after.

    Example:

    ```mlir
    attn.barrier
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Attn_ViewOp : Attn_ProgramPart<"view"> {
  let summary = "the tile in one slot of a buffer";
  let description = [{
    Reads nothing: the result names the bytes of slot `slot`, which must have
    arrived (`attn.async_wait`, `attn.barrier`) before an operation uses it.

    Example:

    ```mlir
    %t = attn.view %k[%slot]
        : !attn.buffer<3 of tensor<64x256xbf16, #attn.shared<swizzle 8>>>
        -> tensor<64x256xbf16, #attn.shared<swizzle 8>>
    ```
  }];
  let arguments = (ins Attn_BufferType:$buffer, I32:$slot);
  let results = (outs Attn_Tile:$tile);
  let assemblyFormat = [{
    $buffer `[` $slot `]` attr-dict `:` type($buffer) `->` type($tile)
  }];
  let hasVerifier = 1;
}

def Attn_ReadQueryOp : Attn_ProgramPart<"read_query"> {
  let summary = "query rows from shared memory to registers";
  let description = [{
    Each warp reads the rows of its row warp, all dimensions of them.

    Example:

    ```mlir
    %q = attn.read_query %s : tensor<64x128xbf16, #attn.shared<swizzle 8>>
        -> tensor<64x128xbf16, #attn.fragment<query warps 4 by 1>>
    ```
  }];
  let arguments = (ins Attn_Tile:$source);
  let results = (outs Attn_Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Attn_ReduceWarpsOp : Attn_ProgramPart<"reduce_warps", [
    AllTypesMatch<["max", "sum", "newMax", "newSum"]>,
    AllTypesMatch<["output", "result"]>]> {
  let summary = "combines the partial results of a block's key warps";
  let description = [{
    As `attn.merge_partials`, over the key warps and through shared memory from
    byte `offset`, which may share bytes with buffers no longer read.
    Afterwards key warp 0 holds the result.

    Example:

    ```mlir
    %m1, %l1, %o1 = attn.reduce_warps %m, %l, %o at 0
        : tensor<48xf32, #attn.fragment<statistics warps 3 by 2>>,
          tensor<48x256xf32, #attn.fragment<output warps 3 by 2>>
    ```
  }];
  let arguments = (ins Attn_Rows:$max, Attn_Rows:$sum,
                       Attn_Matrix:$output, I64Attr:$offset);
  let results = (outs Attn_Rows:$newMax, Attn_Rows:$newSum,
                      Attn_Matrix:$result);
  let assemblyFormat = [{
    $max `,` $sum `,` $output `at` $offset attr-dict `:` type($max) `,`
    type($output)
  }];
  let hasVerifier = 1;
}

def Attn_AgreeMaxOp : Attn_ProgramPart<"agree_max"> {
  let summary = "the largest score of each row over all key warps";
  let description = [{
    max_j x_j of `attn.softmax`, scaled, over the whole tile. Key warps leave
    theirs in `scratch`, [R, 4] floats, meet at a barrier and read the others'.

    Example:

    ```mlir
    %a = attn.agree_max %x through %scratch
        : tensor<96x64xf32, #attn.fragment<scores warps 3 by 4>>,
          !attn.buffer<1 of tensor<96x4xf32, #attn.shared<swizzle 1>>>
        -> tensor<96xf32, #attn.fragment<statistics warps 3 by 4>>
    ```
  }];
  let arguments = (ins Attn_Matrix:$scores, Attn_BufferType:$scratch);
  let results = (outs Attn_Rows:$max);
  let assemblyFormat = [{
    $scores `through` $scratch attr-dict `:` type($scores) `,` type($scratch)
    `->` type($max)
  }];
  let hasVerifier = 1;
}

def Attn_ShareOp : Attn_ProgramPart<"share"> {
  let summary = "writes a warp's probabilities where all warps can read them";
  let description = [{
    A barrier must follow before the tile is read.

    Example:

    ```mlir
    attn.share %p to %buffer
        : tensor<96x64xbf16, #attn.fragment<probabilities warps 3 by 4>>,
          !attn.buffer<1 of tensor<96x64xbf16, #attn.shared<swizzle 8>>>
    ```
  }];
  let arguments = (ins Attn_Tile:$probabilities, Attn_BufferType:$buffer);
  let assemblyFormat = [{
    $probabilities `to` $buffer attr-dict `:` type($probabilities) `,`
    type($buffer)
  }];
  let hasVerifier = 1;
}

def Attn_AgreeSumOp : Attn_ProgramPart<"agree_sum", [
    AllTypesMatch<["sum", "result"]>]> {
  let summary = "adds up the sums of all key warps";
  let description = [{
    As `attn.agree_max`, in the order of the warps.

    Example:

    ```mlir
    %l1 = attn.agree_sum %l through %scratch
        : tensor<96xf32, #attn.fragment<statistics warps 3 by 4>>,
          !attn.buffer<1 of tensor<96x4xf32, #attn.shared<swizzle 1>>>
    ```
  }];
  let arguments = (ins Attn_Rows:$sum, Attn_BufferType:$scratch);
  let results = (outs Attn_Rows:$result);
  let assemblyFormat = [{
    $sum `through` $scratch attr-dict `:` type($sum) `,` type($scratch)
  }];
  let hasVerifier = 1;
}

#endif // TOKENTILE_DIALECT_ATTNSTAGEDOPS_TD
