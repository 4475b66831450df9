//===- FloorKernels.cpp - Loads of a sweep without mathematics ------------===//

#include "bench/FloorKernels.h"

// Bulk copies: PTX ISA, "cp.async.bulk" and "mbarrier".
const char *const tokentile::floorSource = R"(
typedef long long i64;
struct FloorArgs {
  const char *planes[2];
  const int *table;
  unsigned *sink;
  i64 tableStride, pageStride, unitStride, requestStride;
  int batch, units, firstPage, pages, pieceBytes, lastBytes, stages, padding;
};

struct Piece {
  const char *from;
  int bytes;
};

// Piece i: plane fastest, then page, unit and request.
__device__ __forceinline__ Piece pieceAt(const FloorArgs &a, i64 i) {
  int plane = int(i & 1);
  i64 rest = i >> 1;
  int page = int(rest % a.pages);
  rest /= a.pages;
  int unit = int(rest % a.units), request = int(rest / a.units);
  i64 id = a.firstPage + page;
  if (a.table)
    id = a.table[request * a.tableStride + id];
  return {a.planes[plane] + request * a.requestStride + id * a.pageStride +
              unit * a.unitStride,
          page == a.pages - 1 ? a.lastBytes : a.pieceBytes};
}

__device__ __forceinline__ void range(const FloorArgs &a, i64 &first,
                                      i64 &last) {
  i64 all = 2ll * a.batch * a.units * a.pages;
  first = all * blockIdx.x / gridDim.x;
  last = all * (blockIdx.x + 1) / gridDim.x;
}

__device__ __forceinline__ void finish(const FloorArgs &a, unsigned seen) {
  if (seen == 0x12345678u)
    *a.sink = seen;
}

extern __shared__ __align__(128) char shared[];

__device__ __forceinline__ unsigned address(const void *p) {
  return (unsigned)__cvta_generic_to_shared(p);
}

#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ void waitFor(unsigned barrier, int phase) {
  asm volatile("{\n.reg .pred p;\nagain:\n"
               "mbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n"
               "@!p bra again;\n}"
               :: "r"(barrier), "r"(phase) : "memory");
}

extern "C" __global__ void __launch_bounds__(160)
floorBulk(const __grid_constant__ FloorArgs a) {
  __shared__ __align__(8) unsigned long long full[64], empty[64];
  i64 first, last;
  range(a, first, last);
  if (threadIdx.x == 0) {
    for (int s = 0; s < a.stages; ++s) {
      asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(address(full + s)));
      asm volatile("mbarrier.init.shared.b64 [%0], 128;" :: "r"(address(empty + s)));
    }
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  __syncthreads();
  unsigned seen = 0;
  if (threadIdx.x == 128) {
    for (i64 i = first; i < last; ++i) {
      int n = int(i - first), s = n % a.stages;
      Piece piece = pieceAt(a, i);
      if (n >= a.stages)
        waitFor(address(empty + s), n / a.stages & 1 ^ 1);
      asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;"
                   :: "r"(address(full + s)), "r"(piece.bytes) : "memory");
      for (int at = 0; at < piece.bytes; at += 16384)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier"
                     "::complete_tx::bytes [%0], [%1], %2, [%3];"
                     :: "r"(address(shared) + s * a.pieceBytes + at),
                        "l"(piece.from + at),
                        "r"(min(16384, piece.bytes - at)),
                        "r"(address(full + s)) : "memory");
    }
  } else if (threadIdx.x < 128) {
    for (i64 i = first; i < last; ++i) {
      int n = int(i - first), s = n % a.stages;
      waitFor(address(full + s), n / a.stages & 1);
      seen ^= *(const unsigned *)(shared + s * a.pieceBytes +
                                  threadIdx.x * 16 % a.pieceBytes);
      asm volatile("mbarrier.arrive.shared.b64 _, [%0];"
                   :: "r"(address(empty + s)) : "memory");
    }
  }
  finish(a, seen);
}
#endif

#ifdef STAGES
// Each thread reads back only what it copied itself, so that no barrier is
// needed.
extern "C" __global__ void __launch_bounds__(256)
floorAsync(const __grid_constant__ FloorArgs a) {
  i64 first, last;
  range(a, first, last);
  unsigned seen = 0;
  for (i64 i = first; i < last + STAGES - 1; ++i) {
    if (i < last) {
      Piece piece = pieceAt(a, i);
      unsigned to = address(shared) + int((i - first) % STAGES) * a.pieceBytes;
      for (int at = threadIdx.x * 16; at < piece.bytes; at += 256 * 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                     :: "r"(to + at), "l"(piece.from + at) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group %0;" :: "n"(STAGES - 1) : "memory");
    if (i >= first + STAGES - 1)
      seen ^= *(const unsigned *)(shared +
                                  int((i - first + 1) % STAGES) * a.pieceBytes +
                                  threadIdx.x * 16 % a.pieceBytes);
  }
  finish(a, seen);
}
#endif

extern "C" __global__ void __launch_bounds__(256)
floorPlain(const __grid_constant__ FloorArgs a) {
  i64 first, last;
  range(a, first, last);
  unsigned seen = 0;
  for (i64 i = first; i < last; ++i) {
    Piece piece = pieceAt(a, i);
#pragma unroll 8
    for (int at = threadIdx.x * 16; at < piece.bytes; at += 256 * 16) {
      uint4 chunk = __ldcs((const uint4 *)(piece.from + at));
      seen ^= chunk.x ^ chunk.y ^ chunk.z ^ chunk.w;
    }
  }
  finish(a, seen);
}
)";
