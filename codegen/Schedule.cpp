//===- Schedule.cpp - Choosing how a kernel is made -----------------------===//

#include "codegen/Schedule.h"

#include "codegen/Layout.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;

/// Most rows of one sweep: outputs of more do not fit the registers beside what
/// else a sweep holds.
static int64_t maxRows(KernelOp spec) {
  return spec.getHeads().getDim() > 128 ? 128 : 160;
}
/// Most warps of a block; more leave too few registers to each.
static constexpr int64_t kMaxWarps = 16;
/// Most row tiles of a row warp, and key warps that meet.
static constexpr int64_t kMaxRowTiles = 2;
static constexpr int64_t kMaxKeyWarps = 4;
/// Largest window and split: sums with a position stay within 32 bits.
static constexpr int64_t kMaxKeys = int64_t(1) << 30;
static constexpr int64_t kRegistersPerSm = 65536;
static constexpr int64_t kMaxRegisters = 255;
/// Registers of a thread that fragments leave to addresses and loop state, and
/// what a dense block, a window or given positions add to them.
static constexpr int64_t kOtherRegisters = 60;
static constexpr int64_t kAxisRegisters = 8;

//===----------------------------------------------------------------------===//
// Coverage
//===----------------------------------------------------------------------===//

/// Marks the diagnostic of a refusal; it is not printed.
static constexpr StringLiteral kRefusal = "refusal";

/// Starts the error that refuses a sound spec.
static InFlightDiagnostic refuse(KernelOp spec) {
  InFlightDiagnostic error = spec.emitOpError();
  error.getUnderlyingDiagnostic()->getMetadata().emplace_back(kRefusal);
  return error;
}

bool tokentile::isRefusal(Diagnostic &diagnostic) {
  return llvm::any_of(
      diagnostic.getMetadata(), [](const DiagnosticArgument &mark) {
        return mark.getKind() ==
                   DiagnosticArgument::DiagnosticArgumentKind::String &&
               mark.getAsString() == kRefusal;
      });
}

static InFlightDiagnostic notCovered(KernelOp spec, StringRef axis) {
  return refuse(spec) << "the generator does not cover " << axis << " ";
}

static LogicalResult checkStorage(KernelOp spec, StringRef axis,
                                  StorageAttr storage) {
  if (storage.getElement() != ElementKind::BF16 &&
      storage.getElement() != ElementKind::FP16)
    return notCovered(spec, axis) << stringifyElementKind(storage.getElement())
                                  << " yet; bf16 and fp16 work";
  return success();
}

LogicalResult tokentile::checkCovered(KernelOp spec) {
  if (failed(checkStorage(spec, "'keys' element", spec.getKeys())) ||
      failed(checkStorage(spec, "'values' element", spec.getValues())))
    return failure();
  int64_t dim = spec.getHeads().getDim();
  if (dim != 64 && dim != 128 && dim != 256)
    return notCovered(spec, "'heads' dim")
           << dim << " yet; 64, 128 and 256 work";
  if (spec.getValueDim() != dim)
    return notCovered(spec, "'heads' value_dim")
           << spec.getValueDim() << " yet; the key's " << dim << " works";
  if (spec.getHeads().getGroup() > 16)
    return notCovered(spec, "'heads' group")
           << spec.getHeads().getGroup() << " yet; 1 to 16 work";
  if (spec.getSees().getSuffix() == SuffixKind::Ancestors)
    return notCovered(spec, "'sees' suffix")
           << "ancestors yet; causal and bidirectional work";
  if (spec.getSees().getWindow() > kMaxKeys)
    return notCovered(spec, "'sees' within")
           << spec.getSees().getWindow() << " yet; up to " << kMaxKeys
           << " works";
  SplitAttr split = spec.getSplitOrDefault();
  if (split.getKind() != SplitKind::Auto && split.getValue() > kMaxKeys)
    return notCovered(spec, "'split' of")
           << split.getValue() << " yet; up to " << kMaxKeys << " works";
  PagingAttr paging = spec.getPaging();
  if (paging.getOrder() != PageOrderKind::Contiguous &&
      (paging.getPage() < 16 || paging.getPage() > 256))
    return notCovered(spec, "'paging' page")
           << paging.getPage() << " yet; 16 to 256 work";
  if (paging.getIds() != IndexKind::I32)
    return notCovered(spec, "'paging' ids")
           << stringifyIndexKind(paging.getIds()) << " yet; i32 works";
  if (spec.getSoftcap())
    return notCovered(spec, "'softcap'")
           << spec.getSoftcap()->convertToDouble() << " yet; none works";
  if (spec.getLatent())
    return notCovered(spec, "'latent'") << "true yet; separate planes work";
  if (!spec.getScore().empty())
    return notCovered(spec, "'score'") << "region yet; none works";
  return success();
}

