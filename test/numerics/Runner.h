//===- Runner.h - A kernel on a device against the reference ----*- C++ -*-===//

#ifndef TOKENTILE_TEST_NUMERICS_RUNNER_H
#define TOKENTILE_TEST_NUMERICS_RUNNER_H

#include "runtime/Kernel.h"
#include "test/numerics/Problem.h"

namespace tokentile {

/// What one case came to.
struct Outcome {
  Comparison comparison;
  /// Of one kv head, as planned.
  int32_t items = 1;
  /// The faster of two replays, in microseconds.
  double microseconds = 0;
};

/// Runs loaded kernels on one device. Not for several threads.
class Runner {
public:
  static StatusOr<Runner> create(Device &device);

  /// Runs `kernel` on the tensors of `problem`: launched directly, then twice
  /// as a recorded graph, each time over freshly poisoned outputs and
  /// workspace. The three results must agree bit by bit, and the numerics rule
  /// judges them. If the kernel can divide the batch into ranges of tiles, all
  /// of that again. The outputs stay in the problem's tensors. A status that is
  /// not ok says that the device or the launch failed.
  StatusOr<Outcome> run(const Kernel &kernel, Problem &problem);

private:
  StatusOr<Outcome> run(const Plan &planned, Problem &problem);

  Runner(Device &device, std::unique_ptr<Stream> stream)
      : device(&device), stream(std::move(stream)) {}

  Device *device;
  std::unique_ptr<Stream> stream;
};

} // namespace tokentile

#endif // TOKENTILE_TEST_NUMERICS_RUNNER_H
