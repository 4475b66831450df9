//===- Launch.cpp - Checks and arguments of a launch ----------------------===//

#include "runtime/Kernel.h"
#include "runtime/KernelChecks.h"

using namespace tokentile;

namespace {

constexpr int64_t elementBytes = 2;

Status invalid(std::string message) {
  return Status(StatusCode::InvalidArgument, std::move(message));
}

/// Checks one pointer that must be there.
Status checkPointer(const char *field, const void *pointer) {
  if (!pointer)
    return invalid(std::string("pointer '") + field + "' is null");
  if (reinterpret_cast<uintptr_t>(pointer) % 16 != 0)
    return invalid(std::string("pointer '") + field +
                   "' is not 16-byte aligned");
  return Status();
}

/// Checks the pointers that this kernel reads and writes.
Status checkPointers(const Plan &plan, const LaunchArgs &args) {
  const KernelInfo &info = plan.kernel->info();
  bool contiguous = info.pageOrder == PageOrder::Contiguous;
  struct {
    const char *field;
    const void *pointer;
    bool needed;
  } pointers[] = {
      {"query", args.query, true},
      {"output", args.output, true},
      {"keys", args.keys, true},
      {"values", args.values, true},
      {"lengths", args.lengths, true},
      {"logSumExp", args.logSumExp, info.logSumExp},
      {"blockKeys", args.blockKeys, info.denseBlock},
      {"blockValues", args.blockValues, info.denseBlock},
      {"table", args.table, !contiguous},
      {"keyOffsets", args.keyOffsets, contiguous},
      {"columns", args.columns, info.columns != Columns::Uniform},
      {"positions", args.positions, info.positionsGiven},
      {"sinks", args.sinks, info.sink},
      {"workspace", args.workspace, plan.workspace.bytes > 0},
  };
  for (const auto &entry : pointers)
    if (entry.needed)
      if (Status status = checkPointer(entry.field, entry.pointer);
          !status.ok())
        return status;
  if (!info.logSumExp && args.logSumExp)
    return invalid("pointer 'logSumExp' is given, but kernel '" + info.name +
                   "' does not write it; pass null or compile it with "
                   "log-sum-exp");
  if (!info.sink && args.sinks)
    return invalid("pointer 'sinks' is given, but kernel '" + info.name +
                   "' does not read it; pass null or compile it with sink");
  return Status();
}

/// Checks the strides that are given: copies are of 16 bytes.
Status checkStrides(const LaunchArgs &args) {
  const std::pair<const char *, int64_t> strides[] = {
      {"queryTokenStride", args.queryTokenStride},
      {"queryHeadStride", args.queryHeadStride},
      {"outputTokenStride", args.outputTokenStride},
      {"outputHeadStride", args.outputHeadStride},
      {"keyPageStride", args.keyPageStride},
      {"keyHeadStride", args.keyHeadStride},
      {"valuePageStride", args.valuePageStride},
      {"valueHeadStride", args.valueHeadStride},
  };
  for (auto [field, bytes] : strides)
    if (bytes % 16 != 0)
      return invalid(std::string(field) + " " + std::to_string(bytes) +
                     " is not a multiple of 16 bytes");
  return Status();
}

/// Checks that a row of the table holds every page that the kernel may read.
Status checkTable(const Plan &plan, const LaunchArgs &args) {
  const KernelInfo &info = plan.kernel->info();
  if (info.pageOrder == PageOrder::Contiguous)
    return Status();
  if (info.ring) {
    int64_t entries = info.ring / info.pageSize;
    if (args.tableStride == entries)
      return Status();
    return Status(StatusCode::OutOfRange,
                  "tableStride " + std::to_string(args.tableStride) +
                      " is not that of kernel '" + info.name +
                      "', whose ring of " + std::to_string(info.ring) +
                      " keys has " + std::to_string(entries) + " entries");
  }
  // A dense block of known size is not in the pages.
  int64_t keys = plan.bounds.keys;
  if (info.denseBlock && info.columns == Columns::Uniform)
    keys -= info.tokens;
  int64_t needed = (keys + info.pageSize - 1) / info.pageSize;
  if (args.tableStride >= needed)
    return Status();
  return Status(StatusCode::OutOfRange,
                "tableStride " + std::to_string(args.tableStride) +
                    " with pageSize " + std::to_string(info.pageSize) +
                    " is too short for " + std::to_string(keys) +
                    " keys; it must be at least " + std::to_string(needed));
}

/// The strides of a query or output tensor, [T, Hq, D] or [Hq, T, D].
Status setRowStrides(const Plan &plan, const LaunchArgs &args, bool headMajor,
                     const char *field, int64_t &token, int64_t &head) {
  const KernelInfo &info = plan.kernel->info();
  int64_t row = info.headDim * elementBytes;
  if (token == 0)
    token = headMajor ? row : row * info.queryHeads;
  if (head != 0)
    return Status();
  int64_t tokens = args.queryTokens;
  if (tokens < 0 && info.columns != Columns::Packed)
    tokens = int64_t(plan.bounds.batch) * info.tokens;
  if (headMajor && tokens < 0)
    return invalid(std::string("packed head-major ") + field +
                   " needs queryTokens or " + field + "HeadStride");
  head = headMajor ? tokens * row : row;
  return Status();
}

/// The parameter block, with every stride made explicit.
StatusOr<KernelArgs> makeKernelArgs(const Plan &plan, const LaunchArgs &args) {
  const KernelInfo &info = plan.kernel->info();
  KernelArgs out = {};
  out.query = args.query;
  out.output = args.output;
  out.logSumExp = args.logSumExp;
  out.keys = args.keys;
  out.values = args.values;
  out.blockKeys = args.blockKeys;
  out.blockValues = args.blockValues;
  out.table = args.table;
  out.lengths = args.lengths;
  out.columns = args.columns;
  out.positions = args.positions;
  out.keyOffsets = args.keyOffsets;
  out.sinks = args.sinks;
  plan.workspace.place(args.workspace, out);
  out.queryTokenStride = args.queryTokenStride;
  out.queryHeadStride = args.queryHeadStride;
  out.outputTokenStride = args.outputTokenStride;
  out.outputHeadStride = args.outputHeadStride;
  out.keyPageStride = args.keyPageStride;
  out.keyHeadStride = args.keyHeadStride;
  out.valuePageStride = args.valuePageStride;
  out.valueHeadStride = args.valueHeadStride;
  out.tableStride = args.tableStride;
  out.batch = plan.bounds.batch;
  out.items = plan.work.items;
  out.slots = plan.work.slots;
  out.mergeBlocks = plan.work.mergeBlocks;
  out.maxKeys = plan.bounds.keys;
  out.poolPages = args.poolPages;
  out.partials = plan.work.partials;

  if (Status status = setRowStrides(plan, args, info.queryHeadMajor, "query",
                                    out.queryTokenStride, out.queryHeadStride);
      !status.ok())
    return status;
  if (Status status =
          setRowStrides(plan, args, info.outputHeadMajor, "output",
                        out.outputTokenStride, out.outputHeadStride);
      !status.ok())
    return status;
  if (Status status =
          setPoolStrides(info, args.poolPages, info.keySlotStride, "key",
                         out.keyPageStride, out.keyHeadStride);
      !status.ok())
    return status;
  if (Status status =
          setPoolStrides(info, args.poolPages, info.valueSlotStride, "value",
                         out.valuePageStride, out.valueHeadStride);
      !status.ok())
    return status;
  return out;
}

} // namespace