//===----------------------------------------------------------------------===//
// Cost
//===----------------------------------------------------------------------===//

static int64_t tileBytes(KernelOp spec, int64_t rows) {
  return rows * spec.getHeads().getDim() * 2;
}

MmaSchedule tokentile::readSchedule(ScheduleAttr schedule) {
  MmaSchedule s;
  s.rowWarps = schedule.getRowWarps();
  s.rowTiles = schedule.getRowTiles();
  s.keyWarps = schedule.getKeyWarps();
  s.meetAtTile = schedule.getMeet() == MeetKind::Tile;
  s.keyTile = schedule.getKeyTile();
  s.stages = schedule.getStages();
  s.rowBlocks = schedule.getRowBlocks();
  s.queryInRegisters = schedule.getQuery() == QueryPlace::Registers;
  return s;
}

SharedLayout tokentile::sharedLayout(KernelOp spec, const MmaSchedule &s) {
  constexpr int64_t alignment = 1024;
  SharedLayout layout;
  layout.probabilities = tileBytes(spec, s.rows());
  layout.scratch = layout.probabilities;
  layout.tiles = layout.probabilities;
  int64_t tiles = 2 * s.stages * tileBytes(spec, s.keyTile);
  if (s.meetAtTile) {
    layout.scratch += llvm::alignTo(s.rows() * s.keyTile * 2, alignment);
    layout.tiles = layout.scratch + llvm::alignTo(s.rows() * 16, alignment);
  } else {
    // Key warps meet in fp32, one warp's registers after another, over the
    // tiles: each lane has its rows' maxima, sums and share of the output.
    int64_t registers = s.rowTiles * (4 + spec.getHeads().getDim() / 2);
    int64_t meeting =
        (s.keyWarps - 1) * s.rowWarps * layout::kWarp * registers * 4;
    tiles = std::max<int64_t>(tiles, llvm::alignTo(meeting, alignment));
  }
  layout.bytes = layout.tiles + tiles;
  return layout;
}

int64_t tokentile::fragmentRegisters(KernelOp spec, const MmaSchedule &s) {
  int64_t dim = spec.getHeads().getDim();
  int64_t output = s.rowTiles * dim / 2;
  if (s.meetAtTile)
    output /= s.keyWarps;
  int64_t query = s.rowTiles * (s.queryInRegisters ? dim / 4 : 4);
  int64_t scores = s.rowTiles * s.keyTile / s.keyWarps / 2;
  // Row positions, statistics and their successors.
  int64_t statistics = 12 * (s.rowTiles - 1);
  return output + query + scores + scores / 2 + statistics;
}

// Fitted to sweeps of 137 schedules at 64K keys on an H200, within 5 %; see
// bench/results/h200-mma-schedules.md.
/// Partitions of a multiprocessor, each with a scheduler of its own.
static constexpr int64_t kPartitions = 4;
static constexpr double kMmaEfficiency = 0.50;
static constexpr double kUnevenness = 0.21;
static constexpr double kSharedBytesPerCycle = 94;
/// Keys of one split over which costs of its end are spread.
static constexpr double kTypicalKeys = 512;

