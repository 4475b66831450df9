//===- Device.h - Devices, memory, streams and graphs -----------*- C++ -*-===//
//
// One interface for the machines that run kernels: the host, and a CUDA GPU
// whose driver is loaded at run time. Code written against it runs on both.
//
// Ownership: objects made by a Device (buffers, streams, events, graphs,
// kernels) must be destroyed before it. Destroying one that is still in use by
// queued work is the caller's error: synchronize the stream first.
//
// Threads: a Device may be used from many threads at once; a Stream, Event or
// Graph by one thread at a time. A CUDA device makes its primary context
// current on the calling thread and leaves it so.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_DEVICE_H
#define TOKENTILE_RUNTIME_DEVICE_H

#include "runtime/Status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tokentile {

struct CompiledKernel;
class Device;
class Kernel;
class RawKernel;

enum class DeviceKind { Host, Cuda };

/// What is known about a device; constant during its life.
struct DeviceFacts {
  DeviceKind kind = DeviceKind::Host;
  /// The product name, for people.
  std::string name;
  /// "host", or the GPU's target such as "sm_90a".
  std::string chip;
  /// Multiprocessors; hardware threads on the host.
  int32_t multiprocessors = 1;
  /// Largest dynamic shared memory of a block, in bytes; 0 on the host.
  int32_t sharedBytesPerBlock = 0;
  /// Shared memory of one multiprocessor, in bytes; 0 on the host.
  int32_t sharedBytesPerSm = 0;
  /// Bytes of the L2 cache, 0 if unknown.
  int64_t l2Bytes = 0;
};

/// Where a Buffer lies. Pinned memory is host memory that a device copies from
/// and to asynchronously.
enum class MemorySpace { Device, Pinned };

/// Owns one allocation of a device, 256-byte aligned, uninitialised.
class Buffer {
public:
  Buffer() = default;
  Buffer(Device &owner, void *data, size_t bytes, MemorySpace space)
      : owner(&owner), pointer(data), bytes(bytes), space(space) {}
  Buffer(Buffer &&other) noexcept { swap(other); }
  Buffer &operator=(Buffer &&other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }
  ~Buffer();

  /// Null for an empty buffer.
  void *data() const { return pointer; }
  size_t size() const { return bytes; }
  template <typename T>
  T *as() const {
    return static_cast<T *>(pointer);
  }

private:
  void swap(Buffer &other) noexcept {
    std::swap(owner, other.owner);
    std::swap(pointer, other.pointer);
    std::swap(bytes, other.bytes);
    std::swap(space, other.space);
  }

  Device *owner = nullptr;
  void *pointer = nullptr;
  size_t bytes = 0;
  MemorySpace space = MemorySpace::Device;
};

/// A point in a stream's work, with its time.
class Event {
public:
  virtual ~Event();
  /// Waits on the calling thread until the recorded point is reached.
  virtual Status synchronize() = 0;
  /// Microseconds from `start` to this event. Both must have been recorded
  /// outside a capture and reached, else FailedPrecondition or DriverError.
  virtual StatusOr<double> elapsedMicroseconds(const Event &start) const = 0;
};

class Stream;

/// What a stream has done. Copies of a graph count each time it is replayed,
/// its kernels do not: they are not launched one by one.
struct StreamCounters {
  int64_t graphLaunches = 0;
  /// Kernels launched outside graphs.
  int64_t kernelLaunches = 0;
  int64_t copiesToDevice = 0;
  int64_t copiesToHost = 0;
  /// Waits of the host for the stream.
  int64_t synchronizations = 0;
  int64_t captures = 0;
};
/// What was counted between two readings.
StreamCounters operator-(const StreamCounters &after,
                         const StreamCounters &before);

/// Recorded work that can be replayed any number of times. Pointers and
/// scalars are those of the recording; the memory they name is read at replay.
/// Kernels and memory that the work uses must outlive the graph.
class Graph {
public:
  explicit Graph(const StreamCounters &recorded) : recorded(recorded) {}
  virtual ~Graph();
  /// Queues the work on `stream`, which may itself not be capturing.
  virtual Status replay(Stream &stream) = 0;

protected:
  /// For devices: counts one replay on `stream`.
  void count(Stream &stream) const;

private:
  StreamCounters recorded;
};

/// A queue of work in order. Calls queue and return; on the host the work is
/// done when the call returns. While capturing, calls record instead.
class Stream {
public:
  explicit Stream(Device &owner) : owner(owner) {}
  virtual ~Stream();
  Device &device() const { return owner; }
  /// Counted since the stream was made; what is recorded is not done.
  const StreamCounters &counters() const { return done; }
  /// For devices: where to count what is queued now.
  StreamCounters &tally() { return recording ? recorded : done; }
  /// The CUstream of a CUDA device, null on the host.
  virtual void *native() const = 0;

