//===- Pipelines.h - From a spec to one level, or to PTX --------*- C++ -*-===//
//
// The pipelines that ninfer-opt registers and that the compiler runs.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_CODEGEN_PIPELINES_H
#define TOKENTILE_CODEGEN_PIPELINES_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

#include <string>

namespace tokentile {

/// Options of `attn-to-nvvm` and `attn-to-ptx`.
struct GpuPipelineOptions : mlir::PassPipelineOptions<GpuPipelineOptions> {
  PassOptions::Option<std::string> chip{
      *this, "chip",
      llvm::cl::desc("Target: sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_120a "
                     "or sm_121a; the schedule's own chip when empty"),
      llvm::cl::init("")};
  PassOptions::Option<std::string> output{
      *this, "output",
      llvm::cl::desc("attn-to-ptx: file that receives the PTX, - for standard "
                     "output; when empty it stays in the module"),
      llvm::cl::init("")};
};

/// Spec to plan.
void buildPlanPipeline(mlir::OpPassManager &pm, llvm::StringRef chip);
/// Plan to tiles.
void buildTilesPipeline(mlir::OpPassManager &pm);
/// Tiles to staged.
void buildStagedPipeline(mlir::OpPassManager &pm);
/// Staged to machine: structured code of one lane.
void buildMachinePipeline(mlir::OpPassManager &pm);
/// Machine to the LLVM and NVVM dialects alone.
void buildNvvmPipeline(mlir::OpPassManager &pm);

/// Registers `attn-to-nvvm`, `attn-to-ptx` and `attn-to-host`.
void registerPipelines();

} // namespace tokentile

#endif // TOKENTILE_CODEGEN_PIPELINES_H
