//===- Team.h - One source for host and CUDA service kernels ----*- C++ -*-===//
//
// Service kernels are what a step needs beside attention: appending rows,
// acceptance, the bookkeeping of a step. Each is one function of a block of the
// grid, written once in this folder. The host compiles it as it stands and
// calls it for each block with a team of one; on CUDA the same text goes
// through NVRTC when services are loaded, and the team is the thread block.
//
// The files of this folder are joined into one source for NVRTC, in the order
// of runtime/CMakeLists.txt. So they include nothing there, use no standard
// library beyond <math.h>, and take all arguments as one struct by value.
//
// A loop over `i = team.rank(); i < n; i += team.size()` divides work. Calls of
// sum, best and sync must be reached by the whole team.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_SERVICES_TEAM_H
#define TOKENTILE_RUNTIME_SERVICES_TEAM_H

#ifdef __CUDACC_RTC__
#define TOKENTILE_SERVICE __device__ inline
using int32_t = int;
using uint32_t = unsigned;
using uint16_t = unsigned short;
using int64_t = long long;
using uint64_t = unsigned long long;
#define INFINITY __int_as_float(0x7f800000)
#else
#include <cmath>
#include <cstdint>
#define TOKENTILE_SERVICE inline
#endif

namespace tokentile::services {

/// The most threads of a block on CUDA; a block has a multiple of 32.
constexpr int32_t teamThreads = 1024;

/// A candidate of a search for the greatest value. Of equal values the lowest
/// index wins, so the result does not depend on who searched where.
struct Best {
  float value;
  int32_t index;
};

TOKENTILE_SERVICE Best better(Best a, Best b) {
  bool second = b.index >= 0 && (a.index < 0 || b.value > a.value ||
                                 (b.value == a.value && b.index < a.index));
  return second ? b : a;
}

#ifdef __CUDACC_RTC__

class Team {
public:
  __device__ int32_t rank() const { return threadIdx.x; }
  __device__ int32_t size() const { return blockDim.x; }
  __device__ void sync() const { __syncthreads(); }

  /// The same sum on every thread, added in a fixed order.
  __device__ float sum(float value) const {
    for (int32_t lane = 16; lane > 0; lane /= 2)
      value += __shfl_xor_sync(~0u, value, lane);
    __shared__ float partial[32];
    if (threadIdx.x % 32 == 0)
      partial[threadIdx.x / 32] = value;
    __syncthreads();
    float total = 0;
    for (int32_t warp = 0; warp < blockDim.x / 32; ++warp)
      total += partial[warp];
    __syncthreads();
    return total;
  }

  /// The best of all candidates, on every thread.
  __device__ Best best(Best value) const {
    for (int32_t lane = 16; lane > 0; lane /= 2)
      value = better(value, {__shfl_xor_sync(~0u, value.value, lane),
                             __shfl_xor_sync(~0u, value.index, lane)});
    __shared__ Best partial[32];
    if (threadIdx.x % 32 == 0)
      partial[threadIdx.x / 32] = value;
    __syncthreads();
    value = partial[0];
    for (int32_t warp = 1; warp < blockDim.x / 32; ++warp)
      value = better(value, partial[warp]);
    __syncthreads();
    return value;
  }
};

/// Defines the CUDA kernel tokentile_NAME(ARGS), which calls NAME.
#define TOKENTILE_SERVICE_KERNEL(NAME, ARGS)                                   \
  extern "C" __global__ void __launch_bounds__(                                \
      ::tokentile::services::teamThreads) tokentile_##NAME(const ARGS args) {  \
    NAME(::tokentile::services::Team(), args, blockIdx.x, blockIdx.y,          \
         blockIdx.z);                                                          \
  }

#else

class Team {
public:
  int32_t rank() const { return 0; }
  int32_t size() const { return 1; }
  void sync() const {}
  float sum(float value) const { return value; }
  Best best(Best value) const { return value; }
};

#define TOKENTILE_SERVICE_KERNEL(NAME, ARGS)

#endif

} // namespace tokentile::services

#endif // TOKENTILE_RUNTIME_SERVICES_TEAM_H
