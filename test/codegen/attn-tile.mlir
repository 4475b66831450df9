// Plans become a loop over key tiles and a merge. The range of tiles is checked
// in attn-tile-range.mlir.
//
// RUN: ninfer-opt %s -attn-tile -cse | FileCheck %s

// One sweep: each plane is loaded once, by one op, in one loop; a tile is
// masked only if some row does not see all of it; probabilities have the type
// of the values, the query that of the keys.
attn.kernel @sweep heads<24 over 4, dim 256> tokens<16>
    sees<prefix all, suffix causal> keys<bf16> values<fp16>
    paging<page_major page 16>
    schedule<mma chip "sm_90a" key_tile 64 row_warps 6 row_tiles 1 key_warps 1 stages 2>
// CHECK-LABEL: attn.program @sweep_sweep role<sweep> of @sweep
// CHECK: %{{.*}}, %{{.*}}, %{{.*}}, %[[SLOT:.*]], %{{.*}}, %{{.*}} = attn.item {
// CHECK: attn.yield_tiles
// CHECK: %[[LENGTH:.*]], %{{.*}}, %{{.*}}, %[[OLDEST:.*]], %{{.*}} = attn.request
// CHECK: %[[Q:.*]] = attn.load_query : tensor<96x256xbf16>
// CHECK-NOT: attn.load_tile
// CHECK: %[[LOOP:.*]]:3 = scf.for %[[T:[a-z0-9]+]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[M:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}}, %[[O:.*]] = %{{.*}})
// CHECK-NEXT: %[[PAGES:.*]] = attn.lookup_pages %[[T]] : tensor<4xi32>
// CHECK-NEXT: %[[K:.*]] = attn.load_tile plane<keys> of %[[T]] through %[[PAGES]] : tensor<4xi32> -> tensor<64x256xbf16>
// CHECK-NEXT: %[[S:.*]] = attn.scores %[[Q]], %[[K]]
// CHECK: %[[FIRST:.*]] = arith.muli %[[T]], %c64_i32
// CHECK: %[[LAST:.*]] = arith.addi %[[FIRST]], %c63_i32
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt, %[[LAST]], %[[LENGTH]]
// CHECK: %[[PAST:.*]] = arith.cmpi sle, %[[LAST]], %[[OLDEST]]
// CHECK: %[[ALL:.*]] = arith.andi %[[INSIDE]], %[[PAST]]
// CHECK: %[[SEEN:.*]] = scf.if %[[ALL]]
// CHECK-NEXT: scf.yield %[[S]]
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[MASKED:.*]] = attn.mask %[[S]] of %[[T]]
// CHECK-NEXT: scf.yield %[[MASKED]]
// CHECK: %[[P:.*]], %[[ALPHA:.*]], %[[M1:.*]], %[[L1:.*]] = attn.softmax %[[SEEN]], %[[M]], %[[L]]
// CHECK-SAME: -> tensor<96x64xf16>
// CHECK: %[[V:.*]] = attn.load_tile plane<values> of %[[T]] through %[[PAGES]] : tensor<4xi32> -> tensor<64x256xf16>
// CHECK: %[[O1:.*]] = attn.accumulate %[[O]], %[[ALPHA]], %[[P]], %[[V]]
// CHECK: scf.yield %[[M1]], %[[L1]], %[[O1]]
// CHECK-NOT: attn.load_tile
// CHECK: %[[ALONE:.*]] = arith.cmpi slt, %[[SLOT]], %c0_i32
// CHECK-NEXT: scf.if %[[ALONE]] {
// CHECK-NEXT: attn.store_result %[[LOOP]]#0, %[[LOOP]]#1, %[[LOOP]]#2 :
// CHECK-NEXT: } else {
// CHECK-NEXT: attn.store_result %[[LOOP]]#0, %[[LOOP]]#1, %[[LOOP]]#2 partial :

// The merge of one row is the same for every plan.
// CHECK-LABEL: attn.program @sweep_merge role<merge> of @sweep
// CHECK-NEXT: attn.item
// CHECK: attn.yield_tiles
// CHECK-NEXT: }
// CHECK-NEXT: %[[MM:.*]], %[[ML:.*]], %[[MO:.*]] = attn.merge_partials : tensor<1xf32>, tensor<1xf32>, tensor<1x256xf32>
// CHECK-NEXT: attn.store_result %[[MM]], %[[ML]], %[[MO]] :

// A sink joins the sum once on each way to the output.
attn.kernel @sink heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64> sink
    schedule<mma chip "sm_80" key_tile 32 row_warps 1 row_tiles 1 key_warps 1 stages 2>
// CHECK-LABEL: attn.program @sink_sweep
// CHECK: %[[LOOP:.*]]:3 = scf.for
// CHECK-NOT: attn.add_sink
// CHECK: arith.cmpi slt, %{{.*}}, %c0_i32
// CHECK-NEXT: scf.if
// CHECK-NEXT: %[[M:.*]], %[[L:.*]], %[[O:.*]] = attn.add_sink %[[LOOP]]#0, %[[LOOP]]#1, %[[LOOP]]#2 :
// CHECK-NEXT: attn.store_result %[[M]], %[[L]], %[[O]] :
// CHECK-NEXT: } else {
// CHECK-NEXT: attn.store_result %[[LOOP]]#0, %[[LOOP]]#1, %[[LOOP]]#2 partial :
// CHECK-LABEL: attn.program @sink_merge
// CHECK: attn.yield_tiles
// CHECK-NEXT: }
// CHECK-NEXT: %[[MM:.*]], %[[ML:.*]], %[[MO:.*]] = attn.merge_partials
// CHECK-NEXT: %[[SM:.*]], %[[SL:.*]], %[[SO:.*]] = attn.add_sink %[[MM]], %[[ML]], %[[MO]] :
// CHECK-NEXT: attn.store_result %[[SM]], %[[SL]], %[[SO]] :

// Pages larger than a tile: one lookup. fp16 keys meet an fp16 query.
attn.kernel @large_page heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<fp16> values<bf16>
    paging<page_major page 256>
    schedule<mma chip "sm_80" key_tile 32 row_warps 1 row_tiles 1 key_warps 1 stages 2>
// CHECK-LABEL: attn.program @large_page_sweep
// CHECK: attn.load_query : tensor<16x64xf16>
// CHECK: attn.lookup_pages %{{.*}} : tensor<1xi32>

// The host pads no rows; a plan of two row blocks divides them.
attn.kernel @host heads<10 over 2, dim 64> tokens<3>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 16>
    schedule<host chip "host" key_tile 32 row_blocks 2 max_sweeps 2>
// CHECK-LABEL: attn.program @host_sweep
// CHECK: attn.load_query : tensor<8x64xbf16>

// Without pages nothing depends on the table, but the op stays.
attn.kernel @contiguous heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix bidirectional> keys<bf16> values<bf16>
    paging<contiguous>
    schedule<mma chip "sm_80" key_tile 32 row_warps 1 row_tiles 1 key_warps 1 stages 2>
// CHECK-LABEL: attn.program @contiguous_sweep
// CHECK: attn.lookup_pages %{{.*}} : tensor<1xi32>
