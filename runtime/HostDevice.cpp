//===- HostDevice.cpp - The host as a device ------------------------------===//

#include "runtime/HostDevice.h"
#include "runtime/Kernel.h"
#include "runtime/KernelChecks.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <unistd.h>

using namespace tokentile;

namespace {

using Clock = std::chrono::steady_clock;

class HostEvent final : public Event {
public:
  Status synchronize() override { return Status(); }

  StatusOr<double> elapsedMicroseconds(const Event &start) const override {
    const auto &from = static_cast<const HostEvent &>(start);
    if (!time || !from.time)
      return Status(StatusCode::FailedPrecondition,
                    "event has no time; record both events outside a capture "
                    "before asking for the time between them");
    return std::chrono::duration<double, std::micro>(*time - *from.time)
        .count();
  }

  std::optional<Clock::time_point> time;
};

class HostGraph final : public Graph {
public:
  HostGraph(Device &owner, std::vector<HostCommand> commands,
            const StreamCounters &recorded)
      : Graph(recorded), owner(owner), commands(std::move(commands)) {}

  Status replay(Stream &stream) override {
    if (&stream.device() != &owner)
      return Status(StatusCode::InvalidArgument,
                    "graph and stream belong to different devices");
    auto &host = static_cast<HostStream &>(stream);
    if (host.capturing())
      return Status(StatusCode::FailedPrecondition,
                    "graph cannot be replayed on a stream that is capturing; "
                    "end the capture first");
    for (const HostCommand &command : commands)
      command();
    count(stream);
    return Status();
  }

private:
  Device &owner;
  std::vector<HostCommand> commands;
};

/// Calls `function` for each block of `grid`, which extends along x, in
/// parallel.
void runGrid(ThreadPool &pool, HostKernelFn function, Extent grid,
             const KernelArgs &args) {
  pool.forEach(grid.x, [&](int64_t block) { function(&args, int32_t(block)); });
}

class HostKernel final : public Kernel {
public:
  HostKernel(HostDevice &owner, const CompiledKernel &compiled)
      : Kernel(owner, compiled.info), pool(owner.pool()), sweep(compiled.sweep),
        merge(compiled.merge), code(compiled.code) {}

private:
  Status enqueue(const Plan &plan, const KernelArgs &args,
                 Stream &stream) const override {
    // Everything is captured by value, the code included: a recorded launch
    // must not see later changes of the caller's objects.
    return static_cast<HostStream &>(stream).submit(
        [&pool = pool, sweep = sweep, merge = merge, code = code, args,
         sweepGrid = plan.sweepGrid, mergeGrid = plan.mergeGrid] {
          runGrid(pool, sweep, sweepGrid, args);
          if (args.mergeBlocks > 0)
            runGrid(pool, merge, mergeGrid, args);
        });
  }

  ThreadPool &pool;
  HostKernelFn sweep;
  HostKernelFn merge;
  std::shared_ptr<void> code;
};

} // namespace

Status HostStream::submit(HostCommand command) {
  tally().kernelLaunches += 1;
  return queue(std::move(command));
}

Status HostStream::queue(HostCommand command) {
  if (recording)
    recording->push_back(std::move(command));
  else
    command();
  return Status();
}

Status HostStream::synchronize() {
  if (recording)
    return Status(StatusCode::FailedPrecondition,
                  "stream cannot be synchronized while it is capturing; end "
                  "the capture first");
  tally().synchronizations += 1;
  return Status();
}

Status HostStream::copyToDevice(void *to, const void *from, size_t bytes) {
  tally().copiesToDevice += 1;
  return copyOnDevice(to, from, bytes);
}

Status HostStream::copyToHost(void *to, const void *from, size_t bytes) {
  tally().copiesToHost += 1;
  return copyOnDevice(to, from, bytes);
}

Status HostStream::copyOnDevice(void *to, const void *from, size_t bytes) {
  return queue([=] { std::memcpy(to, from, bytes); });
}

