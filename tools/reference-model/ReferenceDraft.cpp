//===- ReferenceDraft.cpp - A DFlash draft model --------------------------===//

#include "tools/reference-model/ReferenceDraft.h"

#include <cmath>

using namespace tokentile;
using namespace tokentile::reference;

namespace {

/// Words between the metadata of two requests of the loop: 16 bytes.
constexpr int32_t loopStride = 4;

AttentionKind kindOf(const DraftConfig &config, int32_t window) {
  return {config.queryHeads, config.kvHeads, config.headDim, window,
          /*isDraft=*/true};
}

} // namespace

ReferenceDraft::ReferenceDraft(const ModelContext &context,
                               const DraftConfig &config, DraftWeights weights,
                               const ReferenceTarget &target,
                               DecoderStack stack, const CachePlace &full,
                               const CachePlace &ring, DraftRoute route)
    : context(context), config(config), weights(std::move(weights)),
      target(target), stack(std::move(stack)), full(full), ring(ring),
      route(route),
      whole(context.device, kindOf(config, 0), full, context.limits.keys),
      sliding(context.device, kindOf(config, config.window), ring,
              context.limits.keys) {
  bool isOneClass = full.pageClass == ring.pageClass;
  int32_t counts[2] = {0, 0};
  for (LayerKind kind : config.layers)
    places.push_back(
        counts[!isOneClass && kind == LayerKind::Sliding ? 1 : 0]++);
}

StatusOr<std::unique_ptr<ReferenceDraft>>
ReferenceDraft::create(const ModelContext &context, const DraftConfig &config,
                       DraftWeights weights, const ReferenceTarget &target,
                       const CachePlace &full, const CachePlace &ring,
                       DraftRoute route) {
  int64_t rows = context.limits.rows, batch = context.limits.batch;
  int64_t keys = int64_t(config.kvHeads) * config.headDim;
  int64_t contextColumns = 2 * keys * int64_t(config.layers.size());
  StatusOr<DecoderStack> stack =
      DecoderStack::create(context.device, config, context.limits.rows);
  if (!stack.ok())
    return stack.status();
  std::unique_ptr<ReferenceDraft> model(
      new ReferenceDraft(context, config, std::move(weights), target,
                         *std::move(stack), full, ring, route));
  Allocator allocate(context.device);
  model->ids = allocate(rows * int64_t(sizeof(int32_t)));
  model->logits = allocate(batch * (config.block - 1) * config.vocabulary *
                           int64_t(sizeof(float)));
  model->contextRows = allocate(rows * contextColumns * int64_t(sizeof(Bf16)));
  model->loopLengths = allocate(batch * loopStride * int64_t(sizeof(int32_t)));
  model->loopColumns = allocate(batch * loopStride * int64_t(sizeof(int32_t)));
  if (!allocate.status.ok())
    return allocate.status;
  return model;
}

Status ReferenceDraft::prepare(const StepShape &shape) {
  if (shape.rows() > context.limits.rows)
    return Status(StatusCode::OutOfRange,
                  "a step of " + std::to_string(shape.rows()) +
                      " rows exceeds the model's " +
                      std::to_string(context.limits.rows));
  if (shape.drafts() > maxDrafts())
    return Status(StatusCode::OutOfRange,
                  "width " + std::to_string(shape.drafts()) +
                      " exceeds the draft's block of " +
                      std::to_string(config.block) + " rows");
  return shape.prompt ? Status() : prepareRoute(shape);
}

Status ReferenceDraft::prepareRoute(const StepShape &shape) {
  if (route != DraftRoute::Reattend) {
    int32_t batch = route == DraftRoute::Loop ? 1 : shape.batch;
    for (auto [kind, attention] : {std::pair(LayerKind::Full, &whole),
                                   std::pair(LayerKind::Sliding, &sliding)})
      if (config.hasLayer(kind))
        if (Status status = attention->prepare(shape.width, batch);
            !status.ok())
          return status;
    return Status();
  }
  if (combinedBatch >= shape.batch)
    return Status();
  Allocator allocate(context.device);
  int64_t rows = int64_t(shape.batch) * context.limits.keys;
  int64_t row = int64_t(config.headDim) * int64_t(sizeof(Bf16));
  for (int32_t heads :
       {config.queryHeads, config.kvHeads, config.kvHeads, config.queryHeads})
    combined.push_back(allocate(rows * heads * row));
  combinedBatch = shape.batch;
  return allocate.status;
}

Status ReferenceDraft::launchOne(Attention &attention, const StepBatch &batch,
                                 LaunchArgs args, int32_t request,
                                 Stream &stream) {
  int64_t row = int64_t(batch.shape.width) * config.headDim * request;
  auto offset = [&](const void *rows, int32_t heads) {
    return static_cast<const Bf16 *>(rows) + row * heads;
  };
  args.query = offset(args.query, config.queryHeads);
  args.output = const_cast<Bf16 *>(offset(args.output, config.queryHeads));
  args.blockKeys = offset(args.blockKeys, config.kvHeads);
  args.blockValues = offset(args.blockValues, config.kvHeads);
  args.table += args.tableStride * request;
  args.lengths = loopLengths.as<int32_t>() + request * loopStride;
  args.columns = loopColumns.as<int32_t>() + request * loopStride;
  return attention.launch(batch.shape.width, 1, args, stream);
}

