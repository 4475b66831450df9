//===- Manifest.cpp - Shipped kernels and their facts ---------------------===//

#include "runtime/Manifest.h"
#include "runtime/Sha256.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <unistd.h>

using namespace tokentile;
using Json = nlohmann::ordered_json;

namespace {

constexpr int formatVersion = 6;

/// The names of each enumeration, in the order of its values.
template <typename E>
struct EnumNames;
template <>
struct EnumNames<Element> {
  static constexpr const char *names[] = {"bf16", "fp16"};
};
template <>
struct EnumNames<PageOrder> {
  static constexpr const char *names[] = {"page_major", "head_major",
                                          "token_major", "contiguous"};
};
template <>
struct EnumNames<Columns> {
  static constexpr const char *names[] = {"uniform", "counted", "packed"};
};
template <>
struct EnumNames<SplitPolicy> {
  static constexpr const char *names[] = {"auto", "count", "keys", "pieces"};
};

/// Calls visit(name, field) for every field of a KernelInfo.
template <typename Info, typename Visit>
void visitFields(Info &info, Visit visit) {
  visit("name", info.name);
  visit("sweepSymbol", info.sweepSymbol);
  visit("rangesSymbol", info.rangesSymbol);
  visit("mergeSymbol", info.mergeSymbol);
  visit("chip", info.chip);
  visit("spec", info.spec);
  visit("queryHeads", info.queryHeads);
  visit("kvHeads", info.kvHeads);
  visit("headDim", info.headDim);
  visit("tokens", info.tokens);
  visit("queryElement", info.queryElement);
  visit("outputElement", info.outputElement);
  visit("keyElement", info.keyElement);
  visit("valueElement", info.valueElement);
  visit("queryHeadMajor", info.queryHeadMajor);
  visit("outputHeadMajor", info.outputHeadMajor);
  visit("pageOrder", info.pageOrder);
  visit("pageSize", info.pageSize);
  visit("keySlotStride", info.keySlotStride);
  visit("valueSlotStride", info.valueSlotStride);
  visit("columns", info.columns);
  visit("denseBlock", info.denseBlock);
  visit("positionsGiven", info.positionsGiven);
  visit("lengthsTotal", info.lengthsTotal);
  visit("logSumExp", info.logSumExp);
  visit("sink", info.sink);
  visit("ring", info.ring);
  visit("window", info.window);
  visit("rows", info.rows);
  visit("paddedRows", info.paddedRows);
  visit("rowBlocks", info.rowBlocks);
  visit("sweeps", info.sweeps);
  visit("keyTile", info.keyTile);
  visit("splitPolicy", info.splitPolicy);
  visit("splitValue", info.splitValue);
  visit("tensorMaps", info.tensorMaps);
  visit("partialElementBytes", info.partialElementBytes);
  visit("threads", info.threads);
  visit("mergeThreads", info.mergeThreads);
  visit("sharedBytes", info.sharedBytes);
  visit("mergeSharedBytes", info.mergeSharedBytes);
  visit("mergeSlices", info.mergeSlices);
  visit("mergeBlocksPerSm", info.mergeBlocksPerSm);
  visit("blocksPerSm", info.blocksPerSm);
}

template <typename T>
Json toJson(const T &value) {
  if constexpr (std::is_enum_v<T>)
    return EnumNames<T>::names[int(value)];
  else
    return value;
}

/// Reads one value of exactly the type asked for; false if it is another one.
template <typename T>
bool fromJson(const Json &json, T &value) {
  if constexpr (std::is_enum_v<T>) {
    const auto &names = EnumNames<T>::names;
    for (size_t i = 0; i < std::size(names); ++i)
      if (json.is_string() && json == names[i]) {
        value = T(i);
        return true;
      }
    return false;
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (json.is_string())
      value = json.template get<std::string>();
    return json.is_string();
  } else if constexpr (std::is_same_v<T, bool>) {
    if (json.is_boolean())
      value = json.template get<bool>();
    return json.is_boolean();
  } else {
    if (!json.is_number_integer())
      return false;
    int64_t wide = json.template get<int64_t>();
    value = T(wide);
    return value == wide;
  }
}

Status damaged(std::string message) {
  return Status(StatusCode::DataError, std::move(message));
}

/// Reads a required field of `object`.
template <typename T>
Status readField(const Json &object, const char *field, T &value) {
  auto found = object.find(field);
  if (found == object.end())
    return damaged(std::string("field '") + field + "' is missing");
  if (!fromJson(*found, value))
    return damaged(std::string("field '") + field + "' cannot be " +
                   found->dump(-1, ' ', false, Json::error_handler_t::replace));
  return Status();
}

Json infoToJson(const KernelInfo &info) {
  Json json = Json::object();
  visitFields(info, [&](const char *field, const auto &value) {
    json[field] = toJson(value);
  });
  return json;
}

StatusOr<KernelInfo> infoFromJson(const Json &json) {
  if (!json.is_object())
    return damaged("the facts of a kernel are not a JSON object");
  KernelInfo info;
  Status status;
  visitFields(info, [&](const char *field, auto &value) {
    if (status.ok())
      status = readField(json, field, value);
  });
  if (!status.ok())
    return status;
  return info;
}

StatusOr<ManifestEntry> entryFromJson(const Json &json) {
  if (!json.is_object())
    return damaged("it is not a JSON object");
  ManifestEntry entry;
  for (auto [field, value] :
       {std::pair{"file", &entry.file}, std::pair{"sha256", &entry.sha256},
        std::pair{"ptxVersion", &entry.ptxVersion},
        std::pair{"llvmVersion", &entry.llvmVersion}})
    if (Status status = readField(json, field, *value); !status.ok())
      return status;
  auto info = json.find("info");
  if (info == json.end())
    return damaged("field 'info' is missing");
  StatusOr<KernelInfo> read = infoFromJson(*info);
  if (!read.ok())
    return read.status();
  entry.info = *std::move(read);
  return entry;
}

StatusOr<Manifest> manifestFromText(const std::string &text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return damaged("it is not a JSON object");
  int32_t format = 0;
  if (Status status = readField(json, "format", format); !status.ok())
    return status;
  if (format != formatVersion)
    return damaged("it has format " + std::to_string(format) +
                   ", and this version reads format " +
                   std::to_string(formatVersion));
  auto kernels = json.find("kernels");
  if (kernels == json.end() || !kernels->is_array())
    return damaged("field 'kernels' is not a list");
  Manifest manifest;
  for (const Json &kernel : *kernels) {
    StatusOr<ManifestEntry> entry = entryFromJson(kernel);
    if (!entry.ok())
      return damaged("kernel " + std::to_string(manifest.kernels.size()) +
                     ": " + entry.status().message());
    manifest.kernels.push_back(*std::move(entry));
  }
  return manifest;
}

StatusOr<std::string> readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in)
    return Status(StatusCode::NotFound, "file '" + path + "' cannot be read");
  return text.str();
}

} // namespace

