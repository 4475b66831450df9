//===- HostDevice.h - The host as a device ----------------------*- C++ -*-===//
//
// A host stream executes each call before it returns. While capturing it
// records instead: commands with their arguments frozen by value, as CUDA
// does, which a graph replays in order.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_HOSTDEVICE_H
#define TOKENTILE_RUNTIME_HOSTDEVICE_H

#include "runtime/Device.h"
#include "runtime/ThreadPool.h"

#include <functional>
#include <optional>
#include <vector>

namespace tokentile {

using HostCommand = std::function<void()>;

class HostStream final : public Stream {
public:
  using Stream::Stream;
  /// Runs `command` now, or records it while capturing. Counts as a launch.
  Status submit(HostCommand command);
  bool capturing() const { return recording.has_value(); }

  void *native() const override { return nullptr; }
  Status synchronize() override;
  Status copyToDevice(void *to, const void *from, size_t bytes) override;
  Status copyToHost(void *to, const void *from, size_t bytes) override;
  Status copyOnDevice(void *to, const void *from, size_t bytes) override;
  Status fill(void *to, uint8_t value, size_t bytes) override;
  Status record(Event &event) override;
  Status wait(Event &event) override;
  Status beginCapture() override;
  StatusOr<std::unique_ptr<Graph>> endCapture() override;

private:
  Status queue(HostCommand command);

  /// The commands recorded so far; empty unless capturing.
  std::optional<std::vector<HostCommand>> recording;
};

class HostDevice final : public Device {
public:
  HostDevice();
  ThreadPool &pool() { return threads; }

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
  ThreadPool threads;
};

} // namespace tokentile

#endif // TOKENTILE_RUNTIME_HOSTDEVICE_H
