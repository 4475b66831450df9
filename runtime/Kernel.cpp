//===- Kernel.cpp - Kernels and their plans -------------------------------===//

#include "runtime/Kernel.h"
#include "runtime/KernelChecks.h"

#include <algorithm>
#include <limits>

using namespace tokentile;

Kernel::~Kernel() = default;

namespace {

/// The y and z extents of a CUDA grid.
constexpr int64_t maxGridYZ = 65535;
/// More partial results than this cost the merge more than they save.
constexpr int64_t maxAutoSplits = 256;

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

int32_t tokentile::chooseSplits(const KernelInfo &info, const Bounds &bounds,
                                int32_t multiprocessors) {
  switch (info.splitPolicy) {
  case SplitPolicy::Count:
    return info.splitValue;
  case SplitPolicy::Keys:
    return int32_t(ceilDiv(bounds.keys, info.splitValue));
  case SplitPolicy::Auto:
    break;
  }
  int64_t visible = bounds.keys;
  if (info.window > 0)
    visible = std::min(visible,
                       int64_t(info.window) * 2 + info.tokens + info.keyTile);
  int64_t blocks = int64_t(info.kvHeads) * info.rowBlocks * bounds.batch;
  int64_t fill = int64_t(multiprocessors) / blocks;
  int64_t most = std::min(ceilDiv(visible, info.keyTile), maxAutoSplits);
  return int32_t(std::clamp<int64_t>(fill, 1, most));
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
static Status checkWorkspace(const KernelInfo &info, int64_t batch,
                             int64_t splits) {
  // Two floats are the statistics of a row.
  int64_t left =
      maxWorkspaceBytes / int64_t(sizeof(float)) / (int64_t(info.headDim) + 2);
  for (int64_t factor :
       {batch, int64_t(info.kvHeads), splits, int64_t(info.paddedRows)})
    left /= factor;
  if (left > 0)
    return Status();
  return Status(StatusCode::OutOfRange,
                "batch " + std::to_string(batch) + ", kvHeads " +
                    std::to_string(info.kvHeads) + " and splits " +
                    std::to_string(splits) +
                    " make a workspace of more than 2^62 bytes; a smaller "
                    "batch or fewer splits work");
}

Workspace tokentile::workspaceOf(const KernelInfo &info, int32_t batch,
                                 int32_t splits) {
  Workspace workspace;
  if (splits == 1)
    return workspace;
  int64_t rows = int64_t(batch) * info.kvHeads * splits * info.paddedRows;
  workspace.statsOffset =
      alignTo256(rows * info.headDim * int64_t(sizeof(float)));
  workspace.bytes =
      workspace.statsOffset + alignTo256(rows * 2 * int64_t(sizeof(float)));
  return workspace;
}

StatusOr<Plan> tokentile::plan(const Kernel &kernel, const Bounds &bounds) {
  const KernelInfo &info = kernel.info();
  if (bounds.batch < 1 || bounds.batch > maxGridYZ)
    return outOfRange("batch", bounds.batch, maxGridYZ);
  if (bounds.keys < 1)
    return outOfRange("keys", bounds.keys, std::numeric_limits<int32_t>::max());
  int64_t heads = int64_t(info.kvHeads) * info.rowBlocks;
  if (heads > maxGridYZ)
    return outOfRange("kvHeads * rowBlocks", heads, maxGridYZ);

  Plan plan;
  plan.kernel = &kernel;
  plan.bounds = bounds;
  plan.splits =
      chooseSplits(info, bounds, kernel.device().facts().multiprocessors);
  // A split's first tile is tiles * split / splits in 32 bits.
  int64_t tiles = ceilDiv(bounds.keys, info.keyTile);
  constexpr int64_t most = std::numeric_limits<uint32_t>::max();
  if (info.splitPolicy != SplitPolicy::Keys && tiles * plan.splits > most)
    return outOfRange("splits", plan.splits, most / tiles);
  plan.sweepGrid = {plan.splits, int32_t(heads), bounds.batch};
  plan.mergeGrid = {info.rows, info.kvHeads, bounds.batch};
  if (plan.splits > 1) {
    int64_t blocks = int64_t(info.rows) * info.kvHeads * bounds.batch;
    plan.mergeSharedBytes =
        spreadMergeBytes(info, blocks, kernel.device().facts());
    if (Status status = checkWorkspace(info, bounds.batch, plan.splits);
        !status.ok())
      return status;
    Workspace workspace = workspaceOf(info, bounds.batch, plan.splits);
    plan.statsOffset = workspace.statsOffset;
    plan.workspaceBytes = workspace.bytes;
  }
  return plan;
}
