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
  /// Tiles of 16 rows that one row warp holds.
  int64_t rowTiles = 1;
  int64_t keyWarps = 0;
  /// Key warps meet at every tile rather than at the end.
  bool meetAtTile = false;
  int64_t keyTile = 0;
  int64_t stages = 0;
  int64_t rowBlocks = 1;
  bool queryInRegisters = false;
  /// Products by wgmma: four row warps for each 64 rows, beside four that copy.
  bool wgmma = false;

  /// Warps that multiply, and their threads.
  int64_t warps() const { return rowWarps * keyWarps; }
  int64_t threads() const { return warps() * 32; }
  /// All threads of a block.
  int64_t blockThreads() const { return threads() + (wgmma ? 128 : 0); }
  int64_t rows() const { return rowWarps * rowTiles * 16; }
};

/// The chip of a plan that is complete.
const ChipFacts &chipOf(attn::KernelOp plan);

/// Whether a plan is for one of the lowerings to a GPU.
bool isForGpu(attn::KernelOp plan);

/// Emits an error on `plan` and fails if its schedule leaves a number open.
/// `meet auto` and `query auto` of a plan are the end and shared memory.
mlir::LogicalResult checkComplete(attn::KernelOp plan);

/// The schedule of a plan.
MmaSchedule readSchedule(attn::ScheduleAttr schedule);

/// Where a sweep's shared memory lies, in bytes from its start; attn-stage
/// allocates by it. The query stands at 0.
struct SharedLayout {
  /// Probabilities and scratch, if key warps meet at every tile.
  int64_t probabilities = 0;
  int64_t scratch = 0;
  /// Slots of keys and then of values; key warps that meet at the end do so
  /// over the same bytes.
  int64_t tiles = 0;
  /// The rings' barriers of a wgmma sweep: keys, then values.
  int64_t rings = 0;
  int64_t bytes = 0;
};
SharedLayout sharedLayout(attn::KernelOp spec, const MmaSchedule &schedule);

/// Blocks of a sweep for which a multiprocessor has registers and shared
/// memory: two of two warpgroups, so that one copies while the other begins or
/// ends.
int64_t blocksPerSm(attn::KernelOp spec, const MmaSchedule &schedule,
                    const ChipFacts &chip);

/// Whether a plan has a second sweep, of batches that are divided into ranges
/// of tiles (WorkRanges.cpp): where blocks share a multiprocessor. The others
/// have no registers for what waits for its turn.
bool sweepsRanges(attn::KernelOp plan);
/// The name of its function.
std::string rangesSymbol(attn::KernelOp plan);

/// Registers of a thread that copies and of one that multiplies; the same for
/// mma, and for blocks so small that all threads have what they can address.
struct RoleRegisters {
  int64_t producers = 0;
  int64_t consumers = 0;
};
RoleRegisters roleRegisters(attn::KernelOp spec, const MmaSchedule &schedule,
                            const ChipFacts &chip);

/// Registers a thread needs for its fragments, without addresses.
int64_t fragmentRegisters(attn::KernelOp spec, const MmaSchedule &schedule);

/// Estimated clock cycles of one multiprocessor for each key it sweeps.
double cyclesPerKey(attn::KernelOp spec, const MmaSchedule &schedule,
                    const ChipFacts &chip);

/// Most rows of one sweep of the mma lowering: outputs of more do not fit the
/// registers beside what else a sweep holds.
int64_t maxRows(attn::KernelOp spec);

/// Pieces of `split<pieces>`. With the fewest, the smallest tiles (16 keys) and
/// the most tokens (64, C35) rows still have pieces of at most two sizes.
constexpr int64_t kLeastPieces = 4, kMostPieces = 256;

/// Whether the lowering can make `schedule` on `chip`.
bool isPossible(attn::KernelOp spec, const MmaSchedule &schedule,
                const ChipFacts &chip);

/// Starts the error that refuses a sound spec.
mlir::InFlightDiagnostic refuse(attn::KernelOp spec);

/// Whether an error refuses a sound spec: checkCovered's, or selectSchedule's
/// when nothing fits. What is wrong on its own, such as a schedule for another
/// chip, is no refusal.
bool isRefusal(mlir::Diagnostic &diagnostic);

/// Emits an error on `spec` and fails if the generator does not cover one of
/// its axes; the message names the axis and the value.
mlir::LogicalResult checkCovered(attn::KernelOp spec);

/// The complete schedule for `chip`, obeying what `spec`'s own schedule fixes.
/// Emits an error on `spec` and returns null if none exists. If it is
/// invariant, key tile, key warps and their meeting follow from the dimension
/// and the chip alone; they are written into `spec` on the way.
attn::ScheduleAttr selectSchedule(attn::KernelOp spec, const ChipFacts &chip);

/// The split of a plan whose schedule has been selected: what the spec says, or
/// growing pieces where an invariant schedule leaves it open.
attn::SplitAttr selectSplit(attn::KernelOp plan, const ChipFacts &chip);

} // namespace tokentile

#endif // TOKENTILE_CODEGEN_SCHEDULE_H
