// PTX replaces each gpu.module, or goes to a file.
//
// RUN: ninfer-opt %s -attn-emit-ptx="output=-" -o /dev/null | FileCheck %s
// RUN: ninfer-opt %s -attn-emit-ptx | FileCheck %s --check-prefix=BINARY
// RUN: ninfer-opt %s -attn-emit-ptx="output=%t.ptx" -o /dev/null
// RUN: FileCheck %s < %t.ptx

// CHECK: .version 8.0
// CHECK: .target sm_90a
// CHECK-LABEL: .visible .entry double(
// CHECK: .param .u64 {{.*}} double_param_0
// CHECK: .reqntid 64
// CHECK: .minnctapersm 1
// CHECK: mov.u32 {{.*}}, %tid.x
// CHECK: st.global

// The name of the module stays, with the PTX as its only object.
// BINARY-NOT: gpu.module
// BINARY: gpu.binary @kernels [#gpu.object<#nvvm.target<{{.*}}chip = "sm_90a"{{.*}}>, assembly = "
gpu.module @kernels [#nvvm.target<O = 3, chip = "sm_90a", features = "+ptx80">] {
  llvm.func @double(%out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 64>, nvvm.minctasm = 1 : i32} {
    %x = nvvm.read.ptx.sreg.tid.x : i32
    %at = llvm.getelementptr %out[%x] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %two = llvm.mlir.constant(2 : i32) : i32
    %y = llvm.mul %x, %two : i32
    llvm.store %y, %at : i32, !llvm.ptr<1>
    llvm.return
  }
}