std::string tokentile::kernelInfoToJson(const KernelInfo &info) {
  return infoToJson(info).dump(2, ' ', false, Json::error_handler_t::replace);
}

StatusOr<KernelInfo> tokentile::kernelInfoFromJson(std::string_view text) {
  return infoFromJson(Json::parse(text, nullptr, /*allow_exceptions=*/false));
}

StatusOr<Manifest> tokentile::readManifest(const std::string &path) {
  StatusOr<std::string> text = readFile(path);
  if (!text.ok())
    return text.status();
  StatusOr<Manifest> manifest = manifestFromText(*text);
  if (!manifest.ok())
    return damaged("manifest '" + path +
                   "' is damaged: " + manifest.status().message());
  return manifest;
}

Status tokentile::writeManifest(const std::string &path,
                                const Manifest &manifest) {
  Json kernels = Json::array();
  for (const ManifestEntry &entry : manifest.kernels)
    kernels.push_back({{"file", entry.file},
                       {"sha256", entry.sha256},
                       {"ptxVersion", entry.ptxVersion},
                       {"llvmVersion", entry.llvmVersion},
                       {"info", infoToJson(entry.info)}});
  Json json = {{"format", formatVersion}, {"kernels", std::move(kernels)}};

  std::string temporary = path + "." + std::to_string(getpid()) + ".tmp";
  std::ofstream out(temporary, std::ios::binary);
  out << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  out.close();
  if (out && std::rename(temporary.c_str(), path.c_str()) == 0)
    return Status();
  std::remove(temporary.c_str());
  return Status(StatusCode::NotFound, "file '" + path + "' cannot be written");
}

StatusOr<CompiledKernel>
tokentile::loadShippedKernel(const std::string &directory,
                             std::string_view name, std::string_view chip) {
  StatusOr<Manifest> manifest =
      readManifest(directory + "/" + manifestFileName);
  if (!manifest.ok())
    return manifest.status();
  const ManifestEntry *best = nullptr;
  std::string shipped;
  for (const ManifestEntry &entry : manifest->kernels) {
    if (entry.info.name != name)
      continue;
    shipped += (shipped.empty() ? "" : ", ") + entry.info.chip;
    if (!chipRuns(entry.info.chip, chip))
      continue;
    if (!best || entry.info.chip == chip ||
        (best->info.chip != chip &&
         chipNumber(entry.info.chip) > chipNumber(best->info.chip)))
      best = &entry;
  }
  if (!best)
    return Status(
        StatusCode::NotFound,
        "kernel '" + std::string(name) + "' for chip '" + std::string(chip) +
            "' is not in '" + directory +
            "'; chips shipped: " + (shipped.empty() ? "none" : shipped));
  StatusOr<std::string> ptx = readFile(directory + "/" + best->file);
  if (!ptx.ok())
    return ptx.status();
  if (sha256(*ptx) != best->sha256)
    return damaged("file '" + directory + "/" + best->file +
                   "' does not match its hash in the manifest; generate the "
                   "directory again");
  CompiledKernel kernel;
  kernel.info = best->info;
  kernel.ptx = *std::move(ptx);
  return kernel;
}
