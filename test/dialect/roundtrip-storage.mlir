// Every storage of keys and values.
//
// RUN: ninfer-opt %s | ninfer-opt | FileCheck %s
// RUN: ninfer-opt %s -mlir-print-op-generic | ninfer-opt | FileCheck %s

// CHECK-LABEL: attn.kernel @e4m3
// CHECK-SAME: keys<e4m3 scale row> values<e4m3 scale head>
attn.kernel @e4m3 heads<8 over 8, dim 128> tokens<1>
    sees<prefix all, suffix causal> keys<e4m3 scale row>
    values<e4m3 scale head> paging<page_major page 64>

// CHECK-LABEL: attn.kernel @e4m3_tensor
// CHECK-SAME: keys<e4m3 scale tensor> values<bf16>
attn.kernel @e4m3_tensor heads<8 over 8, dim 128> tokens<1>
    sees<prefix all, suffix causal> keys<e4m3 scale tensor>
    values<bf16> paging<page_major page 64>

// CHECK-LABEL: attn.kernel @int8_nvfp4
// CHECK-SAME: keys<int8 scale group of 64 rotated hadamard>
// CHECK-SAME: values<nvfp4 scale group of 16>
attn.kernel @int8_nvfp4 heads<8 over 8, dim 128> tokens<1>
    sees<prefix all, suffix causal>
    keys<int8 scale group of 64 rotated hadamard>
    values<nvfp4 scale group of 16 rotated none> paging<page_major page 64>

// CHECK-LABEL: attn.kernel @plain
// CHECK-SAME: keys<bf16> values<fp16>
attn.kernel @plain heads<8 over 8, dim 128> tokens<1>
    sees<prefix all, suffix causal> keys<bf16 scale none rotated none>
    values<fp16> paging<page_major page 64>
