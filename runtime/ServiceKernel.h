//===- ServiceKernel.h - One function for host and CUDA ---------*- C++ -*-===//
//
// A kernel that is not generated and runs on every device: a function of a
// block of the grid, written in the style of services/Team.h. Models may write
// theirs in the same way: join `serviceSource` and their own text for NVRTC.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_SERVICEKERNEL_H
#define TOKENTILE_RUNTIME_SERVICEKERNEL_H

#include "runtime/RawKernel.h"
#include "runtime/services/Team.h"

#include <functional>

namespace tokentile {

/// CUDA C++ of the services: Team, Numbers, Philox and the kernels.
extern const char *const serviceSource;

/// The services compiled for a device, once for each chip and process; empty
/// for the host.
StatusOr<std::string> serviceCubin(const Device &device);

/// Runs blocks of the grid on the host, in parallel; or records that.
Status
submitHostGrid(Stream &stream, Extent grid,
               std::function<void(int32_t x, int32_t y, int32_t z)> block);

template <typename Args>
class ServiceKernel {
public:
  using HostFunction = void (*)(const services::Team &team, const Args &args,
                                int32_t x, int32_t y, int32_t z);

  /// One of the services: `name` is that of its function.
  static StatusOr<ServiceKernel> create(Device &device, const char *name,
                                        HostFunction function) {
    StatusOr<std::string> cubin = serviceCubin(device);
    if (!cubin.ok())
      return cubin.status();
    return create(device, *cubin, std::string("tokentile_") + name, function);
  }

  /// On CUDA loads `symbol` of `cubin`; on the host takes `function`, and
  /// `cubin` may be empty.
  static StatusOr<ServiceKernel> create(Device &device,
                                        const std::string &cubin,
                                        const std::string &symbol,
                                        HostFunction function) {
    ServiceKernel kernel;
    kernel.function = function;
    if (device.facts().kind == DeviceKind::Host)
      return kernel;
    StatusOr<std::unique_ptr<RawKernel>> raw = device.loadRaw(cubin, symbol);
    if (!raw.ok())
      return raw.status();
    kernel.raw = *std::move(raw);
    return kernel;
  }

  /// Queues the kernel; capturable. `args` is frozen by value. Nothing for a
  /// grid without blocks.
  Status launch(Extent grid, int32_t threads, const Args &args,
                Stream &stream) const {
    if (grid.x <= 0 || grid.y <= 0 || grid.z <= 0)
      return Status();
    if (!raw)
      return submitHostGrid(
          stream, grid,
          [args, function = function](int32_t x, int32_t y, int32_t z) {
            function(services::Team(), args, x, y, z);
          });
    void *params[] = {const_cast<Args *>(&args)};
    return raw->launch(grid, {threads, 1, 1}, /*sharedBytes=*/0, params,
                       stream);
  }

private:
  HostFunction function = nullptr;
  std::unique_ptr<RawKernel> raw;
};

} // namespace tokentile

#endif // TOKENTILE_RUNTIME_SERVICEKERNEL_H
