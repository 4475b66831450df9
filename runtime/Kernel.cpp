//===- Kernel.cpp - Kernels and their plans -------------------------------===//

#include "runtime/Kernel.h"
#include "runtime/KernelChecks.h"

#include <algorithm>
#include <limits>

using namespace tokentile;

Kernel::~Kernel() = default;

namespace {

/// Requests of a launch.
constexpr int64_t maxBatch = 65535;
/// The x extent of a CUDA grid.
constexpr int64_t maxGrid = std::numeric_limits<int32_t>::max();
/// More partial results of a request than this cost the merge more than they
/// save.
constexpr int64_t maxAutoParts = 256;
/// Requests of a batch whose keys and values of one kv head are no more bytes
/// than these are not worth a merge; nor these, where there is a whole request
/// for each multiprocessor.
constexpr int64_t maxWholeBytes = 256 * 1024;
constexpr int64_t maxFullBytes = 768 * 1024;
/// Tiles of a request, and of all kv heads of all, up to which a device can
/// divide them: its quotients are exact, and its costs fit 32 bits.
constexpr int64_t maxDividedTiles = int64_t(1) << 15;
constexpr int64_t maxTilesInAll = int64_t(1) << 26;
/// A batch has a part more for so many bytes on average, at least one for each
/// block at a time and at most so many rounds of them: more parts are more
/// even, but where they are not needed their blocks are idle. Where blocks
/// share a multiprocessor they hide each other's beginnings and ends, so that a
/// long launch has more rounds.
constexpr int64_t leastMeanBytes = 512 * 1024;
constexpr int64_t mostRounds = 2;
constexpr int64_t sharedMeanBytes = 2048 * 1024;
constexpr int64_t mostSharedRounds = 4;
/// Tiles of a block, on average, from which on a batch is divided into ranges.
constexpr int64_t leastRangeTiles = 16;

/// Four floats are the statistics of a partial row.
constexpr int64_t partialStatsBytes = 4 * sizeof(float);

/// Sums and alignment of sizes up to this stay within int64_t.
constexpr int64_t maxWorkspaceBytes = int64_t(1) << 62;

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t alignTo256(int64_t bytes) { return ceilDiv(bytes, 256) * 256; }

Status badFact(const KernelInfo &info, const char *field, int64_t value) {
  return Status(StatusCode::InvalidArgument,
                "kernel '" + info.name + "' has " + field + " " +
                    std::to_string(value) + "; it must be positive");
}

Status outOfRange(const char *axis, int64_t value, int64_t limit) {
  return Status(StatusCode::OutOfRange,
                std::string(axis) + " " + std::to_string(value) +
                    " is not within 1 .. " + std::to_string(limit));
}

/// Checks that the numbers that planning divides by and multiplies are there.
Status checkFacts(const KernelInfo &info) {
  const std::pair<const char *, int64_t> positive[] = {
      {"queryHeads", info.queryHeads},
      {"kvHeads", info.kvHeads},
      {"headDim", info.headDim},
      {"tokens", info.tokens},
      {"keySlotStride", info.keySlotStride},
      {"valueSlotStride", info.valueSlotStride},
      {"rows", info.rows},
      {"paddedRows", info.paddedRows},
      {"rowBlocks", info.rowBlocks},
      {"keyTile", info.keyTile},
      {"threads", info.threads},
      {"mergeThreads", info.mergeThreads},
      {"mergeSlices", info.mergeSlices},
      {"mergeBlocksPerSm", info.mergeBlocksPerSm},
      {"partialElementBytes", info.partialElementBytes},
      {"blocksPerSm", info.blocksPerSm},
  };
  for (auto [field, value] : positive)
    if (value <= 0)
      return badFact(info, field, value);
  if (info.pageOrder != PageOrder::Contiguous && info.pageSize <= 0)
    return badFact(info, "pageSize", info.pageSize);
  if (info.splitPolicy != SplitPolicy::Auto && info.splitValue <= 0)
    return badFact(info, "splitValue", info.splitValue);
  return Status();
}

} // namespace

Status tokentile::checkLoadable(const KernelInfo &info,
                                const DeviceFacts &facts) {
  if (!chipRuns(info.chip, facts.chip))
    return Status(StatusCode::InvalidArgument,
                  "kernel '" + info.name + "' is compiled for chip '" +
                      info.chip + "' and device '" + facts.name +
                      "' has chip '" + facts.chip + "'; compile it for '" +
                      facts.chip + "'");
  if (facts.kind == DeviceKind::Cuda &&
      info.sharedBytes > facts.sharedBytesPerBlock)
    return Status(StatusCode::ResourceExhausted,
                  "kernel '" + info.name + "' needs " +
                      std::to_string(info.sharedBytes) +
                      " bytes of shared memory and chip '" + facts.chip +
                      "' allows " + std::to_string(facts.sharedBytesPerBlock) +
                      " per block; compile it with a smaller tile or fewer "
                      "stages");
  return checkFacts(info);
}

