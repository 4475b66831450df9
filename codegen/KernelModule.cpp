//===- KernelModule.cpp - Kernels as functions of one lane ----------------===//

#include "codegen/KernelModule.h"

#include "codegen/KernelABI.h"
#include "codegen/Schedule.h"
#include "codegen/mma/MmaEmitter.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

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

/// Bytes and alignment of a tensor map.
static constexpr int64_t kMapBytes = 128, kMapAlignment = 64;

/// Gives argument `index` as a constant block of `bytes`, by value.
static void passByValue(LLVM::LLVMFuncOp function, OpBuilder &b, unsigned index,
                        int64_t bytes, int64_t alignment) {
  auto block = LLVM::LLVMArrayType::get(b.getI8Type(), bytes);
  function.setArgAttr(index, LLVM::LLVMDialect::getByValAttrName(),
                      TypeAttr::get(block));
  function.setArgAttr(index, LLVM::LLVMDialect::getAlignAttrName(),
                      b.getI64IntegerAttr(alignment));
  function.setArgAttr(index, NVVM::NVVMDialect::getGridConstantAttrName(),
                      b.getUnitAttr());
}

/// A kernel function that takes KernelArgs, and tensor maps if it says so.
static LLVM::LLVMFuncOp declareKernel(OpBuilder &b, Location loc,
                                      StringRef name, int64_t threads,
                                      int64_t blocksPerSm, bool maps) {
  MLIRContext *context = b.getContext();
  SmallVector<Type> pointers(maps ? 3 : 1, LLVM::LLVMPointerType::get(context));
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), pointers);
  auto function = LLVM::LLVMFuncOp::create(b, loc, name, type);
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                    b.getUnitAttr());
  function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                    b.getDenseI32ArrayAttr({int32_t(threads)}));
  // Without a bound on blocks ptxas spares registers it need not spare.
  function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                    b.getI32IntegerAttr(blocksPerSm));
  passByValue(function, b, 0, sizeof(KernelArgs), 8);
  for (unsigned index = 1; index < pointers.size(); ++index)
    passByValue(function, b, index, kMapBytes, kMapAlignment);
  return function;
}

static gpu::GPUModuleOp createModule(KernelOp plan) {
  OpBuilder b(plan);
  auto module = gpu::GPUModuleOp::create(b, plan.getLoc(),
                                         (plan.getSymName() + "_module").str());
  const ChipFacts &chip = chipOf(plan);
  std::string features = "+ptx" + std::to_string(chip.ptxVersion);
  module.setTargetsAttr(b.getArrayAttr(
      NVVM::NVVMTargetAttr::get(b.getContext(), /*optLevel=*/3,
                                "nvptx64-nvidia-cuda", chip.name, features)));
  b.setInsertionPointToEnd(module.getBody());
  declareShared(b, plan.getLoc());
  return module;
}

/// Adds the function `name` of a program; `ranges` if it sweeps ranges of
/// tiles.
static LogicalResult lower(ProgramOp program, StringRef name, bool ranges,
                           gpu::GPUModuleOp module, EmitSweep emitSweep) {
  KernelOp plan = program.getPlan();
  MmaSchedule schedule = readSchedule(plan.getScheduleOrDefault());
  bool sweep = program.getRole() == ProgramRole::Sweep;
  bool maps = sweep && schedule.wgmma;
  Lane b(program.getLoc(), program.getContext());
  b.setInsertionPointToEnd(module.getBody());
  int64_t threads = sweep ? schedule.blockThreads() : mergeThreads(plan);
  LLVM::LLVMFuncOp function = declareKernel(
      b, program.getLoc(), name, threads,
      sweep ? blocksPerSm(plan, schedule, chipOf(plan)) : mergesPerSm(plan),
      maps);
  Block *entry = function.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  SweepParameters parameters;
  parameters.ranges = ranges;
  parameters.args = entry->getArgument(0);
  parameters.shared = LLVM::AddressOfOp::create(
      b, LLVM::LLVMPointerType::get(b.getContext(), 3), kSharedName);
  if (maps)
    for (unsigned i : {0, 1})
      parameters.maps[i] = entry->getArgument(1 + i);
  if (!sweep)
    emitMerge(b, program, parameters.args, parameters.shared);
  else if (failed(emitSweep(b, program, parameters)))
    return failure();
  LLVM::ReturnOp::create(b, ValueRange());
  return success();
}

LogicalResult tokentile::lowerPrograms(ModuleOp top, LoweringKind lowering,
                                       EmitSweep emitSweep) {
  llvm::MapVector<Operation *, gpu::GPUModuleOp> modules;
  SmallVector<ProgramOp> lowered;
  for (ProgramOp program : llvm::to_vector(top.getOps<ProgramOp>())) {
    KernelOp plan = program.getPlan();
    if (plan.getScheduleOrDefault().getLowering() != lowering)
      continue;
    if (failed(checkComplete(plan)))
      return failure();
    gpu::GPUModuleOp &module = modules[plan];
    if (!module)
      module = createModule(plan);
    if (failed(lower(program, program.getSymName(), /*ranges=*/false, module,
                     emitSweep)))
      return failure();
    bool sweeps = program.getRole() == ProgramRole::Sweep;
    if (sweeps && sweepsRanges(plan) &&
        failed(lower(program, rangesSymbol(plan), /*ranges=*/true, module,
                     emitSweep)))
      return failure();
    lowered.push_back(program);
  }
  for (ProgramOp program : lowered)
    program.erase();
  for (auto &[plan, module] : modules)
    plan->erase();
  return success();
}
