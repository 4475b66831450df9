// Constraints of `split`, one case each.
//
// RUN: ninfer-opt %s -split-input-file -verify-diagnostics

// C20: a count is said.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>
    // expected-error@+1 {{custom op 'attn.kernel' expected a positive 'of' for 'split' count, got 0}}
    split<count>

// -----

// C21: the planner chooses alone.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>
    // expected-error@+1 {{custom op 'attn.kernel' expected no 'of' for 'split' auto, got 4}}
    split<auto of 4>

// -----

// C75: a count divides by the length, which other rows' tokens are part of.
// expected-error@+1 {{'attn.kernel' op expected 'split' auto, keys or pieces with an invariant schedule, got count}}
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>
    split<count of 4>
    schedule<auto invariant>

// -----

// C82: a piece has a size.
attn.kernel @k heads<8 over 4, dim 128> tokens<4>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64> split<pieces of 33>
attn.program @k_sweep role<sweep> of @k {
  %request, %part, %parts, %slot, %begin, %end = attn.item {
  ^bb0(%n: i32, %c: i32, %t: i32, %old: i32, %new: i32):
    // expected-error@+1 {{'attn.yield_tiles' op expected 'by' a size of a kernel with 'split' pieces}}
    attn.yield_tiles %t to %n
  }
}

// -----

attn.kernel @k heads<8 over 4, dim 128> tokens<4>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64> split<count of 3>
attn.program @k_sweep role<sweep> of @k {
  %request, %part, %parts, %slot, %begin, %end = attn.item {
  ^bb0(%n: i32, %c: i32, %t: i32, %old: i32, %new: i32):
    // expected-error@+1 {{'attn.yield_tiles' op expected 'in' parts of a kernel with 'split' count}}
    attn.yield_tiles %t to %n in %n by %t
  }
}
