//===- ReferenceConfig.cpp - Geometry of a target and its draft -----------===//

#include "tools/reference-model/ReferenceConfig.h"

#include "tools/front/Front.h"
#include "tools/front/ModelZoo.h"

#include <nlohmann/json.hpp>

#include <algorithm>

using namespace tokentile;

namespace {

using Json = nlohmann::json;

Status wrong(const std::string &path, const std::string &cause) {
  return Status(StatusCode::DataError, "model file '" + path + "' " + cause);
}

/// Fields of one object, the first failure kept.
class Fields {
public:
  Fields(const Json &json, const std::string &path) : json(json), path(path) {}

  /// A positive number that must be there.
  int32_t count(const char *field) {
    int32_t value = countOr(field, 0);
    if (value == 0)
      fail(std::string("lacks '") + field + "', a positive number");
    return value;
  }
  /// A positive number, or `otherwise` if there is no such field.
  int32_t countOr(const char *field, int32_t otherwise) {
    auto found = json.find(field);
    if (found == json.end() || found->is_null())
      return otherwise;
    if (!found->is_number_integer() || found->get<int64_t>() < 1 ||
        found->get<int64_t>() > INT32_MAX)
      fail(std::string("has '") + field + "' " + found->dump() +
           "; a positive number works");
    else
      return found->get<int32_t>();
    return otherwise;
  }
  float realOr(const char *field, float otherwise) {
    auto found = json.find(field);
    return found != json.end() && found->is_number() ? found->get<float>()
                                                     : otherwise;
  }
  bool flagOr(const char *field, bool otherwise) {
    auto found = json.find(field);
    return found != json.end() && found->is_boolean() ? found->get<bool>()
                                                      : otherwise;
  }
  void fail(const std::string &cause) {
    if (status.ok())
      status = wrong(path, cause);
  }

  const Json &json;
  const std::string &path;
  Status status;
};

void readLayers(Fields &fields, StackConfig &config) {
  int32_t count = fields.count("num_hidden_layers");
  auto types = fields.json.find("layer_types");
  if (types == fields.json.end() || !types->is_array()) {
    config.layers.assign(size_t(count), LayerKind::Full);
    // Hugging Face's default, and its rule for files without layer_types.
    constexpr int32_t wholeLayers = 28;
    if (fields.flagOr("use_sliding_window", false))
      for (int32_t i = fields.countOr("max_window_layers", wholeLayers);
           i < count; ++i)
        config.layers[size_t(i)] = LayerKind::Sliding;
  } else {
    for (const Json &type : *types) {
      if (type == "full_attention")
        config.layers.push_back(LayerKind::Full);
      else if (type == "sliding_attention")
        config.layers.push_back(LayerKind::Sliding);
      else if (type == "linear_attention")
        config.layers.push_back(LayerKind::GatedDelta);
      else
        fields.fail("has layer_types " + type.dump() +
                    "; full_attention, sliding_attention and linear_attention "
                    "work");
    }
    if (fields.status.ok() && int32_t(config.layers.size()) != count)
      fields.fail("has " + std::to_string(config.layers.size()) +
                  " layer_types for num_hidden_layers " +
                  std::to_string(count));
  }
  if (config.hasLayer(LayerKind::Sliding))
    config.window = fields.count("sliding_window");
}

/// Fields that would change what a model computes, each with the one value that
/// does not; null and a missing field do not either.
void refuseUncovered(Fields &fields) {
  const std::pair<const char *, Json> neutral[] = {
      {"model_type", "qwen3"},
      {"hidden_act", "silu"},
      {"attention_bias", false},
      {"mlp_bias", false},
      {"rope_scaling", nullptr},
      {"rope_type", "default"},
      {"partial_rotary_factor", 1.0},
      {"is_neox_style", true},
      {"attn_output_gate", false},
      {"attention_sink_bias", false},
      {"attn_logit_softcapping", nullptr},
      {"final_logit_softcapping", nullptr},
      {"input_embedding_scale", 1.0},
      {"output_multiplier", 1.0},
      {"use_swa", false},
      {"swa_window_size", nullptr},
      {"sample_from_anchor", false},
  };
  for (const auto &[field, value] : neutral) {
    auto found = fields.json.find(field);
    if (found == fields.json.end() || found->is_null() || *found == value)
      continue;
    std::string what = std::string("has '") + field + "'";
    if (!found->is_structured())
      what += " " + found->dump();
    fields.fail(what + ", which is not covered" +
                (value.is_null() ? "" : "; " + value.dump() + " works"));
  }
}

/// What every stack has. The heads are those that the other tools read.
void readStack(Fields &fields, const std::string &text, StackConfig &config) {
  StatusOr<ModelGeometry> heads = readModelConfig(text, fields.path);
  if (!heads.ok()) {
    fields.status = heads.status();
    return;
  }
  config.name = fields.path;
  config.queryHeads = int32_t(heads->queryHeads);
  config.kvHeads = int32_t(heads->kvHeads);
  config.headDim = int32_t(heads->headDim);
  config.hidden = fields.count("hidden_size");
  config.inner = fields.count("intermediate_size");
  config.vocabulary = fields.count("vocab_size");
  config.epsilon = fields.realOr("rms_norm_eps", 1e-6f);
  // Hugging Face's default.
  config.ropeTheta = fields.realOr("rope_theta", 1e4f);
  if (auto rope = fields.json.find("rope_parameters");
      rope != fields.json.end() && rope->is_object()) {
    Fields own(*rope, fields.path);
    config.ropeTheta = own.realOr("rope_theta", config.ropeTheta);
    refuseUncovered(own);
    if (fields.status.ok())
      fields.status = own.status;
  }
  readLayers(fields, config);
  for (auto [field, value] : {std::pair("hidden_size", config.hidden),
                              std::pair("intermediate_size", config.inner)})
    if (value % 32 != 0)
      fields.fail(std::string("has '") + field + "' " + std::to_string(value) +
                  "; a multiple of 32 works");
  refuseUncovered(fields);
}

StatusOr<Json> parse(const std::string &text, const std::string &path) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return wrong(path, "is not a JSON object");
  return json;
}

