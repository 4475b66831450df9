//===- CudaTensorMap.h - Maps of key and value pools ------------*- C++ -*-===//
//
// The tensor maps that sweeps with KernelInfo::tensorMaps copy through.
// Internal to runtime/.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_CUDATENSORMAP_H
#define TOKENTILE_RUNTIME_CUDATENSORMAP_H

#include "codegen/KernelABI.h"
#include "runtime/CudaDriver.h"

namespace tokentile::cuda {

/// The opaque CUtensorMap of cuda.h.
struct alignas(64) TensorMap {
  char bytes[128];
};

/// The maps of one launch, keys and values. A map has five dimensions: elements
/// of a panel, slots of a page, panels, kv heads, pages. DriverError if the
/// driver lacks tensor maps or refuses one.
Status makeTensorMaps(const Driver &driver, const KernelInfo &info,
                      const KernelArgs &args, TensorMap (&maps)[2]);

} // namespace tokentile::cuda

#endif // TOKENTILE_RUNTIME_CUDATENSORMAP_H
