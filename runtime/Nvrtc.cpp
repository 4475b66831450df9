//===- Nvrtc.cpp - CUDA C++ compiled at run time --------------------------===//

#include "runtime/Nvrtc.h"

#include <algorithm>
#include <dlfcn.h>

using namespace tokentile;

namespace {

using NvrtcProgram = struct NvrtcProgramHandle *;
using NvrtcResult = int;

/// The functions of libnvrtc that we call.
struct Nvrtc {
  const char *(*nvrtcGetErrorString)(NvrtcResult);
  NvrtcResult (*nvrtcCreateProgram)(NvrtcProgram *, const char *source,
                                    const char *name, int headers,
                                    const char *const *headerSources,
                                    const char *const *headerNames);
  NvrtcResult (*nvrtcDestroyProgram)(NvrtcProgram *);
  NvrtcResult (*nvrtcCompileProgram)(NvrtcProgram, int options,
                                     const char *const *);
  NvrtcResult (*nvrtcGetProgramLogSize)(NvrtcProgram, size_t *);
  NvrtcResult (*nvrtcGetProgramLog)(NvrtcProgram, char *);
  NvrtcResult (*nvrtcGetCUBINSize)(NvrtcProgram, size_t *);
  NvrtcResult (*nvrtcGetCUBIN)(NvrtcProgram, char *);
};

template <typename Function>
bool find(void *library, const char *name, Function &function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

Status load(Nvrtc &nvrtc) {
  void *library = nullptr;
  for (const char *name : {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"})
    if (!library)
      library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return Status(StatusCode::Unavailable,
                  "libnvrtc.so is not installed; install NVRTC of CUDA 12 or "
                  "13, or put it on LD_LIBRARY_PATH");
#define TOKENTILE_FIND(name) find(library, #name, nvrtc.name)
  bool complete = TOKENTILE_FIND(nvrtcGetErrorString) &&
                  TOKENTILE_FIND(nvrtcCreateProgram) &&
                  TOKENTILE_FIND(nvrtcDestroyProgram) &&
                  TOKENTILE_FIND(nvrtcCompileProgram) &&
                  TOKENTILE_FIND(nvrtcGetProgramLogSize) &&
                  TOKENTILE_FIND(nvrtcGetProgramLog) &&
                  TOKENTILE_FIND(nvrtcGetCUBINSize) &&
                  TOKENTILE_FIND(nvrtcGetCUBIN);
#undef TOKENTILE_FIND
  if (!complete)
    return Status(StatusCode::Unavailable,
                  "libnvrtc.so lacks functions of CUDA 12; install NVRTC of "
                  "CUDA 12 or 13");
  return Status();
}

/// The compiler's log on one line.
std::string readLog(const Nvrtc &nvrtc, NvrtcProgram program) {
  size_t bytes = 0;
  if (nvrtc.nvrtcGetProgramLogSize(program, &bytes) != 0 || bytes <= 1)
    return "no log";
  std::string log(bytes, '\0');
  if (nvrtc.nvrtcGetProgramLog(program, log.data()) != 0)
    return "no log";
  log.pop_back();
  std::replace(log.begin(), log.end(), '\n', ' ');
  return log;
}

StatusOr<std::string> compile(const Nvrtc &nvrtc, NvrtcProgram program,
                              const std::string &name,
                              const std::vector<std::string> &options) {
  std::vector<const char *> pointers;
  for (const std::string &option : options)
    pointers.push_back(option.c_str());
  if (nvrtc.nvrtcCompileProgram(program, int(pointers.size()),
                                pointers.data()) != 0)
    return Status(StatusCode::CompileError,
                  "source '" + name +
                      "' does not compile: " + readLog(nvrtc, program));
  size_t bytes = 0;
  NvrtcResult result = nvrtc.nvrtcGetCUBINSize(program, &bytes);
  std::string cubin(bytes, '\0');
  if (result == 0)
    result = nvrtc.nvrtcGetCUBIN(program, cubin.data());
  if (result != 0)
    return Status(StatusCode::CompileError,
                  "source '" + name +
                      "' gave no cubin: " + nvrtc.nvrtcGetErrorString(result));
  return cubin;
}

} // namespace

StatusOr<std::string>
tokentile::compileCuda(const std::string &source, const std::string &name,
                       const std::string &chip,
                       const std::vector<std::string> &flags) {
  static Nvrtc nvrtc;
  static const Status loaded = load(nvrtc);
  if (!loaded.ok())
    return loaded;
  NvrtcProgram program = nullptr;
  if (NvrtcResult result = nvrtc.nvrtcCreateProgram(
          &program, source.c_str(), name.c_str(), 0, nullptr, nullptr);
      result != 0)
    return Status(StatusCode::CompileError,
                  "source '" + name +
                      "' was refused: " + nvrtc.nvrtcGetErrorString(result));
  std::vector<std::string> options = {"--gpu-architecture=" + chip};
  options.insert(options.end(), flags.begin(), flags.end());
  StatusOr<std::string> cubin = compile(nvrtc, program, name, options);
  nvrtc.nvrtcDestroyProgram(&program);
  return cubin;
}
