//===- CudaKernel.cpp - Kernels of a GPU ----------------------------------===//

#include "runtime/CudaStream.h"
#include "runtime/CudaTensorMap.h"
#include "runtime/Kernel.h"
#include "runtime/KernelChecks.h"

#include <algorithm>

using namespace tokentile;
using namespace tokentile::cuda;

namespace {

/// Owns a loaded module.
class CudaModule {
public:
  CudaModule(CudaDevice &owner, CUmodule module)
      : owner(&owner), module(module) {}
  CudaModule(CudaModule &&other) noexcept
      : owner(other.owner), module(std::exchange(other.module, nullptr)) {}
  ~CudaModule() {
    if (module && owner->bind().ok())
      owner->driver().cuModuleUnload(module);
  }

  StatusOr<CUfunction> function(const std::string &symbol) const {
    CUfunction result = nullptr;
    if (owner->driver().cuModuleGetFunction(&result, module, symbol.c_str()) !=
        success)
      return Status(StatusCode::NotFound,
                    "the module has no kernel '" + symbol + "'");
    return result;
  }

private:
  CudaDevice *owner;
  CUmodule module;
};

/// The first complaint of a log, and how many more there are.
std::string firstComplaint(const std::string &log) {
  size_t end = std::min(log.find('\n'), log.size());
  auto more = std::count(log.begin() + end, log.end(), '\n');
  std::string first = log.substr(0, end);
  return more > 1 ? first + " (and " + std::to_string(more - 1) + " more lines)"
                  : first;
}

/// Loads PTX or a cubin; `name` is the kernel's, for the message.
StatusOr<CudaModule> loadModule(CudaDevice &device, const std::string &image,
                                const std::string &name) {
  if (Status status = device.bind(); !status.ok())
    return status;
  char log[4096] = "";
  int options[] = {jitErrorLogBuffer, jitErrorLogBufferBytes};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log))};
  CUmodule module = nullptr;
  const Driver &driver = device.driver();
  Status status = driver.check(
      driver.cuModuleLoadDataEx(&module, image.c_str(), 2, options, values),
      "cuModuleLoadDataEx");
  if (status.ok())
    return CudaModule(device, module);
  log[sizeof(log) - 1] = '\0';
  return Status(status.code() == StatusCode::ResourceExhausted
                    ? StatusCode::ResourceExhausted
                    : StatusCode::CompileError,
                "kernel '" + name + "' was refused for chip '" +
                    device.facts().chip + "': " + status.message() +
                    (log[0] ? ": " + firstComplaint(log) : std::string()));
}

Status setDynamicShared(const Driver &driver, CUfunction function,
                        int32_t bytes) {
  return driver.check(
      driver.cuFuncSetAttribute(function, functionMaxDynamicSharedBytes, bytes),
      "cuFuncSetAttribute");
}

/// How a kernel stands to others.
enum class LaunchMode {
  Plain,
  /// It may start before its predecessor on the stream has ended (programmatic
  /// dependent launch), and must itself wait for it with griddepcontrol.wait.
  Overlapping,
};

/// The one place that launches.
Status launchFunction(const Driver &driver, CUfunction function, Extent grid,
                      Extent block, int32_t sharedBytes, CUstream stream,
                      void **params, LaunchMode mode) {
  if (mode == LaunchMode::Plain || !driver.cuLaunchKernelEx)
    return driver.check(driver.cuLaunchKernel(
                            function, grid.x, grid.y, grid.z, block.x, block.y,
                            block.z, sharedBytes, stream, params, nullptr),
                        "cuLaunchKernel");
  CUlaunchAttribute attribute = {};
  attribute.id = launchProgrammaticStreamSerialization;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config = {};
  config.gridDimX = grid.x;
  config.gridDimY = grid.y;
  config.gridDimZ = grid.z;
  config.blockDimX = block.x;
  config.blockDimY = block.y;
  config.blockDimZ = block.z;
  config.sharedMemBytes = sharedBytes;
  config.hStream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return driver.check(
      driver.cuLaunchKernelEx(&config, function, params, nullptr),
      "cuLaunchKernelEx");
}

