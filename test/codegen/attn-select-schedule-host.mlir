// RUN: ninfer-opt %s -attn-select-schedule=chip=host | FileCheck %s
// RUN: ninfer-opt %s -attn-select-schedule=chip=host | ninfer-opt -attn-select-schedule | FileCheck %s

// The host has no warps and no stages; a plan is planned again as it stands.
// CHECK-LABEL: attn.kernel @open
// CHECK-SAME: split<auto> schedule<host chip "host" key_tile 32 row_blocks 1 max_sweeps 1>
attn.kernel @open heads<24 over 4, dim 256> tokens<16>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64>

// CHECK-LABEL: attn.kernel @fixed
// CHECK-SAME: key_tile 64 row_blocks 2 max_sweeps 2
attn.kernel @fixed heads<24 over 4, dim 256> tokens<16>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64>
    schedule<auto key_tile 64 row_blocks 2 max_sweeps 2>
