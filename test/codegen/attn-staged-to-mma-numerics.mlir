// What the lowering to mma.sync does to numbers.
//
// RUN: ninfer-opt %s -attn-tile -attn-stage -cse -canonicalize -attn-staged-to-mma -cse -canonicalize | FileCheck %s

// Scores are scaled by scale x log2 e within the exponent's fma; a row that has
// seen nothing keeps minus infinity and subtracts zero; a quad of lanes agrees
// on a maximum. The output is scaled only where some maximum of the warp moved.
attn.kernel @softmax heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 16> scale<1.0>
    schedule<mma chip "sm_80" key_tile 16 row_warps 1 row_tiles 1 key_warps 1 stages 2 query shared>
// CHECK-LABEL: llvm.func @softmax_sweep
// CHECK-DAG: %[[LOG2E:.*]] = arith.constant 1.44269502 : f32
// CHECK-DAG: %[[NONE:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK: nvvm.shfl.sync bfly
// CHECK: nvvm.shfl.sync bfly
// CHECK: %[[HERE:.*]] = arith.maxnumf
// CHECK: %[[SCALED:.*]] = arith.mulf %[[HERE]], %[[LOG2E]]
// CHECK: %[[MAX:.*]] = arith.maxnumf %[[OLD:.*]], %[[SCALED]]
// CHECK: %[[EMPTY:.*]] = arith.cmpf oeq, %[[MAX]], %[[NONE]]
// CHECK: %[[REFERENCE:.*]] = arith.select %[[EMPTY]], %[[ZERO]], %[[MAX]]
// CHECK: %[[DIFFERENCE:.*]] = arith.subf %[[OLD]], %[[REFERENCE]]
// CHECK: %[[FACTOR:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%[[DIFFERENCE]])
// CHECK: %[[ALPHA:.*]] = arith.select %[[EMPTY]], %[[ONE]], %[[FACTOR]]
// CHECK: %[[SHIFTED:.*]] = llvm.intr.fma(%{{.*}}, %[[LOG2E]], %{{.*}})
// CHECK: %[[P:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%[[SHIFTED]])
// The sum is of unrounded probabilities; the product takes rounded ones.
// CHECK: arith.addf %{{.*}}, %[[P]]
// CHECK: llvm.call_intrinsic "llvm.nvvm.ff2bf16x2.rn"
// CHECK: %[[MOVED:.*]] = arith.cmpf une, %[[ALPHA]], %[[ONE]]
// CHECK: %[[ANY:.*]] = nvvm.vote.sync any
// CHECK: scf.if %[[ANY]]
// CHECK: arith.mulf %{{.*}}, %[[ALPHA]]

// fp16 keys meet a query that is rounded to fp16 on its way to shared memory;
// fp16 values meet fp16 probabilities.
attn.kernel @rounded_query heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<fp16> values<fp16>
    paging<page_major page 16>
    schedule<mma chip "sm_80" key_tile 16 row_warps 1 row_tiles 1 key_warps 1 stages 2 query shared>
// CHECK-LABEL: llvm.func @rounded_query_sweep
// CHECK: scf.if
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK: llvm.call_intrinsic "llvm.nvvm.ff2f16x2.rn"
// CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
// CHECK: nvvm.mma.sync {{.*}} : (vector<2xf16>, vector<2xf16>, f32)

// The log-sum-exp is natural: ln 2 (max + log2 sum), minus infinity if empty.
attn.kernel @lse heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 16> output<fp16 token_major with lse empty nan>
    schedule<mma chip "sm_80" key_tile 16 row_warps 1 row_tiles 1 key_warps 1 stages 2 query shared>
// CHECK-LABEL: llvm.func @lse_sweep
// CHECK-DAG: %[[LN2:.*]] = arith.constant 0.693147182 : f32
// CHECK-DAG: %[[NAN:.*]] = arith.constant 0x7FC00000 : f32
// CHECK: scf.for
// CHECK: %[[INVERSE:.*]] = arith.divf %{{.*}}, %[[SUM:.*]] : f32
// CHECK: %[[SOME:.*]] = arith.cmpf ogt, %[[SUM]],
// CHECK: arith.select %[[SOME]], %[[INVERSE]], %[[NAN]]
// CHECK: llvm.call_intrinsic "llvm.nvvm.ff2f16x2.rn"
// CHECK: %[[LOG:.*]] = llvm.call_intrinsic "llvm.nvvm.lg2.approx.ftz.f"(%[[SUM]])
// CHECK: %[[BITS:.*]] = arith.addf %{{.*}}, %[[LOG]]
// CHECK: arith.mulf %[[BITS]], %[[LN2]]
