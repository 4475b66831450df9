//===- Ship.cpp - Kernels for programs without the compiler ---------------===//

#include "tools/ninfer-compile/Ship.h"

#include "runtime/Manifest.h"
#include "runtime/Sha256.h"
#include "tools/front/Front.h"

#include "llvm/Config/llvm-config.h"

#include <algorithm>
#include <tuple>

using namespace tokentile;

/// The number after `.version`.
static std::string ptxVersion(llvm::StringRef ptx) {
  return ptx.split(".version ")
      .second.take_until([](char c) { return c == '\n'; })
      .trim()
      .str();
}

static auto keyOf(const ManifestEntry &entry) {
  return std::tie(entry.info.name, entry.info.chip);
}

Status tokentile::ship(const std::string &directory,
                       const CompileResult &result) {
  if (result.ptx.empty())
    return Status(StatusCode::InvalidArgument,
                  "--ship does not go with --chip '" + result.info.chip +
                      "'; a GPU works, host kernels are compiled in process");
  std::string path = directory + "/" + manifestFileName;
  Manifest manifest;
  StatusOr<Manifest> old = readManifest(path);
  if (old.ok())
    manifest = *std::move(old);
  else if (old.status().code() != StatusCode::NotFound)
    return old.status();

  ManifestEntry entry;
  entry.info = result.info;
  entry.file = result.info.name + "." + result.info.chip + ".ptx";
  entry.sha256 = sha256(result.ptx);
  entry.ptxVersion = ptxVersion(result.ptx);
  entry.llvmVersion = LLVM_VERSION_STRING;
  if (Status status = writeText(directory + "/" + entry.file, result.ptx);
      !status.ok())
    return status;

  auto &kernels = manifest.kernels;
  kernels.erase(std::remove_if(kernels.begin(), kernels.end(),
                               [&](const ManifestEntry &other) {
                                 return keyOf(other) == keyOf(entry);
                               }),
                kernels.end());
  kernels.push_back(std::move(entry));
  std::sort(kernels.begin(), kernels.end(),
            [](const ManifestEntry &a, const ManifestEntry &b) {
              return keyOf(a) < keyOf(b);
            });
  return writeManifest(path, manifest);
}
