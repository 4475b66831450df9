//===- ModelZoo.h - Geometries of published models --------------*- C++ -*-===//
//
// What attention of a published model looks like: from a table of names, or
// from a model's own `config.json`.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TOOLS_FRONT_MODELZOO_H
#define TOKENTILE_TOOLS_FRONT_MODELZOO_H

#include "runtime/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tokentile {

/// Attention of one model.
struct ModelGeometry {
  std::string name;
  /// Whether it is a DFlash draft model rather than a target.
  bool isDraft = false;
  int64_t queryHeads = 0;
  int64_t kvHeads = 0;
  int64_t headDim = 0;
  /// Keys of the sliding window of its sliding layers, 0 without such layers.
  int64_t window = 0;
  /// Query tokens of one block: of a draft its own, of a target those that its
  /// published draft proposes.
  int64_t block = 0;
  /// Name of the published draft of a target, or empty.
  std::string draft;
};

/// Every model of the table, in the order of its rows.
const std::vector<ModelGeometry> &publishedModels();

/// The geometry of `model`: a name of the table, or the path of a Hugging Face
/// `config.json`. NotFound lists the names; DataError names the field that the
/// file lacks.
StatusOr<ModelGeometry> findModel(const std::string &model);

/// Reads the text of a `config.json`; `path` stands for it in messages.
StatusOr<ModelGeometry> readModelConfig(const std::string &text,
                                        const std::string &path);

} // namespace tokentile

#endif // TOKENTILE_TOOLS_FRONT_MODELZOO_H
