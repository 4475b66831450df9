//===- Ops.h - Operations of the reference model ----------------*- C++ -*-===//
//
// Queues the operations of OpBodies.h and Reattend.h and matrix products on a
// stream, on the host or on a CUDA device. Work is capturable and its arguments
// are frozen by value. Pointers are device pointers of the stream's device.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TOOLS_REFERENCEMODEL_OPS_H
#define TOKENTILE_TOOLS_REFERENCEMODEL_OPS_H

#include "runtime/ServiceKernel.h"
#include "tools/reference-model/Linear.h"
#include "tools/reference-model/OpBodies.h"
#include "tools/reference-model/Reattend.h"

#include <vector>

namespace tokentile::reference {

/// CUDA C++ of all operations, runtime services first.
std::string opsSource();

class Ops {
public:
  /// Compiles the operations on CUDA; Unavailable without NVRTC.
  static StatusOr<std::unique_ptr<Ops>> create(Device &device);

  Status linear(const LinearArgs &args, Stream &stream) const;

  /// embedRow(args, count, stream) and so on: one team for each of `count`
  /// rows; the bodies say what a row is.
#define TOKENTILE_OP(name, Args, threads)                                      \
  Status name(const Args &args, int64_t count, Stream &stream) const {         \
    return name##Kernel.launch({int32_t(count), 1, 1}, threads, args, stream); \
  }
#include "tools/reference-model/OpList.def"
#undef TOKENTILE_OP

private:
  Ops() = default;

  bool isCuda = false;
  /// For products of up to 16 and 32 rows, and of more.
  ServiceKernel<LinearArgs> linear1, linear2, linear4;
#define TOKENTILE_OP(name, Args, threads) ServiceKernel<Args> name##Kernel;
#include "tools/reference-model/OpList.def"
#undef TOKENTILE_OP
};

/// Queues operations on one stream until one fails; the others do nothing then.
class OpQueue {
public:
  OpQueue(const Ops &ops, Stream &stream) : ops(ops), stream(stream) {}

  void linear(const LinearArgs &args) {
    add([&] { return ops.linear(args, stream); });
  }
#define TOKENTILE_OP(name, Args, threads)                                      \
  void name(const Args &args, int64_t count) {                                 \
    add([&] { return ops.name(args, count, stream); });                        \
  }
#include "tools/reference-model/OpList.def"
#undef TOKENTILE_OP

  /// Calls `work`, which queues on the same stream, unless something failed.
  template <typename Work>
  void add(Work &&work) {
    if (failure.ok())
      failure = work();
  }
  /// The first failure.
  const Status &status() const { return failure; }

private:
  const Ops &ops;
  Stream &stream;
  Status failure;
};

} // namespace tokentile::reference

#endif // TOKENTILE_TOOLS_REFERENCEMODEL_OPS_H
