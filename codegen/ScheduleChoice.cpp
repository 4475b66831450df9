//===- ScheduleChoice.cpp - The schedule of a spec ------------------------===//

#include "codegen/Schedule.h"

#include "codegen/Layout.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;

static ScheduleAttr toAttr(KernelOp spec, const MmaSchedule &s,
                           const ChipFacts &chip, int64_t maxSweeps) {
  MLIRContext *context = spec.getContext();
  return ScheduleAttr::get(
      context, s.wgmma ? LoweringKind::Wgmma : LoweringKind::Mma,
      StringAttr::get(context, chip.name), s.keyTile, s.rowWarps, s.rowTiles,
      s.keyWarps, s.meetAtTile ? MeetKind::Tile : MeetKind::End, s.stages,
      s.rowBlocks, maxSweeps,
      s.queryInRegisters ? QueryPlace::Registers : QueryPlace::Shared,
      spec.getScheduleOrDefault().getInvariant());
}

/// Rows of one sweep at most: of an invariant schedule those that its fixed
/// numbers leave registers for.
static int64_t mostRows(KernelOp spec, const ChipFacts &chip) {
  ScheduleAttr given = spec.getScheduleOrDefault();
  int64_t most = maxRows(spec);
  if (!given.getInvariant())
    return most;
  MmaSchedule s;
  s.keyTile = given.getKeyTile();
  s.keyWarps = given.getKeyWarps();
  s.meetAtTile = given.getMeet() == MeetKind::Tile;
  s.stages = 2;
  for (int64_t rows = most; rows > 0; rows -= layout::kRows)
    for (int64_t rowTiles : {1, 2}) {
      s.rowTiles = rowTiles;
      s.rowWarps = llvm::divideCeil(rows, rowTiles * layout::kRows);
      if (isPossible(spec, s, chip))
        return rows;
    }
  return 0;
}

/// Fixes what the order of summation depends on with wgmma, the key tile alone:
/// that of 64 keys, or fewer if two warpgroups do not hold 128 rows with them.
static ScheduleAttr fixWgmma(KernelOp spec, const ChipFacts &chip) {
  ScheduleAttr given = spec.getScheduleOrDefault();
  MmaSchedule s;
  s.wgmma = true;
  s.rowWarps = 8;
  s.keyWarps = 1;
  s.stages = 2;
  s.keyTile = 64;
  while (s.keyTile > layout::kDepth && !isPossible(spec, s, chip))
    s.keyTile /= 2;
  return ScheduleAttr::get(
      spec.getContext(), LoweringKind::Wgmma, given.getChip(),
      given.getKeyTile() ? given.getKeyTile() : s.keyTile, given.getRowWarps(),
      given.getRowTiles(), given.getKeyWarps(), given.getMeet(),
      given.getStages(), given.getRowBlocks(), given.getMaxSweeps(),
      given.getQuery(), /*invariant=*/true);
}

/// Fixes what the order of summation depends on, by nothing but the dimension
/// and the chip: the most key warps that hold the 64 rows of 16 query tokens in
/// groups of four.
static ScheduleAttr fixSummation(KernelOp spec, const ChipFacts &chip) {
  constexpr int64_t kRows = 64;
  struct Summation {
    int64_t keyTile, keyWarps;
    MeetKind meet;
  };
  ScheduleAttr given = spec.getScheduleOrDefault(), chosen;
  if (chip.hasWgmma() && given.getLowering() != LoweringKind::Mma)
    return fixWgmma(spec, chip);
  for (Summation way :
       {Summation{64, 4, MeetKind::Tile}, Summation{64, 2, MeetKind::Tile},
        Summation{32, 2, MeetKind::End}, Summation{32, 1, MeetKind::End},
        Summation{16, 1, MeetKind::End}}) {
    if (given.getKeyTile())
      way.keyTile = given.getKeyTile();
    if (given.getKeyWarps())
      way.keyWarps = given.getKeyWarps();
    if (given.getMeet() != MeetKind::Auto)
      way.meet = given.getMeet();
    chosen = ScheduleAttr::get(
        spec.getContext(), given.getLowering(), given.getChip(), way.keyTile,
        given.getRowWarps(), given.getRowTiles(), way.keyWarps, way.meet,
        given.getStages(), given.getRowBlocks(), given.getMaxSweeps(),
        given.getQuery(), /*invariant=*/true);
    spec.setScheduleAttr(chosen);
    if (mostRows(spec, chip) >= kRows)
      break;
  }
  return chosen;
}

