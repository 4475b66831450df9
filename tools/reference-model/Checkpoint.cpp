//===- Checkpoint.cpp - Tensors of a Hugging Face folder ------------------===//

#include "tools/reference-model/Checkpoint.h"

#include <nlohmann/json.hpp>

#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace tokentile;

using Json = nlohmann::json;

struct Checkpoint::File {
  const uint8_t *bytes = nullptr;
  size_t size = 0;

  File() = default;
  File(const File &) = delete;
  File &operator=(const File &) = delete;
  ~File() {
    if (bytes)
      munmap(const_cast<uint8_t *>(bytes), size);
  }
};

namespace {

Status damaged(const std::string &path, const std::string &cause) {
  return Status(StatusCode::DataError, "file '" + path + "' " + cause);
}

std::string number(uint64_t value) { return std::to_string(value); }

/// Bytes of an element of the types that checkpoints of these models use; 0
/// for others, which only have to lie within the file.
uint64_t bytesOf(const std::string &type) {
  if (type == "BF16" || type == "F16")
    return 2;
  return type == "F32" ? 4 : 0;
}

/// An array of numbers from 0 on.
bool readNumbers(const Json &json, std::vector<int64_t> &numbers) {
  if (!json.is_array())
    return false;
  for (const Json &entry : json) {
    if (!entry.is_number_unsigned() || entry.get<uint64_t>() > INT64_MAX)
      return false;
    numbers.push_back(entry.get<int64_t>());
  }
  return true;
}

/// The shards that the index names, in order.
StatusOr<std::set<std::string>> readIndex(const std::string &path) {
  std::ifstream in(path);
  Json index = Json::parse(in, nullptr, /*allow_exceptions=*/false);
  std::set<std::string> names;
  if (!index.is_object() || !index.contains("weight_map") ||
      !index["weight_map"].is_object())
    return damaged(path, "has no object 'weight_map'");
  for (const auto &entry : index["weight_map"].items()) {
    if (!entry.value().is_string())
      return damaged(path,
                     "does not name the file of tensor '" + entry.key() + "'");
    names.insert(entry.value().get<std::string>());
  }
  return names;
}

} // namespace

std::string tokentile::shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

StatusOr<Checkpoint> Checkpoint::open(const std::string &folder) {
  Checkpoint checkpoint;
  checkpoint.folder = folder;
  std::string one = folder + "/model.safetensors";
  std::string index = one + ".index.json";
  std::set<std::string> names = {"model.safetensors"};
  if (!std::filesystem::exists(one)) {
    if (!std::filesystem::exists(index))
      return Status(StatusCode::NotFound,
                    "folder '" + folder +
                        "' has neither 'model.safetensors' nor "
                        "'model.safetensors.index.json'");
    StatusOr<std::set<std::string>> shards = readIndex(index);
    if (!shards.ok())
      return shards.status();
    names = *std::move(shards);
  }
  for (const std::string &name : names)
    if (Status status = checkpoint.addFile(folder + "/" + name); !status.ok())
      return status;
  return checkpoint;
}

Status Checkpoint::addFile(const std::string &path) {
  auto file = std::make_shared<File>();
  int descriptor = ::open(path.c_str(), O_RDONLY);
  struct stat facts;
  if (descriptor < 0 || fstat(descriptor, &facts) != 0) {
    if (descriptor >= 0)
      close(descriptor);
    return Status(StatusCode::NotFound, "file '" + path + "' cannot be read");
  }
  file->size = size_t(facts.st_size);
  void *bytes = file->size ? mmap(nullptr, file->size, PROT_READ, MAP_PRIVATE,
                                  descriptor, 0)
                           : MAP_FAILED;
  close(descriptor);
  if (bytes == MAP_FAILED)
    return damaged(path,
                   "has " + number(file->size) + " bytes and cannot be mapped");
  file->bytes = static_cast<const uint8_t *>(bytes);
  files.push_back(file);
  return addHeader(path, *file);
}

