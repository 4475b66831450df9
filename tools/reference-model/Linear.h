//===- Linear.h - A matrix product ------------------------------*- C++ -*-===//
//
// Compiled by the host compiler and, as text, by NVRTC; see OpBodies.h. The
// product itself is Linear.cpp on the host and Linear.cuh on CUDA.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TOOLS_REFERENCEMODEL_LINEAR_H
#define TOKENTILE_TOOLS_REFERENCEMODEL_LINEAR_H

#ifndef __CUDACC_RTC__
#include "tools/reference-model/OpBodies.h"
#endif

namespace tokentile::reference {

/// out = x W^T, with x bf16 [rows, depth] and W bf16 [columns, depth], summed
/// in fp32. The order of an element's sum depends on `depth` alone. `depth` is
/// a multiple of 32; both factors are 16-byte aligned.
struct LinearArgs {
  enum Result { Bf16Result, FloatResult, AddToFloat };
  const Bf16 *in;
  const Bf16 *weight;
  /// bf16 or fp32 [rows, columns]; AddToFloat adds to what is there.
  void *out;
  int32_t rows;
  int32_t columns;
  int32_t depth;
  Result result;
};

#ifndef __CUDACC_RTC__
/// On the host: columns [64 x, 64 x + 64) of all rows.
constexpr int32_t hostLinearColumns = 64;
void linearOnHost(const Team &team, const LinearArgs &args, int32_t x, int32_t,
                  int32_t);
#endif

} // namespace tokentile::reference

#endif // TOKENTILE_TOOLS_REFERENCEMODEL_LINEAR_H
