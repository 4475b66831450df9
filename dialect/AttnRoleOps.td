//===- AttnRoleOps.td - Warps that copy and warps that multiply -*- tablegen -*-===//
//
// How a staged program for sm_90a divides its warps: producers fill slots of
// shared memory, consumers multiply what is in them, and rings of mbarriers
// pass the slots to and fro.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_DIALECT_ATTNROLEOPS_TD
#define TOKENTILE_DIALECT_ATTNROLEOPS_TD

include "dialect/AttnStagedOps.td"

def Attn_AllocRingOp : Attn_ProgramPart<"alloc_ring"> {
  let summary = "reserves the barriers of a ring of slots";
  let description = [{
    From byte `offset` of shared memory, a multiple of 8: for each slot of the
    ring a barrier that says `full` and one that says `empty`, 8 bytes each.
    Each of `readers` warps releases every slot. The barriers are initialised
    when the block begins, before it knows its item.

    Example:

    ```mlir
    %r = attn.alloc_ring at 512 readers 8 : !attn.ring<2>
    ```
  }];
  let arguments = (ins I64Attr:$offset, I64Attr:$readers);
  let results = (outs Attn_RingType:$ring);
  let assemblyFormat = [{
    `at` $offset `readers` $readers attr-dict `:` type($ring)
  }];
  let hasVerifier = 1;
}

def Attn_RolesOp : Attn_ProgramPart<"roles", [
    NoTerminator, NoRegionArguments]> {
  let summary = "divides the warps of a block into producers and consumers";
  let description = [{
    The last four warps run the first region, all others the second, each for
    all items of the block. What stands before is evaluated by both, for each
    item; nothing stands behind. In the consumers' region `attn.barrier` is a
    meeting of consumers alone.

    Example:

    ```mlir
    attn.roles producers { ... } consumers { ... }
    ```
  }];
  let regions = (region SizedRegion<1>:$producers, SizedRegion<1>:$consumers);
  let assemblyFormat = [{
    `producers` $producers `consumers` $consumers attr-dict
  }];
}

def Attn_TurnsTakenOp : Attn_ProgramPart<"turns_taken", []> {
  let summary = "the turns that earlier items of this block have taken";
  let description = [{
    A block may run the program for one item after another. The rings go on where
    the item before has left them: turn `t` of an item is turn
    `turns_taken + t` of each ring. 0 for the first item.

    Example:

    ```mlir
    %before = attn.turns_taken : i32
    ```
  }];
  let results = (outs I32:$turns);
  let assemblyFormat = "attr-dict `:` type($turns)";
}

// C78
class Attn_RingPart<string mnemonic, string role>
    : Attn_ProgramPart<mnemonic, [
        PredOpTrait<"it stands among the " # role # " of 'attn.roles'",
                    CPred<"::tokentile::attn::standsAmong(&$_op, \""
                          # role # "\")">>]>;

def Attn_AcquireOp : Attn_RingPart<"acquire", "producers"> {
  let summary = "waits until a slot of the ring is empty";
  let description = [{
    Turn `turn`, counted from 0, uses slot `turn mod stages`. The first turn of
    each slot does not wait.

    Example:

    ```mlir
    attn.acquire %r[%turn] : !attn.ring<2>
    ```
  }];
  let arguments = (ins Attn_RingType:$ring, I32:$turn);
  let assemblyFormat = "$ring `[` $turn `]` attr-dict `:` type($ring)";
}

def Attn_FillOp : Attn_RingPart<"fill", "producers"> {
  let summary = "begins to gather one tile into an acquired slot";
  let description = [{
    As `attn.load_tile`, into the slot of turn `turn`, whose `full` barrier
    completes when all bytes have arrived.

    Example:

    ```mlir
    attn.fill plane<keys> of %t through %pages to %k by %r[%turn]
        : tensor<1xi32>, !attn.buffer<2 of tensor<64x256xbf16,
          #attn.shared<swizzle 8 panel 64>>>, !attn.ring<2>
    ```
  }];
  let arguments = (ins Attn_EnumAttr<Attn_Plane, "plane">:$plane, I32:$tile,
                       Attn_PageIds:$pages, Attn_BufferType:$buffer,
                       Attn_RingType:$ring, I32:$turn);
  let assemblyFormat = [{
    `plane` `` $plane `of` $tile `through` $pages `to` $buffer `by`
    $ring `[` $turn `]` attr-dict `:` type($pages) `,` type($buffer) `,`
    type($ring)
  }];
  let hasVerifier = 1;
}

def Attn_AwaitOp : Attn_RingPart<"await", "consumers"> {
  let summary = "waits until the slot of a turn is full";
  let description = [{
    Example:

    ```mlir
    attn.await %r[%turn] : !attn.ring<2>
    ```
  }];
  let arguments = (ins Attn_RingType:$ring, I32:$turn);
  let assemblyFormat = "$ring `[` $turn `]` attr-dict `:` type($ring)";
}

def Attn_ReleaseOp : Attn_RingPart<"release", "consumers"> {
  let summary = "gives the slot of a turn back to the producers";
  let description = [{
    This warp has read what it needs of it.

    Example:

    ```mlir
    attn.release %r[%turn] : !attn.ring<2>
    ```
  }];
  let arguments = (ins Attn_RingType:$ring, I32:$turn);
  let assemblyFormat = "$ring `[` $turn `]` attr-dict `:` type($ring)";
}

#endif // TOKENTILE_DIALECT_ATTNROLEOPS_TD
