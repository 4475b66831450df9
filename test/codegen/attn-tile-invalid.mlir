// RUN: ninfer-opt %s -split-input-file -attn-tile -verify-diagnostics

// expected-error @below {{'attn.kernel' op has no complete schedule; run attn-select-schedule}}
attn.kernel @open heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64>

// -----

// A bug, mended: a plan without row tiles had blocks of no rows.
// expected-error @below {{'attn.kernel' op has no complete schedule; run attn-select-schedule}}
attn.kernel @row_tiles_open heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64>
    schedule<mma chip "sm_80" key_tile 32 row_warps 1 key_warps 1 stages 2>