Status tokentile::setPoolStrides(const KernelInfo &info, int32_t poolPages,
                                 int64_t slot, const char *field, int64_t &page,
                                 int64_t &head) {
  int64_t pageBytes = info.pageSize * slot;
  switch (info.pageOrder) {
  case PageOrder::PageMajor:
    head = head ? head : pageBytes;
    page = page ? page : pageBytes * info.kvHeads;
    return Status();
  case PageOrder::HeadMajor:
    page = page ? page : pageBytes;
    if (!head && poolPages == 0)
      return invalid("head-major pages need poolPages or " +
                     std::string(field) + "HeadStride");
    head = head ? head : page * poolPages;
    return Status();
  case PageOrder::TokenMajor:
    page = page ? page : pageBytes;
    break;
  case PageOrder::Contiguous:
    break;
  }
  head = head ? head : info.headDim * elementBytes;
  return Status();
}

Status tokentile::launch(const Plan &plan, const LaunchArgs &args,
                         Stream &stream) {
  if (!plan.kernel)
    return invalid("plan is empty; make it with plan()");
  if (&stream.device() != &plan.kernel->device())
    return invalid("kernel '" + plan.kernel->info().name +
                   "' and the stream belong to different devices");
  if (Status status = checkPointers(plan, args); !status.ok())
    return status;
  if (Status status = checkStrides(args); !status.ok())
    return status;
  if (args.workspaceBytes < plan.workspace.bytes)
    return Status(StatusCode::ResourceExhausted,
                  "workspace has " + std::to_string(args.workspaceBytes) +
                      " bytes and the plan needs " +
                      std::to_string(plan.workspace.bytes));
  if (Status status = checkTable(plan, args); !status.ok())
    return status;
  StatusOr<KernelArgs> kernelArgs = makeKernelArgs(plan, args);
  if (!kernelArgs.ok())
    return kernelArgs.status();
  return plan.kernel->enqueue(plan, *kernelArgs, stream);
}

Status tokentile::checkLengths(const Plan &plan, const int32_t *lengths,
                               int32_t batch, const int32_t *columns) {
  if (!plan.kernel)
    return invalid("plan is empty; make it with plan()");
  const KernelInfo &info = plan.kernel->info();
  if (!lengths)
    return invalid("pointer 'lengths' is null");
  if (!columns && info.columns != Columns::Uniform)
    return invalid("pointer 'columns' is null");
  if (batch > plan.bounds.batch)
    return Status(StatusCode::OutOfRange,
                  "batch " + std::to_string(batch) +
                      " exceeds the planned batch " +
                      std::to_string(plan.bounds.batch));
  for (int32_t b = 0; b < batch; ++b) {
    std::string request = "request " + std::to_string(b);
    int64_t count = info.tokens;
    if (info.columns == Columns::Counted)
      count = columns[b];
    else if (info.columns == Columns::Packed)
      count = int64_t(columns[b + 1]) - columns[b];
    if (count < 0 || count > info.tokens)
      return Status(StatusCode::OutOfRange,
                    request + " has " + std::to_string(count) +
                        " query tokens; kernel '" + info.name +
                        "' takes 0 .. " + std::to_string(info.tokens));
    int64_t keys = lengths[b];
    if (!info.lengthsTotal)
      keys += count;
    if (lengths[b] < 0 || keys > plan.bounds.keys)
      return Status(StatusCode::OutOfRange,
                    request + " has length " + std::to_string(lengths[b]) +
                        ", which makes " + std::to_string(keys) +
                        " keys; the plan allows 0 .. " +
                        std::to_string(plan.bounds.keys));
  }
  return Status();
}
