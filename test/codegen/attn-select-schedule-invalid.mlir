// Schedules that cannot be had.
//
// RUN: ninfer-opt %s -split-input-file -attn-select-schedule=chip=sm_86 -verify-diagnostics

// expected-error @below {{'attn.kernel' op 'tokens' 32 makes 192 rows, which take 2 sweeps over the keys; one sweep holds 128 rows, and 'max_sweeps' allows 1}}
attn.kernel @two_sweeps heads<24 over 4, dim 256> tokens<32>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64>

// -----

// A block has at most sixteen warps.
// expected-error @below {{'attn.kernel' op no schedule fits sm_86: 4 rows of 'heads' dim 64 in 101376 bytes of shared memory, given lowering mma, key_tile 0, row_warps 17, row_tiles 0, key_warps 0, meet auto, stages 0 (0 is open) and split size 0}}
attn.kernel @row_warps heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64> schedule<mma row_warps 17>

// -----

// expected-error @below {{'attn.kernel' op no schedule fits sm_86: 32 rows of 'heads' dim 64 in 101376 bytes of shared memory, given lowering mma, key_tile 0, row_warps 1, row_tiles 1, key_warps 0, meet auto, stages 0 (0 is open) and split size 0}}
attn.kernel @few_rows heads<32 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64> schedule<mma row_warps 1 row_tiles 1>

// -----

// expected-error @below {{'attn.kernel' op no schedule fits sm_86: 4 rows of 'heads' dim 64 in 101376 bytes of shared memory, given lowering mma, key_tile 0, row_warps 0, row_tiles 0, key_warps 0, meet auto, stages 1 (0 is open) and split size 0}}
attn.kernel @one_stage heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64> schedule<mma stages 1>

// -----

// expected-error @below {{'attn.kernel' op no schedule fits sm_86: 96 rows of 'heads' dim 256 in 101376 bytes of shared memory, given lowering mma, key_tile 64, row_warps 0, row_tiles 0, key_warps 0, meet auto, stages 0 (0 is open) and split size 0}}
attn.kernel @shared_memory heads<24 over 4, dim 256> tokens<16>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64> schedule<mma key_tile 64>

// -----

// expected-error @below {{'attn.kernel' op no schedule fits sm_86: 4 rows of 'heads' dim 64 in 101376 bytes of shared memory, given lowering mma, key_tile 32, row_warps 0, row_tiles 0, key_warps 4, meet auto, stages 0 (0 is open) and split size 0}}
attn.kernel @key_warps heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64> schedule<mma key_tile 32 key_warps 4>

// -----

// Shared probabilities are swizzled over rows of 64 keys.
// expected-error @below {{'attn.kernel' op no schedule fits sm_86: 4 rows of 'heads' dim 64 in 101376 bytes of shared memory, given lowering mma, key_tile 32, row_warps 0, row_tiles 0, key_warps 2, meet tile, stages 0 (0 is open) and split size 0}}
attn.kernel @meet_tile heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64> schedule<mma key_tile 32 key_warps 2 meet tile>

// -----

// expected-error @below {{'attn.kernel' op no schedule fits sm_86: 4 rows of 'heads' dim 64 in 101376 bytes of shared memory, given lowering auto, key_tile 0, row_warps 0, row_tiles 0, key_warps 4, meet auto, stages 0 (0 is open) and split size 16}}
attn.kernel @split_size heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64> split<keys of 16> schedule<auto key_warps 4>

// -----

// expected-error @below {{'attn.kernel' op 'schedule' is for chip "sm_90a", expected "sm_86"}}
attn.kernel @chip heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64> schedule<mma chip "sm_90a">

// -----

// expected-error @below {{'attn.kernel' op lowering host does not run on sm_86; mma does}}
attn.kernel @lowering heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64> schedule<host>