double tokentile::cyclesPerKey(KernelOp spec, const MmaSchedule &s,
                               const ChipFacts &chip) {
  double dim = spec.getHeads().getDim();
  double keyBytes = 2 * tileBytes(spec, 1);
  double sms = chip.multiprocessors, hertz = chip.gigahertz * 1e9;

  // Memory: latency of about a microsecond must be covered by bytes in flight.
  double bytesPerCycle = chip.gigabytesPerSecond * 1e9 / hertz / sms;
  double inFlight = (s.stages - 1) * s.keyTile * keyBytes;
  double needed = chip.gigabytesPerSecond * 1e9 / sms * 1.0e-6;
  double memory = keyBytes / bytesPerCycle * std::max(1.0, needed / inFlight);

  // Products, on padded rows; a multiprocessor has four partitions, and warps
  // that do not fill them evenly wait for the fullest.
  double flops = 4 * dim * s.rows();
  double fullest = double(llvm::alignTo(s.warps(), kPartitions)) / s.warps();
  double rate = kMmaEfficiency * chip.mmaTeraflops * 1e12 / hertz / sms;
  double mma = (1 + kUnevenness * (fullest - 1)) * flops / rate;

  // Shared memory: each row warp reads every key and value, each warp its
  // query rows once a tile unless registers hold them, and all key warps the
  // probabilities if they share them.
  double reads = s.rowWarps * keyBytes;
  if (!s.queryInRegisters)
    reads += s.keyWarps * s.rows() * dim * 2 / s.keyTile;
  if (s.meetAtTile)
    reads += (s.keyWarps + 1) * s.rows() * 2;
  double shared = (reads + keyBytes) / kSharedBytesPerCycle;

  // A tile costs barriers and a wait, more with more warps to meet; key warps
  // that meet at the end pass their outputs on once.
  double perTile = s.meetAtTile ? 57 + 20.0 * s.warps() : 65;
  double meeting = s.meetAtTile ? 0
                                : (s.keyWarps - 1) * s.rows() * dim * 8 /
                                      kSharedBytesPerCycle / kTypicalKeys;
  double busiest = std::max({memory, mma, shared});
  double rest = memory + mma + shared - busiest;
  double cycles = busiest + rest * (0.028 + 0.17 / s.warps()) +
                  perTile / s.keyTile + meeting;
  // Fewer warps than a multiprocessor has partitions leave some of them idle.
  return s.warps() < kPartitions ? 1.25 * cycles : cycles;
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

static ScheduleAttr toAttr(KernelOp spec, const MmaSchedule &s,
                           const ChipFacts &chip, int64_t maxSweeps) {
  MLIRContext *context = spec.getContext();
  return ScheduleAttr::get(
      context, LoweringKind::Mma, StringAttr::get(context, chip.name),
      s.keyTile, s.rowWarps, s.rowTiles, s.keyWarps,
      s.meetAtTile ? MeetKind::Tile : MeetKind::End, s.stages, s.rowBlocks,
      maxSweeps,
      s.queryInRegisters ? QueryPlace::Registers : QueryPlace::Shared,
      spec.getScheduleOrDefault().getInvariant());
}

/// Registers of a thread beside its fragments.
static int64_t otherRegisters(KernelOp spec) {
  int64_t axes = 0;
  axes += spec.getBlockKind() == BlockKind::Dense;
  axes += spec.getSees().getPrefix() != PrefixKind::All;
  axes += spec.getQueryOrDefault().getPositions() == PositionsKind::Given;
  axes += spec.getPaging().getPage() && spec.getPaging().getPage() < 64;
  return kOtherRegisters + axes * kAxisRegisters;
}

/// Whether the split is into pieces of whole tiles.
static bool isSized(SplitAttr split) {
  return split.getKind() == SplitKind::Keys ||
         split.getKind() == SplitKind::Pieces;
}

/// Whether `s` divides rows, keys and dimensions as the lowering can.
static bool isWellFormed(KernelOp spec, const MmaSchedule &s) {
  if (s.warps() > kMaxWarps || s.rowTiles > kMaxRowTiles ||
      s.keyWarps > kMaxKeyWarps || s.keyTile % (16 * s.keyWarps) ||
      s.stages < 2)
    return false;
  // Shared probabilities are swizzled over rows of 128 bytes; key warps divide
  // the dimensions in pairs of eight.
  return !s.meetAtTile || (s.keyWarps > 1 && s.keyTile >= 64 &&
                           spec.getHeads().getDim() % (16 * s.keyWarps) == 0);
}

/// Whether the lowering can make `s` on `chip`.
static bool isPossible(KernelOp spec, const MmaSchedule &s,
                       const ChipFacts &chip) {
  if (!isWellFormed(spec, s))
    return false;
  SplitAttr split = spec.getSplitOrDefault();
  if (isSized(split) && split.getValue() % s.keyTile)
    return false;
  // Each partition holds whole warps; registers come in units of eight.
  int64_t threads = llvm::alignTo(s.warps(), kPartitions) * layout::kWarp;
  int64_t registers =
      std::min(kMaxRegisters, kRegistersPerSm / threads / 8 * 8);
  return sharedLayout(spec, s).bytes <= chip.sharedPerBlock &&
         fragmentRegisters(spec, s) <= registers - otherRegisters(spec);
}

LogicalResult tokentile::checkComplete(KernelOp plan) {
  ScheduleAttr s = plan.getScheduleOrDefault();
  bool host = s.getLowering() == LoweringKind::Host;
  bool mma = s.getLowering() == LoweringKind::Mma && s.getRowWarps() &&
             s.getRowTiles() && s.getKeyWarps() && s.getStages();
  if (!s.getChip() || !s.getKeyTile() || !(host || mma))
    return plan.emitOpError(
        "has no complete schedule; run attn-select-schedule");
  if (!findChip(s.getChip().getValue()))
    return plan.emitOpError("is planned for unknown chip ") << s.getChip();
  if (mma && !isWellFormed(plan, readSchedule(s)))
    return plan.emitOpError("has a schedule that the mma lowering cannot make; "
                            "run attn-select-schedule to see what fits");
  return success();
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

SplitAttr tokentile::selectSplit(KernelOp plan, const ChipFacts &chip) {
  SplitAttr split = plan.getSplitOrDefault();
  if (!plan.getScheduleOrDefault().getInvariant() ||
      split.getKind() != SplitKind::Auto)
    return split;
  // 16K keys in a piece for each multiprocessor, as near as powers of two come;
  // on the host two tiles.
  int64_t keys = 64;
  if (!chip.isHost()) {
    double share = 16384.0 * plan.getHeads().getKv() / chip.multiprocessors;
    keys = int64_t(1) << std::lround(std::log2(std::max(share, 1.0)));
  }
  int64_t keyTile = plan.getScheduleOrDefault().getKeyTile();
  keys = std::clamp<int64_t>(keys, keyTile, 2048);
  return SplitAttr::get(plan.getContext(), SplitKind::Pieces, keys);
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
                        << " sweeps over the keys; one sweep holds " << most
                        << " rows, and 'max_sweeps' allows " << maxSweeps;
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

static ScheduleAttr selectMma(KernelOp spec, const ChipFacts &chip) {
  ScheduleAttr given = spec.getScheduleOrDefault();
  MmaSchedule start, best;
  int64_t maxSweeps = 1;
  if (failed(divideRows(spec, chip, start, maxSweeps)))
    return {};
  double bestCost = HUGE_VAL;
  forEachSchedule(spec, start, [&](const MmaSchedule &s) {
    if (!isPossible(spec, s, chip))
      return;
    double cost = cyclesPerKey(spec, s, chip);
    if (cost < bestCost) {
      bestCost = cost;
      best = s;
    }
  });
  if (bestCost == HUGE_VAL) {
    refuse(spec) << "no schedule fits " << chip.name << ": "
                 << llvm::divideCeil(spec.getRows(), start.rowBlocks)
                 << " rows of 'heads' dim " << spec.getHeads().getDim()
                 << " in " << chip.sharedPerBlock
                 << " bytes of shared memory, given key_tile "
                 << given.getKeyTile() << ", row_warps " << given.getRowWarps()
                 << ", row_tiles " << given.getRowTiles() << ", key_warps "
                 << given.getKeyWarps() << ", meet "
                 << stringifyMeetKind(given.getMeet()) << ", stages "
                 << given.getStages() << " (0 is open) and split size "
                 << spec.getSplitOrDefault().getValue();
    return {};
  }
  return toAttr(spec, best, chip, maxSweeps);
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
  if (isSized(split) && split.getValue() % keyTile) {
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
  LoweringKind natural = chip.isHost() ? LoweringKind::Host : LoweringKind::Mma;
  if (given.getLowering() != LoweringKind::Auto &&
      given.getLowering() != natural) {
    spec.emitOpError("lowering ")
        << stringifyLoweringKind(given.getLowering()) << " does not run on "
        << chip.name << "; " << stringifyLoweringKind(natural) << " does";
    return {};
  }
  if (chip.isHost())
    return selectHost(spec, chip);
  if (given.getInvariant())
    spec.setScheduleAttr(fixSummation(spec, chip));
  return selectMma(spec, chip);
}
