//===- TilesToHost.cpp - Programs over tiles as host functions ------------===//
//
// Before: a planned attn.kernel and its attn.program ops over tiles.
// After: an llvm.func of type HostKernelFn for each program.
//
//===----------------------------------------------------------------------===//

#include "codegen/TilesToHost.h"

#include "codegen/Schedule.h"

#include "codegen/TilesToHostProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tokentile::attn;

namespace tokentile {

#define GEN_PASS_DEF_TILESTOHOSTPASS
#include "codegen/Passes.h.inc"

namespace {

/// Axes of a spec that this lowering does not cover are refused here too, so
/// that no pipeline can compute something else than the spec says.
LogicalResult checkPlan(KernelOp plan) {
  if (failed(checkCovered(plan)))
    return failure();
  int64_t keyTile = plan.getScheduleOrDefault().getKeyTile();
  if (keyTile <= 0)
    return plan.emitOpError("expected a plan with a 'key_tile'");
  // Slots are found by masking bits; a tile starts with a page or inside one.
  int64_t page = plan.getPaging().getPage();
  if (page && (!llvm::isPowerOf2_64(page) ||
               (keyTile % page != 0 && page % keyTile != 0)))
    return plan.emitOpError("the host lowering does not cover pages of ")
           << page << " keys in tiles of " << keyTile;
  return success();
}

class TilesToHostPass : public impl::TilesToHostPassBase<TilesToHostPass> {
public:
  void runOnOperation() override {
    SmallVector<ProgramOp> programs;
    llvm::SetVector<Operation *> plans;
    for (ProgramOp program : getOperation().getOps<ProgramOp>()) {
      KernelOp plan = program.getPlan();
      if (!plan) {
        program.emitOpError("expected an 'attn.kernel' named '")
            << program.getKernel() << "'";
        return signalPassFailure();
      }
      if (isForGpu(plan))
        continue;
      if (plans.insert(plan) && failed(checkPlan(plan)))
        return signalPassFailure();
      programs.push_back(program);
    }
    for (ProgramOp program : programs)
      if (failed(host::lowerToFunction(program)))
        return signalPassFailure();
    for (ProgramOp program : programs)
      program.erase();
    for (Operation *plan : plans)
      plan->erase();
  }
};

} // namespace
} // namespace tokentile
