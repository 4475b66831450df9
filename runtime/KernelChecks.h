//===- KernelChecks.h - Checks that all devices share -----------*- C++ -*-===//

#ifndef TOKENTILE_RUNTIME_KERNELCHECKS_H
#define TOKENTILE_RUNTIME_KERNELCHECKS_H

#include "codegen/KernelABI.h"
#include "runtime/Device.h"

namespace tokentile {

/// Whether launches of the kernel can need the merge.
inline bool maySplit(const KernelInfo &info) {
  return info.splitPolicy != SplitPolicy::Count || info.splitValue != 1;
}

/// Checks that the facts of a kernel are sound and that it can run on a
/// device: its chip, its threads and its shared memory. Names both values.
Status checkLoadable(const KernelInfo &info, const DeviceFacts &facts);

} // namespace tokentile

#endif // TOKENTILE_RUNTIME_KERNELCHECKS_H