Status HostStream::fill(void *to, uint8_t value, size_t bytes) {
  return queue([=] { std::memset(to, value, bytes); });
}

Status HostStream::record(Event &event) {
  if (!recording)
    static_cast<HostEvent &>(event).time = Clock::now();
  return Status();
}

Status HostStream::wait(Event &) { return Status(); }

Status HostStream::beginCapture() {
  if (recording)
    return Status(StatusCode::FailedPrecondition,
                  "stream is capturing already; end that capture first");
  recording.emplace();
  startTally();
  return Status();
}

StatusOr<std::unique_ptr<Graph>> HostStream::endCapture() {
  if (!recording)
    return Status(StatusCode::FailedPrecondition,
                  "stream is not capturing; begin a capture first");
  std::unique_ptr<Graph> graph =
      std::make_unique<HostGraph>(device(), std::move(*recording), endTally());
  recording.reset();
  tally().captures += 1;
  return graph;
}

HostDevice::HostDevice()
    : threads(std::max(1u, std::thread::hardware_concurrency())) {
  deviceFacts.kind = DeviceKind::Host;
  deviceFacts.name = "host";
  deviceFacts.chip = "host";
  deviceFacts.multiprocessors =
      int32_t(std::max(1u, std::thread::hardware_concurrency()));
  deviceFacts.l2Bytes = std::max<int64_t>(0, sysconf(_SC_LEVEL2_CACHE_SIZE));
}

StatusOr<std::unique_ptr<Stream>> HostDevice::createStream() {
  return std::unique_ptr<Stream>(std::make_unique<HostStream>(*this));
}

StatusOr<std::unique_ptr<Stream>> HostDevice::borrowStream(void *) {
  return Status(StatusCode::InvalidArgument,
                "device 'host' has no native streams; use createStream");
}

StatusOr<std::unique_ptr<Event>> HostDevice::createEvent() {
  return std::unique_ptr<Event>(std::make_unique<HostEvent>());
}

Status HostDevice::copyToDevice(void *to, const void *from, size_t bytes) {
  std::memcpy(to, from, bytes);
  return Status();
}

Status HostDevice::copyToHost(void *to, const void *from, size_t bytes) {
  return copyToDevice(to, from, bytes);
}

Status HostDevice::fill(void *to, uint8_t value, size_t bytes) {
  std::memset(to, value, bytes);
  return Status();
}

StatusOr<std::unique_ptr<Kernel>>
HostDevice::load(const CompiledKernel &compiled) {
  if (Status status = checkLoadable(compiled.info, deviceFacts); !status.ok())
    return status;
  if (!compiled.sweep || (maySplit(compiled.info) && !compiled.merge))
    return Status(StatusCode::InvalidArgument,
                  "kernel '" + compiled.info.name +
                      "' has no host functions; compile it for chip 'host'");
  return std::unique_ptr<Kernel>(std::make_unique<HostKernel>(*this, compiled));
}

StatusOr<std::unique_ptr<RawKernel>>
HostDevice::loadRaw(const std::string &, const std::string &symbol) {
  return Status(StatusCode::Unavailable,
                "kernel '" + symbol +
                    "' is a CUDA kernel; device 'host' cannot load it, open "
                    "'cuda'");
}

StatusOr<Buffer> HostDevice::allocateIn(MemorySpace space, size_t bytes) {
  if (bytes == 0)
    return Buffer();
  constexpr size_t alignment = 256;
  size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void *data =
      rounded < bytes ? nullptr : std::aligned_alloc(alignment, rounded);
  if (!data)
    return Status(StatusCode::ResourceExhausted,
                  "device 'host' cannot allocate " + std::to_string(bytes) +
                      " bytes");
  return Buffer(*this, data, bytes, space);
}

void HostDevice::release(MemorySpace, void *pointer) { std::free(pointer); }
