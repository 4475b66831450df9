//===- Ptx.cpp - PTX from a gpu.module ------------------------------------===//
//
// LLVM's optimizer and NVPTX back end, in process and without CUDA.
//
//===----------------------------------------------------------------------===//

#include "codegen/Ptx.h"

#include "codegen/LlvmPasses.h"
#include "codegen/Passes.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Target/TargetMachine.h"

#include <chrono>
#include <mutex>

namespace tokentile {
#define GEN_PASS_DEF_EMITPTXPASS
#include "codegen/Passes.h.inc"
} // namespace tokentile

using namespace mlir;
using namespace tokentile;

using Clock = std::chrono::steady_clock;

static double milliseconds(Clock::time_point since) {
  return std::chrono::duration<double, std::milli>(Clock::now() - since)
      .count();
}

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createMachine(NVVM::NVVMTargetAttr target) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::Triple triple(target.getTriple());
  std::string message;
  const llvm::Target *found =
      llvm::TargetRegistry::lookupTarget(triple, message);
  if (!found)
    return llvm::createStringError(message);
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(
      triple, target.getChip(), target.getFeatures(), {}, {}, std::nullopt,
      llvm::CodeGenOptLevel::Aggressive));
}

llvm::Expected<std::string> tokentile::emitPtx(gpu::GPUModuleOp module,
                                               PtxTimes *times) {
  ArrayAttr targets = module.getTargetsAttr();
  auto target = targets && !targets.empty()
                    ? dyn_cast<NVVM::NVVMTargetAttr>(targets[0])
                    : NVVM::NVVMTargetAttr();
  if (!target)
    return llvm::createStringError("gpu.module @" + module.getName() +
                                   " has no #nvvm.target");
  llvm::Expected<std::unique_ptr<llvm::TargetMachine>> machine =
      createMachine(target);
  if (!machine)
    return machine.takeError();

  Clock::time_point start = Clock::now();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code =
      translateModuleToLLVMIR(module, context, module.getName());
  if (!code)
    return llvm::createStringError("gpu.module @" + module.getName() +
                                   " does not translate to LLVM IR");
  optimizeKernels(*code, **machine);
  if (times)
    times->optimization = milliseconds(start);

  start = Clock::now();
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, stream, nullptr,
                                      llvm::CodeGenFileType::AssemblyFile))
    return llvm::createStringError("NVPTX cannot emit assembly");
  passes.run(*code);
  if (times)
    times->backend = milliseconds(start);
  return text.str().str();
}

namespace {

struct EmitPtxPass : tokentile::impl::EmitPtxPassBase<EmitPtxPass> {
  using EmitPtxPassBase::EmitPtxPassBase;

  void runOnOperation() override {
    std::string all;
    auto modules = llvm::to_vector(getOperation().getOps<gpu::GPUModuleOp>());
    if (modules.size() > 1 && !output.empty()) {
      modules[1].emitError("expected one kernel for one PTX file, got ")
          << modules.size();
      return signalPassFailure();
    }
    for (gpu::GPUModuleOp module : modules) {
      llvm::Expected<std::string> ptx = emitPtx(module);
      if (!ptx) {
        module.emitError(llvm::toString(ptx.takeError()));
        return signalPassFailure();
      }
      all += *ptx;
      OpBuilder b(module);
      auto object = gpu::ObjectAttr::get(
          &getContext(), module.getTargetsAttr()[0],
          gpu::CompilationTarget::Assembly, b.getStringAttr(*ptx),
          DictionaryAttr(), gpu::KernelTableAttr());
      gpu::BinaryOp::create(b, module.getLoc(), module.getName(), Attribute(),
                            b.getArrayAttr({object}));
      module.erase();
    }
    if (!output.empty() && failed(write(all)))
      signalPassFailure();
  }

  LogicalResult write(StringRef text) {
    std::error_code error;
    llvm::ToolOutputFile file(output, error, llvm::sys::fs::OF_Text);
    if (error)
      return getOperation().emitError("cannot write '")
             << output << "': " << error.message();
    file.os() << text;
    file.keep();
    return success();
  }
};

} // namespace