/// Pieces of an invariant schedule on the host.
static constexpr int64_t kHostPieces = 16;
/// Keys of a piece where positions are given: a multiple of every key tile.
static constexpr int64_t kKeysOfPiece = 1024;

SplitAttr tokentile::selectSplit(KernelOp plan, const ChipFacts &chip) {
  SplitAttr split = plan.getSplitOrDefault();
  if (!plan.getScheduleOrDefault().getInvariant() ||
      split.getKind() != SplitKind::Auto)
    return split;
  // Given positions may lie far apart, so that rows have pieces of many sizes.
  if (plan.getQueryOrDefault().getPositions() == PositionsKind::Given)
    return SplitAttr::get(plan.getContext(), SplitKind::Keys, kKeysOfPiece);
  // A piece for each multiprocessor.
  int64_t pieces = kHostPieces;
  if (!chip.isHost())
    pieces = chip.multiprocessors / plan.getHeads().getKv();
  pieces = std::max(pieces, kLeastPieces);
  return SplitAttr::get(plan.getContext(), SplitKind::Pieces, pieces);
}

/// Divides the rows over blocks; fails if that takes more sweeps than allowed.
static LogicalResult divideRows(KernelOp spec, const ChipFacts &chip,
                                MmaSchedule &s, int64_t &maxSweeps) {
  ScheduleAttr given = spec.getScheduleOrDefault();
  int64_t rows = spec.getRows();
  maxSweeps = std::max<int64_t>(1, given.getMaxSweeps());
  s.rowBlocks = given.getRowBlocks();
  int64_t most = std::max(layout::kRows, mostRows(spec, chip));
  if (!s.rowBlocks)
    s.rowBlocks = llvm::divideCeil(rows, most);
  if (s.rowBlocks > maxSweeps)
    return refuse(spec) << "'tokens' " << spec.getTokens() << " makes " << rows
                        << " rows, which take " << s.rowBlocks
                        << " sweeps over the keys; one sweep "
                        << (given.getInvariant() ? "of an invariant schedule "
                                                 : "")
                        << "holds " << most << " rows, and 'max_sweeps' allows "
                        << maxSweeps;
  return success();
}

static SmallVector<int64_t> optionsOr(int64_t given, ArrayRef<int64_t> open) {
  if (given)
    return {given};
  return SmallVector<int64_t>(open);
}

/// Calls `visit` with every schedule that obeys what `spec` fixes.
static void
forEachSchedule(KernelOp spec, MmaSchedule s,
                llvm::function_ref<void(const MmaSchedule &)> visit) {
  ScheduleAttr given = spec.getScheduleOrDefault();
  int64_t rows = llvm::divideCeil(spec.getRows(), s.rowBlocks);
  SmallVector<bool> meets{false, true}, places{false, true};
  if (given.getMeet() != MeetKind::Auto)
    meets = {given.getMeet() == MeetKind::Tile};
  if (given.getQuery() != QueryPlace::Auto)
    places = {given.getQuery() == QueryPlace::Registers};
  for (int64_t rowTiles : optionsOr(given.getRowTiles(), {1, 2})) {
    s.rowTiles = rowTiles;
    int64_t natural = llvm::divideCeil(rows, rowTiles * layout::kRows);
    s.rowWarps = given.getRowWarps() ? given.getRowWarps() : natural;
    if (s.rowWarps < natural)
      continue;
    for (int64_t keyWarps : optionsOr(given.getKeyWarps(), {1, 2, 4}))
      for (bool meet : meets)
        for (int64_t keyTile : optionsOr(given.getKeyTile(), {16, 32, 64, 128}))
          for (int64_t stages : optionsOr(given.getStages(), {2, 3, 4, 5, 6}))
            for (bool place : places) {
              s.keyWarps = keyWarps;
              s.meetAtTile = meet;
              s.keyTile = keyTile;
              s.stages = stages;
              s.queryInRegisters = place;
              visit(s);
            }
  }
}