void ReferenceDraft::reattend(OpQueue &queue, const StepBatch &batch,
                              const LaunchArgs &args, int32_t window) {
  const Buffer *all = combined.data() + combined.size() - 4;
  ReattendArgs a = {};
  a.query = stack.query.as<Bf16>();
  a.blockKeys = stack.key.as<Bf16>();
  a.blockValues = stack.value.as<Bf16>();
  a.output = stack.mixed.as<Bf16>();
  a.keys = static_cast<const char *>(args.keys);
  a.values = static_cast<const char *>(args.values);
  a.table = args.table;
  a.lengths = batch.lengths;
  a.counts = batch.columns;
  a.allQueries = all[0].as<Bf16>();
  a.allKeys = all[1].as<Bf16>();
  a.allValues = all[2].as<Bf16>();
  a.allOutputs = all[3].as<Bf16>();
  a.tableStride = args.tableStride;
  a.pageBytes = args.keyPageStride;
  a.pageTokens = full.pageTokens;
  a.maxKeys = context.limits.keys;
  a.width = batch.shape.width;
  a.heads = config.queryHeads;
  a.kvHeads = config.kvHeads;
  a.dim = config.headDim;
  a.window = window;
  a.scale = 1 / std::sqrt(float(config.headDim));
  int64_t keys = int64_t(batch.shape.batch) * context.limits.keys;
  queue.gatherKey(a, keys);
  queue.attendHead(a, keys * config.queryHeads);
}

void ReferenceDraft::attend(OpQueue &queue, const StepBatch &batch,
                            size_t layer, Stream &stream) {
  Attention &attention = attentionOf(layer);
  int32_t rows = batch.shape.rows();
  stack.projectHeads(queue, weights.layers[layer], batch.positions, rows);
  LaunchArgs args = attention.argsOf(batch, places[layer]);
  args.query = stack.query.data();
  args.output = stack.mixed.data();
  args.blockKeys = stack.key.data();
  args.blockValues = stack.value.data();
  bool isSliding = config.layers[layer] == LayerKind::Sliding;
  switch (route) {
  case DraftRoute::Batched:
    queue.add([&] {
      return attention.launch(batch.shape.width, batch.shape.batch, args,
                              stream);
    });
    break;
  case DraftRoute::Loop:
    for (int32_t request = 0; request < batch.shape.batch; ++request)
      queue.add(
          [&] { return launchOne(attention, batch, args, request, stream); });
    break;
  case DraftRoute::Reattend:
    reattend(queue, batch, args, isSliding ? config.window : 0);
    break;
  }
  stack.addMixed(queue, weights.layers[layer].output,
                 config.queryHeads * config.headDim, rows);
}

Status ReferenceDraft::propose(const StepBatch &batch, Stream &stream) {
  OpQueue queue(context.ops, stream);
  const StepShape &shape = batch.shape;
  int32_t rows = shape.rows(), drafts = shape.drafts();
  queue.blockIdsRow(
      {batch.tokens, ids.as<int32_t>(), shape.width, config.maskToken}, rows);
  if (route == DraftRoute::Loop)
    for (auto [from, to] : {std::pair(batch.lengths, &loopLengths),
                            std::pair(batch.columns, &loopColumns)})
      queue.spreadSlot({from, to->as<int32_t>(), 1, loopStride}, shape.batch);
  stack.embed(queue, ids.as<int32_t>(),
              target.getWeights().embedding.as<Bf16>(), rows);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    attend(queue, batch, i, stream);
    stack.feedForward(queue, weights.layers[i], rows);
  }
  stack.logits(queue, weights.norm, target.getWeights().head(), {drafts, 1},
               shape.batch, shape.width, logits.as<float>());
  int64_t proposals = int64_t(shape.batch) * drafts;
  queue.argmaxRow({logits.as<float>(), batch.tokens, config.vocabulary, drafts},
                  proposals);
  if (agreement)
    queue.agreeRow({agreement->known, batch.seeds, batch.lengths, batch.tokens,
                    agreement->stride, agreement->requests, config.vocabulary,
                    drafts, agreement->probability},
                   proposals);
  return queue.status();
}

Status ReferenceDraft::append(const StepBatch &batch, Stream &stream) {
  OpQueue queue(context.ops, stream);
  int32_t rows = batch.shape.rows(), dim = config.headDim;
  int32_t keys = config.kvHeads * dim;
  int32_t columns = 2 * keys * int32_t(config.layers.size());
  queue.linear({target.tapped().as<Bf16>(), weights.fuse.as<Bf16>(),
                stack.residual.data(), rows, config.hidden,
                int32_t(config.taps.size()) * config.targetHidden,
                LinearArgs::FloatResult});
  RmsNormArgs norm = {};
  norm.in = stack.residual.as<float>();
  norm.weight = weights.contextNorm.as<Bf16>();
  norm.out = stack.normed.as<Bf16>();
  norm.dim = config.hidden;
  norm.epsilon = config.epsilon;
  queue.rmsNormRow(norm, rows);
  queue.linear({stack.normed.as<Bf16>(), weights.contextKv.as<Bf16>(),
                contextRows.data(), rows, columns, config.hidden,
                LinearArgs::Bf16Result});
  for (size_t i = 0; i < config.layers.size(); ++i) {
    int32_t offset = 2 * keys * int32_t(i);
    int64_t heads = int64_t(rows) * config.kvHeads;
    queue.headsRow(
        {contextRows.as<Bf16>(), weights.layers[i].keyNorm.as<Bf16>(),
         stack.frequencies.as<float>(), batch.positions, stack.key.as<Bf16>(),
         config.kvHeads, dim, columns, offset, config.epsilon},
        heads);
    queue.headsRow({contextRows.as<Bf16>(), nullptr, nullptr, nullptr,
                    stack.value.as<Bf16>(), config.kvHeads, dim, columns,
                    offset + keys, 0},
                   heads);
    queue.add([&] {
      return attentionOf(i).append(context.appender, batch, places[i],
                                   stack.key, stack.value, batch.accepted,
                                   stream);
    });
  }
  return queue.status();
}
