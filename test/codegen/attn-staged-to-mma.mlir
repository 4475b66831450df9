// Staged programs become code of one lane: which instructions, how many, with
// which operands.
//
// RUN: ninfer-opt %s -attn-tile -attn-stage -cse -canonicalize -attn-staged-to-mma -cse -canonicalize -o %t
// RUN: FileCheck %s < %t
// RUN: FileCheck %s --check-prefix=MMA < %t
// RUN: FileCheck %s --check-prefix=LDMATRIX < %t
// RUN: FileCheck %s --check-prefix=COPY < %t
// RUN: FileCheck %s --check-prefix=ZERO < %t

// One warp, 16 rows, tiles of 32 keys, dimension 64, keys in bf16 and values in
// fp16, the query in shared memory.
attn.kernel @small heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<fp16>
    paging<page_major page 16>
    schedule<mma chip "sm_90a" key_tile 32 row_warps 1 row_tiles 1 key_warps 1 stages 2 query shared>

// The kernel takes its parameter block by value; the chip, its PTX version and
// the count of threads are what ptxas must know.
// CHECK-NOT: attn.
// CHECK: gpu.module @small_module [#nvvm.target<{{.*}}chip = "sm_90a", features = "+ptx80">]
// CHECK: llvm.mlir.global external @tokentile_shared() {addr_space = 3 : i32, alignment = 1024 : i64}
// CHECK-LABEL: llvm.func @small_sweep
// CHECK-SAME: llvm.byval = !llvm.array<232 x i8>, nvvm.grid_constant
// CHECK-SAME: nvvm.kernel, nvvm.minctasm = 1 : i32, nvvm.reqntid = array<i32: 32>

// Four steps of depth, for each two pairs of eight keys, then two steps of 16
// keys, for each four pairs of eight dimensions.
// MMA-LABEL: llvm.func @small_sweep
// MMA-COUNT-16: nvvm.mma.sync {{.*}} : (i32, i32, f32)
// MMA-NOT: (i32, i32, f32)
// MMA-COUNT-16: nvvm.mma.sync {{.*}} : (vector<2xf16>, vector<2xf16>, f32)
// MMA-NOT: nvvm.mma.sync
// MMA-LABEL: llvm.func @small_merge

// A step of scores reads 16 rows of the query and twice 16 keys; values are
// read transposed, 16 keys of 16 dimensions at once.
// LDMATRIX-LABEL: llvm.func @small_sweep
// LDMATRIX-COUNT-12: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>, num = 4
// LDMATRIX-NOT: layout<row>, num = 4
// LDMATRIX-COUNT-8: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<col>, num = 4
// LDMATRIX-NOT: nvvm.ldmatrix
// LDMATRIX-LABEL: llvm.func @small_merge

// 32 threads copy four rows of eight chunks at once: four copies of the query,
// then eight of keys and eight of values, before the loop and in it. The first
// arm knows that pages hold all rows; the other fills the rest with zeros.
// COPY-LABEL: llvm.func @small_sweep
// COPY-COUNT-4: nvvm.cp.async.shared.global {{.*}}, 16, cache = cg, %{{.*}} : !llvm.ptr<3>, !llvm.ptr<1>, i32
// COPY: scf.if
// COPY-COUNT-16: nvvm.cp.async.shared.global {{.*}} : !llvm.ptr<3>, !llvm.ptr<1>{{$}}
// COPY: else
// COPY-COUNT-16: nvvm.cp.async.shared.global {{.*}} : !llvm.ptr<3>, !llvm.ptr<1>, i32
// COPY-NOT: nvvm.cp.async.shared.global
// COPY: nvvm.cp.async.commit.group
// COPY: scf.for
// COPY: nvvm.cp.async.wait.group 0
// COPY-NEXT: nvvm.barrier
// COPY-COUNT-16: nvvm.cp.async.shared.global {{.*}} : !llvm.ptr<3>, !llvm.ptr<1>{{$}}
// COPY: else
// COPY-COUNT-16: nvvm.cp.async.shared.global {{.*}} : !llvm.ptr<3>, !llvm.ptr<1>, i32
// COPY-NOT: nvvm.cp.async.shared.global
// COPY: nvvm.cp.async.commit.group
// COPY: nvvm.mma.sync

