// How a request's tiles are divided among the splits of a launch. Tiles are of
// 32 keys.
//
// RUN: ninfer-opt %s -attn-tile -cse -canonicalize | FileCheck %s

// Automatic and counted splits divide the tiles evenly: split i of n has tiles
// first + tiles * i / n to first + tiles * (i + 1) / n.
attn.kernel @split_auto heads<4 over 2, dim 64> tokens<2>
    sees<prefix left within 100, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 16> split<auto>
    schedule<mma chip "sm_80" key_tile 32 row_warps 1 row_tiles 1 key_warps 1 stages 2>
// CHECK-LABEL: attn.program @split_auto_sweep
// CHECK: %[[FIRST:.*]] = arith.divui %{{.*}}, %c32_i32
// CHECK: %[[END:.*]] = arith.maxsi %[[FIRST]], %{{.*}}
// CHECK: %[[I:.*]], %[[N:.*]] = attn.split_id
// CHECK: %[[TILES:.*]] = arith.subi %[[END]], %[[FIRST]]
// CHECK: %[[BELOW:.*]] = arith.muli %[[TILES]], %[[I]]
// CHECK: %[[SKIPPED:.*]] = arith.divui %[[BELOW]], %[[N]]
// CHECK: %[[FROM:.*]] = arith.addi %[[FIRST]], %[[SKIPPED]]
// CHECK: %[[J:.*]] = arith.addi %[[I]], %c1_i32
// CHECK: %[[UPTO:.*]] = arith.muli %[[TILES]], %[[J]]
// CHECK: %[[DONE:.*]] = arith.divui %[[UPTO]], %[[N]]
// CHECK: %[[TO:.*]] = arith.addi %[[FIRST]], %[[DONE]]
// CHECK: scf.for %{{.*}} = %[[FROM]] to %[[TO]] step %c1_i32

attn.kernel @split_count heads<4 over 2, dim 64> tokens<2>
    sees<prefix left within 100, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 16> split<count of 3>
    schedule<mma chip "sm_80" key_tile 32 row_warps 1 row_tiles 1 key_warps 1 stages 2>
// CHECK-LABEL: attn.program @split_count_sweep
// CHECK: %[[FIRST:.*]] = arith.divui %{{.*}}, %c32_i32
// CHECK: %[[END:.*]] = arith.maxsi %[[FIRST]], %{{.*}}
// CHECK: %[[I:.*]], %[[N:.*]] = attn.split_id
// CHECK: %[[TILES:.*]] = arith.subi %[[END]], %[[FIRST]]
// CHECK: %[[BELOW:.*]] = arith.muli %[[TILES]], %[[I]]
// CHECK: %[[SKIPPED:.*]] = arith.divui %[[BELOW]], %[[N]]
// CHECK: %[[FROM:.*]] = arith.addi %[[FIRST]], %[[SKIPPED]]
// CHECK: %[[J:.*]] = arith.addi %[[I]], %c1_i32
// CHECK: %[[UPTO:.*]] = arith.muli %[[TILES]], %[[J]]
// CHECK: %[[DONE:.*]] = arith.divui %[[UPTO]], %[[N]]
// CHECK: %[[TO:.*]] = arith.addi %[[FIRST]], %[[DONE]]
// CHECK: scf.for %{{.*}} = %[[FROM]] to %[[TO]] step %c1_i32

// Pieces of 96 keys are counted from key 0, whatever the window hides: a piece
// that ends before the window has no tiles.
attn.kernel @split_keys heads<4 over 2, dim 64> tokens<2>
    sees<prefix left within 100, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 16> split<keys of 96>
    schedule<mma chip "sm_80" key_tile 32 row_warps 1 row_tiles 1 key_warps 1 stages 2>
// CHECK-LABEL: attn.program @split_keys_sweep
// CHECK: %[[FIRST:.*]] = arith.divui %{{.*}}, %c32_i32
// CHECK: %[[END:.*]] = arith.maxsi %[[FIRST]], %{{.*}}
// CHECK: %[[I:.*]], %{{.*}} = attn.split_id
// CHECK: %[[BEGIN:.*]] = arith.muli %[[I]], %c3_i32
// CHECK: %[[PIECE:.*]] = arith.addi %[[BEGIN]], %c3_i32
// CHECK: %[[TO:.*]] = arith.minsi %[[PIECE]], %[[END]]
// CHECK: %[[FROM:.*]] = arith.maxsi %[[BEGIN]], %[[FIRST]]
// CHECK: scf.for %{{.*}} = %[[FROM]] to %[[TO]] step %c1_i32

// A bug, mended: a request without query tokens swept all of its keys.
attn.kernel @request_without_tokens_costs_nothing heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix bidirectional> keys<bf16> values<bf16>
    paging<page_major page 16>
    query<bf16 token_major columns counted>
    schedule<mma chip "sm_80" key_tile 32 row_warps 1 row_tiles 1 key_warps 1 stages 2>
// CHECK-LABEL: attn.program @request_without_tokens_costs_nothing_sweep
// CHECK: %[[LENGTH:.*]], %{{.*}}, %[[COLUMNS:.*]], %{{.*}}, %{{.*}} = attn.request
// CHECK: %[[HIGH:.*]] = arith.maxsi %[[LENGTH]], %c0_i32
// CHECK: %[[SOME:.*]] = arith.cmpi sgt, %[[COLUMNS]], %c0_i32
// CHECK: %[[KEYS:.*]] = arith.select %[[SOME]], %[[HIGH]], %c0_i32
// CHECK: %[[UP:.*]] = arith.addi %[[KEYS]], %c31_i32
// CHECK: arith.divui %[[UP]], %c32_i32