/// Calls `visit` with every schedule for wgmma of so many row blocks that obeys
/// what `spec` fixes.
static void forEachWgmma(KernelOp spec, int64_t rowBlocks,
                         llvm::function_ref<void(const MmaSchedule &)> visit) {
  ScheduleAttr given = spec.getScheduleOrDefault();
  MmaSchedule s;
  s.wgmma = true;
  s.rowBlocks = rowBlocks;
  s.keyWarps = std::max<int64_t>(1, given.getKeyWarps());
  s.meetAtTile = given.getMeet() == MeetKind::Tile;
  s.queryInRegisters = given.getQuery() == QueryPlace::Registers;
  int64_t rows = llvm::divideCeil(spec.getRows(), s.rowBlocks);
  for (int64_t rowTiles : optionsOr(given.getRowTiles(), {1, 2})) {
    s.rowTiles = rowTiles;
    int64_t natural = llvm::divideCeil(rows, layout::kWgmmaRows * rowTiles) * 4;
    s.rowWarps = given.getRowWarps() ? given.getRowWarps() : natural;
    if (s.rowWarps < natural)
      continue;
    for (int64_t keyTile : optionsOr(given.getKeyTile(), {16, 32, 64, 128}))
      for (int64_t stages : optionsOr(given.getStages(), {2, 3, 4, 5, 6})) {
        s.keyTile = keyTile;
        s.stages = stages;
        visit(s);
      }
  }
}

namespace {

/// Keeps the cheapest possible schedule.
class Cheapest {
public:
  Cheapest(KernelOp spec, const ChipFacts &chip) : spec(spec), chip(chip) {}

  void offer(const MmaSchedule &s) {
    if (!isPossible(spec, s, chip))
      return;
    double cost = cyclesPerKey(spec, s, chip);
    if (!found || cost < *found) {
      found = cost;
      best = s;
    }
  }

  KernelOp spec;
  const ChipFacts &chip;
  std::optional<double> found;
  MmaSchedule best;
};

} // namespace

/// Emits the error that no schedule fits.
static void refuseAll(KernelOp spec, int64_t rowBlocks, const ChipFacts &chip) {
  ScheduleAttr given = spec.getScheduleOrDefault();
  refuse(spec) << "no schedule fits " << chip.name << ": "
               << llvm::divideCeil(spec.getRows(), rowBlocks)
               << " rows of 'heads' dim " << spec.getHeads().getDim() << " in "
               << chip.sharedPerBlock
               << " bytes of shared memory, given lowering "
               << stringifyLoweringKind(given.getLowering()) << ", key_tile "
               << given.getKeyTile() << ", row_warps " << given.getRowWarps()
               << ", row_tiles " << given.getRowTiles() << ", key_warps "
               << given.getKeyWarps() << ", meet "
               << stringifyMeetKind(given.getMeet()) << ", stages "
               << given.getStages() << " (0 is open) and split size "
               << spec.getSplitOrDefault().getValue();
}

