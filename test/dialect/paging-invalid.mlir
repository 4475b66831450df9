// Constraints of `paging`, one case each.
//
// RUN: ninfer-opt %s -split-input-file -verify-diagnostics

// C13: contiguous keys have no pages.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    // expected-error@+1 {{custom op 'attn.kernel' expected no 'page', 'slot_stride', 'ring' or 'ids' for contiguous keys, got page 64, slot_stride 0, ring 0, ids i32}}
    paging<contiguous page 64>

// -----

// C14: a slot is found by shifts.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    // expected-error@+1 {{custom op 'attn.kernel' expected 'page' to be a power of two, got 48}}
    paging<page_major page 48>

// -----

// C15: only slots that hold all heads have a distance.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    // expected-error@+1 {{custom op 'attn.kernel' expected no 'slot_stride' for page_major, got 2048}}
    paging<page_major page 64 slot_stride 2048>

// -----

// C16: rows are aligned for 16-byte copies.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    // expected-error@+1 {{custom op 'attn.kernel' expected 'slot_stride' to be a positive multiple of 16 up to 1073741824, got 1032}}
    paging<nhd page 64 slot_stride 1032>

// -----

// C17: a ring is whole pages.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    // expected-error@+1 {{custom op 'attn.kernel' expected 'ring' to be a positive multiple of 'page' 64, got 100}}
    paging<page_major page 64 ring 100>
