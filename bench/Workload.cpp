//===- Workload.cpp - The tensors that are timed --------------------------===//

#include "bench/Workload.h"

#include <algorithm>
#include <numeric>
#include <random>

using namespace tokentile;

namespace {

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Random finite numbers below 1 in magnitude. What is read affects the power
/// a GPU draws, so that constant data would flatter it.
std::vector<uint16_t> randomElements(Element element, size_t count) {
  bool isHalf = element == Element::Float16;
  int mantissa = isHalf ? 10 : 7;
  int lowestExponent = isHalf ? 11 : 123;
  std::mt19937 random(1);
  std::vector<uint16_t> elements(count);
  for (uint16_t &bits : elements) {
    uint32_t drawn = random();
    uint32_t exponent = lowestExponent + (drawn >> 16 & 3);
    bits = uint16_t((drawn & 0x8000) | exponent << mantissa |
                    (drawn & ((1u << mantissa) - 1)));
  }
  return elements;
}

/// Allocates and fills with one random pattern over and over.
StatusOr<Buffer> allocateRandom(Device &device, Element element,
                                int64_t bytes) {
  StatusOr<Buffer> buffer = device.allocate(size_t(bytes));
  if (!buffer.ok())
    return buffer.status();
  std::vector<uint16_t> pattern =
      randomElements(element, size_t(std::min<int64_t>(bytes, 8 << 20) / 2));
  int64_t step = int64_t(pattern.size()) * 2;
  for (int64_t at = 0; at < bytes; at += step)
    if (Status status =
            device.copyToDevice(buffer->as<char>() + at, pattern.data(),
                                size_t(std::min(step, bytes - at)));
        !status.ok())
      return status;
  return buffer;
}

} // namespace

const char *tokentile::tableName(TableKind kind) {
  switch (kind) {
  case TableKind::Identity:
    return "identity";
  case TableKind::Fragmented:
    return "fragmented";
  case TableKind::Shuffled:
    return "shuffled";
  }
  return "?";
}

static int64_t visibleOf(const KernelInfo &info, int64_t keys, int32_t tokens) {
  return info.window ? std::min<int64_t>(keys, info.window - 1 + tokens) : keys;
}

int64_t tokentile::visibleKeys(const KernelInfo &info, const Shape &shape) {
  return visibleOf(info, shape.keys(), shape.tokens);
}

int64_t tokentile::uniqueBytes(const KernelInfo &info, const Shape &shape) {
  int64_t keys = 0;
  for (int32_t b = 0; b < shape.batch; ++b)
    keys += visibleOf(info, shape.contextOf(b) + shape.tokens, shape.tokens);
  return keys * info.keyBytesPerToken();
}

StatusOr<std::unique_ptr<Workload>>
Workload::create(Device &device, const KernelInfo &info, const Shape &shape) {
  std::unique_ptr<Workload> workload(new Workload(device, shape));
  if (Status status = workload->fillTable(info); !status.ok())
    return status;
  if (Status status = workload->fillPools(info); !status.ok())
    return status;
  return workload;
}

Status Workload::fillTable(const KernelInfo &info) {
  bool isPaged = info.pageOrder != PageOrder::Contiguous;
  int64_t page = isPaged ? info.pageSize : 64;
  tableStride = ceilDiv(shape.keys(), page);
  int32_t count = 0;
  for (int32_t b = 0; b < shape.batch; ++b)
    count += int32_t(ceilDiv(shape.contextOf(b) + shape.tokens, page));
  std::vector<int32_t> ids(size_t(std::max(count, 1)), 0);
  std::iota(ids.begin(), ids.end(), 0);
  poolPages = std::max(count, 1);
  if (shape.table == TableKind::Fragmented) {
    for (int32_t &id : ids)
      id = 2 * id + 1;
    poolPages = 2 * poolPages + 1;
  } else if (shape.table == TableKind::Shuffled) {
    std::shuffle(ids.begin(), ids.end(), std::mt19937(1));
  }
  // Each request has the pages that it needs, in rows of the longest one's.
  std::vector<int32_t> table(size_t(shape.batch) * tableStride + 1, 0);
  auto next = ids.begin();
  for (int32_t b = 0; b < shape.batch; ++b) {
    int64_t pages = ceilDiv(shape.contextOf(b) + shape.tokens, page);
    std::copy(next, next + pages, table.begin() + b * tableStride);
    next += pages;
  }
  StatusOr<Buffer> buffer = device.allocate(table.size() * sizeof(int32_t));
  if (!buffer.ok())
    return buffer.status();
  tableBuffer = *std::move(buffer);
  return device.copyToDevice(tableBuffer.data(), table.data(),
                             table.size() * sizeof(int32_t));
}

