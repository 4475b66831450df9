// Which tiles a request has, and which need no mask, by what rows see. Tiles are of 32 keys.
//
// RUN: ninfer-opt %s -attn-tile -cse -canonicalize | FileCheck %s

attn.kernel @all_causal heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 16>
    schedule<mma chip "sm_80" key_tile 32 row_warps 1 row_tiles 1 key_warps 1 stages 2>
// CHECK-LABEL: attn.program @all_causal_sweep
// CHECK: ^bb0(%[[LENGTH:.*]]: i32, %{{.*}}: i32, %[[COLUMNS:.*]]: i32, %[[MIN:.*]]: i32, %[[MAX:.*]]: i32):
// CHECK: %[[NEXT:.*]] = arith.addi %[[MAX]], %c1_i32
// CHECK: %[[SEEN:.*]] = arith.minsi %[[LENGTH]], %[[NEXT]]
// CHECK: %[[HIGH:.*]] = arith.maxsi %[[SEEN]], %c0_i32
// CHECK: %[[UP:.*]] = arith.addi %[[HIGH]], %c31_i32
// CHECK: %[[END:.*]] = arith.divui %[[UP]], %c32_i32
// CHECK: attn.yield_tiles
// CHECK: %[[LENGTH:.*]], %{{.*}}, %[[COLUMNS:.*]], %[[MIN:.*]], %[[MAX:.*]] = attn.request
// CHECK: scf.for
// CHECK: %[[LAST:.*]] = arith.addi %{{.*}}, %c31_i32
// CHECK: %[[HELD:.*]] = arith.cmpi slt, %[[LAST]], %[[LENGTH]]
// CHECK: %[[PAST:.*]] = arith.cmpi sle, %[[LAST]], %[[MIN]]
// CHECK: %[[ALL:.*]] = arith.andi %[[HELD]], %[[PAST]]
// CHECK: scf.if %[[ALL]]

attn.kernel @all_bidirectional heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix bidirectional> keys<bf16> values<bf16>
    paging<page_major page 16>
    schedule<mma chip "sm_80" key_tile 32 row_warps 1 row_tiles 1 key_warps 1 stages 2>
// CHECK-LABEL: attn.program @all_bidirectional_sweep
// CHECK: ^bb0(%[[LENGTH:.*]]: i32, %{{.*}}: i32, %[[COLUMNS:.*]]: i32, %[[MIN:.*]]: i32, %[[MAX:.*]]: i32):
// CHECK: %[[HIGH:.*]] = arith.maxsi %[[LENGTH]], %c0_i32
// CHECK: %[[UP:.*]] = arith.addi %[[HIGH]], %c31_i32
// CHECK: attn.yield_tiles
// CHECK: %[[LENGTH:.*]], %{{.*}}, %[[COLUMNS:.*]], %[[MIN:.*]], %[[MAX:.*]] = attn.request
// CHECK: scf.for
// CHECK: %[[LAST:.*]] = arith.addi %{{.*}}, %c31_i32
// CHECK: %[[HELD:.*]] = arith.cmpi slt, %[[LAST]], %[[LENGTH]]
// CHECK-NEXT: scf.if %[[HELD]]

// The oldest key of the row with the lowest position opens the range; a tile
// is whole if the row with the highest still sees its first key.
attn.kernel @left_causal heads<4 over 2, dim 64> tokens<2>
    sees<prefix left within 100, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 16>
    schedule<mma chip "sm_80" key_tile 32 row_warps 1 row_tiles 1 key_warps 1 stages 2>
// CHECK-LABEL: attn.program @left_causal_sweep
// CHECK: ^bb0(%[[LENGTH:.*]]: i32, %{{.*}}: i32, %[[COLUMNS:.*]]: i32, %[[MIN:.*]]: i32, %[[MAX:.*]]: i32):
// CHECK: %[[OLDEST:.*]] = arith.addi %[[MIN]], %c-99_i32
// CHECK: %[[LOW:.*]] = arith.maxsi %[[OLDEST]], %c0_i32
// CHECK: %[[NEXT:.*]] = arith.addi %[[MAX]], %c1_i32
// CHECK: arith.minsi %[[LENGTH]], %[[NEXT]]
// CHECK: %[[FIRST:.*]] = arith.divui %[[LOW]], %c32_i32
// CHECK: %[[UP:.*]] = arith.divui %{{.*}}, %c32_i32
// CHECK: %[[END:.*]] = arith.maxsi %[[FIRST]], %[[UP]]
// CHECK: attn.yield_tiles
// CHECK: %[[LENGTH:.*]], %{{.*}}, %[[COLUMNS:.*]], %[[MIN:.*]], %[[MAX:.*]] = attn.request
// CHECK: scf.for %[[T:[a-z0-9]+]] =
// CHECK: %[[KEY:.*]] = arith.muli %[[T]], %c32_i32
// CHECK: %[[GONE:.*]] = arith.subi %[[MAX]], %c100_i32
// CHECK: %[[INSIDE:.*]] = arith.cmpi sgt, %[[KEY]], %[[GONE]]
// CHECK: %[[ALL:.*]] = arith.andi %{{.*}}, %[[INSIDE]]
// CHECK-NEXT: scf.if %[[ALL]]

