//===- HostEngine.cpp - Host kernels as machine code ----------------------===//

#include "codegen/HostEngine.h"

#include "codegen/HostPipeline.h"
#include "codegen/LlvmPasses.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <chrono>

using namespace mlir;
using namespace tokentile;

namespace {

using TargetMachinePtr = std::unique_ptr<llvm::TargetMachine>;

/// Adds the time until its end to `milliseconds`.
class PhaseTimer {
public:
  explicit PhaseTimer(double &milliseconds) : milliseconds(milliseconds) {}
  ~PhaseTimer() {
    std::chrono::duration<double, std::milli> time = Clock::now() - start;
    milliseconds += time.count();
  }

private:
  using Clock = std::chrono::steady_clock;
  double &milliseconds;
  Clock::time_point start = Clock::now();
};

llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

llvm::Expected<llvm::orc::JITTargetMachineBuilder>
targetBuilder(llvm::StringRef cpu) {
  static bool initialized = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)initialized;
  auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!builder)
    return builder.takeError();
  builder->setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
  builder->setRelocationModel(llvm::Reloc::PIC_);
  if (!cpu.empty()) {
    builder->setCPU(cpu.str());
    builder->getFeatures() = llvm::SubtargetFeatures();
  }
  return builder;
}

llvm::Expected<std::unique_ptr<llvm::Module>>
translate(ModuleOp module, llvm::LLVMContext &context) {
  DialectRegistry registry;
  registerHostTranslations(registry);
  module->getContext()->appendDialectRegistry(registry);
  PassManager manager(module->getContext());
  buildHostPipeline(manager);
  std::string errors;
  ScopedDiagnosticHandler handler(
      module->getContext(), [&](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
          errors += (errors.empty() ? "" : "; ") + diagnostic.str();
        return success();
      });
  if (failed(manager.run(module)))
    return makeError("lowering to the host failed: " + errors);
  std::unique_ptr<llvm::Module> result =
      translateModuleToLLVMIR(module, context);
  if (!result)
    return makeError("translation to LLVM IR failed");
  return result;
}

/// Code generation right here, so that its time and errors are known.
llvm::Expected<llvm::SmallVector<char, 0>>
generate(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager manager;
  if (machine.addPassesToEmitFile(manager, stream, nullptr,
                                  llvm::CodeGenFileType::ObjectFile))
    return makeError("the target cannot emit object files");
  manager.run(module);
  return bytes;
}

llvm::Expected<llvm::SmallVector<char, 0>>
compile(ModuleOp module, llvm::StringRef cpu, HostTimes &times) {
  auto builder = targetBuilder(cpu);
  if (!builder)
    return builder.takeError();
  auto machine = builder->createTargetMachine();
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> translated;
  {
    PhaseTimer timer(times.lowering);
    auto result = translate(module, context);
    if (!result)
      return result.takeError();
    translated = std::move(*result);
  }
  {
    PhaseTimer timer(times.optimization);
    optimizeKernels(*translated, **machine);
  }
  PhaseTimer timer(times.generation);
  return generate(*translated, **machine);
}

} // namespace

void tokentile::registerHostTranslations(DialectRegistry &registry) {
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

llvm::Expected<HostCode> tokentile::jitHostModule(ModuleOp module,
                                                  llvm::StringRef sweepSymbol,
                                                  llvm::StringRef mergeSymbol) {
  HostCode code;
  auto bytes = compile(module, "", code.times);
  if (!bytes)
    return bytes.takeError();
  PhaseTimer timer(code.times.generation);
  auto builder = targetBuilder("");
  if (!builder)
    return builder.takeError();
  auto jit = llvm::orc::LLJITBuilder()
                 .setJITTargetMachineBuilder(std::move(*builder))
                 .create();
  if (!jit)
    return jit.takeError();
  auto buffer = std::make_unique<llvm::SmallVectorMemoryBuffer>(
      std::move(*bytes), /*RequiresNullTerminator=*/false);
  if (llvm::Error error = (*jit)->addObjectFile(std::move(buffer)))
    return error;
  std::pair<llvm::StringRef, HostKernelFn *> symbols[] = {
      {sweepSymbol, &code.sweep}, {mergeSymbol, &code.merge}};
  for (auto [symbol, function] : symbols) {
    if (symbol.empty())
      continue;
    auto address = (*jit)->lookup(symbol);
    if (!address)
      return address.takeError();
    *function = address->toPtr<HostKernelFn>();
  }
  code.keepAlive = std::shared_ptr<llvm::orc::LLJIT>(std::move(*jit));
  return code;
}

llvm::Expected<std::string> tokentile::emitHostObject(ModuleOp module,
                                                      llvm::StringRef cpu) {
  HostTimes times;
  auto bytes = compile(module, cpu, times);
  if (!bytes)
    return bytes.takeError();
  return std::string(bytes->begin(), bytes->end());
}
