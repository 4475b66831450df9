//===- Registration.cpp - Dialects, passes and pipelines of TokenTile -----===//

#include "codegen/Registration.h"

#include "codegen/Passes.h"
#include "dialect/AttnDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Transforms/Passes.h"

void tokentile::registerDialects(mlir::DialectRegistry &registry) {
  registry.insert<attn::AttnDialect, mlir::arith::ArithDialect,
                  mlir::scf::SCFDialect>();
}

void tokentile::registerPasses() {
  registerSelectSchedulePass();
  registerStagePass();
  registerStagedToMmaPass();
  registerTilePass();
  mlir::registerTransformsPasses();
}
