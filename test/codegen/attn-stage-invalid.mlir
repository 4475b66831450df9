// RUN: ninfer-opt %s -split-input-file -attn-stage -verify-diagnostics

attn.kernel @host heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 16> schedule<host chip "host" key_tile 32>
// expected-error @below {{'attn.program' op is planned for host, expected a lowering for a GPU}}
attn.program @host_sweep role<sweep> of @host {
}

// -----

attn.kernel @empty heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 16>
    schedule<mma chip "sm_80" key_tile 32 row_warps 1 row_tiles 1 key_warps 1 stages 2>
// expected-error @below {{'attn.program' op expected one load of keys and one of values}}
attn.program @empty_sweep role<sweep> of @empty {
}

// -----

attn.kernel @no_loop heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 16>
    schedule<mma chip "sm_80" key_tile 32 row_warps 1 row_tiles 1 key_warps 1 stages 2>
// expected-error @below {{'attn.program' op expected keys and values loaded in one loop}}
attn.program @no_loop_sweep role<sweep> of @no_loop {
  %split = arith.constant 0 : i32
  %pages = attn.lookup_pages %split : tensor<2xi32>
  %k = attn.load_tile plane<keys> of %split through %pages : tensor<2xi32> -> tensor<32x64xbf16>
  %v = attn.load_tile plane<values> of %split through %pages : tensor<2xi32> -> tensor<32x64xbf16>
}

// -----

// expected-error @below {{'attn.kernel' op has no complete schedule; run attn-select-schedule}}
attn.kernel @row_tiles_open heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 16>
    schedule<mma chip "sm_80" key_tile 32 row_warps 1 key_warps 1 stages 2>
attn.program @row_tiles_open_sweep role<sweep> of @row_tiles_open {
}
