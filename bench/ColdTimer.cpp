//===- ColdTimer.cpp - Times of recorded work with cold caches ------------===//

#include "bench/ColdTimer.h"

#include "runtime/Nvrtc.h"

#include <algorithm>
#include <cmath>

using namespace tokentile;

namespace {

constexpr size_t evictedBytes = size_t(512) << 20;

const char *readerSource = R"(
extern "C" __global__ void readAll(const uint4 *from, unsigned long long count,
                                   unsigned *sink) {
  unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
  unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x
                         + threadIdx.x;
  unsigned seen = 0;
  for (; i + 3 * step < count; i += 4 * step) {
    uint4 a = from[i], b = from[i + step], c = from[i + 2 * step],
          d = from[i + 3 * step];
    seen ^= a.x ^ b.y ^ c.z ^ d.w;
  }
  for (; i < count; i += step)
    seen ^= from[i].x;
  if (seen == 0x12345678u)
    sink[0] = seen;
}
)";

} // namespace

Timing tokentile::summarize(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  auto at = [&](double part) {
    return samples[size_t(std::lround(part * double(samples.size() - 1)))];
  };
  Timing timing;
  timing.median = at(0.5);
  timing.min = samples.front();
  timing.p95 = at(0.95);
  timing.spreadPercent = 100 * (at(0.75) - at(0.25)) / timing.median;
  return timing;
}

StatusOr<std::unique_ptr<ColdTimer>> ColdTimer::create(Device &device) {
  std::unique_ptr<ColdTimer> timer(new ColdTimer(device));
  StatusOr<std::unique_ptr<Stream>> stream = device.createStream();
  if (!stream.ok())
    return stream.status();
  timer->stream = *std::move(stream);
  for (std::unique_ptr<Event> *event : {&timer->start, &timer->end}) {
    StatusOr<std::unique_ptr<Event>> made = device.createEvent();
    if (!made.ok())
      return made.status();
    *event = *std::move(made);
  }
  if (device.facts().kind == DeviceKind::Cuda)
    if (Status status = timer->prepareEviction(); !status.ok())
      return status;
  return timer;
}

Status ColdTimer::prepareEviction() {
  StatusOr<std::string> image =
      compileCuda(readerSource, "reader.cu", device.facts().chip);
  if (!image.ok())
    return image.status();
  StatusOr<std::unique_ptr<RawKernel>> kernel =
      device.loadRaw(*image, "readAll");
  if (!kernel.ok())
    return kernel.status();
  reader = *std::move(kernel);
  for (Buffer *buffer : {&written, &read}) {
    StatusOr<Buffer> made = device.allocate(evictedBytes);
    if (!made.ok())
      return made.status();
    *buffer = *std::move(made);
  }
  return device.fill(read.data(), 1, evictedBytes);
}

Status ColdTimer::evict() {
  if (!reader)
    return Status();
  if (Status status = stream->fill(written.data(), 2, evictedBytes);
      !status.ok())
    return status;
  const void *from = read.data();
  unsigned long long count = evictedBytes / 16;
  void *sink = written.data();
  void *params[] = {&from, &count, &sink};
  return reader->launch({device.facts().multiprocessors * 8, 1, 1}, {256, 1, 1},
                        0, params, *stream);
}

StatusOr<double> ColdTimer::sample(Graph &graph) {
  if (Status status = evict(); !status.ok())
    return status;
  if (Status status = stream->record(*start); !status.ok())
    return status;
  if (Status status = graph.replay(*stream); !status.ok())
    return status;
  if (Status status = stream->record(*end); !status.ok())
    return status;
  if (Status status = stream->synchronize(); !status.ok())
    return status;
  return end->elapsedMicroseconds(*start);
}

StatusOr<Timing> ColdTimer::time(const std::function<Status(Stream &)> &work,
                                 int samples, int warmups) {
  if (Status status = stream->beginCapture(); !status.ok())
    return status;
  Status queued = work(*stream);
  StatusOr<std::unique_ptr<Graph>> graph = stream->endCapture();
  if (!queued.ok())
    return queued;
  if (!graph.ok())
    return graph.status();
  std::vector<double> times;
  for (int i = 0; i < warmups + samples; ++i) {
    StatusOr<double> microseconds = sample(**graph);
    if (!microseconds.ok())
      return microseconds.status();
    if (i >= warmups)
      times.push_back(*microseconds);
  }
  return summarize(std::move(times));
}
