//===- ColdTimer.h - Times of recorded work with cold caches ----*- C++ -*-===//
//
// A serving engine meets its keys cold: between two attention layers the
// weights of a model pass through the caches. So on a GPU every sample is one
// graph replay between two device events, before which 512 MiB are written and
// then 512 MiB of another buffer are read. Writes alone would leave dirty lines
// whose write-back is charged to the kernel; reads alone leave part of the keys
// in the L2 cache. On the host samples are plain repetitions.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_BENCH_COLDTIMER_H
#define TOKENTILE_BENCH_COLDTIMER_H

#include "runtime/Device.h"
#include "runtime/RawKernel.h"

#include <functional>
#include <vector>

namespace tokentile {

/// Microseconds of the samples of one measurement.
struct Timing {
  double median = 0;
  double min = 0;
  double p95 = 0;
  /// Half of the samples lie this far apart, in percent of the median.
  double spreadPercent = 0;
};

/// The figures of `samples`, which must not be empty.
Timing summarize(std::vector<double> samples);

class ColdTimer {
public:
  /// Unavailable without NVRTC, which compiles the reader on a GPU.
  static StatusOr<std::unique_ptr<ColdTimer>> create(Device &device);

  Device &getDevice() { return device; }

  static constexpr int usualWarmups = 3;
  /// Records what `work` queues, then times `samples` replays after `warmups`
  /// that do not count.
  StatusOr<Timing> time(const std::function<Status(Stream &)> &work,
                        int samples, int warmups = usualWarmups);

private:
  explicit ColdTimer(Device &device) : device(device) {}
  Status prepareEviction();
  Status evict();
  StatusOr<double> sample(Graph &graph);

  Device &device;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Event> start, end;
  std::unique_ptr<RawKernel> reader;
  Buffer written, read;
};

} // namespace tokentile

#endif // TOKENTILE_BENCH_COLDTIMER_H
