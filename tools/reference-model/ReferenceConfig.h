//===- ReferenceConfig.h - Geometry of a target and its draft ---*- C++ -*-===//
//
// What a Hugging Face `config.json` says of a Qwen3-style target and of a
// DFlash draft, in the words of those files. A target that is not read from a
// checkpoint may also have gated-delta-net layers.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TOOLS_REFERENCEMODEL_REFERENCECONFIG_H
#define TOKENTILE_TOOLS_REFERENCEMODEL_REFERENCECONFIG_H

#include "runtime/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tokentile {

/// What a layer mixes its tokens with.
enum class LayerKind { Full, Sliding, GatedDelta };

/// What target and draft have in common: a stack of decoder layers.
struct StackConfig {
  /// The file, or "seed:N": for messages.
  std::string name;
  int32_t hidden = 0;
  int32_t inner = 0;
  int32_t queryHeads = 0;
  int32_t kvHeads = 0;
  int32_t headDim = 0;
  int32_t vocabulary = 0;
  /// Keys of the window of sliding layers, a row's own included.
  int32_t window = 0;
  float epsilon = 1e-6f;
  float ropeTheta = 1e6f;
  /// One for each layer.
  std::vector<LayerKind> layers;

  bool hasLayer(LayerKind kind) const;
};

struct TargetConfig : StackConfig {
  bool tiedHead = false;
  /// Heads of gated-delta-net layers.
  int32_t deltaHeads = 0;
  int32_t deltaKeyHeads = 0;
  int32_t deltaKeyDim = 0;
  int32_t deltaValueDim = 0;
};

struct DraftConfig : StackConfig {
  /// Rows of the block that it was trained for: the anchor and the masks.
  int32_t block = 0;
  int32_t maskToken = 0;
  /// Layers of the target after which the residual stream is tapped.
  std::vector<int32_t> taps;
  /// Layers that the target must have, 0 if the file does not say.
  int32_t targetLayers = 0;
  /// Width of a tap.
  int32_t targetHidden = 0;
};

/// Read the text of a config.json; `path` stands for it in messages. DataError
/// names the field that is missing or that the reference model does not cover.
StatusOr<TargetConfig> readTargetConfig(const std::string &text,
                                        const std::string &path);
StatusOr<DraftConfig> readDraftConfig(const std::string &text,
                                      const std::string &path);
/// The same of the file itself; NotFound if it cannot be read.
StatusOr<TargetConfig> loadTargetConfig(const std::string &path);
StatusOr<DraftConfig> loadDraftConfig(const std::string &path);

/// Small geometries for seeded weights. `recurrent` adds gated-delta-net layers
/// to the target.
TargetConfig smallTarget(bool recurrent = false);
DraftConfig smallDraft(const TargetConfig &target);

/// Whether the draft can propose `drafts` tokens for the target.
/// InvalidArgument names the field and both values.
Status checkPair(const TargetConfig &target, const DraftConfig &draft,
                 int32_t drafts);

} // namespace tokentile

#endif // TOKENTILE_TOOLS_REFERENCEMODEL_REFERENCECONFIG_H
