//===- Schedule.cpp - Choosing how a kernel is made -----------------------===//

#include "codegen/Schedule.h"

#include "codegen/Layout.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;

/// Most rows of one sweep: eight warps of sixteen rows.
static constexpr int64_t kMaxRowWarps = 8;
/// Largest window and split: sums with a position stay within 32 bits.
static constexpr int64_t kMaxKeys = int64_t(1) << 30;
/// Registers of a thread that fragments may take; the rest holds addresses.
static constexpr int64_t kMaxFragmentRegisters = 208;

//===----------------------------------------------------------------------===//
// Coverage
//===----------------------------------------------------------------------===//

static InFlightDiagnostic notCovered(KernelOp spec, StringRef axis) {
  return spec.emitOpError("the generator does not cover ") << axis << " ";
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
  if (paging.getRing())
    return notCovered(spec, "'paging' ring")
           << paging.getRing() << " yet; paging without a ring works";
  if (paging.getIds() != IndexKind::I32)
    return notCovered(spec, "'paging' ids")
           << stringifyIndexKind(paging.getIds()) << " yet; i32 works";
  if (spec.getSoftcap())
    return notCovered(spec, "'softcap'")
           << spec.getSoftcap()->convertToDouble() << " yet; none works";
  if (spec.getSink())
    return notCovered(spec, "'sink'") << "true yet; none works";
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

int64_t tokentile::sharedBytes(KernelOp spec, const MmaSchedule &s) {
  int64_t query = tileBytes(spec, s.rowWarps * layout::kRows);
  int64_t tiles = 2 * s.stages * tileBytes(spec, s.keyTile);
  // Key warps meet in fp32, one warp's registers after another, over the tiles:
  // each lane has two maxima, two sums and its share of the output.
  int64_t registers = 4 + spec.getHeads().getDim() / 2;
  int64_t meeting =
      (s.keyWarps - 1) * s.rowWarps * layout::kWarp * registers * 4;
  return query + std::max<int64_t>(tiles, llvm::alignTo(meeting, 1024));
}

int64_t tokentile::fragmentRegisters(KernelOp spec, const MmaSchedule &s) {
  int64_t dim = spec.getHeads().getDim();
  int64_t output = dim / 2, query = s.queryInRegisters ? dim / 4 : 4;
  int64_t scores = s.keyTile / s.keyWarps / 2;
  return output + query + scores + scores / 2;
}

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

  // Products, on padded rows.
  double flops = 4 * dim * s.rowWarps * layout::kRows;
  double mma = flops / (chip.mmaTeraflops * 1e12 / hertz / sms);

  // Shared memory at 128 bytes a cycle: each row warp reads every key and
  // value, each warp its query rows once a tile unless registers hold them.
  double reads = s.rowWarps * keyBytes;
  if (!s.queryInRegisters)
    reads += s.warps() * layout::kRows * dim * 2 / s.keyTile;
  double shared = (reads + keyBytes) / 128;

  // A tile costs a barrier, a wait and the latency of its softmax.
  double perTile = 700.0 / s.keyTile;
  double busiest = std::max({memory, mma, shared});
  double rest = memory + mma + shared - busiest;
  return busiest + 0.25 * rest + perTile;
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

static ScheduleAttr toAttr(KernelOp spec, const MmaSchedule &s,
                           const ChipFacts &chip, int64_t maxSweeps) {
  MLIRContext *context = spec.getContext();
  return ScheduleAttr::get(
      context, LoweringKind::Mma, StringAttr::get(context, chip.name),
      s.keyTile, s.rowWarps, s.keyWarps, s.stages, s.rowBlocks, maxSweeps,
      s.queryInRegisters ? QueryPlace::Registers : QueryPlace::Shared);
}

static bool fits(KernelOp spec, const MmaSchedule &s, const ChipFacts &chip) {
  return sharedBytes(spec, s) <= chip.sharedPerBlock &&
         fragmentRegisters(spec, s) <= kMaxFragmentRegisters;
}

/// Divides the rows; fails if that takes more sweeps than allowed.
static LogicalResult divideRows(KernelOp spec, MmaSchedule &s,
                                int64_t &maxSweeps) {
  ScheduleAttr given = spec.getScheduleOrDefault();
  int64_t rows = spec.getRows();
  maxSweeps = std::max<int64_t>(1, given.getMaxSweeps());
  s.rowBlocks = given.getRowBlocks();
  if (!s.rowBlocks)
    s.rowBlocks = llvm::divideCeil(rows, kMaxRowWarps * layout::kRows);
  s.rowWarps = given.getRowWarps();
  if (!s.rowWarps)
    s.rowWarps =
        llvm::divideCeil(llvm::divideCeil(rows, s.rowBlocks), layout::kRows);
  if (s.rowBlocks > maxSweeps)
    return spec.emitOpError("'tokens' ")
           << spec.getTokens() << " makes " << rows << " rows, which take "
           << s.rowBlocks << " sweeps over the keys; one sweep holds "
           << kMaxRowWarps * layout::kRows << " rows, and 'max_sweeps' allows "
           << maxSweeps;
  if (s.rowWarps > kMaxRowWarps)
    return spec.emitOpError("'row_warps' ")
           << s.rowWarps << " is more than " << kMaxRowWarps;
  if (s.rowBlocks * s.rowWarps * layout::kRows < rows)
    return spec.emitOpError("'row_warps' ")
           << s.rowWarps << " in " << s.rowBlocks << " row blocks hold "
           << s.rowBlocks * s.rowWarps * layout::kRows << " rows, expected "
           << rows;
  return success();
}

static SmallVector<int64_t> optionsOr(int64_t given, ArrayRef<int64_t> open) {
  if (given)
    return {given};
  return SmallVector<int64_t>(open);
}

static ScheduleAttr selectMma(KernelOp spec, const ChipFacts &chip) {
  ScheduleAttr given = spec.getScheduleOrDefault();
  MmaSchedule s;
  int64_t maxSweeps = 1;
  if (failed(divideRows(spec, s, maxSweeps)))
    return {};

  SplitAttr split = spec.getSplitOrDefault();
  MmaSchedule best;
  double bestCost = HUGE_VAL;
  SmallVector<QueryPlace> places{QueryPlace::Shared, QueryPlace::Registers};
  if (given.getQuery() != QueryPlace::Auto)
    places = {given.getQuery()};
  for (int64_t keyWarps : optionsOr(given.getKeyWarps(), {1, 2, 4}))
    for (int64_t keyTile : optionsOr(given.getKeyTile(), {16, 32, 64, 128}))
      for (int64_t stages : optionsOr(given.getStages(), {2, 3, 4, 5, 6}))
        for (QueryPlace place : places) {
          s.keyWarps = keyWarps;
          s.keyTile = keyTile;
          s.stages = stages;
          s.queryInRegisters = place == QueryPlace::Registers;
          if (s.warps() > kMaxRowWarps || keyTile % (16 * keyWarps) ||
              !fits(spec, s, chip))
            continue;
          if (split.getKind() == SplitKind::Keys && split.getValue() % keyTile)
            continue;
          double cost = cyclesPerKey(spec, s, chip);
          // More warps hide more latency where rows are few.
          cost *= 1 + 0.5 / s.warps();
          if (cost < bestCost) {
            bestCost = cost;
            best = s;
          }
        }
  if (bestCost == HUGE_VAL) {
    spec.emitOpError("no schedule fits ")
        << chip.name << ": " << s.rowWarps * layout::kRows
        << " rows of 'heads' dim " << spec.getHeads().getDim() << " in "
        << chip.sharedPerBlock << " bytes of shared memory, given "
        << "key_tile " << given.getKeyTile() << ", key_warps "
        << given.getKeyWarps() << ", stages " << given.getStages()
        << " (0 is open) and split size " << split.getValue();
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
    spec.emitOpError("'row_blocks' ")
        << rowBlocks << " take as many sweeps over the keys, and 'max_sweeps' "
        << "allows " << maxSweeps;
    return {};
  }
  int64_t keyTile = given.getKeyTile() ? given.getKeyTile() : 32;
  SplitAttr split = spec.getSplitOrDefault();
  if (split.getKind() == SplitKind::Keys && split.getValue() % keyTile) {
    spec.emitOpError("'split' of ")
        << split.getValue() << " keys is not a multiple of key_tile "
        << keyTile;
    return {};
  }
  return ScheduleAttr::get(context, LoweringKind::Host,
                           StringAttr::get(context, chip.name), keyTile, 0, 0,
                           0, rowBlocks, maxSweeps, QueryPlace::Auto);
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
  return chip.isHost() ? selectHost(spec, chip) : selectMma(spec, chip);
}
