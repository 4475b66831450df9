//===- Registration.cpp - Dialects, passes and pipelines of TokenTile -----===//

#include "codegen/Registration.h"

#include "codegen/HostEngine.h"
#include "codegen/Passes.h"
#include "codegen/Pipelines.h"
#include "dialect/AttnDialect.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Transforms/Passes.h"

void tokentile::registerDialects(mlir::DialectRegistry &registry) {
  registry.insert<attn::AttnDialect, mlir::arith::ArithDialect,
                  mlir::gpu::GPUDialect, mlir::scf::SCFDialect,
                  mlir::NVVM::NVVMDialect>();
  mlir::registerGPUDialectTranslation(registry);
  mlir::registerNVVMDialectTranslation(registry);
  registerHostTranslations(registry);
}

void tokentile::registerPasses() {
  registerTokenTilePasses();
  registerPipelines();
  mlir::registerTransformsPasses();
}
