// Roles, rings and what passes through them.
//
// RUN: ninfer-opt %s | ninfer-opt | FileCheck %s
// RUN: ninfer-opt %s -mlir-print-op-generic | ninfer-opt | FileCheck %s

attn.kernel @k heads<8 over 4, dim 128> tokens<4>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64>

!keys = tensor<64x128xbf16, #attn.shared<swizzle 8 panel 64>>

// CHECK-LABEL: attn.program @k_sweep
attn.program @k_sweep role<sweep> of @k {
  %t = arith.constant 3 : i32
  // CHECK: %[[KEYS:.*]] = attn.alloc_shared at 1024 : <2 of tensor<64x128xbf16, #attn.shared<swizzle 8 panel 64>>>
  %keys = attn.alloc_shared at 1024 : !attn.buffer<2 of !keys>
  // CHECK: %[[RING:.*]] = attn.alloc_ring at 40 readers 4 : <2>
  %ring = attn.alloc_ring at 40 readers 4 : !attn.ring<2>
  // CHECK: attn.turns_taken : i32
  %before = attn.turns_taken : i32
  // CHECK: attn.roles producers {
  attn.roles producers {
    %pages = attn.lookup_pages %t : tensor<1xi32>
    // CHECK: attn.acquire %[[RING]][%[[T:.*]]] : <2>
    attn.acquire %ring[%t] : !attn.ring<2>
    // CHECK: attn.fill plane<keys> of %[[T]] through %{{.*}} to %[[KEYS]] by %[[RING]][%[[T]]]
    attn.fill plane<keys> of %t through %pages to %keys by %ring[%t]
        : tensor<1xi32>, !attn.buffer<2 of !keys>, !attn.ring<2>
  // CHECK: } consumers {
  } consumers {
    // CHECK: attn.await %[[RING]][%[[T]]] : <2>
    attn.await %ring[%t] : !attn.ring<2>
    // CHECK: attn.release %[[RING]][%[[T]]] : <2>
    attn.release %ring[%t] : !attn.ring<2>
  }
}