template <typename Config>
StatusOr<Config> load(const std::string &path,
                      StatusOr<Config> (&read)(const std::string &,
                                               const std::string &)) {
  StatusOr<std::string> text = readText(path, "model");
  if (!text.ok())
    return text.status();
  return read(*text, path);
}

} // namespace

bool StackConfig::hasLayer(LayerKind kind) const {
  return std::find(layers.begin(), layers.end(), kind) != layers.end();
}

StatusOr<TargetConfig> tokentile::readTargetConfig(const std::string &text,
                                                   const std::string &path) {
  StatusOr<Json> json = parse(text, path);
  if (!json.ok())
    return json.status();
  Fields fields(*json, path);
  TargetConfig config;
  readStack(fields, text, config);
  config.tiedHead = fields.flagOr("tie_word_embeddings", false);
  if (config.hasLayer(LayerKind::GatedDelta)) {
    config.deltaHeads = fields.count("linear_num_value_heads");
    config.deltaKeyHeads = fields.count("linear_num_key_heads");
    config.deltaKeyDim = fields.count("linear_key_head_dim");
    config.deltaValueDim = fields.count("linear_value_head_dim");
    if (fields.status.ok() && config.deltaHeads % config.deltaKeyHeads != 0)
      fields.fail("has linear_num_value_heads " +
                  std::to_string(config.deltaHeads) +
                  ", which linear_num_key_heads " +
                  std::to_string(config.deltaKeyHeads) + " does not divide");
  }
  if (!fields.status.ok())
    return fields.status;
  return config;
}

