// The pipeline over shared memory: where buffers lie, in what order copies,
// waits and barriers stand, and what becomes a fragment.
//
// RUN: ninfer-opt %s -attn-tile -attn-stage -cse -canonicalize | FileCheck %s

// Three stages: two tiles are copied ahead, each by one group of both planes,
// whether the split has the tile or not. Offsets follow one another: 2,048
// bytes of query, then three slots of 4,096 bytes of keys, then of values.
attn.kernel @ring heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 16>
    schedule<mma chip "sm_80" key_tile 32 row_warps 1 row_tiles 1 key_warps 1 stages 3 query shared>
// CHECK-LABEL: attn.program @ring_sweep
// CHECK: %[[QUERY:.*]] = attn.alloc_shared at 0 : <1 of tensor<16x64xbf16
// CHECK-NEXT: attn.copy_query to %[[QUERY]]
// CHECK-NEXT: %[[Q:.*]] = attn.view %[[QUERY]][%c0_i32]
// CHECK-NEXT: %[[KEYS:.*]] = attn.alloc_shared at 2048 : <3 of tensor<32x64xbf16
// CHECK-NEXT: %[[VALUES:.*]] = attn.alloc_shared at 14336 : <3 of tensor<32x64xbf16
// CHECK-NEXT: %[[P0:.*]] = attn.lookup_pages %[[T0:.*]] : tensor<2xi32>
// CHECK-NEXT: %[[HAS0:.*]] = arith.cmpi slt, %[[T0]], %[[END:.*]] : i32
// CHECK-NEXT: scf.if %[[HAS0]] {
// CHECK-NEXT: attn.async_copy plane<keys> of %[[T0]] through %[[P0]] to %[[KEYS]][%c0_i32]
// CHECK-NEXT: attn.async_copy plane<values> of %[[T0]] through %[[P0]] to %[[VALUES]][%c0_i32]
// CHECK-NEXT: }
// CHECK-NEXT: attn.async_commit
// CHECK-NEXT: %[[T1:.*]] = arith.addi %[[T0]], %c1_i32
// CHECK-NEXT: %[[P1:.*]] = attn.lookup_pages %[[T1]]
// CHECK-NEXT: %[[HAS1:.*]] = arith.cmpi slt, %[[T1]], %[[END]]
// CHECK-NEXT: scf.if %[[HAS1]] {
// CHECK-NEXT: attn.async_copy plane<keys> of %[[T1]] through %[[P1]] to %[[KEYS]][%c1_i32]
// CHECK-NEXT: attn.async_copy plane<values> of %[[T1]] through %[[P1]] to %[[VALUES]][%c1_i32]
// CHECK-NEXT: }
// CHECK-NEXT: attn.async_commit
// The pages of the next copy are already on their way.
// CHECK-NEXT: %[[T2:.*]] = arith.addi %[[T0]], %c2_i32
// CHECK-NEXT: %[[P2:.*]] = attn.lookup_pages %[[T2]]
// CHECK-NOT: attn.async_wait
// CHECK: scf.for %[[T:[a-z0-9]+]] = %[[T0]] to %[[END]]
// CHECK-SAME: %[[SLOT:[a-z0-9]+]] = %c0_i32, %[[PAGES:[a-z0-9]+]] = %[[P2]])
// A tile waits for all groups but the newest, and every warp for the others,
// before the slot of the tile before it is written again.
// CHECK-NEXT: attn.async_wait pending 1
// CHECK-NEXT: attn.barrier
// CHECK-NEXT: %[[ZERO:.*]] = arith.cmpi eq, %[[SLOT]], %c0_i32
// CHECK-NEXT: %[[BEFORE:.*]] = arith.subi %[[SLOT]], %c1_i32
// CHECK-NEXT: %[[LEFT:.*]] = arith.select %[[ZERO]], %c2_i32, %[[BEFORE]]
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[T]], %c2_i32
// CHECK-NEXT: %[[HAS:.*]] = arith.cmpi slt, %[[NEXT]], %[[END]]
// CHECK-NEXT: scf.if %[[HAS]] {
// CHECK-NEXT: attn.async_copy plane<keys> of %[[NEXT]] through %[[PAGES]] to %[[KEYS]][%[[LEFT]]]
// CHECK-NEXT: attn.async_copy plane<values> of %[[NEXT]] through %[[PAGES]] to %[[VALUES]][%[[LEFT]]]
// CHECK-NEXT: }
// CHECK-NEXT: attn.async_commit
// CHECK-NEXT: %[[FAR:.*]] = arith.addi %[[T]], %c3_i32
// CHECK-NEXT: %[[FOLLOWING:.*]] = attn.lookup_pages %[[FAR]]
// CHECK-NEXT: %[[K:.*]] = attn.view %[[KEYS]][%[[SLOT]]]
// CHECK-NEXT: attn.scores %[[Q]], %[[K]]
// CHECK-NOT: attn.barrier
// CHECK: attn.softmax
// CHECK-NEXT: %[[V:.*]] = attn.view %[[VALUES]][%[[SLOT]]]
// CHECK-NEXT: attn.accumulate %{{.*}}, %{{.*}}, %{{.*}}, %[[V]]
// CHECK: %[[UP:.*]] = arith.addi %[[SLOT]], %c1_i32
// CHECK: %[[WRAPS:.*]] = arith.cmpi eq, %[[SLOT]], %c2_i32
// CHECK: %[[TURN:.*]] = arith.select %[[WRAPS]], %c0_i32, %[[UP]]
// CHECK: scf.yield %{{.*}}, %{{.*}}, %{{.*}}, %[[TURN]], %[[FOLLOWING]]
// One key warp holds the result as it is.
// CHECK-NOT: attn.async_wait
// CHECK-NOT: attn.reduce_warps
// CHECK: attn.store_result

