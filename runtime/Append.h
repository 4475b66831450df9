//===- Append.h - Keys and values into the pages of requests ----*- C++ -*-===//
//
// What a model projects for the rows of a step is written to the pages that its
// attention kernels read, by a count for each request that is read on the
// device. Linear classes and rings, every page order, bf16 and fp16, with an
// RMSNorm and RoPE of the keys on request.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_APPEND_H
#define TOKENTILE_RUNTIME_APPEND_H

#include "runtime/Kernel.h"
#include "runtime/ServiceKernel.h"
#include "runtime/services/Append.h"

namespace tokentile {

/// Arguments that append where launches of a kernel with `info` and `args`
/// read: pages, table, lengths, kv heads and head dimension. The caller fills
/// in what is appended: `keys`, `values`, `counts`, `batch`, `width`, and the
/// norm and RoPE if they are wanted (docs: services/Append.h). Errors are those
/// of a launch; InvalidArgument if the keys are contiguous.
StatusOr<services::AppendArgs> appendArgsFor(const KernelInfo &info,
                                             const LaunchArgs &args);

/// The append kernel of one device.
class Appender {
public:
  /// Compiles the kernel on CUDA. Unavailable without NVRTC.
  static StatusOr<Appender> create(Device &device);

  /// Queues one append on `stream`; capturable. InvalidArgument names the field
  /// that is missing or cannot work. All pointers are the caller's.
  Status append(const services::AppendArgs &args, Stream &stream) const;

private:
  explicit Appender(ServiceKernel<services::AppendArgs> kernel)
      : kernel(std::move(kernel)) {}
  ServiceKernel<services::AppendArgs> kernel;
};

} // namespace tokentile

#endif // TOKENTILE_RUNTIME_APPEND_H
