//===- ReferenceTarget.cpp - A small target model -------------------------===//

#include "tools/reference-model/ReferenceTarget.h"

#include <algorithm>

using namespace tokentile;
using namespace tokentile::reference;

namespace {

int64_t padded(int64_t bytes) { return (bytes + 255) / 256 * 256; }

/// Columns of the parts of a gated-delta-net projection.
struct DeltaColumns {
  explicit DeltaColumns(const TargetConfig &c)
      : channels(2 * c.deltaKeyHeads * c.deltaKeyDim +
                 c.deltaHeads * c.deltaValueDim),
        values(c.deltaHeads * c.deltaValueDim),
        all(channels + values + 2 * c.deltaHeads) {}
  int32_t channels;
  int32_t values;
  int32_t all;
};

AttentionKind kindOf(const TargetConfig &config, int32_t window) {
  return {config.queryHeads, config.kvHeads, config.headDim, window,
          /*isDraft=*/false};
}

} // namespace

int64_t reference::convStateBytes(const TargetConfig &config) {
  return padded(3 * int64_t(DeltaColumns(config).channels) *
                int64_t(sizeof(float)));
}

int64_t reference::deltaStateBytes(const TargetConfig &config) {
  return convStateBytes(config) +
         padded(int64_t(config.deltaHeads) * config.deltaKeyDim *
                config.deltaValueDim * int64_t(sizeof(float)));
}

ReferenceTarget::ReferenceTarget(const ModelContext &context,
                                 const TargetConfig &config,
                                 TargetWeights weights, DecoderStack stack,
                                 const CachePlace &keys,
                                 const CachePlace &state,
                                 const std::vector<int32_t> &taps)
    : context(context), config(config), weights(std::move(weights)),
      stack(std::move(stack)), state(state), taps(taps),
      full(context.device, kindOf(config, 0), keys, context.limits.keys),
      sliding(context.device, kindOf(config, config.window), keys,
              context.limits.keys) {}

StatusOr<std::unique_ptr<ReferenceTarget>>
ReferenceTarget::create(const ModelContext &context, const TargetConfig &config,
                        TargetWeights weights, const CachePlace &keys,
                        const CachePlace &state,
                        const std::vector<int32_t> &taps) {
  DeltaColumns delta(config);
  StatusOr<DecoderStack> stack = DecoderStack::create(
      context.device, config, context.limits.rows, delta.all);
  if (!stack.ok())
    return stack.status();
  std::unique_ptr<ReferenceTarget> model(
      new ReferenceTarget(context, config, std::move(weights),
                          *std::move(stack), keys, state, taps));
  Allocator allocate(context.device);
  int64_t rows = context.limits.rows;
  model->tapRows = allocate(rows * int64_t(taps.size()) * config.hidden *
                            int64_t(sizeof(Bf16)));
  model->convolved = allocate(rows * delta.channels * int64_t(sizeof(Bf16)));
  model->recurred = allocate(rows * delta.values * int64_t(sizeof(float)));
  // Rows of padding are not computed; keep what is read of them finite.
  for (Buffer *buffer : {&model->convolved, &model->recurred})
    if (allocate.status.ok() && buffer->size())
      allocate.status = context.device.fill(buffer->data(), 0, buffer->size());
  if (!allocate.status.ok())
    return allocate.status;
  return model;
}

Status ReferenceTarget::prepare(const StepShape &shape) {
  if (shape.rows() > context.limits.rows)
    return Status(StatusCode::OutOfRange,
                  "a step of " + std::to_string(shape.rows()) +
                      " rows exceeds the model's " +
                      std::to_string(context.limits.rows));
  for (auto [kind, attention] : {std::pair(LayerKind::Full, &full),
                                 std::pair(LayerKind::Sliding, &sliding)})
    if (config.hasLayer(kind))
      if (Status status = attention->prepare(shape.width, shape.batch);
          !status.ok())
        return status;
  return Status();
}

void ReferenceTarget::attend(OpQueue &queue, const StepBatch &batch,
                             int32_t layer, int32_t index, Stream &stream) {
  Attention &attention =
      config.layers[layer] == LayerKind::Sliding ? sliding : full;
  int32_t rows = batch.shape.rows();
  stack.projectHeads(queue, weights.layers[layer], batch.positions, rows);
  queue.add([&] {
    LaunchArgs args = attention.argsOf(batch, index);
    args.query = stack.query.data();
    args.output = stack.mixed.data();
    if (Status status =
            attention.append(context.appender, batch, index, stack.key,
                             stack.value, batch.columns, stream);
        !status.ok())
      return status;
    return attention.launch(batch.shape.width, batch.shape.batch, args, stream);
  });
  stack.addMixed(queue, weights.layers[layer].output,
                 config.queryHeads * config.headDim, rows);
}

void ReferenceTarget::mixDelta(OpQueue &queue, const StepBatch &batch,
                               int32_t layer, int32_t index) {
  const LayerWeights &w = weights.layers[layer];
  const StepTable &table = batch.tables[state.pageClass];
  DeltaColumns columns(config);
  int32_t rows = batch.shape.rows(), heads = config.deltaHeads;
  stack.project(queue, w.inputNorm, w.deltaIn, columns.all, rows);
  const Bf16 *in = stack.fused.as<Bf16>();
  StateArgs place = {state.memory,
                     table.ids,
                     batch.lengths,
                     batch.columns,
                     table.stride,
                     state.pageBytes,
                     index * deltaStateBytes(config),
                     batch.shape.width,
                     !batch.shape.prompt && table.stride > 1};
  queue.convSlot({place, in, w.conv.as<Bf16>(), convolved.as<Bf16>(),
                  columns.channels, columns.all},
                 batch.shape.batch);
  place.offset += convStateBytes(config);
  queue.deltaHead({place, convolved.as<Bf16>(), in, w.logDecay.as<Bf16>(),
                   w.decayBias.as<Bf16>(), recurred.as<float>(), heads,
                   config.deltaKeyHeads, config.deltaKeyDim,
                   config.deltaValueDim, columns.all,
                   columns.channels + columns.values},
                  int64_t(batch.shape.batch) * heads);
  queue.gatedNormHead({recurred.as<float>(), w.deltaNorm.as<Bf16>(), in,
                       stack.mixed.as<Bf16>(), heads, config.deltaValueDim,
                       columns.all, columns.channels, config.epsilon},
                      int64_t(rows) * heads);
  stack.addMixed(queue, w.output, columns.values, rows);
}

Status ReferenceTarget::forward(const StepBatch &batch, Stream &stream) {
  OpQueue queue(context.ops, stream);
  int32_t rows = batch.shape.rows(), hidden = config.hidden;
  stack.embed(queue, batch.tokens, weights.embedding.as<Bf16>(), rows);
  int32_t attended = 0, mixed = 0;
  for (size_t i = 0; i < config.layers.size(); ++i) {
    if (config.layers[i] == LayerKind::GatedDelta)
      mixDelta(queue, batch, int32_t(i), mixed++);
    else
      attend(queue, batch, int32_t(i), attended++, stream);
    stack.feedForward(queue, weights.layers[i], rows);
    for (size_t tap = 0; tap < taps.size(); ++tap)
      if (taps[tap] == int32_t(i))
        queue.tapRow({stack.residual.as<float>(), tapRows.as<Bf16>(), hidden,
                      int32_t(taps.size()) * hidden, int32_t(tap) * hidden},
                     rows);
  }
  if (batch.logits)
    stack.logits(queue, weights.norm, weights.head(), HeadRows(),
                 batch.shape.batch, batch.shape.width, batch.logits);
  return queue.status();
}
