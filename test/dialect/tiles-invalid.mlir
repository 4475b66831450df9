// Constraints of operations over tiles, one case each.
//
// RUN: ninfer-opt %s -split-input-file -verify-diagnostics

// C54: rows meet keys over one dimension.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>

attn.program @p role<sweep> of @k {
  %q = attn.load_query : tensor<32x128xbf16>
  %k = arith.constant dense<0.0> : tensor<64x256xbf16>
  // expected-error@+1 {{'attn.scores' op expected [R, D] x [K, D] -> [R, K], got [32, 128] x [64, 256] -> [32, 64]}}
  %s = attn.scores %q, %k
      : tensor<32x128xbf16>, tensor<64x256xbf16> -> tensor<32x64xf32>
}

// -----

// C55: factors have one element type.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>

attn.program @p role<sweep> of @k {
  %q = attn.load_query : tensor<32x128xbf16>
  %k = arith.constant dense<0.0> : tensor<64x128xf16>
  // expected-error@+1 {{'attn.scores' op expected factors of one element type, got 'bf16' and 'f16'}}
  %s = attn.scores %q, %k
      : tensor<32x128xbf16>, tensor<64x128xf16> -> tensor<32x64xf32>
}

// -----

// C56: statistics belong to the rows of the scores.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>

attn.program @p role<sweep> of @k {
  %s = arith.constant dense<0.0> : tensor<32x64xf32>
  %m = arith.constant dense<0.0> : tensor<16xf32>
  // expected-error@+1 {{'attn.softmax' op expected [R, K], [R] -> [R, K], got [32, 64], [16] -> [32, 64]}}
  %p, %alpha, %m1, %l1 = attn.softmax %s, %m, %m
      : tensor<32x64xf32>, tensor<16xf32> -> tensor<32x64xbf16>
}

// -----

// C57: probabilities meet values over the keys.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>

attn.program @p role<sweep> of @k {
  %o = arith.constant dense<0.0> : tensor<32x128xf32>
  %a = arith.constant dense<0.0> : tensor<32xf32>
  %p = arith.constant dense<0.0> : tensor<32x64xbf16>
  %v = arith.constant dense<0.0> : tensor<32x128xbf16>
  // expected-error@+1 {{'attn.accumulate' op expected [R, D], [R], [R, K], [K, D], got [32, 128], [32], [32, 64], [32, 128]}}
  %o1 = attn.accumulate %o, %a, %p, %v
      : tensor<32x128xf32>, tensor<32xf32>, tensor<32x64xbf16>,
        tensor<32x128xbf16>
}

// -----

// C58: a partial result is of one set of rows.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>

attn.program @p role<sweep> of @k {
  %o = arith.constant dense<0.0> : tensor<32x128xf32>
  %m = arith.constant dense<0.0> : tensor<16xf32>
  %l = arith.constant dense<0.0> : tensor<32xf32>
  // expected-error@+1 {{'attn.store_result' op expected 'max' and 'sum' of 32 rows as 'output', got 16 and 32}}
  attn.store_result %m, %l, %o
      : tensor<16xf32>, tensor<32xf32>, tensor<32x128xf32>
}

// -----

// C70: only a kernel with sinks adds them.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>

attn.program @p role<sweep> of @k {
  %o = arith.constant dense<0.0> : tensor<32x128xf32>
  %m = arith.constant dense<0.0> : tensor<32xf32>
  // expected-error@+1 {{'attn.add_sink' op expected a kernel with 'sink', got @k}}
  %m1, %l1, %o1 = attn.add_sink %m, %m, %o
      : tensor<32xf32>, tensor<32xf32>, tensor<32x128xf32>
}

// -----

// C71: tiles are told from five facts of a request.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>

attn.program @p role<sweep> of @k {
  // expected-error@+1 {{'attn.item' op expected a region of five i32, got ('i32')}}
  %r, %i, %n, %s, %f, %e = attn.item {
  ^bb0(%length: i32):
    attn.yield_tiles %length to %length
  }
}

// -----

// C72: the region says which tiles.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>

attn.program @p role<sweep> of @k {
  // expected-error@+1 {{'attn.item' op expected a region that ends in 'attn.yield_tiles'}}
  %r, %i, %n, %s, %f, %e = attn.item {
  ^bb0(%a: i32, %b: i32, %c: i32, %d: i32, %g: i32):
    llvm.unreachable
  }
}

// -----

// C73: the region is of a request, not of this block.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>

attn.program @p role<sweep> of @k {
  %r, %i, %n, %s, %f, %e = attn.item {
  ^bb0(%a: i32, %b: i32, %c: i32, %d: i32, %g: i32):
    // expected-error@+1 {{'attn.request' op expected only scalars of a request inside 'attn.item'}}
    %length, %context, %columns, %first, %last = attn.request
    attn.yield_tiles %a to %length
  }
}

// -----

// C74: a block has one item.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>

attn.program @p role<sweep> of @k {
  %r, %i, %n, %s, %f, %e = attn.item {
  ^bb0(%a: i32, %b: i32, %c: i32, %d: i32, %g: i32):
    attn.yield_tiles %a to %b
  }
  // expected-error@+1 {{'attn.item' op expected once, and not nested in a program}}
  %r1, %i1, %n1, %s1, %f1, %e1 = attn.item {
  ^bb0(%a: i32, %b: i32, %c: i32, %d: i32, %g: i32):
    attn.yield_tiles %a to %b
  }
}
