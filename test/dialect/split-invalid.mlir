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
