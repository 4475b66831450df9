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

/// Makes strides of the key or value pool explicit that are 0, in bytes, as
/// documented at PageOrder; `slot` is the stride of keys in a page, `field`
/// "key" or "value" for the message.
Status setPoolStrides(const KernelInfo &info, int32_t poolPages, int64_t slot,
                      const char *field, int64_t &page, int64_t &head);

} // namespace tokentile

#endif // TOKENTILE_RUNTIME_KERNELCHECKS_H
