//===- CudaDriver.cpp - The CUDA driver, loaded at run time ---------------===//

#include "runtime/CudaDriver.h"

#include <dlfcn.h>

using namespace tokentile;
using namespace tokentile::cuda;

namespace {

constexpr const char *libraryName = "libcuda.so.1";

Status unavailable(const std::string &reason) {
  return Status(StatusCode::Unavailable,
                "no CUDA device can be used: " + reason +
                    "; device 'host' works without one");
}

Status load(Driver &driver) {
  void *library = dlopen(libraryName, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return unavailable(std::string(libraryName) +
                       " of the NVIDIA driver is not installed");
  const char *missing = nullptr;
#define TOKENTILE_CUDA_OPTIONAL(name, ...)                                     \
  driver.name = reinterpret_cast<decltype(driver.name)>(dlsym(library, #name));
#define TOKENTILE_CUDA_SYMBOL(name, ...)                                       \
  TOKENTILE_CUDA_OPTIONAL(name)                                                \
  if (!driver.name)                                                            \
    missing = #name;
#include "runtime/CudaSymbols.def"
#undef TOKENTILE_CUDA_SYMBOL
#undef TOKENTILE_CUDA_OPTIONAL
  if (missing)
    return unavailable(std::string(libraryName) + " lacks '" + missing +
                       "'; install a newer NVIDIA driver");
  if (Status status = driver.check(driver.cuInit(0), "cuInit"); !status.ok())
    return unavailable(status.message());
  return Status();
}

} // namespace

Status Driver::check(CUresult result, const char *call) const {
  if (result == success)
    return Status();
  const char *name = nullptr;
  const char *text = nullptr;
  if (cuGetErrorName(result, &name) != success || !name)
    name = "unknown CUDA error";
  if (cuGetErrorString(result, &text) != success || !text)
    text = "no description";
  return Status(result == errorOutOfMemory ? StatusCode::ResourceExhausted
                                           : StatusCode::DriverError,
                std::string(call) + " failed with " + name + " (" + text + ")");
}

StatusOr<const Driver *> tokentile::cuda::loadDriver() {
  static Driver driver;
  static const Status status = load(driver);
  if (!status.ok())
    return status;
  return static_cast<const Driver *>(&driver);
}