// The query is read to registers once its group, the first, has landed.
attn.kernel @registers heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 16>
    schedule<mma chip "sm_80" key_tile 32 row_warps 1 row_tiles 1 key_warps 1 stages 4 query registers>
// CHECK-LABEL: attn.program @registers_sweep
// CHECK: %[[VIEW:.*]] = attn.view
// CHECK-COUNT-3: attn.async_commit
// CHECK: attn.async_wait pending 2
// CHECK-NEXT: attn.barrier
// CHECK-NEXT: %[[Q:.*]] = attn.read_query %[[VIEW]]
// CHECK-SAME: -> tensor<16x64xbf16, #attn.fragment<query warps 1 by 1>>
// CHECK: scf.for
// CHECK: attn.scores %[[Q]],

// Key warps meet behind the loop, over the tiles and not over the query, once
// no copy can land there any more.
attn.kernel @key_warps heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 16>
    schedule<mma chip "sm_80" key_tile 32 row_warps 1 row_tiles 1 key_warps 2 stages 2 query shared>
// CHECK-LABEL: attn.program @key_warps_sweep
// CHECK: %[[LOOP:.*]]:5 = scf.for
// CHECK: attn.accumulate
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: attn.async_wait pending 0
// CHECK-NEXT: %[[M:.*]], %[[L:.*]], %[[O:.*]] = attn.reduce_warps %[[LOOP]]#0, %[[LOOP]]#1, %[[LOOP]]#2 at 2048
// CHECK: scf.if
// CHECK-NEXT: attn.store_result %[[M]], %[[L]], %[[O]] :
// CHECK: attn.store_result %[[M]], %[[L]], %[[O]] partial

// Key warps that meet at every tile: behind 4,096 bytes of query lie as many
// of probabilities and 1,024 of scratch. Maxima are agreed on before any
// exponent, probabilities are shared before a barrier and read by all warps,
// and each warp has a slice of the output; sums are added up behind the loop.
attn.kernel @meet_tile heads<8 over 2, dim 64> tokens<8>
    sees<prefix all, suffix causal> keys<bf16> values<fp16>
    paging<page_major page 64>
    schedule<mma chip "sm_80" key_tile 64 row_warps 1 row_tiles 2 key_warps 2 meet tile stages 2 query shared>
