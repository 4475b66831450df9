//===- Registration.cpp - Dialects, passes and pipelines of TokenTile -----===//

#include "codegen/Registration.h"

#include "codegen/HostEngine.h"
#include "codegen/HostPipeline.h"
#include "codegen/TilesToHost.h"
#include "dialect/AttnDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Transforms/Passes.h"

namespace tokentile {
#define GEN_PASS_REGISTRATION_TILESTOHOSTPASS
#include "codegen/Passes.h.inc"
} // namespace tokentile

void tokentile::registerDialects(mlir::DialectRegistry &registry) {
  registry.insert<attn::AttnDialect, mlir::arith::ArithDialect,
                  mlir::scf::SCFDialect>();
  registerHostTranslations(registry);
}

void tokentile::registerPasses() {
  mlir::registerTransformsPasses();
  registerTilesToHostPass();
  registerHostPipeline();
}
