//===- SelectSchedule.cpp - attn-select-schedule --------------------------===//
//
// Spec to plan: checks coverage, then fills in the schedule.
//
//===----------------------------------------------------------------------===//

#include "codegen/Passes.h"
#include "codegen/Schedule.h"

#include "mlir/Pass/Pass.h"

namespace tokentile {
#define GEN_PASS_DEF_SELECTSCHEDULEPASS
#include "codegen/Passes.h.inc"
} // namespace tokentile

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;

namespace {

struct SelectSchedulePass
    : tokentile::impl::SelectSchedulePassBase<SelectSchedulePass> {
  using SelectSchedulePassBase::SelectSchedulePassBase;

  void runOnOperation() override {
    for (KernelOp spec : getOperation().getOps<KernelOp>())
      if (failed(plan(spec)))
        return signalPassFailure();
  }

  LogicalResult plan(KernelOp spec) {
    StringAttr own = spec.getScheduleOrDefault().getChip();
    StringRef name = !chip.empty() ? StringRef(chip)
                     : own         ? own.getValue()
                                   : StringRef();
    const ChipFacts *facts = findChip(name);
    if (!facts) {
      InFlightDiagnostic error = spec.emitOpError("unknown chip \"")
                                 << name << "\", expected one of";
      for (const ChipFacts &known : knownChips())
        error << " " << known.name;
      return error;
    }
    if (failed(checkCovered(spec)))
      return failure();
    ScheduleAttr schedule = selectSchedule(spec, *facts);
    if (!schedule)
      return failure();
    spec.setScheduleAttr(schedule);
    spec.setSplitAttr(selectSplit(spec, *facts));
    return success();
  }
};

} // namespace
