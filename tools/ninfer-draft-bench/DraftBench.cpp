//===- DraftBench.cpp - Attention of a draft step, by route ---------------===//

#include "tools/ninfer-draft-bench/DraftBench.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

using namespace tokentile;
using reference::Bf16;

namespace {

/// Words between the metadata of two requests of the loop: 16 bytes.
constexpr int32_t loopStride = 4;

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

} // namespace

int32_t DraftStep::longest() const {
  return *std::max_element(contexts.begin(), contexts.end());
}

StatusOr<std::unique_ptr<DraftBench>> DraftBench::create(Device &device) {
  std::unique_ptr<DraftBench> bench(new DraftBench(device));
  StatusOr<std::unique_ptr<ColdTimer>> timer = ColdTimer::create(device);
  if (!timer.ok())
    return timer.status();
  bench->timer = *std::move(timer);
  StatusOr<std::unique_ptr<reference::Ops>> ops =
      reference::Ops::create(device);
  if (!ops.ok())
    return ops.status();
  bench->ops = *std::move(ops);
  return bench;
}

StatusOr<Buffer> DraftBench::random(int64_t elements) {
  StatusOr<Buffer> buffer = device.allocate(size_t(elements) * sizeof(Bf16));
  if (!buffer.ok())
    return buffer.status();
  if (pattern.empty()) {
    std::mt19937 draw(1);
    pattern.resize(1 << 22);
    for (Bf16 &value : pattern)
      value = reference::toBf16(float(draw()) / float(1u << 31) - 1);
  }
  for (int64_t at = 0; at < elements; at += int64_t(pattern.size()))
    if (Status status = device.copyToDevice(
            buffer->as<Bf16>() + at, pattern.data(),
            size_t(std::min(elements - at, int64_t(pattern.size()))) *
                sizeof(Bf16));
        !status.ok())
      return status;
  return buffer;
}

StatusOr<Buffer> DraftBench::words(const std::vector<int32_t> &values) {
  StatusOr<Buffer> buffer = device.allocate(values.size() * sizeof(int32_t));
  if (!buffer.ok())
    return buffer.status();
  Status status = device.copyToDevice(buffer->data(), values.data(),
                                      values.size() * sizeof(int32_t));
  if (!status.ok())
    return status;
  return buffer;
}

Status DraftBench::prepare(const DraftStep &given) {
  step = given;
  int32_t batch = int32_t(step.contexts.size());
  int64_t rows = int64_t(batch) * step.width, dim = step.kind.headDim;
  // Pages for every request at the longest context, which the padded launch
  // reads, in no order.
  tableStride = ceilDiv(ceilDiv(step.longest(), step.pageTokens), 4) * 4;
  pageIds = int32_t(batch * tableStride);
  std::vector<int32_t> ids(static_cast<size_t>(pageIds)), spread, ones;
  std::iota(ids.begin(), ids.end(), 0);
  std::shuffle(ids.begin(), ids.end(), std::mt19937(1));
  std::vector<int32_t> counts(size_t(batch), step.width);
  for (int32_t context : step.contexts)
    for (int32_t word = 0; word < loopStride; ++word) {
      spread.push_back(context);
      ones.push_back(step.width);
    }
  int64_t pageElements =
      2 * reference::Attention::planeBytes(step.kind, step.pageTokens) /
      int64_t(sizeof(Bf16));
  struct {
    Buffer *to;
    StatusOr<Buffer> made;
  } tensors[] = {
      {&pages, random(pageIds * pageElements)},
      {&query, random(rows * step.kind.queryHeads * dim)},
      {&output, random(rows * step.kind.queryHeads * dim)},
      {&blockKeys, random(rows * step.kind.kvHeads * dim)},
      {&blockValues, random(rows * step.kind.kvHeads * dim)},
      {&table, words(ids)},
      {&lengths, words(step.contexts)},
      {&columns, words(counts)},
      {&paddedLengths,
       words(std::vector<int32_t>(size_t(batch), step.longest()))},
      {&loopLengths, words(spread)},
      {&loopColumns, words(ones)},
  };
  for (auto &tensor : tensors) {
    if (!tensor.made.ok())
      return tensor.made.status();
    *tensor.to = *std::move(tensor.made);
  }
  reference::CachePlace cache;
  cache.pageTokens = step.pageTokens;
  std::string text = attentionSpec(step.kind, cache, step.width);
  if (text != spec) {
    StatusOr<std::unique_ptr<Kernel>> loaded =
        reference::loadAttention(device, text);
    if (!loaded.ok())
      return loaded.status();
    kernel = *std::move(loaded);
    spec = text;
  }
  int32_t keys = step.longest() + step.width;
  StatusOr<Plan> planned = plan(*kernel, {batch, keys});
  StatusOr<Plan> single = plan(*kernel, {1, keys});
  if (!planned.ok() || !single.ok())
    return planned.ok() ? single.status() : planned.status();
  whole = *planned;
  one = *single;
  StatusOr<Buffer> space = device.allocate(
      size_t(std::max(whole.workspace.bytes, one.workspace.bytes)));
  if (!space.ok())
    return space.status();
  workspace = *std::move(space);
  return Status();
}

