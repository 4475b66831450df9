//===- CudaDevice.cpp - A CUDA GPU as a device ----------------------------===//

#include "runtime/CudaDevice.h"
#include "runtime/CudaStream.h"

using namespace tokentile;
using namespace tokentile::cuda;

StatusOr<std::unique_ptr<Device>> CudaDevice::open(int32_t ordinal) {
  StatusOr<const Driver *> loaded = loadDriver();
  if (!loaded.ok())
    return loaded.status();
  const Driver &driver = **loaded;
  int count = 0;
  if (Status status =
          driver.check(driver.cuDeviceGetCount(&count), "cuDeviceGetCount");
      !status.ok())
    return status;
  if (ordinal >= count)
    return Status(StatusCode::Unavailable,
                  "device 'cuda:" + std::to_string(ordinal) +
                      "' does not exist: " + std::to_string(count) +
                      " CUDA devices are visible, counted from 0; device "
                      "'host' works without one");
  CUdevice handle = 0;
  if (Status status =
          driver.check(driver.cuDeviceGet(&handle, ordinal), "cuDeviceGet");
      !status.ok())
    return status;
  std::unique_ptr<CudaDevice> device(new CudaDevice(driver, handle));
  if (Status status = driver.check(
          driver.cuDevicePrimaryCtxRetain(&device->context, handle),
          "cuDevicePrimaryCtxRetain");
      !status.ok())
    return status;
  if (Status status = device->readFacts(); !status.ok())
    return status;
  return std::unique_ptr<Device>(std::move(device));
}

CudaDevice::~CudaDevice() {
  if (context)
    cudaDriver.cuDevicePrimaryCtxRelease_v2(device);
}

Status CudaDevice::readFacts() {
  char name[256] = "";
  if (Status status = cudaDriver.check(
          cudaDriver.cuDeviceGetName(name, sizeof(name), device),
          "cuDeviceGetName");
      !status.ok())
    return status;
  int major = 0, minor = 0, multiprocessors = 0, shared = 0, l2 = 0;
  int sharedPerSm = 0;
  const std::pair<int, int *> attributes[] = {
      {attributeCapabilityMajor, &major},
      {attributeCapabilityMinor, &minor},
      {attributeMultiprocessors, &multiprocessors},
      {attributeSharedBytesOptin, &shared},
      {attributeSharedBytesPerSm, &sharedPerSm},
      {attributeL2Bytes, &l2},
  };
  for (auto [attribute, value] : attributes)
    if (Status status = cudaDriver.check(
            cudaDriver.cuDeviceGetAttribute(value, attribute, device),
            "cuDeviceGetAttribute");
        !status.ok())
      return status;
  deviceFacts.kind = DeviceKind::Cuda;
  deviceFacts.name = name;
  deviceFacts.chip = chipOfCapability(major, minor);
  deviceFacts.multiprocessors = multiprocessors;
  deviceFacts.sharedBytesPerBlock = shared;
  deviceFacts.sharedBytesPerSm = sharedPerSm;
  deviceFacts.l2Bytes = l2;
  return Status();
}

Status CudaDevice::bind() const {
  return cudaDriver.check(cudaDriver.cuCtxSetCurrent(context),
                          "cuCtxSetCurrent");
}

StatusOr<std::unique_ptr<Stream>> CudaDevice::createStream() {
  if (Status status = bind(); !status.ok())
    return status;
  CUstream stream = nullptr;
  if (Status status = cudaDriver.check(
          cudaDriver.cuStreamCreate(&stream, streamNonBlocking),
          "cuStreamCreate");
      !status.ok())
    return status;
  return std::unique_ptr<Stream>(
      std::make_unique<CudaStream>(*this, stream, /*owned=*/true));
}

StatusOr<std::unique_ptr<Stream>> CudaDevice::borrowStream(void *native) {
  return std::unique_ptr<Stream>(std::make_unique<CudaStream>(
      *this, static_cast<CUstream>(native), /*owned=*/false));
}

StatusOr<std::unique_ptr<Event>> CudaDevice::createEvent() {
  if (Status status = bind(); !status.ok())
    return status;
  CUevent event = nullptr;
  if (Status status = cudaDriver.check(cudaDriver.cuEventCreate(&event, 0),
                                       "cuEventCreate");
      !status.ok())
    return status;
  return std::unique_ptr<Event>(std::make_unique<CudaEvent>(*this, event));
}

// The copies below go through the legacy default stream and wait for it: plain
// cuMemcpyHtoD may return before the data has arrived, and our streams do not
// order themselves after the default one.

Status CudaDevice::copyToDevice(void *to, const void *from, size_t bytes) {
  CudaStream stream(*this, nullptr, /*owned=*/false);
  if (Status status = stream.copyToDevice(to, from, bytes); !status.ok())
    return status;
  return stream.synchronize();
}

Status CudaDevice::copyToHost(void *to, const void *from, size_t bytes) {
  CudaStream stream(*this, nullptr, /*owned=*/false);
  if (Status status = stream.copyToHost(to, from, bytes); !status.ok())
    return status;
  return stream.synchronize();
}

Status CudaDevice::fill(void *to, uint8_t value, size_t bytes) {
  CudaStream stream(*this, nullptr, /*owned=*/false);
  if (Status status = stream.fill(to, value, bytes); !status.ok())
    return status;
  return stream.synchronize();
}

StatusOr<Buffer> CudaDevice::allocateIn(MemorySpace space, size_t bytes) {
  if (bytes == 0)
    return Buffer();
  if (Status status = bind(); !status.ok())
    return status;
  void *data = nullptr;
  Status status;
  if (space == MemorySpace::Pinned) {
    status = cudaDriver.check(
        cudaDriver.cuMemHostAlloc(&data, bytes, hostAllocPortable),
        "cuMemHostAlloc");
  } else {
    CUdeviceptr address = 0;
    status = cudaDriver.check(cudaDriver.cuMemAlloc_v2(&address, bytes),
                              "cuMemAlloc");
    data = reinterpret_cast<void *>(address);
  }
  if (!status.ok())
    return Status(status.code(),
                  "device '" + deviceFacts.name + "' cannot allocate " +
                      std::to_string(bytes) + " bytes: " + status.message());
  return Buffer(*this, data, bytes, space);
}

void CudaDevice::release(MemorySpace space, void *pointer) {
  // A destructor has nobody to tell: an error here is an earlier, sticky one.
  if (!bind().ok())
    return;
  if (space == MemorySpace::Pinned)
    cudaDriver.cuMemFreeHost(pointer);
  else
    cudaDriver.cuMemFree_v2(reinterpret_cast<CUdeviceptr>(pointer));
}
