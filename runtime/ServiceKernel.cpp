//===- ServiceKernel.cpp - One function for host and CUDA -----------------===//

#include "runtime/ServiceKernel.h"
#include "runtime/HostDevice.h"
#include "runtime/Nvrtc.h"

#include <map>
#include <mutex>

using namespace tokentile;

Status tokentile::submitHostGrid(
    Stream &stream, Extent grid,
    std::function<void(int32_t x, int32_t y, int32_t z)> block) {
  if (stream.device().facts().kind != DeviceKind::Host)
    return Status(StatusCode::InvalidArgument,
                  "kernel and stream belong to different devices");
  ThreadPool &pool = static_cast<HostDevice &>(stream.device()).pool();
  return static_cast<HostStream &>(stream).submit(
      [&pool, grid, block = std::move(block)] {
        pool.forEach(int64_t(grid.x) * grid.y * grid.z, [&](int64_t index) {
          int64_t row = index / grid.x;
          block(int32_t(index % grid.x), int32_t(row % grid.y),
                int32_t(row / grid.y));
        });
      });
}

StatusOr<std::string> tokentile::serviceCubin(const Device &device) {
  if (device.facts().kind == DeviceKind::Host)
    return std::string();
  static std::mutex mutex;
  static std::map<std::string, std::string> cubins;
  std::lock_guard<std::mutex> lock(mutex);
  const std::string &chip = device.facts().chip;
  if (auto found = cubins.find(chip); found != cubins.end())
    return found->second;
  StatusOr<std::string> cubin =
      compileCuda(serviceSource, "services", chip, {"--std=c++17"});
  if (cubin.ok())
    cubins[chip] = *cubin;
  return cubin;
}
