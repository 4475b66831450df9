//===- Attention.cpp - Generated kernels of one kind of layer -------------===//

#include "tools/reference-model/Attention.h"

#include "runtime/JitCompiler.h"

using namespace tokentile;
using namespace tokentile::reference;

std::string reference::attentionSpec(const AttentionKind &kind,
                                     const CachePlace &cache, int32_t width) {
  auto number = [](int64_t value) { return std::to_string(value); };
  std::string prefix = "all";
  if (kind.window)
    prefix = (kind.isDraft ? "symmetric within " : "left within ") +
             number(kind.window);
  // More rows than one sweep takes read the keys again. The target's are summed
  // in one order at every width, which takes more registers.
  int32_t sweepRows = !kind.isDraft ? 64 : kind.headDim <= 128 ? 160 : 128;
  int32_t rows = width * (kind.queryHeads / kind.kvHeads);
  int32_t sweeps = (rows + sweepRows - 1) / sweepRows;
  std::string paging = "page_major page " + number(cache.pageTokens);
  if (cache.ringKeys)
    paging += " ring " + number(cache.ringKeys);
  return std::string("attn.kernel @") + (kind.isDraft ? "draft" : "verify") +
         " heads<" + number(kind.queryHeads) + " over " + number(kind.kvHeads) +
         ", dim " + number(kind.headDim) + "> tokens<" + number(width) +
         "> sees<prefix " + prefix + ", suffix " +
         (kind.isDraft ? "bidirectional" : "causal") +
         "> keys<bf16> values<bf16> paging<" + paging + "> block<" +
         (kind.isDraft ? "dense" : "in_pages") +
         "> query<bf16 token_major columns counted> " +
         "split<auto> schedule<auto max_sweeps " + number(sweeps) +
         (kind.isDraft ? ">" : " invariant>");
}

StatusOr<std::unique_ptr<Kernel>>
reference::loadAttention(Device &device, const std::string &spec) {
  StatusOr<CompiledKernel> compiled = compileKernel(spec, device.facts().chip);
  if (!compiled.ok())
    return compiled.status();
  return device.load(*compiled);
}

Status Attention::prepare(int32_t width, int32_t batch) {
  std::unique_ptr<Kernel> &kernel = kernels[width];
  if (!kernel) {
    StatusOr<std::unique_ptr<Kernel>> loaded =
        loadAttention(device, attentionSpec(kind, cache, width));
    if (!loaded.ok())
      return loaded.status();
    kernel = *std::move(loaded);
  }
  if (plans.count({width, batch}))
    return Status();
  StatusOr<Plan> planned = plan(*kernel, {batch, maxKeys});
  if (!planned.ok())
    return planned.status();
  int64_t bytes = planned->workspace.bytes;
  if (bytes &&
      (workspaces.empty() || int64_t(workspaces.back().size()) < bytes)) {
    StatusOr<Buffer> made = device.allocate(size_t(bytes));
    if (!made.ok())
      return made.status();
    workspaces.push_back(*std::move(made));
  }
  plans[{width, batch}] = *planned;
  return Status();
}

LaunchArgs Attention::argsOf(const StepBatch &batch, int32_t layer) const {
  const StepTable &table = batch.tables[cache.pageClass];
  int64_t plane = planeBytes(kind, cache.pageTokens);
  LaunchArgs args;
  args.keys = cache.memory + 2 * layer * plane;
  args.values = cache.memory + (2 * layer + 1) * plane;
  args.keyPageStride = args.valuePageStride = cache.pageBytes;
  args.poolPages = cache.pageIds;
  args.table = table.ids;
  args.tableStride = table.stride;
  args.lengths = batch.lengths;
  args.columns = batch.columns;
  return args;
}

Status Attention::launch(int32_t width, int32_t batch, LaunchArgs args,
                         Stream &stream) {
  if (!workspaces.empty()) {
    args.workspace = workspaces.back().data();
    args.workspaceBytes = int64_t(workspaces.back().size());
  }
  return tokentile::launch(plans.at({width, batch}), args, stream);
}

Status Attention::append(const Appender &appender, const StepBatch &batch,
                         int32_t layer, const Buffer &keys,
                         const Buffer &values, const int32_t *counts,
                         Stream &stream) const {
  LaunchArgs place = argsOf(batch, layer);
  constexpr services::Scalar bf16 = services::Scalar::BFloat16;
  int64_t row = int64_t(kind.headDim) * 2;
  services::PagedRows pages = {nullptr, cache.pageBytes, cache.pageTokens * row,
                               row, bf16};
  services::AppendArgs args = {};
  args.keys = {keys.data(), int64_t(kind.kvHeads) * kind.headDim, kind.headDim,
               bf16};
  args.values = args.keys;
  args.values.data = values.data();
  args.keyPages = args.valuePages = pages;
  args.keyPages.pool = const_cast<void *>(place.keys);
  args.valuePages.pool = const_cast<void *>(place.values);
  args.table = {place.table, place.tableStride, cache.pageTokens};
  args.lengths = batch.lengths;
  args.counts = counts;
  args.batch = batch.shape.batch;
  args.width = batch.shape.width;
  args.kvHeads = kind.kvHeads;
  args.headDim = kind.headDim;
  return appender.append(args, stream);
}
