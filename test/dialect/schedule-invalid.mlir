// Constraints of `schedule`, one case each.
//
// RUN: ninfer-opt %s -split-input-file -verify-diagnostics

// C22: chips are spelled as LLVM does.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>
    // expected-error@+1 {{custom op 'attn.kernel' expected 'chip' to be "host" or such as "sm_90a", got "hopper"}}
    schedule<mma chip "hopper">

// -----

// C23: the chip runs the lowering.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>
    // expected-error@+1 {{custom op 'attn.kernel' expected 'chip' to be a GPU for lowering mma, got "host"}}
    schedule<mma chip "host">

// -----

// C24: numbers are positive, and within what a processor holds.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>
    // expected-error@+1 {{custom op 'attn.kernel' expected 'stages' from 1 to 1024, got 1025}}
    schedule<auto stages 1025>

// -----

// C25: a key tile is whole steps of a product.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>
    // expected-error@+1 {{custom op 'attn.kernel' expected 'key_tile' to be a power of two of at least 16, got 48}}
    schedule<auto key_tile 48>

// -----

// C26: warps fit one block.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>
    // expected-error@+1 {{custom op 'attn.kernel' expected 'row_warps' x 'key_warps' of at most 32, got 6 x 6}}
    schedule<auto row_warps 6 key_warps 6>

// -----

// C27: a second pass over the keys is always said.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>
    // expected-error@+1 {{custom op 'attn.kernel' expected 'max_sweeps' of at least 'row_blocks' 2, got 0}}
    schedule<auto row_blocks 2>