// CHECK-LABEL: attn.program @meet_tile_sweep
// CHECK: arith.constant dense<0.000000e+00> : tensor<32x64xf32, #attn.fragment<slices warps 1 by 2>>
// CHECK: attn.alloc_shared at 9216 : <2 of tensor<64x64xbf16
// CHECK: attn.alloc_shared at 25600 : <2 of tensor<64x64xf16
// CHECK: %[[SHARED:.*]] = attn.alloc_shared at 4096 : <1 of tensor<32x64xf16, #attn.shared<swizzle 8>>>
// CHECK-NEXT: %[[SCRATCH:.*]] = attn.alloc_shared at 8192 : <1 of tensor<32x4xf32, #attn.shared<swizzle 1>>>
// CHECK-NEXT: %[[LOOP:.*]]:5 = scf.for {{.*}} iter_args(%[[M:[a-z0-9]+]] = %{{[a-z0-9_]+}}, %[[L:[a-z0-9]+]] = %{{[a-z0-9_]+}}, %[[O:[a-z0-9]+]] = %{{[a-z0-9_]+}},
// CHECK: attn.scores
// CHECK: %[[S:.*]] = scf.if
// CHECK: %[[MAX:.*]] = attn.agree_max %[[S]] through %[[SCRATCH]]
// CHECK-SAME: -> tensor<32xf32, #attn.fragment<statistics warps 1 by 2>>
// CHECK-NEXT: %[[P:.*]], %[[ALPHA:.*]], %{{.*}}, %{{.*}} = attn.softmax %[[S]], %[[M]], %[[L]] agreed %[[MAX]]
// CHECK-NEXT: %[[V:.*]] = attn.view
// CHECK-NEXT: attn.share %[[P]] to %[[SHARED]]
// CHECK-NEXT: attn.barrier
// CHECK-NEXT: %[[ALL:.*]] = attn.view %[[SHARED]][%c0_i32]
// CHECK-SAME: -> tensor<32x64xf16, #attn.shared<swizzle 8>>
// CHECK-NEXT: attn.accumulate %[[O]], %[[ALPHA]], %[[ALL]], %[[V]] : tensor<32x64xf32, #attn.fragment<slices warps 1 by 2>>
// CHECK: }
// CHECK-NEXT: %[[SUM:.*]] = attn.agree_sum %[[LOOP]]#1 through %[[SCRATCH]]
// CHECK-NOT: attn.reduce_warps
// CHECK: attn.store_result %[[LOOP]]#0, %[[SUM]], %[[LOOP]]#2 :
// CHECK: attn.store_result %[[LOOP]]#0, %[[SUM]], %[[LOOP]]#2 partial

// As wide as scores are outputs here: they are told apart by who makes them.
attn.kernel @equal_widths heads<4 over 2, dim 64> tokens<2>
    sees<prefix left within 100, suffix causal> keys<bf16> values<fp16>
    paging<page_major page 16>
    schedule<mma chip "sm_80" key_tile 64 row_warps 1 row_tiles 1 key_warps 1 stages 2 query shared>
// CHECK-LABEL: attn.program @equal_widths_sweep
// CHECK-DAG: arith.constant dense<0.000000e+00> : tensor<16x64xf32, #attn.fragment<output warps 1 by 1>>
// CHECK-DAG: arith.constant dense<0.000000e+00> : tensor<16xf32, #attn.fragment<statistics warps 1 by 1>>
// CHECK: attn.scores
// CHECK-SAME: -> tensor<16x64xf32, #attn.fragment<scores warps 1 by 1>>
// CHECK: scf.if
// CHECK-SAME: -> (tensor<16x64xf32, #attn.fragment<scores warps 1 by 1>>)
// CHECK: attn.mask
// CHECK-SAME: : tensor<16x64xf32, #attn.fragment<scores warps 1 by 1>>
// CHECK: attn.softmax
// CHECK-SAME: -> tensor<16x64xf16, #attn.fragment<probabilities warps 1 by 1>>
// CHECK: attn.accumulate
// CHECK-SAME: : tensor<16x64xf32, #attn.fragment<output warps 1 by 1>>

// Every tile in shared memory is swizzled over eight chunks; the merge has none.
// CHECK: tensor<64x64xf16, #attn.shared<swizzle 8>>
// CHECK-LABEL: attn.program @equal_widths_merge
// CHECK-NOT: #attn
// CHECK: attn.store_result