static ScheduleAttr selectGpu(KernelOp spec, const ChipFacts &chip) {
  ScheduleAttr given = spec.getScheduleOrDefault();
  Cheapest cheapest(spec, chip);
  auto visit = [&](const MmaSchedule &s) { cheapest.offer(s); };
  int64_t maxSweeps = std::max<int64_t>(1, given.getMaxSweeps());
  bool tryWgmma = chip.hasWgmma() && given.getLowering() != LoweringKind::Mma;
  // Up to one row tile mma was faster in every cell that was measured on an
  // H200: wgmma pads to 64 rows.
  if (given.getLowering() == LoweringKind::Auto &&
      spec.getRows() <= layout::kRows)
    tryWgmma = false;
  if (tryWgmma) {
    // As few sweeps as there can be.
    int64_t fixed = given.getRowBlocks();
    for (int64_t blocks = fixed ? fixed : 1;
         blocks <= (fixed ? fixed : maxSweeps) && !cheapest.found; ++blocks)
      forEachWgmma(spec, blocks, visit);
  }
  MmaSchedule start;
  start.rowBlocks = 1;
  if (!cheapest.found && given.getLowering() != LoweringKind::Wgmma) {
    if (failed(divideRows(spec, chip, start, maxSweeps)))
      return {};
    forEachSchedule(spec, start, visit);
  }
  if (!cheapest.found) {
    refuseAll(spec, start.rowBlocks, chip);
    return {};
  }
  return toAttr(spec, cheapest.best, chip, maxSweeps);
}

static ScheduleAttr selectHost(KernelOp spec, const ChipFacts &chip) {
  ScheduleAttr given = spec.getScheduleOrDefault();
  MLIRContext *context = spec.getContext();
  int64_t rowBlocks = std::max<int64_t>(1, given.getRowBlocks());
  int64_t maxSweeps = std::max<int64_t>(1, given.getMaxSweeps());
  if (rowBlocks > maxSweeps) {
    refuse(spec) << "'row_blocks' " << rowBlocks
                 << " take as many sweeps over the keys, and 'max_sweeps' "
                 << "allows " << maxSweeps;
    return {};
  }
  int64_t keyTile = given.getKeyTile() ? given.getKeyTile() : 32;
  SplitAttr split = spec.getSplitOrDefault();
  if (split.getKind() == SplitKind::Keys && split.getValue() % keyTile) {
    refuse(spec) << "'split' of " << split.getValue()
                 << " keys is not a multiple of key_tile " << keyTile;
    return {};
  }
  return ScheduleAttr::get(context, LoweringKind::Host,
                           StringAttr::get(context, chip.name), keyTile, 0, 0,
                           0, MeetKind::Auto, 0, rowBlocks, maxSweeps,
                           QueryPlace::Auto, given.getInvariant());
}

ScheduleAttr tokentile::selectSchedule(KernelOp spec, const ChipFacts &chip) {
  ScheduleAttr given = spec.getScheduleOrDefault();
  if (given.getChip() && given.getChip().getValue() != chip.name) {
    spec.emitOpError("'schedule' is for chip ")
        << given.getChip() << ", expected \"" << chip.name << "\"";
    return {};
  }
  LoweringKind lowering = given.getLowering();
  bool runs =
      lowering == LoweringKind::Auto ||
      (chip.isHost()                     ? lowering == LoweringKind::Host
       : lowering == LoweringKind::Wgmma ? chip.hasWgmma()
                                         : lowering == LoweringKind::Mma);
  if (!runs) {
    spec.emitOpError("lowering ") << stringifyLoweringKind(lowering)
                                  << " does not run on " << chip.name << "; "
                                  << (chip.isHost()     ? "host"
                                      : chip.hasWgmma() ? "mma and wgmma"
                                                        : "mma")
                                  << (chip.hasWgmma() ? " do" : " does");
    return {};
  }
  if (chip.isHost())
    return selectHost(spec, chip);
  if (given.getInvariant())
    spec.setScheduleAttr(fixSummation(spec, chip));
  return selectGpu(spec, chip);
}
