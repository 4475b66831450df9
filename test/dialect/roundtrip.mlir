// RUN: ninfer-opt %s | ninfer-opt | FileCheck %s

// CHECK-LABEL: attn.kernel @verify_q24 heads<24 over 4, dim 256>
attn.kernel @verify_q24 heads<24 over 4, dim 256> tokens<16>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64>
