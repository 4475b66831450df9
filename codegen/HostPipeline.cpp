//===- HostPipeline.cpp - From tiles to the LLVM dialect, on the host -----===//

#include "codegen/HostPipeline.h"

#include "codegen/TilesToHost.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void tokentile::buildHostPipeline(OpPassManager &manager) {
  manager.addPass(createTilesToHostPass());
  manager.addPass(createSCFToControlFlowPass());
  manager.addPass(createConvertVectorToLLVMPass());
  manager.addPass(createConvertMathToLLVMPass());
  manager.addPass(createArithToLLVMConversionPass());
  manager.addPass(createConvertControlFlowToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
}