/// Tiles of one request that some row sees, at most.
static int64_t mostTiles(const KernelInfo &info, const Bounds &bounds) {
  int64_t visible = bounds.keys;
  if (info.window > 0)
    visible = std::min(visible,
                       int64_t(info.window) * 2 + info.tokens + info.keyTile);
  return ceilDiv(visible, info.keyTile);
}

/// Items and partial results of one kv head; may be too many for a launch.
static std::pair<int64_t, int64_t>
countItems(const KernelInfo &info, const Bounds &bounds, int64_t slots) {
  int64_t batch = bounds.batch, tiles = mostTiles(info, bounds);
  if (info.splitPolicy == SplitPolicy::Count)
    return {batch * slots, slots > 1 ? batch * slots : 0};
  if (info.splitPolicy == SplitPolicy::Keys)
    return {batch * slots, batch * slots};
  // Rows may have pieces of two sizes, unless all are of the smallest.
  if (info.splitPolicy == SplitPolicy::Pieces) {
    int64_t least = leastTilesOfPiece(info.keyTile);
    int64_t sizes = tiles > info.splitValue * least ? 2 : 1;
    return {batch * slots * sizes, batch * slots * sizes};
  }
  int64_t heads = int64_t(info.kvHeads) * info.rowBlocks;
  int64_t atOnce = std::max<int64_t>(1, slots / heads);
  if (batch == 1) {
    int64_t parts = std::min({atOnce, tiles, maxAutoParts});
    return {parts, parts > 1 ? parts : 0};
  }
  int64_t bytes = tiles * info.keyTile * info.headDim * 2 * 2;
  if (bytes <= (batch >= atOnce ? maxFullBytes : maxWholeBytes) ||
      tiles > maxDividedTiles || tiles * batch > maxTilesInAll / heads)
    return {batch, 0};
  int64_t more =
      std::clamp(bytes * batch / leastMeanBytes, atOnce, mostRounds * atOnce);
  if (info.blocksPerSm > 1)
    more = std::max(more, std::min(bytes * batch / sharedMeanBytes,
                                   mostSharedRounds * atOnce));
  // So many parts more than requests; a divided request has two at least.
  return {batch + more, std::min(2 * more, batch + more)};
}

/// Blocks of one kv head that share the tiles of a batch evenly, one for each
/// place on the device; 0 if the kernel cannot, or if requests are better
/// divided one by one: where blocks would have few tiles, and where requests of
/// one length, which a window makes of longer ones, have a place each.
static int64_t countRanges(const KernelInfo &info, const Bounds &bounds,
                           int64_t multiprocessors) {
  if (info.rangesSymbol.empty() || bounds.batch == 1)
    return 0;
  int64_t batch = bounds.batch, tiles = mostTiles(info, bounds);
  // A request may have all of them.
  int64_t blocks = std::min(multiprocessors * info.blocksPerSm /
                                (int64_t(info.kvHeads) * info.rowBlocks),
                            maxAutoParts);
  bool fits = tiles <= maxTilesInAll / batch;
  bool areWhole = info.window > 0 && batch <= blocks && 8 * batch >= 7 * blocks;
  return fits && !areWhole && tiles * batch >= leastRangeTiles * blocks ? blocks
                                                                        : 0;
}

/// Growing pieces of one size that a launch has of a request, at most. Where
/// there is a window they are some more: it begins within one, and rows have
/// windows of their own.
static int64_t countPieces(const KernelInfo &info, const Bounds &bounds) {
  int64_t most = info.splitValue, others = 0;
  if (info.window > 0) {
    most += ceilDiv(info.tokens, info.keyTile) + 2;
    others = 1;
  }
  int64_t least = leastTilesOfPiece(info.keyTile);
  return std::min(most, ceilDiv(mostTiles(info, bounds), least) + others);
}

WorkPlan tokentile::planWork(const KernelInfo &info, const Bounds &bounds,
                             int32_t multiprocessors) {
  WorkPlan work;
  work.slots = multiprocessors;
  if (info.splitPolicy == SplitPolicy::Count)
    work.slots = info.splitValue;
  if (info.splitPolicy == SplitPolicy::Keys)
    work.slots = int32_t(ceilDiv(bounds.keys, info.splitValue));
  if (info.splitPolicy == SplitPolicy::Pieces)
    work.slots = int32_t(countPieces(info, bounds));
  auto [items, partials] = countItems(info, bounds, work.slots);
  if (int64_t blocks = countRanges(info, bounds, work.slots);
      blocks > 0 && partials > 0) {
    // A block and the requests of its range have consecutive slots.
    items = blocks;
    partials = blocks + bounds.batch;
    work.ranges = true;
  }
  work.items = int32_t(std::min(items, maxGrid));
  work.partials = partials;
  if (work.merges()) {
    int64_t most = int64_t(info.mergeBlocksPerSm) * multiprocessors;
    bool fixes = info.splitPolicy != SplitPolicy::Auto;
    // Which rows of a batch are to be merged is known on the device alone.
    int64_t rows = int64_t(info.rows) * info.kvHeads * info.mergeSlices;
    int64_t units =
        fixes ? rows : ceilDiv(info.rows, mergeUnitRows) * info.kvHeads;
    work.mergeBlocks = int32_t(
        bounds.batch == 1 ? rows : std::min(units * bounds.batch, most));
  }
  return work;
}

