//===- Schedule.h - Choosing how a kernel is made ---------------*- C++ -*-===//
//
// The generator's coverage, the cost model and the choice, apart from the pass
// that writes the choice into a spec, so that they are tested as data.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_CODEGEN_SCHEDULE_H
#define TOKENTILE_CODEGEN_SCHEDULE_H

#include "codegen/ChipFacts.h"
#include "dialect/AttnOps.h"

namespace tokentile {

/// One way to run a spec on a GPU, every choice concrete.
struct MmaSchedule {
  int64_t rowWarps = 0;
  int64_t keyWarps = 0;
  int64_t keyTile = 0;
  int64_t stages = 0;
  int64_t rowBlocks = 1;
  bool queryInRegisters = false;

  int64_t warps() const { return rowWarps * keyWarps; }
  int64_t threads() const { return warps() * 32; }
};

/// Shared memory of a sweep, in bytes, as attn-stage lays it out.
int64_t sharedBytes(attn::KernelOp spec, const MmaSchedule &schedule);

/// Registers a thread needs for its fragments, without addresses.
int64_t fragmentRegisters(attn::KernelOp spec, const MmaSchedule &schedule);

/// Estimated clock cycles of one multiprocessor for each key it sweeps.
double cyclesPerKey(attn::KernelOp spec, const MmaSchedule &schedule,
                    const ChipFacts &chip);

/// Emits an error on `spec` and fails if the generator does not cover one of
/// its axes; the message names the axis and the value.
mlir::LogicalResult checkCovered(attn::KernelOp spec);

/// The complete schedule for `chip`, obeying what `spec`'s own schedule fixes.
/// Emits an error on `spec` and returns null if none exists.
attn::ScheduleAttr selectSchedule(attn::KernelOp spec, const ChipFacts &chip);

} // namespace tokentile

#endif // TOKENTILE_CODEGEN_SCHEDULE_H
