//===- ninfer-opt.cpp - The attn dialect's optimizer driver ---------------===//
//
// MlirOpt with the attn dialect, its passes and its pipelines.
//
//===----------------------------------------------------------------------===//

#include "codegen/Registration.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  tokentile::registerDialects(registry);
  tokentile::registerPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "TokenTile's optimizer driver\n", registry));
}
