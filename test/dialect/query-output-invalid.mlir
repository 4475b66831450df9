// Constraints of `query` and `output`, one case each.
//
// RUN: ninfer-opt %s -split-input-file -verify-diagnostics

// C18: queries are not quantised.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>
    // expected-error@+1 {{custom op 'attn.kernel' expected 'query' of bf16 or fp16, got e4m3}}
    query<e4m3 token_major>

// -----

// C19: nor are outputs.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>
    // expected-error@+1 {{custom op 'attn.kernel' expected 'output' of bf16 or fp16, got int8}}
    output<int8 token_major>
