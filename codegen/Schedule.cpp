//===- Schedule.cpp - Choosing how a kernel is made -----------------------===//

#include "codegen/Schedule.h"

#include "codegen/Layout.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;

int64_t tokentile::maxRows(KernelOp spec) {
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
static constexpr int64_t kOtherRegisters = 59;
static constexpr int64_t kAxisRegisters = 8;
static constexpr int64_t kWgmmaOtherRegisters = 52;
/// What the driver takes of a multiprocessor's shared memory for each block.
static constexpr int64_t kSharedOfBlock = 1024;
/// Registers of a thread that copies: what it likes, what it gets along with,
/// and that without any of those axes; and the most that setmaxnreg gives.
static constexpr int64_t kMostProducerRegisters = 56;
static constexpr int64_t kGeneralProducerRegisters = 40;
static constexpr int64_t kLeastProducerRegisters = 24;
static constexpr int64_t kMaxRoleRegisters = 248;

//===----------------------------------------------------------------------===//
// Coverage
//===----------------------------------------------------------------------===//

/// Marks the diagnostic of a refusal; it is not printed.
static constexpr StringLiteral kRefusal = "refusal";

InFlightDiagnostic tokentile::refuse(KernelOp spec) {
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
  if (split.getKind() == SplitKind::Keys && split.getValue() % 16)
    return notCovered(spec, "'split' keys of")
           << split.getValue() << " yet; multiples of 16 work";
  if (split.getKind() == SplitKind::Pieces) {
    if (split.getValue() < kLeastPieces || split.getValue() > kMostPieces)
      return notCovered(spec, "'split' pieces of")
             << split.getValue() << " yet; " << kLeastPieces << " to "
             << kMostPieces << " work";
    if (spec.getQueryOrDefault().getPositions() == PositionsKind::Given)
      return notCovered(spec, "'split' pieces")
             << "with given positions yet; keys and auto work";
  }
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
  s.wgmma = schedule.getLowering() == LoweringKind::Wgmma;
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
  layout.rings = layout.tiles + tiles;
  layout.bytes = layout.rings;
  if (s.wgmma)
    layout.bytes += 2 * s.stages * layout::kRingSlot;
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

/// Cycles of a tile, and of each byte of a ring spread over the keys of a
/// sweep: bytes in flight beyond those that cover the latency only took longer
/// on an H200 (two slots of 32 KiB are best at dimension 128, of 64 KiB at 256,
/// where they hold 64 keys).
static constexpr double kWgmmaTileCycles = 300;
static constexpr double kWgmmaRingCycles = 6e-5;
static constexpr double kWgmmaLatency = 0.8e-6;

static double wgmmaCyclesPerKey(KernelOp spec, const MmaSchedule &s,
                                const ChipFacts &chip) {
  double keyBytes = 2 * tileBytes(spec, 1);
  double sms = chip.multiprocessors, hertz = chip.gigahertz * 1e9;
  double bytesPerSecond = chip.gigabytesPerSecond * 1e9 / sms;
  double inFlight = (s.stages - 1) * s.keyTile * keyBytes;
  double memory = keyBytes / bytesPerSecond * hertz *
                  std::max(1.0, bytesPerSecond * kWgmmaLatency / inFlight);
  double flops = 4.0 * spec.getHeads().getDim() * s.rows();
  double products = flops / (chip.wgmmaTeraflops * 1e12 / hertz / sms);
  return std::max(memory, products) + kWgmmaTileCycles / s.keyTile +
         kWgmmaRingCycles * s.stages * s.keyTile * keyBytes;
}

double tokentile::cyclesPerKey(KernelOp spec, const MmaSchedule &s,
                               const ChipFacts &chip) {
  if (s.wgmma)
    return wgmmaCyclesPerKey(spec, s, chip);
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
// What fits
//===----------------------------------------------------------------------===//

/// Axes of a spec that cost a thread that multiplies registers of its own.
static int64_t costlyAxes(KernelOp spec) {
  int64_t axes = 0;
  axes += spec.getBlockKind() == BlockKind::Dense;
  axes += spec.getSees().getPrefix() != PrefixKind::All;
  axes += spec.getQueryOrDefault().getPositions() == PositionsKind::Given;
  return axes;
}

/// Whether a tile has several pages, which a thread that copies looks up.
static bool hasSmallPages(KernelOp spec) {
  return spec.getPaging().getPage() && spec.getPaging().getPage() < 64;
}

/// Registers of a thread that multiplies beside its fragments.
static int64_t otherRegisters(KernelOp spec, const MmaSchedule &s) {
  int64_t axes = costlyAxes(spec) * kAxisRegisters;
  if (s.wgmma)
    return kWgmmaOtherRegisters + axes;
  // Here every thread copies.
  return kOtherRegisters + axes + hasSmallPages(spec) * kAxisRegisters;
}

int64_t tokentile::blocksPerSm(KernelOp spec, const MmaSchedule &s,
                               const ChipFacts &chip) {
  // Two warpgroups that copy and multiply have half of the registers.
  constexpr int64_t threads = 2 * layout::kWarpgroup;
  constexpr int64_t each = kRegistersPerSm / 2 / threads;
  if (!s.wgmma || s.blockThreads() > threads ||
      2 * (sharedLayout(spec, s).bytes + kSharedOfBlock) > chip.sharedPerSm)
    return 1;
  int64_t consumers = 2 * each - kMostProducerRegisters;
  int64_t needed = fragmentRegisters(spec, s) + otherRegisters(spec, s);
  return needed <= consumers ? 2 : 1;
}

bool tokentile::sweepsRanges(KernelOp plan) {
  MmaSchedule schedule = readSchedule(plan.getScheduleOrDefault());
  return plan.getSplitOrDefault().getKind() == SplitKind::Auto &&
         schedule.wgmma && blocksPerSm(plan, schedule, chipOf(plan)) > 1;
}

std::string tokentile::rangesSymbol(KernelOp plan) {
  return (plan.getSymName() + "_ranges").str();
}

RoleRegisters tokentile::roleRegisters(KernelOp spec, const MmaSchedule &s,
                                       const ChipFacts &chip) {
  // Each partition holds whole warps; registers come in units of eight.
  int64_t threads =
      llvm::alignTo(s.blockThreads(), kPartitions * layout::kWarp);
  int64_t blocks = blocksPerSm(spec, s, chip);
  int64_t each =
      std::min(kMaxRegisters, kRegistersPerSm / blocks / threads / 8 * 8);
  // Two warpgroups alone have all they can address.
  if (!s.wgmma || (blocks == 1 && threads <= 2 * layout::kWarpgroup))
    return {each, each};
  int64_t least = costlyAxes(spec) || hasSmallPages(spec)
                      ? kGeneralProducerRegisters
                      : kLeastProducerRegisters;
  auto consumers = [&](int64_t producers) {
    int64_t pool = each * threads - producers * layout::kWarpgroup;
    return std::min(kMaxRoleRegisters, pool / s.threads() / 8 * 8);
  };
  int64_t needed = fragmentRegisters(spec, s) + kWgmmaOtherRegisters;
  int64_t producers = kMostProducerRegisters;
  while (producers > least && consumers(producers) < needed)
    producers -= 8;
  return {producers, consumers(producers)};
}

/// Whether `s` divides rows, keys and dimensions as the lowering can.
static bool isWellFormed(KernelOp spec, const MmaSchedule &s) {
  if (s.wgmma)
    return s.rowWarps % 4 == 0 && s.rowTiles <= kMaxRowTiles &&
           s.keyWarps == 1 && !s.meetAtTile && !s.queryInRegisters &&
           s.keyTile <= 128 && s.stages >= 2 && s.stages <= 8 &&
           s.warps() <= kMaxWarps;
  if (s.warps() > kMaxWarps || s.rowTiles > kMaxRowTiles ||
      s.keyWarps > kMaxKeyWarps || s.keyTile % (16 * s.keyWarps) ||
      s.stages < 2)
    return false;
  // Shared probabilities are swizzled over rows of 128 bytes; key warps divide
  // the dimensions in pairs of eight.
  return !s.meetAtTile || (s.keyWarps > 1 && s.keyTile >= 64 &&
                           spec.getHeads().getDim() % (16 * s.keyWarps) == 0);
}

bool tokentile::isPossible(KernelOp spec, const MmaSchedule &s,
                           const ChipFacts &chip) {
  if (!isWellFormed(spec, s))
    return false;
  SplitAttr split = spec.getSplitOrDefault();
  if (split.getKind() == SplitKind::Keys && split.getValue() % s.keyTile)
    return false;
  return sharedLayout(spec, s).bytes <= chip.sharedPerBlock &&
         fragmentRegisters(spec, s) <=
             roleRegisters(spec, s, chip).consumers - otherRegisters(spec, s);
}

const ChipFacts &tokentile::chipOf(KernelOp plan) {
  return *findChip(plan.getScheduleOrDefault().getChip().getValue());
}

bool tokentile::isForGpu(KernelOp plan) {
  LoweringKind lowering = plan.getScheduleOrDefault().getLowering();
  return lowering == LoweringKind::Mma || lowering == LoweringKind::Wgmma;
}

LogicalResult tokentile::checkComplete(KernelOp plan) {
  ScheduleAttr s = plan.getScheduleOrDefault();
  bool host = s.getLowering() == LoweringKind::Host;
  bool gpu = isForGpu(plan) && s.getRowWarps() && s.getRowTiles() &&
             s.getKeyWarps() && s.getStages();
  if (!s.getChip() || !s.getKeyTile() || !(host || gpu))
    return plan.emitOpError(
        "has no complete schedule; run attn-select-schedule");
  if (!findChip(s.getChip().getValue()))
    return plan.emitOpError("is planned for unknown chip ") << s.getChip();
  if (gpu && !isWellFormed(plan, readSchedule(s)))
    return plan.emitOpError("has a schedule that the ")
           << stringifyLoweringKind(s.getLowering())
           << " lowering cannot make; run attn-select-schedule to see what "
              "fits";
  return success();
}