int32_t tokentile::spreadMergeBytes(const KernelInfo &info, int64_t blocks,
                                    const DeviceFacts &facts) {
  int64_t share = ceilDiv(blocks, std::max(1, facts.multiprocessors));
  // More than 1 / (share + 1) of a multiprocessor, so that share + 1 blocks do
  // not fit; the driver adds up to 1 KiB to each block.
  int64_t bytes =
      facts.sharedBytesPerSm / (share + 1) + (share == 1 ? 1024 : 0);
  bytes = std::min<int64_t>(bytes, facts.sharedBytesPerBlock);
  return int32_t(std::max<int64_t>(bytes, info.mergeSharedBytes));
}

/// Fails if the partial results of a launch exceed maxWorkspaceBytes.
static Status checkWorkspace(const KernelInfo &info, int64_t partials) {
  int64_t left =
      maxWorkspaceBytes /
      (int64_t(info.headDim) * info.partialElementBytes + partialStatsBytes);
  for (int64_t factor :
       {partials, int64_t(info.kvHeads), int64_t(info.paddedRows)})
    left /= factor;
  if (left > 0)
    return Status();
  return Status(StatusCode::OutOfRange,
                "kvHeads " + std::to_string(info.kvHeads) + " and " +
                    std::to_string(partials) +
                    " partial results make a workspace of more than 2^62 "
                    "bytes; a smaller batch or fewer parts work");
}

Workspace tokentile::workspaceOf(const KernelInfo &info, const WorkPlan &work,
                                 int32_t batch) {
  Workspace workspace;
  if (!work.merges())
    return workspace;
  int64_t rows = work.partials * info.kvHeads * info.paddedRows;
  workspace.statsOffset =
      alignTo256(rows * info.headDim * info.partialElementBytes);
  workspace.divisionsOffset =
      workspace.statsOffset + alignTo256(rows * partialStatsBytes);
  workspace.bytes = workspace.divisionsOffset +
                    alignTo256(batch * 2 * int64_t(sizeof(int32_t)));
  return workspace;
}

void Workspace::place(void *base, KernelArgs &args) const {
  if (bytes == 0)
    return;
  char *start = static_cast<char *>(base);
  args.partialOutput = start;
  args.partialStats = reinterpret_cast<float *>(start + statsOffset);
  args.divisions = reinterpret_cast<int32_t *>(start + divisionsOffset);
}

StatusOr<Plan> tokentile::plan(const Kernel &kernel, const Bounds &bounds) {
  const KernelInfo &info = kernel.info();
  if (bounds.batch < 1 || bounds.batch > maxBatch)
    return outOfRange("batch", bounds.batch, maxBatch);
  if (bounds.keys < 1)
    return outOfRange("keys", bounds.keys, std::numeric_limits<int32_t>::max());
  int64_t heads = int64_t(info.kvHeads) * info.rowBlocks;
  if (heads > maxGrid / bounds.batch)
    return outOfRange("kvHeads * rowBlocks", heads, maxGrid / bounds.batch);

  Plan plan;
  plan.kernel = &kernel;
  plan.bounds = bounds;
  const DeviceFacts &facts = kernel.device().facts();
  plan.work = planWork(info, bounds, facts.multiprocessors);
  if (plan.work.items > maxGrid / heads)
    return outOfRange("batch * parts", plan.work.items, maxGrid / heads);
  // A part's first tile is tiles * part / parts in 32 bits.
  int64_t tiles = ceilDiv(bounds.keys, info.keyTile);
  constexpr int64_t most = std::numeric_limits<uint32_t>::max();
  if (info.splitPolicy == SplitPolicy::Count && tiles * plan.work.slots > most)
    return outOfRange("split count", plan.work.slots, most / tiles);
  plan.sweepGrid = {int32_t(plan.work.items * heads), 1, 1};
  if (!plan.work.merges())
    return plan;
  plan.mergeGrid = {plan.work.mergeBlocks, 1, 1};
  plan.mergeSharedBytes = spreadMergeBytes(info, plan.work.mergeBlocks, facts);
  if (Status status = checkWorkspace(info, plan.work.partials); !status.ok())
    return status;
  plan.workspace = workspaceOf(info, plan.work, bounds.batch);
  return plan;
}
