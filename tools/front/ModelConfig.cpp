//===- ModelConfig.cpp - Geometry from a model's config.json --------------===//

#include "tools/front/ModelZoo.h"

#include <nlohmann/json.hpp>

#include <algorithm>

using namespace tokentile;

namespace {

using Json = nlohmann::json;

/// Query tokens of a verify step when a target's file cannot say.
constexpr int64_t defaultBlock = 16;

int64_t numberOr(const Json &json, const char *field, int64_t otherwise) {
  auto found = json.find(field);
  return found != json.end() && found->is_number_integer()
             ? found->get<int64_t>()
             : otherwise;
}

/// The text part of a multimodal model, else the file itself.
const Json &textPart(const Json &json) {
  auto found = json.find("text_config");
  return found != json.end() && found->is_object() ? *found : json;
}

bool isDraftModel(const Json &json) {
  if (json.contains("dflash_config"))
    return true;
  auto found = json.find("architectures");
  return found != json.end() &&
         found->dump().find("DFlash") != std::string::npos;
}

bool hasLayer(const Json &json, const char *kind) {
  auto found = json.find("layer_types");
  if (found == json.end() || !found->is_array())
    return false;
  for (const Json &layer : *found)
    if (layer == kind)
      return true;
  return false;
}

/// A draft's kernels are those of its sliding layers, where it has them; a
/// target's are those of its full layers.
int64_t readWindow(const Json &json, bool isDraft) {
  int64_t window = std::max<int64_t>(0, numberOr(json, "sliding_window", 0));
  if (json.contains("layer_types"))
    return hasLayer(json, "sliding_attention") &&
                   (isDraft || !hasLayer(json, "full_attention"))
               ? window
               : 0;
  auto used = json.find("use_sliding_window");
  return used != json.end() && *used == true ? window : 0;
}

} // namespace

StatusOr<ModelGeometry> tokentile::readModelConfig(const std::string &text,
                                                   const std::string &path) {
  Json whole = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!whole.is_object())
    return Status(StatusCode::DataError,
                  "model file '" + path + "' is not a JSON object");
  const Json &json = textPart(whole);
  ModelGeometry model;
  model.name = path;
  model.isDraft = isDraftModel(whole);
  model.queryHeads = numberOr(json, "num_attention_heads", 0);
  if (model.queryHeads <= 0)
    return Status(StatusCode::DataError,
                  "model file '" + path +
                      "' lacks 'num_attention_heads', a positive number");
  model.kvHeads = numberOr(json, "num_key_value_heads", model.queryHeads);
  model.headDim = numberOr(json, "head_dim", 0);
  if (model.headDim <= 0)
    model.headDim = numberOr(json, "hidden_size", 0) / model.queryHeads;
  if (model.headDim <= 0)
    return Status(StatusCode::DataError,
                  "model file '" + path +
                      "' lacks 'head_dim' or 'hidden_size'");
  model.window = readWindow(json, model.isDraft);
  model.block = numberOr(json, "block_size", 0);
  if (auto own = whole.find("dflash_config");
      own != whole.end() && own->is_object() && !model.block)
    model.block = numberOr(*own, "block_size", 0);
  if (!model.block)
    model.block = defaultBlock;
  return model;
}
