//===- Qualifier.h - Kernels of specs, judged case by case ------*- C++ -*-===//

#ifndef TOKENTILE_TOOLS_NINFERQUALIFY_QUALIFIER_H
#define TOKENTILE_TOOLS_NINFERQUALIFY_QUALIFIER_H

#include "codegen/Compiler.h"
#include "test/numerics/Runner.h"

namespace tokentile {

/// A spec with the kernel made from it, ready to run.
struct LoadedSpec {
  std::string text;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// The spec, for the reference.
  attn::KernelOp spec;
  std::unique_ptr<Kernel> kernel;
  double compileMilliseconds = 0;
};

/// Makes kernels for one device and judges them.
class Qualifier {
public:
  static StatusOr<std::unique_ptr<Qualifier>> create(const std::string &device);

  Device &getDevice() { return *device; }

  /// Compiles and loads `text`. `ptx`, if not empty, is loaded in the place of
  /// what the compiler would make; its facts are those of the spec's plan.
  StatusOr<LoadedSpec> load(const std::string &text, const std::string &name,
                            const std::string &ptx);

  /// Runs one case. A status that is not ok says that it could not be run.
  /// With a folder, the case's tensors are written there.
  StatusOr<Outcome> judge(LoadedSpec &loaded, const Case &testCase,
                          const std::string &dumpFolder);

private:
  Qualifier(std::unique_ptr<Device> device, Runner runner)
      : device(std::move(device)), runner(std::move(runner)),
        context(createContext()) {}

  StatusOr<CompiledKernel> compileOrAdopt(const std::string &text,
                                          const std::string &name,
                                          const std::string &ptx);

  std::unique_ptr<Device> device;
  Runner runner;
  std::unique_ptr<mlir::MLIRContext> context;
};

} // namespace tokentile

#endif // TOKENTILE_TOOLS_NINFERQUALIFY_QUALIFIER_H
