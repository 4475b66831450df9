//===- Checkpoint.h - Tensors of a Hugging Face folder ----------*- C++ -*-===//
//
// Reads `model.safetensors`, or the shards that `model.safetensors.index.json`
// names. A safetensors file is the length of a JSON header as 8 bytes, little
// endian; the header, which gives each tensor's type, shape and bytes; and the
// bytes. Files are mapped, not read: a tensor costs memory when it is used.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TOOLS_REFERENCEMODEL_CHECKPOINT_H
#define TOKENTILE_TOOLS_REFERENCEMODEL_CHECKPOINT_H

#include "runtime/Status.h"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace tokentile {

class Checkpoint {
public:
  /// Opens every file of the folder and checks its header against its size.
  /// NotFound for a missing file; DataError for one that is truncated or
  /// damaged names the file, the tensor and both sizes.
  static StatusOr<Checkpoint> open(const std::string &folder);

  /// The bf16 elements of a tensor, which the checkpoint keeps alive.
  /// DataError if there is none of this name, shape and type.
  StatusOr<const uint16_t *> find(const std::string &name,
                                  const std::vector<int64_t> &shape) const;
  bool has(const std::string &name) const { return tensors.count(name) != 0; }
  /// DataError naming a tensor that is none of `used`: the model computes
  /// something that its reader knows nothing of.
  Status checkOnly(const std::set<std::string> &used) const;

private:
  struct Tensor {
    std::string type;
    std::vector<int64_t> shape;
    const uint8_t *bytes = nullptr;
  };
  /// A mapped file; unmapped with the last reference.
  struct File;

  Status addFile(const std::string &path);
  Status addHeader(const std::string &path, const File &file);

  std::string folder;
  std::vector<std::shared_ptr<File>> files;
  std::map<std::string, Tensor> tensors;
};

/// "[2, 3]".
std::string shapeText(const std::vector<int64_t> &shape);

} // namespace tokentile

#endif // TOKENTILE_TOOLS_REFERENCEMODEL_CHECKPOINT_H
