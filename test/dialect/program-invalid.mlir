// Constraints of programs and of what they contain, one case each.
//
// RUN: ninfer-opt %s -split-input-file -verify-diagnostics

// C50: a program has a plan.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>

// expected-error@+1 {{'attn.program' op expected 'of' to name an 'attn.kernel', got @other}}
attn.program @p role<sweep> of @other {
  attn.barrier
}

// -----

// C51: a program takes nothing.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>

// expected-error@+1 {{'attn.program' op expected a body without arguments, got 1}}
attn.program @p role<sweep> of @k {
^bb0(%a: i32):
  attn.barrier
}

// -----

// C52: a block knows itself only inside a program.
// expected-error@+1 {{'attn.barrier' op failed to verify that it stands inside an 'attn.program'}}
attn.barrier

// -----

// C53: only a merge reads partial results.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>

attn.program @p role<sweep> of @k {
  // expected-error@+1 {{'attn.merge_partials' op expected a program of role merge, got sweep}}
  %m, %l, %o = attn.merge_partials
      : tensor<1xf32>, tensor<1xf32>, tensor<1x128xf32>
}