// A warp finds the block's item: two sums over all requests, six numbers of the
// best share, one sum over the requests of a warp and three of the item. Then
// the length of the request bounds what is read. It is clamped before the block's
// rows are added: a length near 2^31 would become none. No lookup passes the
// last page.
// ZERO-LABEL: llvm.func @small_sweep
// ZERO-COUNT-4: nvvm.redux.sync
// ZERO-COUNT-5: nvvm.shfl.sync idx
// ZERO-COUNT-4: nvvm.redux.sync
// ZERO: %[[GIVEN:.*]] = llvm.load %{{.*}} : !llvm.ptr<1> -> i32
// ZERO: %[[BELOW:.*]] = arith.minsi %[[GIVEN]], %[[BOUND:.*]] : i32
// ZERO: %[[CLAMPED:.*]] = arith.maxsi %[[BELOW]], %c0_i32
// ZERO: %[[ALL:.*]] = arith.addi %[[CLAMPED]], %c2_i32
// ZERO: %[[LENGTH:.*]] = arith.minsi %[[ALL]], %[[BOUND]]
// ZERO: %[[UP:.*]] = arith.addi %[[LENGTH]], %c15_i32
// ZERO: %[[PAGES:.*]] = arith.divui %[[UP]], %c16_i32
// ZERO: %[[MINUS:.*]] = arith.addi %[[PAGES]], %c-1_i32
// ZERO: %[[LAST:.*]] = arith.maxsi %[[MINUS]], %c0_i32
// ZERO: arith.minsi %{{.*}}, %[[LAST]]
// ZERO: arith.minsi %{{.*}}, %[[LAST]]
// ZERO: %[[WHOLE:.*]] = arith.cmpi sle, %{{.*}}, %[[LENGTH]]
// ZERO: scf.if %[[WHOLE]] {
// ZERO: } else {
// ZERO: %[[LIVE:.*]] = arith.cmpi slt, %{{.*}}, %[[LENGTH]]
// ZERO: %[[BYTES:.*]] = arith.select %[[LIVE]], %c16_i32, %c0_i32
// ZERO: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg, %[[BYTES]]

// The merge: eight groups of eight threads. They wait for the sweep before they
// read what it left; a block without a row waits as well. Of several requests
// each group has its own rows, and what is read of the division before the wait
// is read again behind it. Of one all have a row together, and meet in shared
// memory.
// CHECK-LABEL: llvm.func @small_merge
// CHECK-SAME: nvvm.kernel, nvvm.minctasm = 5 : i32, nvvm.reqntid = array<i32: 64>
// CHECK-NOT: -> f32
// CHECK: scf.if
// CHECK: nvvm.read.ptx.sreg.ctaid.x
// CHECK: scf.for
// CHECK-NOT: -> f32
// CHECK: llvm.load volatile {{.*}}-> vector<2xi32>
// CHECK-NOT: -> f32
// CHECK: nvvm.griddepcontrol wait
// CHECK-NEXT: llvm.inline_asm has_side_effects {{.*}}"", "~{memory}"
// CHECK: llvm.load volatile {{.*}}-> vector<2xi32>
// CHECK-NOT: nvvm.barrier
// CHECK: nvvm.griddepcontrol wait
// CHECK: } else {
// CHECK: nvvm.read.ptx.sreg.ctaid.x
// CHECK: scf.for
// CHECK: nvvm.griddepcontrol wait
// CHECK-COUNT-2: nvvm.barrier
// CHECK-NOT: nvvm.barrier
// CHECK: nvvm.griddepcontrol wait

// Keys of a dense block come from its own segment, past the context; only the
// context lies in pages, so it bounds the arm without checks.
attn.kernel @dense heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 16> block<dense>
    schedule<mma chip "sm_80" key_tile 16 row_warps 1 row_tiles 1 key_warps 1 stages 2 query shared>
