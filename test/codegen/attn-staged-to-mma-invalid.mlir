// RUN: ninfer-opt %s -split-input-file -attn-staged-to-mma -verify-diagnostics

attn.kernel @tiles heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 16>
    schedule<mma chip "sm_80" key_tile 32 row_warps 1 row_tiles 1 key_warps 1 stages 2>
attn.program @tiles_sweep role<sweep> of @tiles {
  // expected-error @below {{'attn.load_query' op has no lowering to mma}}
  %q = attn.load_query : tensor<16x64xbf16>
}

// -----

// expected-error @below {{'attn.kernel' op has no complete schedule; run attn-select-schedule}}
attn.kernel @row_tiles_open heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 16>
    schedule<mma chip "sm_80" key_tile 32 row_warps 1 key_warps 1 stages 2>
attn.program @row_tiles_open_sweep role<sweep> of @row_tiles_open {
}
