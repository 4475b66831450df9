//===- Manifest.h - Shipped kernels and their facts -------------*- C++ -*-===//
//
// A directory of shipped kernels holds PTX files and one `manifest.json` that
// lists them. The manifest is JSON:
//
//   {"format": 2,
//    "kernels": [{"file": "...", "sha256": "...", "ptxVersion": "...",
//                 "llvmVersion": "...", "info": {<fields of KernelInfo>}}]}
//
// The format counts every change of the file and of KernelArgs, which the PTX
// reads: kernels of another format are refused, not launched. Every field is
// required and unknown fields are ignored. Enumerators are written by their
// lower-case names.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_MANIFEST_H
#define TOKENTILE_RUNTIME_MANIFEST_H

#include "runtime/Kernel.h"

#include <string>
#include <string_view>
#include <vector>

namespace tokentile {

/// One shipped kernel.
struct ManifestEntry {
  KernelInfo info;
  /// PTX file, relative to the manifest's directory.
  std::string file;
  /// SHA-256 of the file in lower-case hexadecimal, as `sha256sum` prints it.
  std::string sha256;
  std::string ptxVersion;
  std::string llvmVersion;
};

struct Manifest {
  std::vector<ManifestEntry> kernels;
};

/// The file name of a manifest within its directory.
inline constexpr const char *manifestFileName = "manifest.json";

/// KernelInfo as a JSON object, and back. DataError names the damaged field.
std::string kernelInfoToJson(const KernelInfo &info);
StatusOr<KernelInfo> kernelInfoFromJson(std::string_view text);

/// Reads a manifest. NotFound without a readable file; DataError names the
/// file and what is wrong in it.
StatusOr<Manifest> readManifest(const std::string &path);
/// Writes a manifest, atomically: readers see the old file or the new one.
Status writeManifest(const std::string &path, const Manifest &manifest);

/// Loads the PTX of kernel `name` that suits `chip` best from the manifest in
/// `directory`: for that very chip, else for the newest older chip whose code
/// runs on it. NotFound lists the chips that are shipped; DataError says that
/// the PTX does not match its hash.
StatusOr<CompiledKernel> loadShippedKernel(const std::string &directory,
                                           std::string_view name,
                                           std::string_view chip);

} // namespace tokentile

#endif // TOKENTILE_RUNTIME_MANIFEST_H