// CHECK-LABEL: llvm.func @dense_sweep
// CHECK-COUNT-4: nvvm.redux.sync
// CHECK-COUNT-5: nvvm.shfl.sync idx
// CHECK-COUNT-4: nvvm.redux.sync
// CHECK: %[[ALL:.*]] = arith.addi %{{.*}}, %c2_i32
// CHECK: %[[LENGTH:.*]] = arith.minsi %[[ALL]], %{{.*}}
// CHECK: %[[BEFORE:.*]] = arith.subi %[[LENGTH]], %c2_i32
// CHECK: %[[CONTEXT:.*]] = arith.maxsi %[[BEFORE]], %c0_i32
// CHECK: %[[WHOLE:.*]] = arith.cmpi sle, %{{.*}}, %[[CONTEXT]]
// CHECK-NEXT: scf.if %[[WHOLE]] {
// CHECK: } else {
// CHECK: %[[LIVE:.*]] = arith.cmpi slt, %[[KEY:.*]], %[[LENGTH]]
// CHECK: arith.subi %[[KEY]], %[[CONTEXT]]
// CHECK: %[[PAGED:.*]] = arith.cmpi slt, %[[KEY]], %[[CONTEXT]]
// CHECK: %[[ROW:.*]] = arith.select %[[PAGED]], %{{.*}}, %{{.*}} : i64
// CHECK: %[[FROM:.*]] = llvm.inttoptr %[[ROW]]
// CHECK: %[[BYTES:.*]] = arith.select %[[LIVE]], %c16_i32, %c0_i32
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %[[FROM]], 16, cache = cg, %[[BYTES]]

// Before sm_90 there is no dependent launch to wait for.
// CHECK-LABEL: llvm.func @dense_merge
// CHECK-NOT: nvvm.griddepcontrol
// CHECK: llvm.return

// Key warps that meet at every tile: one lane of each quad leaves the maxima of
// its four rows in scratch, and behind a barrier each lane reads both warps'. A
// warp's probabilities are shared by four stores for each eight keys, and behind
// a barrier every warp reads all 64 keys for its 32 dimensions. Sums meet as
// maxima do.
attn.kernel @meet_tile heads<8 over 2, dim 64> tokens<8>
    sees<prefix all, suffix causal> keys<bf16> values<fp16>
    paging<page_major page 64>
    schedule<mma chip "sm_80" key_tile 64 row_warps 1 row_tiles 2 key_warps 2 meet tile stages 2 query shared>
// CHECK-LABEL: llvm.func @meet_tile_sweep
// CHECK-SAME: nvvm.reqntid = array<i32: 64>
// CHECK: scf.for
// CHECK-COUNT-32: nvvm.mma.sync {{.*}} : (i32, i32, f32)
// CHECK-NOT: nvvm.barrier
// CHECK: scf.if
// CHECK-COUNT-4: llvm.store %{{.*}}, %{{.*}} {alignment = 4 : i64} : f32, !llvm.ptr<3>
// CHECK-NOT: llvm.store
// CHECK: nvvm.barrier
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
// CHECK-COUNT-16: llvm.store %{{.*}}, %{{.*}} {alignment = 4 : i64} : i32, !llvm.ptr<3>
// CHECK-NOT: llvm.store
// CHECK: nvvm.barrier
// CHECK: nvvm.vote.sync any
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>, num = 4
// CHECK-COUNT-32: nvvm.mma.sync {{.*}} : (vector<2xf16>, vector<2xf16>, f32)
// CHECK-NOT: nvvm.mma.sync
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK: scf.if
// CHECK-COUNT-4: llvm.store %{{.*}}, %{{.*}} {alignment = 4 : i64} : f32, !llvm.ptr<3>
// CHECK: nvvm.barrier
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
// CHECK-LABEL: llvm.func @meet_tile_merge

// A bug, mended: the arm without checks took tiles with keys that no row's
// window admits, whose pages may have been given away. A NaN there met a
// probability of zero.
attn.kernel @window_given_away heads<4 over 2, dim 64> tokens<2>
    sees<prefix left within 100, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 16>
    schedule<mma chip "sm_80" key_tile 16 row_warps 1 row_tiles 1 key_warps 1 stages 2 query shared>
// CHECK-LABEL: llvm.func @window_given_away_sweep
// CHECK: %[[YOUNG:.*]] = arith.subi %{{.*}}, %c99_i32
// CHECK: %[[OLDEST:.*]] = arith.maxsi %[[YOUNG]], %c0_i32
// CHECK: %[[HELD:.*]] = arith.cmpi sle, %{{.*}}, %{{.*}} : i32
// CHECK: %[[IN:.*]] = arith.cmpi sge, %{{.*}}, %[[OLDEST]]
// CHECK-NEXT: %[[WHOLE:.*]] = arith.andi %[[HELD]], %[[IN]]
// CHECK-NEXT: scf.if %[[WHOLE]] {
// CHECK: } else {
// CHECK: arith.cmpi sge, %{{.*}}, %[[OLDEST]]
