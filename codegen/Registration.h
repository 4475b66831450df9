//===- Registration.h - Dialects, passes and pipelines of TokenTile -*- C++
//-*-===//

#ifndef TOKENTILE_CODEGEN_REGISTRATION_H
#define TOKENTILE_CODEGEN_REGISTRATION_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace tokentile {

/// Adds the attn dialect, every dialect the pipelines produce, and their
/// translations to LLVM IR.
void registerDialects(mlir::DialectRegistry &registry);

/// Registers our passes and pipelines, and the upstream passes that users
/// combine them with, for command-line tools.
void registerPasses();

} // namespace tokentile

#endif // TOKENTILE_CODEGEN_REGISTRATION_H
