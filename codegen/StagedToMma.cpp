//===- StagedToMma.cpp - attn-staged-to-mma -------------------------------===//
//
// Staged to machine: for each plan one gpu.module with the sweep and the merge
// as llvm functions of one lane.
//
//===----------------------------------------------------------------------===//

#include "codegen/KernelABI.h"
#include "codegen/Passes.h"
#include "codegen/Schedule.h"
#include "codegen/mma/MmaEmitter.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace tokentile {
#define GEN_PASS_DEF_STAGEDTOMMAPASS
#include "codegen/Passes.h.inc"
} // namespace tokentile

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;

static constexpr llvm::StringLiteral kSharedName = "tokentile_shared";

/// The block's dynamic shared memory; 128-byte swizzles want 1,024.
static void declareShared(OpBuilder &b, Location loc) {
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), 0);
  LLVM::GlobalOp::create(b, loc, type, /*isConstant=*/false,
                         LLVM::Linkage::External, kSharedName, Attribute(),
                         /*alignment=*/1024, /*addrSpace=*/3);
}

/// A kernel function that takes KernelArgs by value.
static LLVM::LLVMFuncOp declareKernel(OpBuilder &b, Location loc,
                                      StringRef name, int64_t threads,
                                      int64_t blocksPerSm) {
  MLIRContext *context = b.getContext();
  auto pointer = LLVM::LLVMPointerType::get(context);
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), {pointer});
  auto function = LLVM::LLVMFuncOp::create(b, loc, name, type);
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                    b.getUnitAttr());
  function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                    b.getDenseI32ArrayAttr({int32_t(threads)}));
  // Without a bound on blocks ptxas spares registers it need not spare.
  if (blocksPerSm)
    function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                      b.getI32IntegerAttr(blocksPerSm));
  auto block = LLVM::LLVMArrayType::get(b.getI8Type(), sizeof(KernelArgs));
  function.setArgAttr(0, LLVM::LLVMDialect::getByValAttrName(),
                      TypeAttr::get(block));
  function.setArgAttr(0, LLVM::LLVMDialect::getAlignAttrName(),
                      b.getI64IntegerAttr(8));
  function.setArgAttr(0, NVVM::NVVMDialect::getGridConstantAttrName(),
                      b.getUnitAttr());
  return function;
}

namespace {

struct StagedToMmaPass : tokentile::impl::StagedToMmaPassBase<StagedToMmaPass> {
  using StagedToMmaPassBase::StagedToMmaPassBase;

  void runOnOperation() override {
    auto programs = llvm::to_vector(getOperation().getOps<ProgramOp>());
    llvm::MapVector<Operation *, gpu::GPUModuleOp> modules;
    for (ProgramOp program : programs) {
      if (failed(checkComplete(program.getPlan())))
        return signalPassFailure();
      gpu::GPUModuleOp &module = modules[program.getPlan()];
      if (!module)
        module = createModule(program.getPlan());
      if (failed(lower(program, module)))
        return signalPassFailure();
    }
    for (ProgramOp program : programs)
      program.erase();
    for (auto &[plan, module] : modules)
      plan->erase();
  }

  gpu::GPUModuleOp createModule(KernelOp plan) {
    OpBuilder b(plan);
    auto module = gpu::GPUModuleOp::create(
        b, plan.getLoc(), (plan.getSymName() + "_module").str());
    StringRef chip = plan.getScheduleOrDefault().getChip().getValue();
    std::string features = "+ptx" + std::to_string(findChip(chip)->ptxVersion);
    module.setTargetsAttr(b.getArrayAttr(NVVM::NVVMTargetAttr::get(
        &getContext(), /*optLevel=*/3, "nvptx64-nvidia-cuda", chip, features)));
    b.setInsertionPointToEnd(module.getBody());
    declareShared(b, plan.getLoc());
    return module;
  }

  LogicalResult lower(ProgramOp program, gpu::GPUModuleOp module) {
    KernelOp plan = program.getPlan();
    bool sweep = program.getRole() == ProgramRole::Sweep;
    Lane b(program.getLoc(), &getContext());
    b.setInsertionPointToEnd(module.getBody());
    int64_t threads = sweep
                          ? readSchedule(plan.getScheduleOrDefault()).threads()
                          : mergeThreads(plan);
    // A merge of 512 threads is given 40 registers by default, for three
    // blocks. On sm_90a they suffice unless pieces are numbered, elsewhere a
    // few would spill.
    StringRef chip = plan.getScheduleOrDefault().getChip().getValue();
    bool fixed = plan.getSplitOrDefault().getKind() != SplitKind::Auto;
    int64_t mergeBlocks = chip == "sm_90a" && !fixed ? 0 : 2;
    LLVM::LLVMFuncOp function =
        declareKernel(b, program.getLoc(), program.getSymName(), threads,
                      sweep ? 1 : mergeBlocks);
    Block *entry = function.addEntryBlock(b);
    b.setInsertionPointToStart(entry);
    Value shared = LLVM::AddressOfOp::create(
        b, LLVM::LLVMPointerType::get(&getContext(), 3), kSharedName);
    Value args = entry->getArgument(0);
    if (!sweep)
      emitMerge(b, program, args, shared);
    else if (failed(MmaEmitter(b, program, args, shared).emit()))
      return failure();
    LLVM::ReturnOp::create(b, ValueRange());
    return success();
  }
};

} // namespace