// A left window alone does not end at the row's own position.
attn.kernel @left_bidirectional heads<4 over 2, dim 64> tokens<2>
    sees<prefix left within 100, suffix bidirectional> keys<bf16> values<bf16>
    paging<page_major page 16>
    schedule<mma chip "sm_80" key_tile 32 row_warps 1 row_tiles 1 key_warps 1 stages 2>
// CHECK-LABEL: attn.program @left_bidirectional_sweep
// CHECK: ^bb0(%[[LENGTH:.*]]: i32, %{{.*}}: i32, %[[COLUMNS:.*]]: i32, %[[MIN:.*]]: i32, %[[MAX:.*]]: i32):
// CHECK: %[[OLDEST:.*]] = arith.addi %[[MIN]], %c-99_i32
// CHECK: %[[LOW:.*]] = arith.maxsi %[[OLDEST]], %c0_i32
// CHECK: arith.maxsi %[[LENGTH]], %c0_i32
// CHECK-NOT: arith.minsi
// CHECK: attn.yield_tiles
// CHECK: %[[LENGTH:.*]], %{{.*}}, %[[COLUMNS:.*]], %[[MIN:.*]], %[[MAX:.*]] = attn.request
// CHECK: scf.for
// CHECK: arith.subi %[[MAX]], %c100_i32
// CHECK-NOT: arith.addi %[[MIN]]
// CHECK: scf.if

// Both sides of a symmetric window bound the range, and both must hold a tile.
attn.kernel @symmetric_bidirectional heads<4 over 2, dim 64> tokens<2>
    sees<prefix symmetric within 100, suffix bidirectional> keys<bf16> values<bf16>
    paging<page_major page 16>
    schedule<mma chip "sm_80" key_tile 32 row_warps 1 row_tiles 1 key_warps 1 stages 2>
// CHECK-LABEL: attn.program @symmetric_bidirectional_sweep
// CHECK: ^bb0(%[[LENGTH:.*]]: i32, %{{.*}}: i32, %[[COLUMNS:.*]]: i32, %[[MIN:.*]]: i32, %[[MAX:.*]]: i32):
// CHECK: %[[OLDEST:.*]] = arith.addi %[[MIN]], %c-99_i32
// CHECK: %[[LOW:.*]] = arith.maxsi %[[OLDEST]], %c0_i32
// CHECK: %[[NEXT:.*]] = arith.addi %[[MAX]], %c100_i32
// CHECK: arith.minsi %[[LENGTH]], %[[NEXT]]
// CHECK: attn.yield_tiles
// CHECK: %[[LENGTH:.*]], %{{.*}}, %[[COLUMNS:.*]], %[[MIN:.*]], %[[MAX:.*]] = attn.request
// CHECK: scf.for
// CHECK: %[[LAST:.*]] = arith.addi %{{.*}}, %c31_i32
// CHECK: %[[GONE:.*]] = arith.subi %[[MAX]], %c100_i32
// CHECK: arith.cmpi sgt, %{{.*}}, %[[GONE]]
// CHECK: %[[NEWEST:.*]] = arith.addi %[[MIN]], %c100_i32
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt, %[[LAST]], %[[NEWEST]]
// CHECK: %[[ALL:.*]] = arith.andi %{{.*}}, %[[INSIDE]]
// CHECK-NEXT: scf.if %[[ALL]]

// Causality is the nearer bound: the right half of the window says nothing.
attn.kernel @symmetric_causal heads<4 over 2, dim 64> tokens<2>
    sees<prefix symmetric within 100, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 16>
    schedule<mma chip "sm_80" key_tile 32 row_warps 1 row_tiles 1 key_warps 1 stages 2>
// CHECK-LABEL: attn.program @symmetric_causal_sweep
// CHECK: ^bb0(%[[LENGTH:.*]]: i32, %{{.*}}: i32, %[[COLUMNS:.*]]: i32, %[[MIN:.*]]: i32, %[[MAX:.*]]: i32):
// CHECK: %[[NEXT:.*]] = arith.addi %[[MAX]], %c1_i32
// CHECK: arith.minsi %[[LENGTH]], %[[NEXT]]
// CHECK-NOT: arith.addi %[[MAX]], %c100_i32
// CHECK: attn.yield_tiles
// CHECK: %[[LENGTH:.*]], %{{.*}}, %[[COLUMNS:.*]], %[[MIN:.*]], %[[MAX:.*]] = attn.request
// CHECK: scf.for
// CHECK-NOT: arith.addi %[[MIN]], %c100_i32
// CHECK: scf.if
