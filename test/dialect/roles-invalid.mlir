// Constraints of roles and rings, one case each.
//
// RUN: ninfer-opt %s -split-input-file -verify-diagnostics

// C76: barriers are eight bytes.
attn.kernel @k heads<8 over 4, dim 128> tokens<4>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64>

attn.program @p role<sweep> of @k {
  // expected-error@+1 {{'attn.alloc_ring' op expected 'offset' to be a multiple of 8, got 12}}
  %r = attn.alloc_ring at 12 readers 4 : !attn.ring<2>
}

// -----

// C77: a block has at most 32 warps.
attn.kernel @k heads<8 over 4, dim 128> tokens<4>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64>

attn.program @p role<sweep> of @k {
  // expected-error@+1 {{'attn.alloc_ring' op expected 'readers' from 1 to 32, got 0}}
  %r = attn.alloc_ring at 8 readers 0 : !attn.ring<2>
}

// -----

// C78: consumers do not acquire.
attn.kernel @k heads<8 over 4, dim 128> tokens<4>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64>

attn.program @p role<sweep> of @k {
  %t = arith.constant 0 : i32
  %r = attn.alloc_ring at 8 readers 4 : !attn.ring<2>
  attn.roles producers {
    attn.acquire %r[%t] : !attn.ring<2>
  } consumers {
    // expected-error@+1 {{'attn.acquire' op failed to verify that it stands among the producers of 'attn.roles'}}
    attn.acquire %r[%t] : !attn.ring<2>
  }
}

// -----

// Nor does anybody release outside of roles.
attn.kernel @k heads<8 over 4, dim 128> tokens<4>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64>

attn.program @p role<sweep> of @k {
  %t = arith.constant 0 : i32
  %r = attn.alloc_ring at 8 readers 4 : !attn.ring<2>
  // expected-error@+1 {{'attn.release' op failed to verify that it stands among the consumers of 'attn.roles'}}
  attn.release %r[%t] : !attn.ring<2>
}

// -----

// C79: a slot of the ring is a slot of the buffer.
!keys = tensor<64x128xbf16, #attn.shared<swizzle 8 panel 64>>
attn.kernel @k heads<8 over 4, dim 128> tokens<4>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64>

attn.program @p role<sweep> of @k {
  %t = arith.constant 0 : i32
  %k = attn.alloc_shared at 1024 : !attn.buffer<3 of !keys>
  %r = attn.alloc_ring at 8 readers 4 : !attn.ring<2>
  attn.roles producers {
    %pages = attn.lookup_pages %t : tensor<1xi32>
    // expected-error@+1 {{'attn.fill' op expected a 'buffer' of as many slots as the ring has, got 3 and 2}}
    attn.fill plane<keys> of %t through %pages to %k by %r[%t]
        : tensor<1xi32>, !attn.buffer<3 of !keys>, !attn.ring<2>
  } consumers {
    attn.release %r[%t] : !attn.ring<2>
  }
}

// -----

// C80: panels are as wide as the swizzle.
// expected-error@+1 {{expected 'panel' to be 64 with 'swizzle' 8, got 32 with 8}}
!keys = tensor<64x128xbf16, #attn.shared<swizzle 8 panel 32>>

// -----

// C81: one slot is not a ring.
attn.kernel @k heads<8 over 4, dim 128> tokens<4>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64>

attn.program @p role<sweep> of @k {
  // expected-error@+1 {{expected a ring of 2 to 8 slots, got 1}}
  %r = attn.alloc_ring at 8 readers 4 : !attn.ring<1>
}