Status Workload::fillPools(const KernelInfo &info) {
  bool isPaged = info.pageOrder != PageOrder::Contiguous;
  int64_t dense = int64_t(info.kvHeads) * info.headDim * 2;
  int64_t slots = isPaged ? int64_t(poolPages) * info.pageSize : 0;
  for (int32_t b = 0; b < shape.batch && !isPaged; ++b)
    slots += shape.contextOf(b) + shape.tokens;
  int64_t queryTokens = int64_t(shape.batch) * shape.tokens;
  int64_t queryBytes = queryTokens * info.queryHeads * info.headDim * 2;
  int64_t lseBytes = queryTokens * info.queryHeads * 4;
  int64_t blockBytes = info.denseBlock ? queryTokens * dense : 0;
  struct {
    Buffer &buffer;
    Element element;
    int64_t bytes;
  } tensors[] = {
      {query, info.queryElement, queryBytes},
      {output, info.outputElement, queryBytes},
      {logSumExp, Element::BFloat16, info.logSumExp ? lseBytes : 0},
      {keyPool, info.keyElement, slots * std::max(dense, info.keySlotStride)},
      {valuePool, info.valueElement,
       slots * std::max(dense, info.valueSlotStride)},
      {blockKeys, info.keyElement, blockBytes},
      {blockValues, info.valueElement, blockBytes},
  };
  for (auto &tensor : tensors) {
    if (!tensor.bytes)
      continue;
    StatusOr<Buffer> made =
        allocateRandom(device, tensor.element, tensor.bytes);
    if (!made.ok())
      return made.status();
    tensor.buffer = *std::move(made);
  }
  return Status();
}

StatusOr<const int32_t *> Workload::upload(const std::vector<int32_t> &values) {
  StatusOr<Buffer> buffer = device.allocate(values.size() * sizeof(int32_t));
  if (!buffer.ok())
    return buffer.status();
  if (Status status =
          device.copyToDevice(buffer->data(), values.data(), buffer->size());
      !status.ok())
    return status;
  metadata.push_back(*std::move(buffer));
  return static_cast<const int32_t *>(metadata.back().as<int32_t>());
}

StatusOr<LaunchArgs> Workload::args(const KernelInfo &info, int32_t before,
                                    int32_t tokens) {
  int32_t batch = shape.batch;
  std::vector<int32_t> counts, offsets{0}, positions, keyOffsets{0}, lengths;
  counts.assign(size_t(batch), tokens);
  for (int32_t b = 0; b < batch; ++b) {
    int32_t context = shape.contextOf(b) + before;
    offsets.push_back((b + 1) * tokens);
    keyOffsets.push_back(keyOffsets.back() + shape.contextOf(b) + shape.tokens);
    for (int32_t j = 0; j < tokens; ++j)
      positions.push_back(context + j);
    lengths.push_back(info.lengthsTotal ? context + tokens : context);
  }

  LaunchArgs args;
  int64_t rowBytes = int64_t(info.queryHeads) * info.headDim * 2;
  int64_t firstRow = int64_t(batch) * before;
  args.query = query.as<char>() + firstRow * rowBytes;
  args.output = output.as<char>() + firstRow * rowBytes;
  if (info.logSumExp)
    args.logSumExp = logSumExp.as<float>() + firstRow * info.queryHeads;
  args.keys = keyPool.data();
  args.values = valuePool.data();
  args.blockKeys = blockKeys.data();
  args.blockValues = blockValues.data();
  args.queryTokens = int64_t(batch) * tokens;
  if (info.pageOrder != PageOrder::Contiguous) {
    args.table = table();
    args.tableStride = tableStride;
    args.poolPages = poolPages;
  }
  auto set = [&](bool isRead, const std::vector<int32_t> &values,
                 const int32_t *&field) {
    if (!isRead)
      return Status();
    StatusOr<const int32_t *> uploaded = upload(values);
    if (uploaded.ok())
      field = *uploaded;
    return uploaded.status();
  };
  for (const Status &status :
       {set(true, lengths, args.lengths),
        set(info.columns == Columns::Counted, counts, args.columns),
        set(info.columns == Columns::Packed, offsets, args.columns),
        set(info.positionsGiven, positions, args.positions),
        set(info.pageOrder == PageOrder::Contiguous, keyOffsets,
            args.keyOffsets)})
    if (!status.ok())
      return status;
  return args;
}

StatusOr<void *> Workload::workspace(const Plan &plan) {
  if (int64_t(workspaceBuffer.size()) < plan.workspace.bytes) {
    StatusOr<Buffer> made = device.allocate(size_t(plan.workspace.bytes));
    if (!made.ok())
      return made.status();
    // Recorded launches still hold the smaller one.
    metadata.push_back(std::move(workspaceBuffer));
    workspaceBuffer = *std::move(made);
  }
  return workspaceBuffer.data();
}