  /// Waits until all queued work is done. FailedPrecondition while capturing.
  virtual Status synchronize() = 0;

  /// Copies `bytes` bytes. Host memory must stay unchanged until the work is
  /// done, and is read or written at replay if captured; use pinned buffers
  /// for copies that should overlap with other work.
  virtual Status copyToDevice(void *to, const void *from, size_t bytes) = 0;
  virtual Status copyToHost(void *to, const void *from, size_t bytes) = 0;
  virtual Status copyOnDevice(void *to, const void *from, size_t bytes) = 0;
  /// Sets `bytes` bytes of device memory to `value`.
  virtual Status fill(void *to, uint8_t value, size_t bytes) = 0;

  /// Marks this point of the stream. An event recorded while capturing orders
  /// work but carries no time.
  virtual Status record(Event &event) = 0;
  /// Makes later work of this stream wait for the event's recorded point.
  virtual Status wait(Event &event) = 0;

  /// Starts recording (CUDA: thread-local mode). The calling thread ends it.
  virtual Status beginCapture() = 0;
  /// Ends recording and instantiates what was recorded.
  virtual StatusOr<std::unique_ptr<Graph>> endCapture() = 0;

protected:
  /// For devices: a capture that began, and what it recorded when it ended.
  void startTally() {
    recording = true;
    recorded = StreamCounters();
  }
  StreamCounters endTally() {
    recording = false;
    return recorded;
  }

private:
  Device &owner;
  bool recording = false;
  StreamCounters done;
  StreamCounters recorded;
};

/// A machine that runs kernels.
class Device {
public:
  virtual ~Device();
  const DeviceFacts &facts() const { return deviceFacts; }

  /// Device memory. An empty buffer for 0 bytes; ResourceExhausted names the
  /// bytes that were asked for.
  StatusOr<Buffer> allocate(size_t bytes) {
    return allocateIn(MemorySpace::Device, bytes);
  }
  /// Pinned host memory (plain memory on the host).
  StatusOr<Buffer> allocatePinned(size_t bytes) {
    return allocateIn(MemorySpace::Pinned, bytes);
  }

  /// A new stream that does not order itself with any other.
  virtual StatusOr<std::unique_ptr<Stream>> createStream() = 0;
  /// Wraps a CUstream that the caller owns and keeps alive. InvalidArgument on
  /// the host.
  virtual StatusOr<std::unique_ptr<Stream>> borrowStream(void *native) = 0;
  virtual StatusOr<std::unique_ptr<Event>> createEvent() = 0;

  /// Copies that are done when they return. They do not wait for work queued
  /// on any stream: synchronize that first. Not allowed while capturing.
  virtual Status copyToDevice(void *to, const void *from, size_t bytes) = 0;
  virtual Status copyToHost(void *to, const void *from, size_t bytes) = 0;
  /// Sets `bytes` bytes of device memory; done when it returns.
  virtual Status fill(void *to, uint8_t value, size_t bytes) = 0;

  /// Loads a compiled kernel. InvalidArgument if its chip cannot run here,
  /// ResourceExhausted if its shared memory does not fit, CompileError with
  /// the driver's log if the driver refuses its PTX.
  virtual StatusOr<std::unique_ptr<Kernel>>
  load(const CompiledKernel &compiled) = 0;
  /// Loads a plain CUDA kernel from PTX or a cubin (see RawKernel.h).
  /// Unavailable on the host.
  virtual StatusOr<std::unique_ptr<RawKernel>>
  loadRaw(const std::string &image, const std::string &symbol) = 0;

protected:
  friend class Buffer;
  virtual StatusOr<Buffer> allocateIn(MemorySpace space, size_t bytes) = 0;
  virtual void release(MemorySpace space, void *pointer) = 0;

  DeviceFacts deviceFacts;
};

/// Opens "host", "cuda" (GPU 0) or "cuda:N". Unavailable without a driver or
/// without a GPU of that number, InvalidArgument for another name.
StatusOr<std::unique_ptr<Device>> openDevice(std::string_view name);

/// The chip of a CUDA compute capability: 8.6 is "sm_86", 9.0 is "sm_90a".
std::string chipOfCapability(int32_t major, int32_t minor);
/// The number of a GPU chip, 90 for "sm_90a"; 0 if `chip` names no GPU.
int32_t chipNumber(std::string_view chip);
/// Whether code for chip `code` runs on chip `device`. Code for a chip with a
/// letter runs on that chip only; other PTX runs on every newer GPU as well.
bool chipRuns(std::string_view code, std::string_view device);

} // namespace tokentile

#endif // TOKENTILE_RUNTIME_DEVICE_H
