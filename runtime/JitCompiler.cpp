//===- JitCompiler.cpp - Kernels compiled in process ----------------------===//

#include "runtime/JitCompiler.h"

#include "codegen/Compiler.h"

#include <algorithm>

using namespace tokentile;

static Status toStatus(llvm::Error error) {
  StatusCode code = error.isA<NotCovered>() ? StatusCode::NotCovered
                                            : StatusCode::InvalidArgument;
  std::string text = llvm::toString(std::move(error));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return Status(code, text);
}

StatusOr<CompiledKernel> tokentile::compileKernel(std::string_view specText,
                                                  std::string_view chip) {
  std::unique_ptr<mlir::MLIRContext> context = createContext();
  auto module = parseSpec({specText.data(), specText.size()}, "spec", *context);
  if (!module)
    return toStatus(module.takeError());
  auto result = compile(std::move(*module), {chip.data(), chip.size()});
  if (!result)
    return toStatus(result.takeError());
  CompiledKernel kernel;
  kernel.info = std::move(result->info);
  kernel.ptx = std::move(result->ptx);
  kernel.sweep = result->sweep;
  kernel.merge = result->merge;
  kernel.code = std::move(result->code);
  return kernel;
}
