//===- Nvrtc.h - CUDA C++ compiled at run time ------------------*- C++ -*-===//
//
// NVRTC is loaded with dlopen when it is first asked for, so that nothing
// links it. Only service kernels pass here, never attention.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_NVRTC_H
#define TOKENTILE_RUNTIME_NVRTC_H

#include "runtime/Status.h"

#include <string>
#include <vector>

namespace tokentile {

/// Compiles CUDA C++ `source` for `chip` (such as "sm_90a") to a cubin, which
/// Device::loadRaw accepts. `name` stands for the file in messages; `flags`
/// are further NVRTC options. Kernels should be extern "C" to be found by
/// name. Thread-safe. Unavailable without NVRTC; CompileError holds the log.
StatusOr<std::string> compileCuda(const std::string &source,
                                  const std::string &name,
                                  const std::string &chip,
                                  const std::vector<std::string> &flags = {});

} // namespace tokentile

#endif // TOKENTILE_RUNTIME_NVRTC_H
