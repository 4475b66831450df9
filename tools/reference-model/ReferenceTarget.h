//===- ReferenceTarget.h - A small target model -----------------*- C++ -*-===//
//
// A Qwen3-style decoder (GQA, norms of q and k, RoPE, SwiGLU), some of whose
// layers may be gated delta nets. A row's logits depend bit for bit on the
// tokens before it alone: not on the rows of its step, nor on its batch.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TOOLS_REFERENCEMODEL_REFERENCETARGET_H
#define TOKENTILE_TOOLS_REFERENCEMODEL_REFERENCETARGET_H

#include "tools/reference-model/Attention.h"
#include "tools/reference-model/DecoderStack.h"

namespace tokentile::reference {

/// Bounds of every step of a model.
struct ModelLimits {
  /// batch * width of a step.
  int32_t rows = 0;
  int32_t batch = 0;
  /// Committed and uncommitted keys of one request.
  int32_t keys = 0;
};

/// What is shared by everything that a model is made of.
struct ModelContext {
  Device &device;
  const Ops &ops;
  const Appender &appender;
  ModelLimits limits;
};

class ReferenceTarget final : public TargetModel {
public:
  /// `keys` and `state` are the classes of its attention and of its
  /// gated-delta-net layers; `taps` the layers after which a draft reads the
  /// residual stream. The context, and the pool's memory, outlive the model.
  static StatusOr<std::unique_ptr<ReferenceTarget>>
  create(const ModelContext &context, const TargetConfig &config,
         TargetWeights weights, const CachePlace &keys, const CachePlace &state,
         const std::vector<int32_t> &taps);

  int32_t vocabulary() const override { return config.vocabulary; }
  Status prepare(const StepShape &shape) override;
  Status forward(const StepBatch &batch, Stream &stream) override;

  /// bf16 [rows, taps, hidden], written by forward.
  const Buffer &tapped() const { return tapRows; }
  const TargetWeights &getWeights() const { return weights; }

private:
  ReferenceTarget(const ModelContext &context, const TargetConfig &config,
                  TargetWeights weights, DecoderStack stack,
                  const CachePlace &keys, const CachePlace &state,
                  const std::vector<int32_t> &taps);
  void attend(OpQueue &queue, const StepBatch &batch, int32_t layer,
              int32_t index, Stream &stream);
  void mixDelta(OpQueue &queue, const StepBatch &batch, int32_t layer,
                int32_t index);

  ModelContext context;
  TargetConfig config;
  TargetWeights weights;
  DecoderStack stack;
  CachePlace state;
  std::vector<int32_t> taps;
  Attention full, sliding;
  Buffer tapRows;
  /// Gated delta net: bf16 [rows, channels] and fp32 [rows, heads * value dim].
  Buffer convolved, recurred;
};

/// Bytes of one snapshot of the state of one gated-delta-net layer: the inputs
/// of the convolution, fp32 [3, channels], then fp32 [heads, key dim, value
/// dim], each padded to 256 bytes.
int64_t convStateBytes(const TargetConfig &config);
int64_t deltaStateBytes(const TargetConfig &config);

} // namespace tokentile::reference

#endif // TOKENTILE_TOOLS_REFERENCEMODEL_REFERENCETARGET_H
