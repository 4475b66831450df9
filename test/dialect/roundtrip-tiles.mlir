// Every operation of a program over tiles.
//
// RUN: ninfer-opt %s | ninfer-opt | FileCheck %s
// RUN: ninfer-opt %s -mlir-print-op-generic | ninfer-opt | FileCheck %s

attn.kernel @k heads<24 over 4, dim 256> tokens<16>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64> sink

// CHECK-LABEL: attn.program @k_sweep role<sweep> of @k {
attn.program @k_sweep role<sweep> of @k {
  // CHECK: %{{.*}}, %[[PART:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} = attn.item {
  // CHECK-NEXT: ^bb0(%[[LENGTH:.*]]: i32, %{{.*}}: i32, %[[COLUMNS:.*]]: i32, %{{.*}}: i32, %{{.*}}: i32):
  // CHECK-NEXT: attn.yield_tiles %[[COLUMNS]] to %[[LENGTH]]{{$}}
  %request, %part, %parts, %slot, %begin, %end = attn.item {
  ^bb0(%n: i32, %c: i32, %t: i32, %old: i32, %new: i32):
    attn.yield_tiles %t to %n
  }
  // CHECK: %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} = attn.request
  %length, %context, %columns, %first, %last = attn.request
  // CHECK: %[[Q:.*]] = attn.load_query : tensor<96x256xbf16>
  %q = attn.load_query : tensor<96x256xbf16>
  // CHECK: %[[M:.*]] = arith.constant dense<0xFF800000>
  %m = arith.constant dense<0xFF800000> : tensor<96xf32>
  // CHECK: %[[L:.*]] = arith.constant dense<0.000000e+00> : tensor<96xf32>
  %l = arith.constant dense<0.0> : tensor<96xf32>
  // CHECK: %[[O:.*]] = arith.constant
  %o = arith.constant dense<0.0> : tensor<96x256xf32>
  // CHECK: %[[PAGES:.*]] = attn.lookup_pages %[[PART]] : tensor<1xi32>
  %pages = attn.lookup_pages %part : tensor<1xi32>
  // CHECK: %[[K:.*]] = attn.load_tile plane<keys> of %[[PART]] through %[[PAGES]] : tensor<1xi32> -> tensor<64x256xbf16>
  %k = attn.load_tile plane<keys> of %part through %pages
      : tensor<1xi32> -> tensor<64x256xbf16>
  // CHECK: %[[S:.*]] = attn.scores %[[Q]], %[[K]] : tensor<96x256xbf16>, tensor<64x256xbf16> -> tensor<96x64xf32>
  %s = attn.scores %q, %k
      : tensor<96x256xbf16>, tensor<64x256xbf16> -> tensor<96x64xf32>
  // CHECK: %[[X:.*]] = attn.mask %[[S]] of %[[PART]] : tensor<96x64xf32>
  %x = attn.mask %s of %part : tensor<96x64xf32>
  // CHECK: %[[P:.*]], %[[ALPHA:.*]], %[[M1:.*]], %[[L1:.*]] = attn.softmax %[[X]], %[[M]], %[[L]] : tensor<96x64xf32>, tensor<96xf32> -> tensor<96x64xbf16>
  %p, %alpha, %m1, %l1 = attn.softmax %x, %m, %l
      : tensor<96x64xf32>, tensor<96xf32> -> tensor<96x64xbf16>
  // CHECK: %[[V:.*]] = attn.load_tile plane<values> of
  %v = attn.load_tile plane<values> of %part through %pages
      : tensor<1xi32> -> tensor<64x256xbf16>
  // CHECK: %[[O1:.*]] = attn.accumulate %[[O]], %[[ALPHA]], %[[P]], %[[V]] : tensor<96x256xf32>, tensor<96xf32>, tensor<96x64xbf16>, tensor<64x256xbf16>
  %o1 = attn.accumulate %o, %alpha, %p, %v
      : tensor<96x256xf32>, tensor<96xf32>, tensor<96x64xbf16>,
        tensor<64x256xbf16>
  // CHECK: attn.store_result %[[M1]], %[[L1]], %[[O1]] partial : tensor<96xf32>, tensor<96xf32>, tensor<96x256xf32>
  attn.store_result %m1, %l1, %o1 partial
      : tensor<96xf32>, tensor<96xf32>, tensor<96x256xf32>
}

attn.kernel @parts heads<24 over 4, dim 256> tokens<16>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64> sink split<count of 3>

// CHECK-LABEL: attn.program @parts_merge role<merge> of @parts {
attn.program @parts_merge role<merge> of @parts {
  // CHECK: attn.yield_tiles %[[C:.*]] to %[[N:.*]] in %[[N]]
  %request, %part, %parts, %slot, %begin, %end = attn.item {
  ^bb0(%n: i32, %c: i32, %t: i32, %old: i32, %new: i32):
    attn.yield_tiles %t to %n in %n
  }
  // CHECK: %[[M:.*]], %[[L:.*]], %[[O:.*]] = attn.merge_partials : tensor<1xf32>, tensor<1xf32>, tensor<1x256xf32>
  %m, %l, %o = attn.merge_partials
      : tensor<1xf32>, tensor<1xf32>, tensor<1x256xf32>
  // CHECK: %[[MS:.*]], %[[LS:.*]], %[[OS:.*]] = attn.add_sink %[[M]], %[[L]], %[[O]] : tensor<1xf32>, tensor<1xf32>, tensor<1x256xf32>
  %ms, %ls, %os = attn.add_sink %m, %l, %o
      : tensor<1xf32>, tensor<1xf32>, tensor<1x256xf32>
  // CHECK: attn.store_result %[[MS]], %[[LS]], %[[OS]] : tensor<1xf32>, tensor<1xf32>, tensor<1x256xf32>
  attn.store_result %ms, %ls, %os
      : tensor<1xf32>, tensor<1xf32>, tensor<1x256xf32>
}

attn.kernel @pieces heads<24 over 4, dim 256> tokens<16>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64> split<pieces of 33>

// CHECK-LABEL: attn.program @pieces_merge role<merge> of @pieces {
attn.program @pieces_merge role<merge> of @pieces {
  // CHECK: attn.yield_tiles %[[C:.*]] to %[[N:.*]] by %[[C]]
  %request, %part, %parts, %slot, %begin, %end = attn.item {
  ^bb0(%n: i32, %c: i32, %t: i32, %old: i32, %new: i32):
    attn.yield_tiles %t to %n by %t
  }
}
