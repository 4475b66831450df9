// Into how many parts a request is divided, and which tiles a part has. Tiles
// are of 32 keys.
//
// RUN: ninfer-opt %s -attn-tile -cse -canonicalize | FileCheck %s

// By default the lengths of all requests decide. An item has the tiles of its
// part.
attn.kernel @split_auto heads<4 over 2, dim 64> tokens<2>
    sees<prefix left within 100, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 16> split<auto>
    schedule<mma chip "sm_80" key_tile 32 row_warps 1 row_tiles 1 key_warps 1 stages 2>
// CHECK-LABEL: attn.program @split_auto_sweep
// CHECK: %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[FIRST:.*]], %[[END:.*]] = attn.item {
// CHECK: %[[LOW:.*]] = arith.divui %{{.*}}, %c32_i32
// CHECK: %[[HIGH:.*]] = arith.maxsi %[[LOW]], %{{.*}}
// CHECK: attn.yield_tiles %[[LOW]] to %[[HIGH]]{{$}}
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[END]] step %c1_i32

attn.kernel @split_count heads<4 over 2, dim 64> tokens<2>
    sees<prefix left within 100, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 16> split<count of 3>
    schedule<mma chip "sm_80" key_tile 32 row_warps 1 row_tiles 1 key_warps 1 stages 2>
// CHECK-LABEL: attn.program @split_count_sweep
// CHECK: %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[FIRST:.*]], %[[END:.*]] = attn.item {
// CHECK: %[[LOW:.*]] = arith.divui %{{.*}}, %c32_i32
// CHECK: %[[HIGH:.*]] = arith.maxsi %[[LOW]], %{{.*}}
// CHECK: %[[ALL:.*]] = arith.subi %[[HIGH]], %[[LOW]]
// CHECK: %[[FEW:.*]] = arith.minsi %[[ALL]], %c3_i32
// CHECK: %[[SOME:.*]] = arith.maxsi %[[FEW]], %c1_i32
// CHECK: attn.yield_tiles %[[LOW]] to %[[HIGH]] in %[[SOME]]{{$}}
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[END]] step %c1_i32

// Pieces of 96 keys, three tiles, are counted from key 0; a block has the tiles
// of its piece. All leave partial results.
attn.kernel @split_keys heads<4 over 2, dim 64> tokens<2>
    sees<prefix left within 100, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 16> split<keys of 96>
    schedule<mma chip "sm_80" key_tile 32 row_warps 1 row_tiles 1 key_warps 1 stages 2>
// CHECK-LABEL: attn.program @split_keys_sweep
// CHECK: %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[FIRST:.*]], %[[END:.*]] = attn.item {
// CHECK: %[[LOW:.*]] = arith.divui %{{.*}}, %c32_i32
// CHECK: %[[HIGH:.*]] = arith.maxsi %[[LOW]], %{{.*}}
// CHECK: attn.yield_tiles %[[LOW]] to %[[HIGH]] by %c3_i32
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[END]] step %c1_i32
// CHECK: scf.yield {{.*}} tensor<16x64xf32>
// CHECK-NOT: scf.if
// CHECK: attn.store_result {{.*}} partial

// Five pieces of what a row sees, whose window has four tiles and one more
// where it begins within one; but none of less than 256 keys.
attn.kernel @split_pieces heads<4 over 2, dim 64> tokens<2>
    sees<prefix left within 100, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 16> split<pieces of 5>
    schedule<mma chip "sm_80" key_tile 32 row_warps 1 row_tiles 1 key_warps 1 stages 2>
// CHECK-LABEL: attn.program @split_pieces_sweep
// CHECK: %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[FIRST:.*]], %[[END:.*]] = attn.item {
// CHECK: %[[LOW:.*]] = arith.divui %{{.*}}, %c32_i32
// CHECK: %[[HIGH:.*]] = arith.maxsi %[[LOW]], %{{.*}}
// CHECK: %[[SEEN:.*]] = arith.minsi %[[HIGH]], %c5_i32
// CHECK: %[[UP:.*]] = arith.addi %[[SEEN]], %c4_i32
// CHECK: %[[EACH:.*]] = arith.divui %[[UP]], %c5_i32
// CHECK: %[[SIZE:.*]] = arith.maxsi %[[EACH]], %c8_i32
// CHECK: attn.yield_tiles %[[LOW]] to %[[HIGH]] by %[[SIZE]]
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[END]] step %c1_i32

// A bug, mended: a request without query tokens swept all of its keys.
attn.kernel @request_without_tokens_costs_nothing heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix bidirectional> keys<bf16> values<bf16>
    paging<page_major page 16>
    query<bf16 token_major columns counted>
    schedule<mma chip "sm_80" key_tile 32 row_warps 1 row_tiles 1 key_warps 1 stages 2>
// CHECK-LABEL: attn.program @request_without_tokens_costs_nothing_sweep
// CHECK: ^bb0(%[[LENGTH:.*]]: i32, %{{.*}}: i32, %[[COLUMNS:.*]]: i32, %{{.*}}: i32, %{{.*}}: i32):
// CHECK: %[[HIGH:.*]] = arith.maxsi %[[LENGTH]], %c0_i32
// CHECK: %[[SOME:.*]] = arith.cmpi sgt, %[[COLUMNS]], %c0_i32
// CHECK: %[[KEYS:.*]] = arith.select %[[SOME]], %[[HIGH]], %c0_i32
// CHECK: %[[UP:.*]] = arith.addi %[[KEYS]], %c31_i32
// CHECK: arith.divui %[[UP]], %c32_i32