Status Checkpoint::addHeader(const std::string &path, const File &file) {
  uint64_t length = 0;
  if (file.size < sizeof(length))
    return damaged(path, "is truncated: it has " + number(file.size) +
                             " bytes and a header starts with 8");
  std::memcpy(&length, file.bytes, sizeof(length));
  uint64_t space = file.size - sizeof(length);
  if (length > space)
    return damaged(path,
                   "is truncated or no safetensors file: its header has " +
                       number(length) + " bytes, the file " + number(space) +
                       " beyond the length");
  const char *text = reinterpret_cast<const char *>(file.bytes) + 8;
  Json header =
      Json::parse(text, text + length, nullptr, /*allow_exceptions=*/false);
  if (!header.is_object())
    return damaged(path, "has a header that is not a JSON object");
  uint64_t dataBytes = space - length;
  for (const auto &entry : header.items()) {
    if (entry.key() == "__metadata__")
      continue;
    const Json &facts = entry.value();
    std::string tensorName = "tensor '" + entry.key() + "'";
    Tensor tensor;
    std::vector<int64_t> offsets;
    if (!facts.is_object() || !facts.contains("dtype") ||
        !facts["dtype"].is_string() || !facts.contains("shape") ||
        !readNumbers(facts["shape"], tensor.shape) ||
        !facts.contains("data_offsets") ||
        !readNumbers(facts["data_offsets"], offsets) || offsets.size() != 2 ||
        offsets[0] > offsets[1])
      return damaged(path, "has no type, shape or offsets for " + tensorName);
    if (uint64_t(offsets[1]) > dataBytes)
      return damaged(path, "is truncated: " + tensorName + " ends at byte " +
                               number(offsets[1]) + " of its data, which has " +
                               number(dataBytes));
    tensor.type = facts["dtype"].get<std::string>();
    uint64_t bytes = bytesOf(tensor.type);
    for (int64_t extent : tensor.shape)
      if (__builtin_mul_overflow(bytes, uint64_t(extent), &bytes))
        return damaged(path, "has a shape beyond 64 bits for " + tensorName);
    uint64_t stored = uint64_t(offsets[1] - offsets[0]);
    if (bytesOf(tensor.type) && bytes != stored)
      return damaged(path, "stores " + number(stored) + " bytes for " +
                               tensorName + ", whose shape " +
                               shapeText(tensor.shape) + " takes " +
                               number(bytes));
    tensor.bytes = file.bytes + 8 + length + offsets[0];
    tensors[entry.key()] = std::move(tensor);
  }
  return Status();
}

Status Checkpoint::checkOnly(const std::set<std::string> &used) const {
  for (const auto &[name, tensor] : tensors)
    if (!used.count(name))
      return Status(StatusCode::DataError,
                    "checkpoint '" + folder + "' has tensor '" + name +
                        "' of shape " + shapeText(tensor.shape) +
                        ", which is not covered");
  return Status();
}

StatusOr<const uint16_t *>
Checkpoint::find(const std::string &name,
                 const std::vector<int64_t> &shape) const {
  auto found = tensors.find(name);
  std::string prefix = "checkpoint '" + folder + "' ";
  if (found == tensors.end())
    return Status(StatusCode::DataError, prefix + "lacks tensor '" + name +
                                             "' of shape " + shapeText(shape));
  const Tensor &tensor = found->second;
  if (tensor.shape != shape)
    return Status(StatusCode::DataError,
                  prefix + "has tensor '" + name + "' of shape " +
                      shapeText(tensor.shape) + "; its config.json implies " +
                      shapeText(shape));
  if (tensor.type != "BF16")
    return Status(StatusCode::DataError, prefix + "has tensor '" + name +
                                             "' of type " + tensor.type +
                                             "; BF16 works");
  // The format aligns data to 8 bytes by padding its header, most writers do.
  if (reinterpret_cast<uintptr_t>(tensor.bytes) % alignof(uint16_t) != 0)
    return Status(StatusCode::DataError,
                  prefix + "has tensor '" + name + "' at an odd byte");
  return reinterpret_cast<const uint16_t *>(tensor.bytes);
}
