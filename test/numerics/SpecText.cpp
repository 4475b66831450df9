//===- SpecText.cpp - Parsing a spec --------------------------------------===//

#include "test/numerics/SpecText.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

namespace tokentile {

SpecModule parseSpec(mlir::MLIRContext &context, llvm::StringRef text) {
  context.loadDialect<attn::AttnDialect, mlir::arith::ArithDialect,
                      mlir::math::MathDialect, mlir::scf::SCFDialect>();
  SpecModule result;
  mlir::ScopedDiagnosticHandler handler(
      &context, [&](mlir::Diagnostic &diagnostic) {
        result.error += diagnostic.str() + "\n";
        return mlir::success();
      });
  result.module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!result.module)
    return result;
  auto kernels = result.module->getOps<attn::KernelOp>();
  if (kernels.empty())
    result.error = "the text holds no attn.kernel";
  else
    result.kernel = *kernels.begin();
  return result;
}

} // namespace tokentile
