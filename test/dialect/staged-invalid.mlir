// Constraints of staged operations, one case each.
//
// RUN: ninfer-opt %s -split-input-file -verify-diagnostics

// C59: a buffer is aligned to its swizzle.
!keys = tensor<64x128xbf16, #attn.shared<swizzle 8>>
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>

attn.program @p role<sweep> of @k {
  // expected-error@+1 {{'attn.alloc_shared' op expected 'offset' to be a multiple of 1024, got 512}}
  %k = attn.alloc_shared at 512 : !attn.buffer<2 of !keys>
}

// -----

// C60: queries have one slot.
!keys = tensor<64x128xbf16, #attn.shared<swizzle 8>>
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>

attn.program @p role<sweep> of @k {
  %k = attn.alloc_shared at 0 : !attn.buffer<2 of !keys>
  // expected-error@+1 {{'attn.copy_query' op expected a 'buffer' of one slot, got 2}}
  attn.copy_query to %k : !attn.buffer<2 of !keys>
}

// -----

// C61: groups are counted from zero.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>

attn.program @p role<sweep> of @k {
  // expected-error@+1 {{'attn.async_wait' op expected 'pending' of at least 0, got -1}}
  attn.async_wait pending -1
}

// -----

// C62: a view shows a slot as it is.
!keys = tensor<64x128xbf16, #attn.shared<swizzle 8>>
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>

attn.program @p role<sweep> of @k {
  %k = attn.alloc_shared at 0 : !attn.buffer<2 of !keys>
  %i = arith.constant 0 : i32
  // expected-error@+1 {{'attn.view' op expected the buffer's tile 'tensor<64x128xbf16, #attn.shared<swizzle 8>>', got 'tensor<64x128xbf16>'}}
  %t = attn.view %k[%i] : !attn.buffer<2 of !keys> -> tensor<64x128xbf16>
}

// -----

// C63: queries go from shared memory to registers.
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>

attn.program @p role<sweep> of @k {
  %q = attn.load_query : tensor<32x128xbf16>
  // expected-error@+1 {{'attn.read_query' op expected #attn.shared to a query #attn.fragment, got 'tensor<32x128xbf16>' to 'tensor<32x128xbf16>'}}
  %r = attn.read_query %q : tensor<32x128xbf16> -> tensor<32x128xbf16>
}

// -----

// C64: reading changes no value.
!keys = tensor<64x128xbf16, #attn.shared<swizzle 8>>
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>

attn.program @p role<sweep> of @k {
  %q = arith.constant dense<0.0> : !keys
  // expected-error@+1 {{'attn.read_query' op expected one shape and element type, got 'tensor<64x128xbf16, #attn.shared<swizzle 8>>' to 'tensor<32x128xbf16, #attn.fragment<query warps 2 by 1>>'}}
  %r = attn.read_query %q : !keys
      -> tensor<32x128xbf16, #attn.fragment<query warps 2 by 1>>
}

// -----

// C65: what is combined lies in the same warps.
!m = tensor<32xf32, #attn.fragment<statistics warps 2 by 2>>
!o = tensor<32x128xf32, #attn.fragment<output warps 1 by 4>>
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>

attn.program @p role<sweep> of @k {
  %m = arith.constant dense<0.0> : !m
  %o = arith.constant dense<0.0> : !o
  // expected-error@+1 {{'attn.reduce_warps' op expected statistics and output fragments of the same warps, got 'tensor<32xf32, #attn.fragment<statistics warps 2 by 2>>' and 'tensor<32x128xf32, #attn.fragment<output warps 1 by 4>>'}}
  %m1, %l1, %o1 = attn.reduce_warps %m, %m, %o at 0 : !m, !o
}

// -----

// C66: scratch is aligned to 16-byte stores.
!m = tensor<32xf32, #attn.fragment<statistics warps 2 by 2>>
!o = tensor<32x128xf32, #attn.fragment<output warps 2 by 2>>
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>

attn.program @p role<sweep> of @k {
  %m = arith.constant dense<0.0> : !m
  %o = arith.constant dense<0.0> : !o
  // expected-error@+1 {{'attn.reduce_warps' op expected 'offset' to be a multiple of 16, got 8}}
  %m1, %l1, %o1 = attn.reduce_warps %m, %m, %o at 8 : !m, !o
}

// -----

// C67: key warps leave one number of four for each row.
!m = tensor<32xf32, #attn.fragment<statistics warps 2 by 2>>
!b = !attn.buffer<1 of tensor<16x4xf32, #attn.shared<swizzle 1>>>
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>

attn.program @p role<sweep> of @k {
  %l = arith.constant dense<0.0> : !m
  %s = attn.alloc_shared at 0 : !b
  // expected-error@+1 {{'attn.agree_sum' op expected a scratch of 32x4xf32, got 'tensor<16x4xf32, #attn.shared<swizzle 1>>'}}
  %l1 = attn.agree_sum %l through %s : !m, !b
}

// -----

// C68: the shared tile is the tile of probabilities.
!p = tensor<32x64xbf16, #attn.fragment<probabilities warps 2 by 2>>
!b = !attn.buffer<1 of tensor<32x128xbf16, #attn.shared<swizzle 8>>>
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>

attn.program @p role<sweep> of @k {
  %p = arith.constant dense<0.0> : !p
  %s = attn.alloc_shared at 0 : !b
  // expected-error@+1 {{'attn.share' op expected a probabilities fragment of the buffer's shape and element type, got 'tensor<32x64xbf16, #attn.fragment<probabilities warps 2 by 2>>' and 'tensor<32x128xbf16, #attn.shared<swizzle 8>>'}}
  attn.share %p to %s : !p, !b
}
