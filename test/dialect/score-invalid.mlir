// Constraints of a score region, one case each.
//
// RUN: ninfer-opt %s -split-input-file -verify-diagnostics \
// RUN:   -allow-unregistered-dialect

// C47: the region maps a score and its coordinates.
// expected-error@+1 {{'attn.kernel' op expected 'score' of one block of (f32, index, index, index), got 1 of ('f32', 'index')}}
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>
    score {
^bb0(%s: f32, %head: index):
  attn.yield %s : f32
}

// -----

// C48: the region yields.
// expected-error@+1 {{'attn.kernel' op expected 'score' to end in 'attn.yield', got 'test.end'}}
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>
    score {
^bb0(%s: f32, %head: index, %query: index, %key: index):
  "test.end"() : () -> ()
}

// -----

// C49: the region only computes.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>
    score {
^bb0(%s: f32, %head: index, %query: index, %key: index):
  // expected-error@+1 {{'test.print' op expected no side effects inside 'score', got some}}
  "test.print"() : () -> ()
  attn.yield %s : f32
}