class CudaKernel final : public Kernel {
public:
  CudaKernel(CudaDevice &owner, const KernelInfo &info, CudaModule module,
             CUfunction sweep, CUfunction ranges, CUfunction merge)
      : Kernel(owner, info), owner(owner), module(std::move(module)),
        sweep(sweep), ranges(ranges), merge(merge) {}

private:
  Status enqueue(const Plan &plan, const KernelArgs &args,
                 Stream &stream) const override {
    if (Status status = owner.bind(); !status.ok())
      return status;
    TensorMap maps[2];
    if (info().tensorMaps)
      if (Status status = makeTensorMaps(owner.driver(), info(), args, maps);
          !status.ok())
        return status;
    CUstream handle = static_cast<CudaStream &>(stream).handle();
    bool merge = plan.work.mergeBlocks > 0;
    stream.tally().kernelLaunches += merge ? 2 : 1;
    // The driver reads these before the launch returns, as many as the kernel
    // has parameters.
    void *params[] = {const_cast<KernelArgs *>(&args), &maps[0], &maps[1]};
    if (Status status = launchFunction(
            owner.driver(), plan.work.ranges ? ranges : sweep, plan.sweepGrid,
            {info().threads, 1, 1}, info().sharedBytes, handle, params,
            LaunchMode::Plain);
        !status.ok() || !merge)
      return status;
    // From sm_90 on the merge contains griddepcontrol.wait.
    LaunchMode mode = chipNumber(info().chip) >= 90 ? LaunchMode::Overlapping
                                                    : LaunchMode::Plain;
    return launchFunction(owner.driver(), this->merge, plan.mergeGrid,
                          {info().mergeThreads, 1, 1}, plan.mergeSharedBytes,
                          handle, params, mode);
  }

  CudaDevice &owner;
  CudaModule module;
  CUfunction sweep, ranges, merge;
};

class CudaRawKernel final : public RawKernel {
public:
  CudaRawKernel(CudaDevice &owner, CudaModule module, CUfunction function)
      : owner(owner), module(std::move(module)), function(function) {}

  Status launch(Extent grid, Extent block, int32_t sharedBytes, void **params,
                Stream &stream) override {
    if (&stream.device() != &owner)
      return Status(StatusCode::InvalidArgument,
                    "kernel and stream belong to different devices");
    if (Status status = owner.bind(); !status.ok())
      return status;
    stream.tally().kernelLaunches += 1;
    return launchFunction(owner.driver(), function, grid, block, sharedBytes,
                          static_cast<CudaStream &>(stream).handle(), params,
                          LaunchMode::Plain);
  }

private:
  CudaDevice &owner;
  CudaModule module;
  CUfunction function;
};

} // namespace

StatusOr<std::unique_ptr<Kernel>>
CudaDevice::load(const CompiledKernel &compiled) {
  const KernelInfo &info = compiled.info;
  if (Status status = checkLoadable(info, deviceFacts); !status.ok())
    return status;
  StatusOr<CudaModule> module = loadModule(*this, compiled.ptx, info.name);
  if (!module.ok())
    return module.status();
  StatusOr<CUfunction> sweep = module->function(info.sweepSymbol);
  if (!sweep.ok())
    return sweep.status();
  StatusOr<CUfunction> ranges = static_cast<CUfunction>(nullptr);
  if (!info.rangesSymbol.empty())
    ranges = module->function(info.rangesSymbol);
  if (!ranges.ok())
    return ranges.status();
  StatusOr<CUfunction> merge = static_cast<CUfunction>(nullptr);
  if (maySplit(info))
    merge = module->function(info.mergeSymbol);
  if (!merge.ok())
    return merge.status();
  for (CUfunction function : {*sweep, *ranges})
    if (function)
      if (Status status =
              setDynamicShared(cudaDriver, function, info.sharedBytes);
          !status.ok())
        return status;
  if (*merge)
    if (Status status = setDynamicShared(cudaDriver, *merge,
                                         deviceFacts.sharedBytesPerBlock);
        !status.ok())
      return status;
  return std::unique_ptr<Kernel>(std::make_unique<CudaKernel>(
      *this, info, *std::move(module), *sweep, *ranges, *merge));
}

StatusOr<std::unique_ptr<RawKernel>>
CudaDevice::loadRaw(const std::string &image, const std::string &symbol) {
  StatusOr<CudaModule> module = loadModule(*this, image, symbol);
  if (!module.ok())
    return module.status();
  StatusOr<CUfunction> function = module->function(symbol);
  if (!function.ok())
    return function.status();
  // Allow at load all that a launch could ask for, so that launches only
  // launch.
  int fixed = 0;
  if (Status status =
          cudaDriver.check(cudaDriver.cuFuncGetAttribute(
                               &fixed, functionStaticSharedBytes, *function),
                           "cuFuncGetAttribute");
      !status.ok())
    return status;
  if (Status status = setDynamicShared(cudaDriver, *function,
                                       deviceFacts.sharedBytesPerBlock - fixed);
      !status.ok())
    return status;
  return std::unique_ptr<RawKernel>(
      std::make_unique<CudaRawKernel>(*this, *std::move(module), *function));
}
