// Constraints of `sees`, one case each.
//
// RUN: ninfer-opt %s -split-input-file -verify-diagnostics

// C5: all of the prefix has no window.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    // expected-error@+1 {{custom op 'attn.kernel' expected no 'within' after 'prefix all', got 64}}
    sees<prefix all within 64, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>

// -----

// C6: a window has a width.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    // expected-error@+1 {{custom op 'attn.kernel' expected a positive 'within' after 'prefix symmetric', got 0}}
    sees<prefix symmetric, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>
