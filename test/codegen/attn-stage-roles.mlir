// Producers and consumers: who allocates, fills, waits and releases, in what
// order.
//
// RUN: ninfer-opt %s -attn-tile -attn-stage -cse -canonicalize | FileCheck %s

// 128 rows of two consumer warpgroups; 65,536 bytes of query, then two slots of
// keys and two of values, then the barriers of two rings.
attn.kernel @wide heads<32 over 4, dim 256> tokens<16>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 32>
    schedule<wgmma chip "sm_90a" key_tile 64 row_warps 8 row_tiles 1 key_warps 1 stages 2 query shared>
// CHECK-LABEL: attn.program @wide_sweep
// CHECK: %[[QUERY:.*]] = attn.alloc_shared at 0 : <1 of tensor<128x256xbf16, #attn.shared<swizzle 8 panel 64>>>
// CHECK-NEXT: %[[KEYS:.*]] = attn.alloc_shared at 65536 : <2 of tensor<64x256xbf16, #attn.shared<swizzle 8 panel 64>>>
// CHECK-NEXT: %[[VALUES:.*]] = attn.alloc_shared at 131072 : <2 of
// CHECK-NEXT: %[[FULLK:.*]] = attn.alloc_ring at 196608 readers 8 : <2>
// CHECK-NEXT: %[[FULLV:.*]] = attn.alloc_ring at 196640 readers 8 : <2>
// CHECK-NEXT: %[[BEFORE:.*]] = attn.turns_taken : i32
// CHECK-NEXT: attn.roles producers {
// CHECK-NEXT: %[[P0:.*]] = attn.lookup_pages %[[BEGIN:.*]] : tensor<2xi32>
// CHECK-NEXT: scf.for %[[T:.*]] = %[[BEGIN]] to %[[END:[^ ]*]] step %c1_i32 iter_args(%[[P:.*]] = %[[P0]])
// The next tile's pages are on their way before this tile's copies begin.
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[T]], %c1_i32
// CHECK-NEXT: %[[P1:.*]] = attn.lookup_pages %[[NEXT]]
// CHECK-NEXT: %[[WITHIN:.*]] = arith.subi %[[T]], %[[BEGIN]]
// CHECK-NEXT: %[[TURN:.*]] = arith.addi %[[BEFORE]], %[[WITHIN]]
// CHECK-NEXT: attn.acquire %[[FULLK]][%[[TURN]]]
// CHECK-NEXT: attn.fill plane<keys> of %[[T]] through %[[P]] to %[[KEYS]] by %[[FULLK]][%[[TURN]]]
// CHECK-NEXT: attn.acquire %[[FULLV]][%[[TURN]]]
// CHECK-NEXT: attn.fill plane<values> of %[[T]] through %[[P]] to %[[VALUES]] by %[[FULLV]][%[[TURN]]]
// CHECK-NEXT: scf.yield %[[P1]]
// CHECK-NEXT: }
// CHECK-NEXT: } consumers {
// CHECK-NEXT: attn.copy_query to %[[QUERY]]
// CHECK-NEXT: attn.async_commit
// CHECK-NEXT: attn.async_wait pending 0
// CHECK-NEXT: attn.barrier
// CHECK-NEXT: %[[Q:.*]] = attn.view %[[QUERY]][%c0_i32]
// CHECK: scf.for %[[T:[a-z0-9]+]] = %[[BEGIN]] to %[[END]]
// CHECK-NEXT: %[[WITHIN:.*]] = arith.subi %[[T]], %[[BEGIN]]
// CHECK-NEXT: %[[TURN:.*]] = arith.addi %[[BEFORE]], %[[WITHIN]]
// CHECK-NEXT: attn.await %[[FULLK]][%[[TURN]]]
// CHECK-NEXT: %[[SLOT:.*]] = arith.remui %[[TURN]], %c2_i32
// CHECK-NEXT: %[[K:.*]] = attn.view %[[KEYS]][%[[SLOT]]]
// CHECK-NEXT: attn.scores %[[Q]], %[[K]]
// Keys are given back before softmax, values behind the product.
// CHECK-NEXT: attn.release %[[FULLK]][%[[TURN]]]
// CHECK: attn.softmax
// CHECK-NEXT: attn.await %[[FULLV]][%[[TURN]]]
// CHECK-NEXT: %[[V:.*]] = attn.view %[[VALUES]][%[[SLOT]]]
// CHECK-NEXT: attn.accumulate {{.*}}, %[[V]]
// CHECK-NEXT: attn.release %[[FULLV]][%[[TURN]]]
// CHECK: attn.store_result
// CHECK: attn.store_result {{.*}} partial
// CHECK-NOT: attn.barrier