StatusOr<DraftConfig> tokentile::readDraftConfig(const std::string &text,
                                                 const std::string &path) {
  StatusOr<Json> json = parse(text, path);
  if (!json.ok())
    return json.status();
  Fields fields(*json, path);
  DraftConfig config;
  readStack(fields, text, config);
  Json none = Json::object();
  auto found = json->find("dflash_config");
  bool nested = found != json->end() && found->is_object();
  Fields own(nested ? *found : none, path);
  config.block = fields.countOr("block_size", 0);
  if (!config.block)
    config.block = own.count("block_size");
  auto mask = own.json.find("mask_token_id");
  if (mask == own.json.end() || !mask->is_number_unsigned())
    own.fail("lacks 'mask_token_id' in 'dflash_config'");
  else if (mask->get<int64_t>() >= config.vocabulary)
    own.fail("has mask_token_id " + mask->dump() + " in a vocabulary of " +
             std::to_string(config.vocabulary));
  else
    config.maskToken = mask->get<int32_t>();
  auto taps = own.json.find("target_layer_ids");
  if (taps == own.json.end() || !taps->is_array() || taps->empty())
    own.fail("lacks 'target_layer_ids' in 'dflash_config'");
  else
    for (const Json &tap : *taps) {
      if (!tap.is_number_unsigned())
        own.fail("has target_layer_ids " + tap.dump() +
                 "; numbers from 0 work");
      else
        config.taps.push_back(tap.get<int32_t>());
    }
  refuseUncovered(own);
  for (Fields *part : {&fields, &own})
    if (int32_t reduced = part->countOr("draft_vocab_size", config.vocabulary);
        reduced != config.vocabulary)
      part->fail("has draft_vocab_size " + std::to_string(reduced) +
                 ", which is not covered; vocab_size " +
                 std::to_string(config.vocabulary) + " works");
  config.targetLayers = fields.countOr("num_target_layers", 0);
  config.targetHidden = fields.countOr("target_hidden_size", config.hidden);
  if (config.hasLayer(LayerKind::GatedDelta))
    fields.fail("has layer_types \"linear_attention\", which a draft lacks");
  for (const char *field : {"is_causal", "causal"})
    if (fields.flagOr(field, false) || own.flagOr(field, false))
      fields.fail(std::string("has '") + field +
                  "' true; the blocks of this draft are not causal");
  for (const char *field : {"conv_kernel_size", "selector_rank"})
    if (own.json.contains(field) || json->contains(field))
      fields.fail(std::string("has '") + field +
                  "', a part of DFlash2 that is not covered");
  if (!fields.status.ok())
    return fields.status;
  if (!own.status.ok())
    return own.status;
  return config;
}

StatusOr<TargetConfig> tokentile::loadTargetConfig(const std::string &path) {
  return load(path, readTargetConfig);
}

StatusOr<DraftConfig> tokentile::loadDraftConfig(const std::string &path) {
  return load(path, readDraftConfig);
}

TargetConfig tokentile::smallTarget(bool recurrent) {
  TargetConfig config;
  config.hidden = 64;
  config.inner = 96;
  config.queryHeads = 2;
  config.kvHeads = 1;
  config.headDim = 64;
  config.vocabulary = 96;
  config.layers = {LayerKind::Full, LayerKind::Sliding, LayerKind::Full};
  config.window = 24;
  if (recurrent) {
    config.layers.insert(config.layers.begin(), LayerKind::GatedDelta);
    config.layers[0] = config.layers[2] = LayerKind::GatedDelta;
    config.deltaHeads = 4;
    config.deltaKeyHeads = 2;
    config.deltaKeyDim = config.deltaValueDim = 16;
  }
  return config;
}

DraftConfig tokentile::smallDraft(const TargetConfig &target) {
  DraftConfig config;
  static_cast<StackConfig &>(config) = target;
  config.layers = {LayerKind::Sliding, LayerKind::Full};
  config.window = 32;
  config.block = 17;
  config.maskToken = target.vocabulary - 1;
  config.taps = {0, int32_t(target.layers.size()) - 1};
  config.targetLayers = int32_t(target.layers.size());
  config.targetHidden = target.hidden;
  return config;
}

Status tokentile::checkPair(const TargetConfig &target,
                            const DraftConfig &draft, int32_t drafts) {
  auto differ = [&](const std::string &what, int64_t own, int64_t other) {
    return Status(StatusCode::InvalidArgument,
                  "draft '" + draft.name + "' has " + what + " " +
                      std::to_string(own) + " and target '" + target.name +
                      "' " + std::to_string(other));
  };
  if (draft.vocabulary != target.vocabulary)
    return differ("vocab_size", draft.vocabulary, target.vocabulary);
  if (draft.targetHidden != target.hidden)
    return differ("target_hidden_size", draft.targetHidden, target.hidden);
  // The draft embeds with the target's table and ends in its head.
  if (draft.hidden != target.hidden)
    return differ("hidden_size", draft.hidden, target.hidden);
  int32_t layers = int32_t(target.layers.size());
  if (draft.targetLayers && draft.targetLayers != layers)
    return differ("num_target_layers", draft.targetLayers, layers);
  for (int32_t tap : draft.taps)
    if (tap >= layers)
      return Status(StatusCode::InvalidArgument,
                    "draft '" + draft.name + "' taps layer " +
                        std::to_string(tap) + " and target '" + target.name +
                        "' has " + std::to_string(layers) + " layers");
  if (drafts >= draft.block)
    return Status(StatusCode::InvalidArgument,
                  "width " + std::to_string(drafts) + " needs a block of " +
                      std::to_string(drafts + 1) + " rows and draft '" +
                      draft.name + "' has block_size " +
                      std::to_string(draft.block));
  return Status();
}
