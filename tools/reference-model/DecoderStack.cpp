//===- DecoderStack.cpp - Layers that target and draft share --------------===//

#include "tools/reference-model/DecoderStack.h"

#include <algorithm>
#include <cmath>

using namespace tokentile;
using namespace tokentile::reference;

Buffer Allocator::operator()(int64_t bytes) {
  if (!status.ok())
    return Buffer();
  StatusOr<Buffer> buffer = device.allocate(size_t(bytes));
  status = buffer.status();
  return buffer.ok() ? *std::move(buffer) : Buffer();
}

StatusOr<DecoderStack> DecoderStack::create(Device &device,
                                            const StackConfig &config,
                                            int32_t maxRows,
                                            int64_t mixerWidth) {
  DecoderStack stack(config);
  Allocator allocate(device);
  int64_t rows = maxRows, dim = config.headDim;
  int64_t queries = config.queryHeads * dim, keys = config.kvHeads * dim;
  int64_t fused =
      std::max({queries + 2 * keys, int64_t(2) * config.inner, mixerWidth});
  int64_t mixed = std::max({queries, int64_t(config.inner), mixerWidth});
  constexpr int64_t bf16 = sizeof(Bf16);
  stack.residual = allocate(rows * config.hidden * int64_t(sizeof(float)));
  stack.normed = allocate(rows * config.hidden * bf16);
  stack.fused = allocate(rows * fused * bf16);
  stack.mixed = allocate(rows * mixed * bf16);
  stack.query = allocate(rows * queries * bf16);
  stack.key = allocate(rows * keys * bf16);
  stack.value = allocate(rows * keys * bf16);
  stack.frequencies = allocate(dim / 2 * int64_t(sizeof(float)));
  if (!allocate.status.ok())
    return allocate.status;
  std::vector<float> frequencies;
  for (int64_t i = 0; i < dim / 2; ++i)
    frequencies.push_back(float(
        std::pow(double(config.ropeTheta), -2.0 * double(i) / double(dim))));
  if (Status status =
          device.copyToDevice(stack.frequencies.data(), frequencies.data(),
                              frequencies.size() * sizeof(float));
      !status.ok())
    return status;
  // Rows of padding are computed with whatever lies here; keep it finite.
  for (Buffer *buffer : {&stack.mixed, &stack.query, &stack.key, &stack.value})
    if (Status status = device.fill(buffer->data(), 0, buffer->size());
        !status.ok())
      return status;
  return stack;
}

void DecoderStack::embed(OpQueue &queue, const int32_t *ids, const Bf16 *table,
                         int32_t rows) {
  queue.embedRow(
      {ids, table, residual.as<float>(), config.hidden, config.vocabulary},
      rows);
}

void DecoderStack::project(OpQueue &queue, const Buffer &norm,
                           const Buffer &weight, int32_t columns,
                           int32_t rows) {
  RmsNormArgs args = {};
  args.in = residual.as<float>();
  args.weight = norm.as<Bf16>();
  args.out = normed.as<Bf16>();
  args.dim = config.hidden;
  args.epsilon = config.epsilon;
  queue.rmsNormRow(args, rows);
  queue.linear({normed.as<Bf16>(), weight.as<Bf16>(), fused.data(), rows,
                columns, config.hidden, LinearArgs::Bf16Result});
}

void DecoderStack::projectHeads(OpQueue &queue, const LayerWeights &layer,
                                const int32_t *positions, int32_t rows) {
  int32_t dim = config.headDim;
  int32_t queries = config.queryHeads * dim, keys = config.kvHeads * dim;
  int32_t columns = queries + 2 * keys;
  project(queue, layer.inputNorm, layer.qkv, columns, rows);
  const Bf16 *in = fused.as<Bf16>();
  const float *rope = frequencies.as<float>();
  queue.headsRow({in, layer.queryNorm.as<Bf16>(), rope, positions,
                  query.as<Bf16>(), config.queryHeads, dim, columns, 0,
                  config.epsilon},
                 int64_t(rows) * config.queryHeads);
  queue.headsRow({in, layer.keyNorm.as<Bf16>(), rope, positions, key.as<Bf16>(),
                  config.kvHeads, dim, columns, queries, config.epsilon},
                 int64_t(rows) * config.kvHeads);
  queue.headsRow({in, nullptr, nullptr, nullptr, value.as<Bf16>(),
                  config.kvHeads, dim, columns, queries + keys, 0},
                 int64_t(rows) * config.kvHeads);
}

void DecoderStack::addMixed(OpQueue &queue, const Buffer &weight, int32_t depth,
                            int32_t rows) {
  queue.linear({mixed.as<Bf16>(), weight.as<Bf16>(), residual.data(), rows,
                config.hidden, depth, LinearArgs::AddToFloat});
}

void DecoderStack::feedForward(OpQueue &queue, const LayerWeights &layer,
                               int32_t rows) {
  project(queue, layer.postNorm, layer.gateUp, 2 * config.inner, rows);
  queue.swiGluRow({fused.as<Bf16>(), mixed.as<Bf16>(), config.inner}, rows);
  addMixed(queue, layer.down, config.inner, rows);
}

void DecoderStack::logits(OpQueue &queue, const Buffer &norm, const Bf16 *head,
                          const HeadRows &rows, int32_t batch, int32_t width,
                          float *out) {
  int32_t count = batch * (rows.count ? rows.count : width);
  queue.rmsNormRow({residual.as<float>(), norm.as<Bf16>(), normed.as<Bf16>(),
                    config.hidden, rows.count, width, rows.first,
                    config.epsilon},
                   count);
  queue.linear({normed.as<Bf16>(), head, out, count, config.vocabulary,
                config.hidden, LinearArgs::FloatResult});
}
