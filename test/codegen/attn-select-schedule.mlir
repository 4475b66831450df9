// Which schedule three kinds of chip get, as data: 163, 99 and 227 KiB of
// shared memory a block.
//
// RUN: ninfer-opt %s -attn-select-schedule=chip=sm_80 | FileCheck %s --check-prefixes=CHECK,SM80
// RUN: ninfer-opt %s -attn-select-schedule=chip=sm_86 | FileCheck %s --check-prefixes=CHECK,SM86
// RUN: ninfer-opt %s -attn-select-schedule=chip=sm_90a | FileCheck %s --check-prefixes=CHECK,SM90

// CHECK-LABEL: attn.kernel @q24_decode
// SM80-SAME: key_tile 64 row_warps 1 row_tiles 1 key_warps 4 meet tile stages 2
// SM86-SAME: key_tile 32 row_warps 1 row_tiles 1 key_warps 2 meet end stages 2
// SM90-SAME: schedule<mma chip "sm_90a" key_tile 64 row_warps 1 row_tiles 1 key_warps 4 meet tile stages 2
attn.kernel @q24_decode heads<24 over 4, dim 256> tokens<1>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64>

// CHECK-LABEL: attn.kernel @q24_verify
// SM80-SAME: key_tile 32 row_warps 6 row_tiles 1 key_warps 1 meet end stages 2
// SM86-SAME: key_tile 16 row_warps 6 row_tiles 1 key_warps 1 meet end stages 2
// SM90-SAME: schedule<wgmma chip "sm_90a" key_tile 64 row_warps 8 row_tiles 1 key_warps 1 meet end stages 2
attn.kernel @q24_verify heads<24 over 4, dim 256> tokens<16>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64>

// CHECK-LABEL: attn.kernel @q16_verify
// SM80-SAME: key_tile 64 row_warps 4 row_tiles 1 key_warps 1 meet end stages 2
// SM86-SAME: key_tile 32 row_warps 4 row_tiles 1 key_warps 2 meet end stages 2
// SM90-SAME: schedule<wgmma chip "sm_90a" key_tile 64 row_warps 4 row_tiles 1 key_warps 1 meet end stages 2
attn.kernel @q16_verify heads<16 over 2, dim 256> tokens<8>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64>

// CHECK-LABEL: attn.kernel @q32_verify
// SM80-SAME: key_tile 128 row_warps 1 row_tiles 2 key_warps 4 meet tile stages 2
// SM86-SAME: key_tile 64 row_warps 2 row_tiles 1 key_warps 4 meet end stages 2
// SM90-SAME: schedule<wgmma chip "sm_90a" key_tile 64 row_warps 4 row_tiles 1 key_warps 1 meet end stages 2
attn.kernel @q32_verify heads<32 over 8, dim 128> tokens<8>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64>

// CHECK-LABEL: attn.kernel @q64_verify
// SM80-SAME: key_tile 128 row_warps 8 row_tiles 1 key_warps 1 meet end stages 2
// SM86-SAME: key_tile 64 row_warps 8 row_tiles 1 key_warps 1 meet end stages 2
// SM90-SAME: schedule<wgmma chip "sm_90a" key_tile 64 row_warps 8 row_tiles 1 key_warps 1 meet end stages 2
attn.kernel @q64_verify heads<64 over 8, dim 128> tokens<16>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64>

// CHECK-LABEL: attn.kernel @q8_decode
// SM80-SAME: key_tile 128 row_warps 1 row_tiles 1 key_warps 4 meet end stages 2
// SM86-SAME: key_tile 128 row_warps 1 row_tiles 1 key_warps 4 meet end stages 2
// SM90-SAME: schedule<mma chip "sm_90a" key_tile 128 row_warps 1 row_tiles 1 key_warps 4 meet end stages 3
attn.kernel @q8_decode heads<8 over 8, dim 64> tokens<1>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64>

// 32 tokens make 192 rows: two blocks share them where the user allows it.
// CHECK-LABEL: attn.kernel @two_sweeps
// SM80-SAME: row_warps 6
// SM90-SAME: schedule<wgmma chip "sm_90a" key_tile 64 row_warps 8
// CHECK-SAME: row_blocks 2 max_sweeps 2
attn.kernel @two_sweeps heads<24 over 4, dim 256> tokens<32>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64> schedule<auto max_sweeps 2>

// What stands in the spec's own schedule stays.
// CHECK-LABEL: attn.kernel @fixed
// CHECK-SAME: schedule<mma
// CHECK-SAME: key_tile 32 row_warps 2 row_tiles 1 key_warps 2 meet end stages 4 row_blocks 1 max_sweeps 3 query shared
attn.kernel @fixed heads<32 over 8, dim 128> tokens<4>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64>
    schedule<mma key_tile 32 row_warps 2 key_warps 2 stages 4 max_sweeps 3 query shared>

// A size of split is whole tiles.
// CHECK-LABEL: attn.kernel @split_keys
// CHECK-SAME: split<keys of 48>
// CHECK-SAME: key_tile 16
attn.kernel @split_keys heads<32 over 8, dim 128> tokens<4>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64> split<keys of 48>

// The plan says how it splits, and one sweep is what it may take.
// CHECK-LABEL: attn.kernel @defaults
// CHECK-SAME: split<auto> schedule<
// CHECK-SAME: row_blocks 1 max_sweeps 1
attn.kernel @defaults heads<32 over 8, dim 128> tokens<4>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64>
