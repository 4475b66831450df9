//===- CudaDriver.h - The CUDA driver, loaded at run time -------*- C++ -*-===//
//
// Declares the few types and constants of cuda.h that we use, so that neither
// building nor linking needs a CUDA toolkit. Internal to runtime/.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_CUDADRIVER_H
#define TOKENTILE_RUNTIME_CUDADRIVER_H

#include "runtime/Status.h"

#include <cstddef>
#include <cstdint>

namespace tokentile::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st *;
using CUevent = struct CUevent_st *;
using CUfunction = struct CUfunc_st *;
using CUgraph = struct CUgraph_st *;
using CUgraphExec = struct CUgraphExec_st *;
using CUmodule = struct CUmod_st *;
using CUstream = struct CUstream_st *;

constexpr CUresult success = 0;
constexpr CUresult errorOutOfMemory = 2;

// CUdevice_attribute.
constexpr int attributeMultiprocessors = 16;
constexpr int attributeL2Bytes = 38;
constexpr int attributeCapabilityMajor = 75;
constexpr int attributeCapabilityMinor = 76;
constexpr int attributeSharedBytesOptin = 97;
constexpr int attributeSharedBytesPerSm = 81;

// CUfunction_attribute.
constexpr int functionStaticSharedBytes = 1;
constexpr int functionMaxDynamicSharedBytes = 8;

// CUjit_option.
constexpr int jitErrorLogBuffer = 5;
constexpr int jitErrorLogBufferBytes = 6;

constexpr unsigned streamNonBlocking = 1;
constexpr int captureThreadLocal = 1;
constexpr unsigned hostAllocPortable = 1;
constexpr int launchProgrammaticStreamSerialization = 6;

struct CUlaunchAttribute {
  int id;
  char padding[4];
  union {
    char bytes[64];
    int programmaticStreamSerializationAllowed;
    unsigned long long alignment;
  } value;
};
static_assert(sizeof(CUlaunchAttribute) == 72, "as in cuda.h");

struct CUlaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute *attrs;
  unsigned numAttrs;
};
static_assert(sizeof(CUlaunchConfig) == 56, "as in cuda.h");

/// The functions of the driver. Optional ones may be null.
struct Driver {
#define TOKENTILE_CUDA_SYMBOL(name, ...)                                       \
  CUresult (*name)(__VA_ARGS__) = nullptr;
#define TOKENTILE_CUDA_OPTIONAL TOKENTILE_CUDA_SYMBOL
#include "runtime/CudaSymbols.def"
#undef TOKENTILE_CUDA_OPTIONAL
#undef TOKENTILE_CUDA_SYMBOL

  /// Ok, or an error that names the call and the driver's error.
  /// ResourceExhausted when memory ran out, else DriverError.
  Status check(CUresult result, const char *call) const;
};

/// The driver, loaded and initialised on the first call; it stays loaded.
/// Unavailable, with the reason, where there is none.
StatusOr<const Driver *> loadDriver();

} // namespace tokentile::cuda

#endif // TOKENTILE_RUNTIME_CUDADRIVER_H
