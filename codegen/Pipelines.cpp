//===- Pipelines.cpp - From a spec to one level, or to PTX ----------------===//

#include "codegen/Pipelines.h"

#include "codegen/HostPipeline.h"
#include "codegen/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace tokentile;

void tokentile::buildPlanPipeline(OpPassManager &pm, StringRef chip) {
  SelectSchedulePassOptions options;
  options.chip = chip.str();
  pm.addPass(createSelectSchedulePass(options));
}

void tokentile::buildTilesPipeline(OpPassManager &pm) {
  pm.addPass(createTilePass());
  pm.addPass(createCSEPass());
  pm.addPass(createCanonicalizerPass());
}

void tokentile::buildStagedPipeline(OpPassManager &pm) {
  pm.addPass(createStagePass());
  pm.addPass(createCSEPass());
  pm.addPass(createCanonicalizerPass());
}

void tokentile::buildMachinePipeline(OpPassManager &pm) {
  pm.addPass(createStagedToMmaPass());
  pm.addPass(createStagedToWgmmaPass());
  pm.addPass(createCSEPass());
}

void tokentile::buildNvvmPipeline(OpPassManager &pm) {
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createConvertNVVMToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
}

static void buildToNvvm(OpPassManager &pm, const GpuPipelineOptions &options) {
  buildPlanPipeline(pm, options.chip);
  buildTilesPipeline(pm);
  buildStagedPipeline(pm);
  buildMachinePipeline(pm);
  buildNvvmPipeline(pm);
}

void tokentile::registerPipelines() {
  PassPipelineRegistration<GpuPipelineOptions>(
      "attn-to-nvvm", "Lower attention specs to the NVVM dialect", buildToNvvm);
  PassPipelineRegistration<GpuPipelineOptions>(
      "attn-to-ptx", "Lower attention specs to PTX",
      [](OpPassManager &pm, const GpuPipelineOptions &options) {
        buildToNvvm(pm, options);
        EmitPtxPassOptions emit;
        emit.output = options.output;
        pm.addPass(createEmitPtxPass(emit));
      });
  PassPipelineRegistration<>("attn-to-host",
                             "Lower attention specs to LLVM for this processor",
                             [](OpPassManager &pm) {
                               buildPlanPipeline(pm, "host");
                               buildTilesPipeline(pm);
                               buildHostPipeline(pm);
                             });
}
