// Every operation that staging adds, and every encoding.
//
// RUN: ninfer-opt %s | ninfer-opt | FileCheck %s
// RUN: ninfer-opt %s -mlir-print-op-generic | ninfer-opt | FileCheck %s

attn.kernel @k heads<8 over 4, dim 128> tokens<16>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64>

!query = tensor<32x128xbf16, #attn.shared<swizzle 8>>
!keys = tensor<64x128xbf16, #attn.shared<swizzle 8>>
!scores = tensor<32x64xf32, #attn.fragment<scores warps 2 by 2>>
!probabilities = tensor<32x64xbf16, #attn.fragment<probabilities warps 2 by 2>>
!statistics = tensor<32xf32, #attn.fragment<statistics warps 2 by 2>>
!output = tensor<32x128xf32, #attn.fragment<output warps 2 by 2>>
!slices = tensor<32x128xf32, #attn.fragment<slices warps 2 by 2>>
!shared = tensor<32x64xbf16, #attn.shared<swizzle 8>>
!scratch = tensor<32x4xf32, #attn.shared<swizzle 1>>

// CHECK-LABEL: attn.program @k_sweep
attn.program @k_sweep role<sweep> of @k {
  %split = arith.constant 0 : i32
  %m = arith.constant dense<0xFF800000> : !statistics
  %l = arith.constant dense<0.0> : !statistics
  %o = arith.constant dense<0.0> : !output
  // CHECK: %[[QS:.*]] = attn.alloc_shared at 0 : <1 of tensor<32x128xbf16, #attn.shared<swizzle 8>>>
  %qs = attn.alloc_shared at 0 : !attn.buffer<1 of !query>
  // CHECK: %[[KS:.*]] = attn.alloc_shared at 8192 : <3 of tensor<64x128xbf16, #attn.shared<swizzle 8>>>
  %ks = attn.alloc_shared at 8192 : !attn.buffer<3 of !keys>
  // CHECK: attn.copy_query to %[[QS]]
  attn.copy_query to %qs : !attn.buffer<1 of !query>
  // CHECK: %[[PAGES:.*]] = attn.lookup_pages
  %pages = attn.lookup_pages %split : tensor<1xi32>
  // CHECK: attn.async_copy plane<keys> of %[[T:.*]] through %[[PAGES]] to %[[KS]][%[[T]]]
  attn.async_copy plane<keys> of %split through %pages to %ks[%split]
      : tensor<1xi32>, !attn.buffer<3 of !keys>
  // CHECK: attn.async_commit
  attn.async_commit
  // CHECK: attn.async_wait pending 1
  attn.async_wait pending 1
  // CHECK: attn.barrier
  attn.barrier
  // CHECK: %[[QV:.*]] = attn.view %[[QS]][%[[T]]]
  // CHECK-SAME: -> tensor<32x128xbf16, #attn.shared<swizzle 8>>
  %qv = attn.view %qs[%split] : !attn.buffer<1 of !query> -> !query
  // CHECK: %[[Q:.*]] = attn.read_query %[[QV]]
  // CHECK-SAME: -> tensor<32x128xbf16, #attn.fragment<query warps 2 by 2>>
  %q = attn.read_query %qv : !query
      -> tensor<32x128xbf16, #attn.fragment<query warps 2 by 2>>
  // CHECK: %[[K:.*]] = attn.view %[[KS]][%[[T]]]
  %k = attn.view %ks[%split] : !attn.buffer<3 of !keys> -> !keys
  // CHECK: attn.scores %[[Q]], %[[K]]
  // CHECK-SAME: -> tensor<32x64xf32, #attn.fragment<scores warps 2 by 2>>
  %s = attn.scores %q, %k
      : tensor<32x128xbf16, #attn.fragment<query warps 2 by 2>>, !keys
      -> !scores
  // CHECK: attn.softmax
  // CHECK-SAME: -> tensor<32x64xbf16, #attn.fragment<probabilities warps 2 by 2>>
  %p, %alpha, %m1, %l1 = attn.softmax %s, %m, %l
      : !scores, !statistics -> !probabilities
  // CHECK: %[[O1:.*]] = attn.accumulate
  %o1 = attn.accumulate %o, %alpha, %p, %k
      : !output, !statistics, !probabilities, !keys
  // CHECK: attn.reduce_warps %{{.*}}, %{{.*}}, %[[O1]] at 4096 : tensor<32xf32, #attn.fragment<statistics warps 2 by 2>>, tensor<32x128xf32, #attn.fragment<output warps 2 by 2>>
  %m2, %l2, %o2 = attn.reduce_warps %m1, %l1, %o1 at 4096
      : !statistics, !output
}

// Key warps that meet at every tile.
// CHECK-LABEL: attn.program @k_meet
attn.program @k_meet role<sweep> of @k {
  %split = arith.constant 0 : i32
  %s = arith.constant dense<0.0> : !scores
  %m = arith.constant dense<0xFF800000> : !statistics
  %l = arith.constant dense<0.0> : !statistics
  %o = arith.constant dense<0.0> : !slices
  // CHECK: %[[VS:.*]] = attn.alloc_shared at 0
  %vs = attn.alloc_shared at 0 : !attn.buffer<1 of !keys>
  // CHECK: %[[PS:.*]] = attn.alloc_shared at 16384
  %ps = attn.alloc_shared at 16384 : !attn.buffer<1 of !shared>
  // CHECK: %[[SCRATCH:.*]] = attn.alloc_shared at 20480 : <1 of tensor<32x4xf32, #attn.shared<swizzle 1>>>
  %scratch = attn.alloc_shared at 20480 : !attn.buffer<1 of !scratch>
  // CHECK: %[[MAX:.*]] = attn.agree_max %{{.*}} through %[[SCRATCH]]
  // CHECK-SAME: -> tensor<32xf32, #attn.fragment<statistics warps 2 by 2>>
  %max = attn.agree_max %s through %scratch
      : !scores, !attn.buffer<1 of !scratch> -> !statistics
  // CHECK: %[[P:.*]], %{{.*}}, %{{.*}}, %[[L1:.*]] = attn.softmax %{{.*}}, %{{.*}}, %{{.*}} agreed %[[MAX]] : tensor<32xf32, #attn.fragment<statistics warps 2 by 2>>
  %p, %alpha, %m1, %l1 = attn.softmax %s, %m, %l agreed %max : !statistics
      : !scores, !statistics -> !probabilities
  // CHECK: attn.share %[[P]] to %[[PS]]
  attn.share %p to %ps : !probabilities, !attn.buffer<1 of !shared>
  attn.barrier
  // CHECK: %[[V:.*]] = attn.view %[[VS]]
  %v = attn.view %vs[%split] : !attn.buffer<1 of !keys> -> !keys
  // CHECK: %[[ALL:.*]] = attn.view %[[PS]]
  %all = attn.view %ps[%split] : !attn.buffer<1 of !shared> -> !shared
  // CHECK: attn.accumulate %{{.*}}, %{{.*}}, %[[ALL]], %[[V]] : tensor<32x128xf32, #attn.fragment<slices warps 2 by 2>>
  %o1 = attn.accumulate %o, %alpha, %all, %v
      : !slices, !statistics, !shared, !keys
  // CHECK: attn.agree_sum %[[L1]] through %[[SCRATCH]]
  %l2 = attn.agree_sum %l1 through %scratch
      : !statistics, !attn.buffer<1 of !scratch>
}
