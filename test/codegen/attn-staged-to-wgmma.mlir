// Roles become branches of warpgroups; rings become mbarriers; fills become
// copies through tensor maps or, where keys are missing, of all producers;
// products become wgmma on descriptors.
//
// RUN: ninfer-opt %s -attn-tile -attn-stage -cse -canonicalize -attn-staged-to-wgmma -cse -canonicalize -o %t
// RUN: FileCheck %s < %t
// RUN: FileCheck %s --check-prefix=SCORES < %t
// RUN: FileCheck %s --check-prefix=OUTPUT < %t
// RUN: FileCheck %s --check-prefix=COPY < %t

// 128 rows, two consumer warpgroups; tiles of 32 keys of two pages.
attn.kernel @wide heads<32 over 4, dim 256> tokens<16>
    sees<prefix all, suffix causal> keys<bf16> values<fp16>
    paging<page_major page 16>
    schedule<wgmma chip "sm_90a" key_tile 32 row_warps 8 row_tiles 1 key_warps 1 stages 2 query shared>

// Three warpgroups; two tensor maps behind the parameter block.
// CHECK-NOT: attn.
// CHECK: gpu.module @wide_module [#nvvm.target<{{.*}}chip = "sm_90a"
// CHECK-LABEL: llvm.func @wide_sweep
// CHECK-SAME: llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant
// CHECK-SAME: llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant
// CHECK-SAME: nvvm.reqntid = array<i32: 384>
// Four slots: one arrival makes a slot full, eight warps make it empty.
// CHECK-COUNT-4: mbarrier.init
// CHECK: fence.mbarrier_init.release.cluster
// CHECK: nvvm.barrier
// CHECK: scf.if
// CHECK: nvvm.setmaxregister {{ *}}decrease 56
// Four producers wait for an empty slot, the first tells the barrier how many
// bytes come, and each copies eight keys.
// COPY-LABEL: llvm.func @wide_sweep
// COPY: nvvm.setmaxregister {{ *}}decrease
// COPY: %[[COPIES:.*]] = arith.cmpi ult, %{{.*}}, %c4_i32
// COPY: scf.if %[[COPIES]]
// COPY: mbarrier.try_wait.parity
// COPY: mbarrier.arrive.expect_tx
// COPY: scf.if %[[COPIES]]
// COPY: cp.async.bulk.tensor.5d
// COPY-NOT: cp.async.bulk.tensor
// COPY: else
// COPY: bar.sync $0, $1
// COPY: scf.for
// COPY: nvvm.cp.async.shared.global {{.*}}, 16, cache = cg, %{{.*}}
// COPY: cp.async.wait_all
// COPY: fence.proxy.async
// COPY: bar.sync $0, $1
// COPY: mbarrier.arrive.shared::cta.b64
// COPY: mbarrier.try_wait.parity
// COPY: mbarrier.arrive.expect_tx
// COPY: cp.async.bulk.tensor.5d
// COPY: nvvm.setmaxregister {{ *}}increase 224
// The query has landed and is visible to wgmma.
// COPY: nvvm.cp.async.wait.group 0
// COPY-NEXT: fence.proxy.async
// COPY-NEXT: bar.sync $0, $1

// Sixteen steps of depth over 32 keys; the first does not add. Columns ahead by
// 16 are 32 bytes, two descriptor units, on; a panel of 64 is 64 units.
// SCORES-LABEL: llvm.func @wide_sweep
// 128-byte swizzle, groups of eight rows 4,096 bytes apart, panels 1,024.
// SCORES: arith.constant 4611687117943209984 : i64
// SCORES: nvvm.setmaxregister {{ *}}increase
// The rows of this warpgroup: 64 of 512 bytes.
// SCORES: arith.muli {{.*}}, %c32768_i32
// SCORES: wgmma.fence.sync.aligned
// SCORES: setp.ne.b32 keep, 0, 0;\0A  wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {{.*}}, keep, 1, 1, 0, 0;
// SCORES-COUNT-15: setp.ne.b32 keep, 1, 0;\0A  wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16
// SCORES: wgmma.commit_group.sync.aligned
// SCORES-NEXT: wgmma.wait_group.sync.aligned 0
// SCORES-NOT: m64n32k16

// Two steps of sixteen keys over 256 dimensions; values are transposed.
// OUTPUT-LABEL: llvm.func @wide_sweep
// OUTPUT: wgmma.fence.sync.aligned
// OUTPUT: wgmma.fence.sync.aligned
// OUTPUT-COUNT-2: wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {{.*}}, keep, 1, 1, 1;
// OUTPUT-NOT: m64n256k16
// OUTPUT: wgmma.commit_group.sync.aligned
// OUTPUT: wgmma.wait_group.sync.aligned 0
