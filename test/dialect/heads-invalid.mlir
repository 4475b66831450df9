// Constraints of `heads`, one case each.
//
// RUN: ninfer-opt %s -split-input-file -verify-diagnostics

// C1: heads are counted from one.
// expected-error@+1 {{custom op 'attn.kernel' expected 'query' and 'kv' from 1 to 65535, got 8 over 0}}
attn.kernel @k heads<8 over 0, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>

// -----

// C2: kv heads serve groups of one size.
// expected-error@+1 {{custom op 'attn.kernel' expected 'query' divisible by 'kv', got 24 over 5}}
attn.kernel @k heads<24 over 5, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>

// -----

// C3: a row is whole steps of a product.
// expected-error@+1 {{custom op 'attn.kernel' expected 'dim' to be a multiple of 16 from 16 to 576, got 120}}
attn.kernel @k heads<8 over 4, dim 120>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>

// -----

// C4: so is a value row.
// expected-error@+1 {{custom op 'attn.kernel' expected 'value_dim' to be a multiple of 16 from 16 to 576, got 640}}
attn.kernel @k heads<8 over 4, dim 128 value_dim 640>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>