LaunchArgs DraftBench::argsOf(int32_t request) const {
  int64_t plane = reference::Attention::planeBytes(step.kind, step.pageTokens);
  int64_t row = int64_t(request) * step.width * step.kind.headDim;
  LaunchArgs args;
  args.query = query.as<Bf16>() + row * step.kind.queryHeads;
  args.output = output.as<Bf16>() + row * step.kind.queryHeads;
  args.blockKeys = blockKeys.as<Bf16>() + row * step.kind.kvHeads;
  args.blockValues = blockValues.as<Bf16>() + row * step.kind.kvHeads;
  args.keys = pages.data();
  args.values = pages.as<char>() + plane;
  args.keyPageStride = args.valuePageStride = 2 * plane;
  args.poolPages = pageIds;
  args.table = table.as<int32_t>() + request * tableStride;
  args.tableStride = tableStride;
  args.lengths = lengths.as<int32_t>();
  args.columns = columns.as<int32_t>();
  args.workspace = workspace.data();
  args.workspaceBytes = int64_t(workspace.size());
  return args;
}

Status DraftBench::launchAll(bool padded, Stream &stream) {
  LaunchArgs args = argsOf(0);
  if (padded)
    args.lengths = paddedLengths.as<int32_t>();
  return launch(whole, args, stream);
}

Status DraftBench::launchLoop(Stream &stream) {
  for (size_t request = 0; request < step.contexts.size(); ++request) {
    LaunchArgs args = argsOf(int32_t(request));
    args.lengths = loopLengths.as<int32_t>() + request * loopStride;
    args.columns = loopColumns.as<int32_t>() + request * loopStride;
    if (Status status = launch(one, args, stream); !status.ok())
      return status;
  }
  return Status();
}

Status DraftBench::prepareReattend() {
  int64_t rows = int64_t(step.contexts.size()) * (step.longest() + step.width) *
                 step.kind.headDim;
  for (auto [buffer, heads] : {std::pair(&allQueries, step.kind.queryHeads),
                               std::pair(&allKeys, step.kind.kvHeads),
                               std::pair(&allValues, step.kind.kvHeads),
                               std::pair(&allOutputs, step.kind.queryHeads)}) {
    *buffer = Buffer();
    StatusOr<Buffer> made =
        device.allocate(size_t(rows * heads) * sizeof(Bf16));
    if (!made.ok())
      return made.status();
    *buffer = *std::move(made);
  }
  return Status();
}

Status DraftBench::reattend(Stream &stream) {
  LaunchArgs args = argsOf(0);
  reference::ReattendArgs a = {};
  a.query = query.as<Bf16>();
  a.blockKeys = blockKeys.as<Bf16>();
  a.blockValues = blockValues.as<Bf16>();
  a.output = output.as<Bf16>();
  a.keys = static_cast<const char *>(args.keys);
  a.values = static_cast<const char *>(args.values);
  a.table = args.table;
  a.lengths = args.lengths;
  a.counts = args.columns;
  a.allQueries = allQueries.as<Bf16>();
  a.allKeys = allKeys.as<Bf16>();
  a.allValues = allValues.as<Bf16>();
  a.allOutputs = allOutputs.as<Bf16>();
  a.tableStride = tableStride;
  a.pageBytes = args.keyPageStride;
  a.pageTokens = step.pageTokens;
  a.maxKeys = step.longest() + step.width;
  a.width = step.width;
  a.heads = step.kind.queryHeads;
  a.kvHeads = step.kind.kvHeads;
  a.dim = step.kind.headDim;
  a.window = step.kind.window;
  a.scale = 1 / std::sqrt(float(a.dim));
  int64_t keys = int64_t(step.contexts.size()) * a.maxKeys;
  if (Status status = ops->gatherKey(a, keys, stream); !status.ok())
    return status;
  return ops->attendHead(a, keys * a.heads, stream);
}

int64_t DraftBench::bytesOf(const std::string &route) const {
  int64_t row = int64_t(step.kind.headDim) * int64_t(sizeof(Bf16));
  int64_t kv = 2 * step.kind.kvHeads * row, q = step.kind.queryHeads * row;
  int64_t batch = int64_t(step.contexts.size()), keys = 0, visible = 0;
  for (int32_t context : step.contexts) {
    int64_t seen = route == "padded" ? step.longest() : context;
    keys += seen;
    visible +=
        step.kind.window ? std::min<int64_t>(seen, step.kind.window - 1) : seen;
  }
  int64_t block = batch * step.width;
  if (route != "reattend")
    return visible * kv + block * (kv + 2 * q);
  // Keys are read, written and read again; a query is written and read and an
  // output is written for each of them.
  int64_t all = keys + block;
  return all * (3 * kv + 3 * q);
}

StatusOr<DraftTiming> DraftBench::time(const std::string &route, int samples) {
  DraftTiming result;
  result.route = route;
  result.bytes = bytesOf(route);
  int warmups = ColdTimer::usualWarmups;
  int32_t split = 1 + whole.work.merges();
  result.launches = split;
  std::function<Status(Stream &)> work;
  if (route == "batched" || route == "padded") {
    work = [&](Stream &stream) { return launchAll(route == "padded", stream); };
  } else if (route == "loop") {
    result.launches = int32_t(step.contexts.size()) * (1 + one.work.merges());
    work = [&](Stream &stream) { return launchLoop(stream); };
  } else {
    if (Status status = prepareReattend(); !status.ok())
      return status;
    result.launches = 2;
    samples = std::min(samples, 3);
    warmups = 1;
    work = [&](Stream &stream) { return reattend(stream); };
  }
  StatusOr<Timing> timing = timer->time(work, samples, warmups);
  if (!timing.ok())
    return timing.status();
  result.timing = *timing;
  result.samples = samples;
  return result;
}
