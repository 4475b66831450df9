//===- Bench.h - Generated kernels timed beside their floor -----*- C++ -*-===//

#ifndef TOKENTILE_BENCH_BENCH_H
#define TOKENTILE_BENCH_BENCH_H

#include "bench/Floor.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tokentile {

/// One line of the table.
struct BenchRecord {
  /// The kernel; of several launches the first one's.
  KernelInfo kernel;
  /// "one launch"; "chunks of C": as many launches as C goes into the tokens,
  /// rounded up, each of which sweeps all keys; "sweep alone"; or "mean of N
  /// layers".
  std::string mode;
  Shape shape;
  /// Times the keys are read in all.
  int32_t sweeps = 1;
  /// Items of one kv head, as planned.
  int32_t items = 1;
  /// Bytes of keys and values that have to be read once.
  int64_t bytes = 0;
  Timing timing;
  std::optional<Floor> floor;

  double gigabytesPerSecond() const { return bytes / timing.median / 1e3; }
};

/// Compiles a kernel of so many tokens, the rest of its spec being fixed.
using CompileTokens = std::function<StatusOr<CompiledKernel>(int32_t tokens)>;

/// Times kernels of one spec that differ in their tokens.
class Bench {
public:
  Bench(ColdTimer &timer, CompileTokens compile, int samples)
      : timer(timer), compile(std::move(compile)), samples(samples) {}

  /// Times one step of `shape`. `chunk` > 0 divides it into launches of so
  /// many tokens; they are recorded in one graph, one behind another.
  StatusOr<BenchRecord> time(const Shape &shape, int32_t chunk);

  /// Times one launch of all tokens without its merge: what it leaves are
  /// partial results, good for nothing but their time.
  StatusOr<BenchRecord> timeSweep(const Shape &shape);

  /// The mean of `layers` > 0 launches of all tokens, one behind another in one
  /// graph, each with keys of its own, as in the layers of a model.
  StatusOr<BenchRecord> timeLayers(const Shape &shape, int32_t layers);

  /// The floor of `shape`. Unavailable on the host.
  StatusOr<Floor> floor(const Shape &shape);

private:
  using Launches = std::vector<std::pair<Plan, LaunchArgs>>;

  /// Adds the launches of a step over `tensors`; fills `record` but for times.
  Status addStep(Workload &tensors, const Shape &shape, int32_t chunk,
                 Launches &launches, BenchRecord &record);
  /// Times the launches of a step, with their merges or without.
  StatusOr<BenchRecord> timeStep(const Shape &shape, int32_t chunk,
                                 std::string mode, bool withMerge);
  StatusOr<Timing> timeLaunches(const Launches &launches);
  StatusOr<const Kernel *> kernelFor(int32_t tokens);
  StatusOr<Workload *> workloadFor(const Shape &shape);

  ColdTimer &timer;
  CompileTokens compile;
  int samples;
  std::map<int32_t, std::unique_ptr<Kernel>> kernels;
  /// The latest one; memory is not held for more.
  std::unique_ptr<Workload> workload;
};

} // namespace tokentile

#endif // TOKENTILE_BENCH_BENCH_H
