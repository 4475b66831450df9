//===- Device.cpp - What all devices share --------------------------------===//

#include "runtime/Device.h"
#include "runtime/CudaDevice.h"
#include "runtime/HostDevice.h"
#include "runtime/RawKernel.h"

#include <cctype>
#include <charconv>

using namespace tokentile;

Buffer::~Buffer() {
  if (pointer)
    owner->release(space, pointer);
}

Event::~Event() = default;
Graph::~Graph() = default;

StreamCounters tokentile::operator-(const StreamCounters &after,
                                    const StreamCounters &before) {
  StreamCounters between;
  for (auto field :
       {&StreamCounters::graphLaunches, &StreamCounters::kernelLaunches,
        &StreamCounters::copiesToDevice, &StreamCounters::copiesToHost,
        &StreamCounters::synchronizations, &StreamCounters::captures})
    between.*field = after.*field - before.*field;
  return between;
}

void Graph::count(Stream &stream) const {
  StreamCounters &total = stream.tally();
  total.graphLaunches += 1;
  total.copiesToDevice += recorded.copiesToDevice;
  total.copiesToHost += recorded.copiesToHost;
}

Stream::~Stream() = default;
Device::~Device() = default;
RawKernel::~RawKernel() = default;

StatusOr<std::unique_ptr<Device>> tokentile::openDevice(std::string_view name) {
  if (name == "host")
    return std::unique_ptr<Device>(std::make_unique<HostDevice>());
  if (name == "cuda")
    return CudaDevice::open(0);
  constexpr std::string_view prefix = "cuda:";
  if (name.substr(0, prefix.size()) == prefix) {
    int32_t ordinal = -1;
    const char *end = name.data() + name.size();
    auto [stop, error] =
        std::from_chars(name.data() + prefix.size(), end, ordinal);
    if (error == std::errc() && stop == end && ordinal >= 0)
      return CudaDevice::open(ordinal);
  }
  return Status(StatusCode::InvalidArgument,
                "unknown device '" + std::string(name) +
                    "'; use 'host', 'cuda' or 'cuda:N'");
}

std::string tokentile::chipOfCapability(int32_t major, int32_t minor) {
  std::string chip = "sm_" + std::to_string(major * 10 + minor);
  // From 9.0 on the instructions we generate are in the "a" feature sets.
  return major >= 9 ? chip + "a" : chip;
}

int32_t tokentile::chipNumber(std::string_view chip) {
  constexpr std::string_view prefix = "sm_";
  if (chip.substr(0, prefix.size()) != prefix)
    return 0;
  int32_t number = 0;
  std::from_chars(chip.data() + prefix.size(), chip.data() + chip.size(),
                  number);
  return number;
}

bool tokentile::chipRuns(std::string_view code, std::string_view device) {
  if (code == device)
    return true;
  int32_t number = chipNumber(code);
  bool portable = number > 0 && std::isdigit((unsigned char)code.back());
  return portable && number <= chipNumber(device);
}
