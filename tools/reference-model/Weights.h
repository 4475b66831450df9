//===- Weights.h - Tensors of the reference model on a device ---*- C++ -*-===//
//
// Projections that read the same rows are one matrix, so that a layer is four
// products: [q; k; v], o, [gate; up], down. All context keys and values of a
// draft are one product too, since every layer projects the same rows.
//
// A seeded tensor is a function of the seed and its name, whatever else there
// is: matrices keep the variance of their input, norms are near 1.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TOOLS_REFERENCEMODEL_WEIGHTS_H
#define TOKENTILE_TOOLS_REFERENCEMODEL_WEIGHTS_H

#include "runtime/Device.h"
#include "tools/reference-model/Checkpoint.h"
#include "tools/reference-model/OpBodies.h"
#include "tools/reference-model/ReferenceConfig.h"

#include <optional>

namespace tokentile::reference {

/// Where tensors come from: a checkpoint, or a seed.
class WeightSource {
public:
  explicit WeightSource(uint64_t seed) : seed(seed) {}
  explicit WeightSource(Checkpoint checkpoint)
      : checkpoint(std::move(checkpoint)) {}

  bool isSeeded() const { return !checkpoint; }
  bool has(const std::string &name) const {
    return isSeeded() || checkpoint->has(name);
  }
  /// The elements of a tensor, appended to `to`.
  Status read(const std::string &name, const std::vector<int64_t> &shape,
              std::vector<Bf16> &to) const;
  /// DataError naming a tensor of the checkpoint that is none of `used`.
  Status checkOnly(const std::set<std::string> &used) const {
    return isSeeded() ? Status() : checkpoint->checkOnly(used);
  }

private:
  void draw(const std::string &name, const std::vector<int64_t> &shape,
            Bf16 *to) const;

  uint64_t seed = 0;
  std::optional<Checkpoint> checkpoint;
};

/// One decoder layer. Shapes are [outputs, inputs]; only what the layer's kind
/// needs is there.
struct LayerWeights {
  Buffer inputNorm, postNorm, gateUp, down;
  /// Attention: [(heads + 2 kv heads) * dim, hidden], and norms [dim].
  Buffer qkv, queryNorm, keyNorm, output;
  /// Gated delta net: [q; k; v; z; a; b] over hidden, of key heads * key dim
  /// (twice), heads * value dim (twice) and heads (twice) rows; then [channels,
  /// 4], [heads], [heads], [value dim], and `output`.
  Buffer deltaIn, conv, logDecay, decayBias, deltaNorm;
};

struct TargetWeights {
  Buffer embedding, norm, ownHead;
  std::vector<LayerWeights> layers;
  /// [vocabulary, hidden].
  const Bf16 *head() const {
    return (ownHead.size() ? ownHead : embedding).as<Bf16>();
  }
};

struct DraftWeights {
  /// [hidden, taps * target hidden], [hidden].
  Buffer fuse, contextNorm;
  /// Keys, then values, of every layer in order:
  /// [layers * 2 * kv heads * dim, hidden].
  Buffer contextKv;
  Buffer norm;
  std::vector<LayerWeights> layers;
};

/// Read and upload every tensor. Errors name the tensor, one of the checkpoint
/// that the model does not have included. NotCovered for
/// gated-delta-net layers of a checkpoint, whose layout differs by model.
StatusOr<TargetWeights> loadTarget(Device &device, const TargetConfig &config,
                                   const WeightSource &source);
StatusOr<DraftWeights> loadDraft(Device &device, const DraftConfig &config,
                                 const WeightSource &source);

} // namespace tokentile::reference

#endif // TOKENTILE_TOOLS_REFERENCEMODEL_WEIGHTS_H
