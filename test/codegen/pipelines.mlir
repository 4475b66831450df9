// Each registered pipeline runs from a spec. `output=` is where attn-to-ptx
// leaves its text; without it the text stays in the module.
//
// RUN: ninfer-opt %s --attn-to-nvvm=chip=sm_80 | FileCheck %s --check-prefix=NVVM
// RUN: ninfer-opt %s --attn-to-ptx="chip=sm_120a output=-" -o /dev/null | FileCheck %s --check-prefix=PTX
// RUN: ninfer-opt %s --attn-to-ptx=chip=sm_86 | FileCheck %s --check-prefix=BINARY
// RUN: ninfer-opt %s --attn-to-host | FileCheck %s --check-prefix=HOST
// RUN: not ninfer-opt %s --attn-to-ptx=chip=host 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: not ninfer-opt %s --attn-to-ptx="chip=sm_80 output=%t.missing/k.ptx" 2>&1 | FileCheck %s --check-prefix=UNWRITTEN

attn.kernel @k heads<32 over 8, dim 128> tokens<4>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64>

// Nothing but llvm and nvvm is left.
// NVVM: gpu.module @k_module
// NVVM-NOT: {{(attn|scf|arith|cf)\.}}
// NVVM: llvm.func @k_sweep
// NVVM-NOT: {{(attn|scf|arith|cf)\.}}
// NVVM: llvm.func @k_merge
// NVVM-NOT: {{(attn|scf|arith|cf|unrealized)\.}}

// PTX: .target sm_120a
// PTX: .extern .shared .align 1024 .b8 tokentile_shared[]
// PTX: .entry k_sweep(
// PTX: .param .align 8 .b8 k_sweep_param_0[232]
// PTX-NOT: .local
// PTX: cp.async.cg.shared.global
// PTX: cp.async.commit_group
// PTX: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// PTX: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// PTX: ex2.approx.ftz.f32
// PTX: cvt.rn.bf16x2.f32
// PTX: .entry k_merge(
// PTX: griddepcontrol.wait
// PTX-NOT: .local

// BINARY: gpu.binary @k_module
// BINARY-SAME: chip = "sm_86"

// HOST: llvm.func @k_sweep(%{{.*}}: !llvm.ptr, %{{.*}}: i32)
// HOST-NOT: attn.program
// HOST: llvm.func @k_merge

// WRONG: error: 'attn.program' op is planned for host, expected a lowering for a GPU
// UNWRITTEN: error: cannot write '{{.*}}k.ptx': No such file or directory
