//===- Floor.h - How fast the keys can be read at all -----------*- C++ -*-===//

#ifndef TOKENTILE_BENCH_FLOOR_H
#define TOKENTILE_BENCH_FLOOR_H

#include "bench/ColdTimer.h"
#include "bench/Workload.h"

#include <string>

namespace tokentile {

/// The best time of kernels that only read keys and values through the page
/// table, and the shape of the one that reached it.
struct Floor {
  Timing timing;
  std::string shape;
};

/// Tries several shapes of each way to load on a GPU, takes the best by its
/// median and times that one again with `samples` samples.
StatusOr<Floor> measureFloor(ColdTimer &timer, const KernelInfo &info,
                             const Workload &workload, int samples);

/// Time of a kernel that does nothing: what launch and events add to every
/// figure.
StatusOr<Timing> measureNothing(ColdTimer &timer, int samples);

} // namespace tokentile

#endif // TOKENTILE_BENCH_FLOOR_H
