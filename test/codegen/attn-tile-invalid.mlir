// RUN: ninfer-opt %s -attn-tile -verify-diagnostics

// expected-error @below {{'attn.kernel' op has no complete schedule; run attn-select-schedule}}
attn.kernel @open heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64>
