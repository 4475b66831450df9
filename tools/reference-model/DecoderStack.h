//===- DecoderStack.h - Layers that target and draft share ------*- C++ -*-===//
//
// The parts of a Qwen3-style decoder layer around its attention:
//
//   x += o(attention(heads(qkv(norm(x)))));   x += down(silu(gate) * up)
//
// with norms over the hidden width, and over each head of q and k before RoPE.
// Activations are allocated once, for the most rows of a step. The residual
// stream is fp32.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TOOLS_REFERENCEMODEL_DECODERSTACK_H
#define TOKENTILE_TOOLS_REFERENCEMODEL_DECODERSTACK_H

#include "tools/reference-model/Ops.h"
#include "tools/reference-model/Weights.h"

namespace tokentile::reference {

/// Rows whose logits are wanted: of each request `count` from `first` on, or
/// all of them if `count` is 0.
struct HeadRows {
  int32_t count = 0;
  int32_t first = 0;
};

class DecoderStack {
public:
  /// `mixerWidth` is the widest row that a layer's mixer needs beside q, k, v.
  static StatusOr<DecoderStack> create(Device &device,
                                       const StackConfig &config,
                                       int32_t maxRows, int64_t mixerWidth = 0);

  /// Token ids to the residual stream.
  void embed(OpQueue &queue, const int32_t *ids, const Bf16 *table,
             int32_t rows);
  /// The residual stream, normed, times `weight`, to `fused`.
  void project(OpQueue &queue, const Buffer &norm, const Buffer &weight,
               int32_t columns, int32_t rows);
  /// q, k and v of the layer, with norms and RoPE, to query, key and value.
  void projectHeads(OpQueue &queue, const LayerWeights &layer,
                    const int32_t *positions, int32_t rows);
  /// Adds `weight` times `mixed` to the residual stream.
  void addMixed(OpQueue &queue, const Buffer &weight, int32_t depth,
                int32_t rows);
  void feedForward(OpQueue &queue, const LayerWeights &layer, int32_t rows);
  /// Final norm and head of the chosen rows of a step of batch x width, to
  /// fp32 [batch, rows.count or width, vocabulary].
  void logits(OpQueue &queue, const Buffer &norm, const Bf16 *head,
              const HeadRows &rows, int32_t batch, int32_t width, float *out);

  /// fp32 [rows, hidden].
  Buffer residual;
  /// bf16; `normed` [rows, hidden], `fused` and `mixed` as wide as needed,
  /// the others [rows, heads, dim].
  Buffer normed, fused, mixed, query, key, value;
  /// RoPE: radians a position, [dim / 2].
  Buffer frequencies;

private:
  explicit DecoderStack(const StackConfig &config) : config(config) {}

  StackConfig config;
};

/// Frees nothing and fails once: allocates buffers until one fails.
class Allocator {
public:
  explicit Allocator(Device &device) : device(device) {}
  Buffer operator()(int64_t bytes);
  Status status;

private:
  Device &device;
};

} // namespace tokentile::reference

#endif // TOKENTILE_TOOLS_REFERENCEMODEL_DECODERSTACK_H
