//===- CudaDevice.h - A CUDA GPU as a device --------------------*- C++ -*-===//
//
// Internal to runtime/: open one with openDevice("cuda:N"). It holds a
// reference to the GPU's primary context, so memory and streams are shared
// with other libraries of the process that use it.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_CUDADEVICE_H
#define TOKENTILE_RUNTIME_CUDADEVICE_H

#include "runtime/CudaDriver.h"
#include "runtime/Device.h"

namespace tokentile {

class CudaDevice final : public Device {
public:
  static StatusOr<std::unique_ptr<Device>> open(int32_t ordinal);
  ~CudaDevice() override;

  const cuda::Driver &driver() const { return cudaDriver; }
  /// Makes the device's context current on the calling thread.
  Status bind() const;

  StatusOr<std::unique_ptr<Stream>> createStream() override;
  StatusOr<std::unique_ptr<Stream>> borrowStream(void *native) override;
  StatusOr<std::unique_ptr<Event>> createEvent() override;
  Status copyToDevice(void *to, const void *from, size_t bytes) override;
  Status copyToHost(void *to, const void *from, size_t bytes) override;
  Status fill(void *to, uint8_t value, size_t bytes) override;
  StatusOr<std::unique_ptr<Kernel>>
  load(const CompiledKernel &compiled) override;
  StatusOr<std::unique_ptr<RawKernel>>
  loadRaw(const std::string &image, const std::string &symbol) override;

protected:
  StatusOr<Buffer> allocateIn(MemorySpace space, size_t bytes) override;
  void release(MemorySpace space, void *pointer) override;

private:
  CudaDevice(const cuda::Driver &driver, cuda::CUdevice device)
      : cudaDriver(driver), device(device) {}
  Status readFacts();

  const cuda::Driver &cudaDriver;
  cuda::CUdevice device;
  cuda::CUcontext context = nullptr;
};

} // namespace tokentile

#endif // TOKENTILE_RUNTIME_CUDADEVICE_H
