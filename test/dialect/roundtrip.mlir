// Every clause of the spec, printed and parsed again, pretty and generic.
//
// RUN: ninfer-opt %s | ninfer-opt | FileCheck %s
// RUN: ninfer-opt %s -mlir-print-op-generic | ninfer-opt | FileCheck %s

// CHECK-LABEL: attn.kernel @smallest
// CHECK-SAME: heads<24 over 4, dim 256> tokens<16>
// CHECK-SAME: sees<prefix all, suffix causal> keys<bf16> values<bf16>
// CHECK-SAME: paging<page_major page 64>{{$}}
attn.kernel @smallest heads<24 over 4, dim 256> tokens<16>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64>

// CHECK-LABEL: attn.kernel @every_clause
// CHECK-SAME: heads<32 over 8, dim 128 value_dim 64> tokens<9>
// CHECK-SAME: sees<prefix symmetric within 2048, suffix bidirectional>
// CHECK-SAME: paging<nhd page 16 slot_stride 4096 ring 2064 ids i64>
// CHECK-SAME: block<dense>
// CHECK-SAME: query<fp16 head_major columns packed positions given lengths total>
// CHECK-SAME: output<fp16 head_major with lse empty nan>
// CHECK-SAME: scale<1.250000e-01> softcap<5.000000e+01> sink
// CHECK-SAME: split<keys of 2048>
// CHECK-SAME: schedule<mma chip "sm_90a" key_tile 64 row_warps 4 row_tiles 2 key_warps 2 meet tile stages 3 row_blocks 2 max_sweeps 2 query registers invariant>
attn.kernel @every_clause heads<32 over 8, dim 128 value_dim 64> tokens<9>
    sees<prefix symmetric within 2048, suffix bidirectional>
    keys<bf16> values<fp16>
    paging<nhd page 16 slot_stride 4096 ring 2064 ids i64>
    block<dense>
    query<fp16 head_major columns packed positions given lengths total>
    output<fp16 head_major with lse empty nan>
    scale<0.125> softcap<50.0> sink split<keys of 2048>
    schedule<mma chip "sm_90a" key_tile 64 row_warps 4 row_tiles 2
             key_warps 2 meet tile stages 3 row_blocks 2 max_sweeps 2
             query registers invariant>

// CHECK-LABEL: attn.kernel @latent
// CHECK-SAME: heads<16 over 1, dim 576 value_dim 512>
// CHECK-SAME: paging<contiguous>
// CHECK-SAME: block<in_pages>
// CHECK-SAME: query<bf16 token_major columns counted>
// CHECK-SAME: output<bf16 token_major>
// CHECK-SAME: latent split<count of 4> schedule<host chip "host">
attn.kernel @latent heads<16 over 1, dim 576 value_dim 512> tokens<1>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<contiguous> block<in_pages>
    query<bf16 token_major columns counted>
    output<bf16 token_major> latent
    split<count of 4> schedule<host chip "host">

// What is a default is not printed, except where its clause stands.
// CHECK-LABEL: attn.kernel @defaults
// CHECK-SAME: paging<head_major page 128>
// CHECK-SAME: query<bf16 token_major> output<bf16 token_major>
// CHECK-SAME: split<auto> schedule<auto>{{$}}
attn.kernel @defaults heads<8 over 8, dim 64> tokens<64>
    sees<prefix left within 128, suffix ancestors> keys<fp16> values<fp16>
    paging<head_major page 128 ids i32>
    query<bf16 token_major columns uniform positions from_lengths
          lengths context>
    output<bf16 token_major with none empty zero>
    split<auto> schedule<auto meet auto query auto>

// CHECK-LABEL: attn.kernel @score_region
// CHECK-SAME: score {
// CHECK-NEXT: ^bb0(%[[S:.*]]: f32, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index):
// CHECK-NEXT:   %[[T:.*]] = arith.addf %[[S]], %[[S]]
// CHECK-NEXT:   attn.yield %[[T]] : f32
// CHECK-NEXT: } attributes {note = "kept"}
attn.kernel @score_region heads<8 over 8, dim 64> tokens<1>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 1> score {
^bb0(%s: f32, %head: index, %query: index, %key: index):
  %t = arith.addf %s, %s : f32
  attn.yield %t : f32
} attributes {note = "kept"}
