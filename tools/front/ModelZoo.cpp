//===- ModelZoo.cpp - The table of published models -----------------------===//
//
// Figures are those of the checkpoints' own config.json files. Targets stand
// here if their heads are published; other targets are read from their files.
//
//===----------------------------------------------------------------------===//

#include "tools/front/ModelZoo.h"

#include <fstream>
#include <sstream>

using namespace tokentile;

const std::vector<ModelGeometry> &tokentile::publishedModels() {
  // name, draft, q, kv, dim, window, block, published draft
  static const std::vector<ModelGeometry> models = {
      {"qwen3.6-27b", false, 24, 4, 256, 0, 16, "qwen3.6-27b-dflash"},
      {"qwen3.6-35b-a3b", false, 16, 2, 256, 0, 16, "qwen3.6-35b-a3b-dflash"},
      {"qwen3.8-27b", false, 24, 4, 256, 0, 8, "qwen3.8-27b-dflash2"},
      {"qwen3.5-27b", false, 24, 4, 256, 0, 16, "qwen3.5-27b-dflash"},
      {"qwen3-8b", false, 32, 8, 128, 0, 16, "qwen3-8b-dflash"},
      {"qwen3.6-27b-dflash", true, 32, 8, 128, 2048, 16, ""},
      {"qwen3.6-35b-a3b-dflash", true, 32, 8, 128, 4096, 16, ""},
      {"qwen3.8-27b-dflash2", true, 32, 8, 128, 2048, 8, ""},
      {"qwen3.5-4b-dflash", true, 32, 8, 128, 4096, 16, ""},
      {"qwen3.5-9b-dflash", true, 32, 8, 128, 4096, 16, ""},
      {"qwen3.5-27b-dflash", true, 32, 8, 128, 4096, 16, ""},
      {"qwen3.5-35b-a3b-dflash", true, 32, 8, 128, 4096, 16, ""},
      {"qwen3.5-122b-a10b-dflash", true, 32, 8, 128, 4096, 16, ""},
      {"qwen3-4b-dflash", true, 32, 8, 128, 0, 16, ""},
      {"qwen3-8b-dflash", true, 32, 8, 128, 0, 16, ""},
      {"qwen3-coder-30b-a3b-dflash", true, 32, 4, 128, 0, 16, ""},
      {"qwen3-coder-next-dflash", true, 32, 4, 128, 0, 16, ""},
      {"llama3.1-8b-dflash", true, 32, 8, 128, 0, 10, ""},
      {"gpt-oss-20b-dflash", true, 64, 8, 128, 0, 8, ""},
      {"gpt-oss-120b-dflash", true, 64, 8, 128, 0, 10, ""},
      {"kimi-k2.5-dflash", true, 64, 8, 128, 0, 8, ""},
      {"gemma-4-31b-dflash", true, 64, 8, 128, 2048, 16, ""},
      {"gemma-4-26b-a4b-dflash", true, 32, 8, 128, 2048, 16, ""},
      {"glm-5.3-flash-dflash2", true, 32, 8, 128, 2048, 8, ""},
  };
  return models;
}

static bool isPath(const std::string &model) {
  return model.find('/') != std::string::npos ||
         (model.size() > 5 && model.substr(model.size() - 5) == ".json");
}

StatusOr<ModelGeometry> tokentile::findModel(const std::string &model) {
  std::string names;
  for (const ModelGeometry &known : publishedModels()) {
    if (known.name == model)
      return known;
    names += (names.empty() ? "" : ", ") + known.name;
  }
  if (!isPath(model))
    return Status(StatusCode::NotFound,
                  "model '" + model +
                      "' is unknown; give the path of its config.json or one "
                      "of " +
                      names);
  std::ifstream in(model);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in)
    return Status(StatusCode::NotFound,
                  "model file '" + model +
                      "' cannot be read; give the path of a config.json");
  return readModelConfig(text.str(), model);
}
