//===- Linear.cuh - Matrix products with one order of sums ------*- C++ -*-===//
//
// Text for NVRTC. A block computes TILES * 16 rows by 32 columns. Its eight
// warps share the depth in chunks of 32: warp w takes chunks w, w + 8, ... in
// order, and the eight sums of an element are added in the order of the warps.
// Neither the count of rows nor TILES enters that order.
//
// Lane (g, t) = (lane / 4, lane % 4) loads the 8 elements at chunk + 8 t of a
// row as one 16-byte word. They serve two m16n8k16: elements 0 .. 3 as the k
// indices (2 t, 2 t + 1, 2 t + 8, 2 t + 9) of the first, 4 .. 7 as those of the
// second, in both factors alike.
//
//===----------------------------------------------------------------------===//

namespace tokentile::reference {

__device__ inline void multiply(float (&c)[4], unsigned a0, unsigned a1,
                                unsigned a2, unsigned a3, unsigned b0,
                                unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

template <int TILES>
__device__ inline void linearBlock(const LinearArgs &p) {
  constexpr int warps = 8, groups = 4;
  __shared__ float partial[warps][16][groups * 8];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int g = lane / 4, t = lane % 4;
  int firstColumn = blockIdx.x * groups * 8, firstRow = blockIdx.y * TILES * 16;

  const Bf16 *weights[groups];
  const Bf16 *inputs[TILES][2];
#pragma unroll
  for (int n = 0; n < groups; ++n)
    weights[n] = p.weight + 8 * t +
                 (int64_t)min(firstColumn + n * 8 + g, p.columns - 1) *
                     p.depth;
#pragma unroll
  for (int m = 0; m < TILES; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      inputs[m][half] = p.in + 8 * t +
                        (int64_t)min(firstRow + m * 16 + half * 8 + g,
                                       p.rows - 1) * p.depth;

  float sums[TILES][groups][4] = {};
#pragma unroll 2
  for (int chunk = warp * 32; chunk < p.depth; chunk += warps * 32) {
    uint4 b[groups];
#pragma unroll
    for (int n = 0; n < groups; ++n)
      b[n] = *(const uint4 *)(weights[n] + chunk);
#pragma unroll
    for (int m = 0; m < TILES; ++m) {
      uint4 lo = *(const uint4 *)(inputs[m][0] + chunk);
      uint4 hi = *(const uint4 *)(inputs[m][1] + chunk);
#pragma unroll
      for (int n = 0; n < groups; ++n) {
        multiply(sums[m][n], lo.x, hi.x, lo.y, hi.y, b[n].x, b[n].y);
        multiply(sums[m][n], lo.z, hi.z, lo.w, hi.w, b[n].z, b[n].w);
      }
    }
  }

#pragma unroll
  for (int m = 0; m < TILES; ++m) {
    __syncthreads();
#pragma unroll
    for (int n = 0; n < groups; ++n) {
      int column = n * 8 + t * 2;
      partial[warp][g][column] = sums[m][n][0];
      partial[warp][g][column + 1] = sums[m][n][1];
      partial[warp][g + 8][column] = sums[m][n][2];
      partial[warp][g + 8][column + 1] = sums[m][n][3];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 16 * groups * 8; i += warps * 32) {
      int row = i / (groups * 8), column = i % (groups * 8);
      float sum = 0;
#pragma unroll
      for (int w = 0; w < warps; ++w)
        sum += partial[w][row][column];
      row += firstRow + m * 16;
      column += firstColumn;
      if (row >= p.rows || column >= p.columns)
        continue;
      int64_t at = (int64_t)row * p.columns + column;
      if (p.result == LinearArgs::Bf16Result)
        ((Bf16 *)p.out)[at] = toBf16(sum);
      else if (p.result == LinearArgs::FloatResult)
        ((float *)p.out)[at] = sum;
      else
        ((float *)p.out)[at] += sum;
    }
  }
}

extern "C" __global__ void __launch_bounds__(256)
    tokentile_linear1(const LinearArgs p) {
  linearBlock<1>(p);
}
extern "C" __global__ void __launch_bounds__(256)
    tokentile_linear2(const LinearArgs p) {
  linearBlock<2>(p);
}
extern "C" __global__ void __launch_bounds__(256)
    tokentile_linear4(const LinearArgs p) {
  linearBlock<4>(p);
}

} // namespace tokentile::reference
