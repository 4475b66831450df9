// Constraints of one storage, one case each.
//
// RUN: ninfer-opt %s -split-input-file -verify-diagnostics

// C7: a scale belongs to a quantised element.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    // expected-error@+1 {{custom op 'attn.kernel' expected no 'scale' for bf16, got row}}
    keys<bf16 scale row>
    values<bf16>
    paging<page_major page 64>

// -----

// C8: e4m3 has no groups.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    // expected-error@+1 {{custom op 'attn.kernel' expected 'scale' row, head or tensor for e4m3, got group}}
    keys<e4m3 scale group of 64>
    values<bf16>
    paging<page_major page 64>

// -----

// C9: int8 has only groups.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    // expected-error@+1 {{custom op 'attn.kernel' expected 'scale' group for int8, got row}}
    values<int8 scale row>
    paging<page_major page 64>

// -----

// C10: nvfp4 has groups of 16.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    // expected-error@+1 {{custom op 'attn.kernel' expected 'scale' group of 16 for nvfp4, got group of 32}}
    values<nvfp4 scale group of 32>
    paging<page_major page 64>

// -----

// C11: a group has a size.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    // expected-error@+1 {{custom op 'attn.kernel' expected a positive 'of' for 'scale' group, got 0}}
    keys<int8 scale group>
    values<bf16>
    paging<page_major page 64>

// -----

// C12: only quantised rows are rotated.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    // expected-error@+1 {{custom op 'attn.kernel' expected no 'rotated' for fp16, got hadamard}}
    keys<fp16 rotated hadamard>
    values<bf16>
    paging<page_major page 64>
