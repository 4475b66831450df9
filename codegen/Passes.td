//===- Passes.td - Passes from spec to machine ------------------*- tablegen -*-===//
//
// One pass, one file, one test. The order is spec -> plan -> tiles -> staged ->
// machine; see codegen/README.md.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_CODEGEN_PASSES_TD
#define TOKENTILE_CODEGEN_PASSES_TD

include "mlir/Pass/PassBase.td"

def SelectSchedulePass : Pass<"attn-select-schedule", "::mlir::ModuleOp"> {
  let summary = "Fill in what a spec leaves open, for one chip";
  let description = [{
    Spec to plan. Checks that the generator covers every axis of each
    `attn.kernel`, chooses lowering, key tile, warps, stages and row blocks from
    the chip's facts and a cost model, and obeys or refuses what a `schedule`
    clause fixes. A plan that would read the keys more often than `max_sweeps`
    is refused. Changes no numerics but the order of summation.
  }];
  let options = [
    Option<"chip", "chip", "std::string", /*default=*/"",
           "Target: host, sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_120a or "
           "sm_121a; the schedule's own chip when empty">];
}

def TilePass : Pass<"attn-tile", "::mlir::ModuleOp"> {
  let summary = "Turn plans into programs over key tiles";
  let description = [{
    Plan to tiles. Beside each planned `attn.kernel` stand two programs: the
    sweep, a loop over the key tiles of one part, and the merge. The range of
    tiles, the tiles that need a mask, the split and the softmax policy are
    ordinary operations here, so every lowering runs the same decisions.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect",
                           "::tokentile::attn::AttnDialect"];
}

def StagePass : Pass<"attn-stage", "::mlir::ModuleOp"> {
  let summary = "Place tiles in shared memory and registers, and pipeline";
  let description = [{
    Tiles to staged, for plans that run on a GPU. Key and value tiles become
    slots of shared buffers that asynchronous copies fill some tiles ahead;
    scores, probabilities and outputs become fragments of warps. Page lookups
    run one tile ahead of the copies that use them. Plans for wgmma divide their
    warps into producers and consumers. Changes no numerics.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect",
                           "::tokentile::attn::AttnDialect"];
}

def StagedToMmaPass : Pass<"attn-staged-to-mma", "::mlir::ModuleOp"> {
  let summary = "Lower staged programs to mma.sync, ldmatrix and cp.async";
  let description = [{
    Staged to machine, for sm_80 and newer. Each program becomes an `llvm.func`
    in a `gpu.module`, in terms of scf, arith, llvm and nvvm operations of one
    lane. Products use m16n8k16 with fp32 accumulators; exponentials use
    ex2.approx.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect"];
}

def StagedToWgmmaPass : Pass<"attn-staged-to-wgmma", "::mlir::ModuleOp"> {
  let summary = "Lower staged programs to wgmma, tensor maps and mbarriers";
  let description = [{
    Staged to machine, for sm_90a and programs with `attn.roles`. Whole tiles
    are copied through tensor maps, eight keys by a thread; tiles with rows that the pages
    do not hold by all producers, with zeros for those rows. Products are
    m64nNk16 with fp32 accumulators, the probabilities in registers. Numerics
    differ from mma in the order of summation within a product.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect"];
}

def EmitPtxPass : Pass<"attn-emit-ptx", "::mlir::ModuleOp"> {
  let summary = "Compile gpu.modules in the NVVM dialect to PTX";
  let description = [{
    Machine to text. Runs LLVM's optimizer and its NVPTX back end in process;
    needs no CUDA. The PTX replaces the gpu.module by a gpu.binary, or goes to
    `output`.
  }];
  let dependentDialects = ["::mlir::gpu::GPUDialect",
                           "::mlir::NVVM::NVVMDialect"];
  let options = [
    Option<"output", "output", "std::string", /*default=*/"",
           "File that receives the PTX, - for standard output">];
}

def TilesToHostPass : Pass<"attn-tiles-to-host", "::mlir::ModuleOp"> {
  let summary = "Lower programs over tiles to vector loops for the host";
  let description = [{
    Tiles to machine, for the processor this runs on. Each program becomes a
    function of the parameter block and the block's coordinates, in terms of
    scf, arith, math, vector and llvm operations. Products accumulate in fp32.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect",
                           "::mlir::LLVM::LLVMDialect"];
}

#endif // TOKENTILE_CODEGEN_PASSES_TD
