//===- TiledKernel.h - A plain tiled kernel to test the tests ---*- C++ -*-===//
//
// What a generated kernel does, written by hand in fp32: tiles, an online
// softmax, splits and their merge, over the parameter block. It shows that the
// numerics rule accepts an honest kernel, that a planted fault is caught, and
// that the parameter block and the reference agree on where things lie.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TEST_NUMERICS_TILEDKERNEL_H
#define TOKENTILE_TEST_NUMERICS_TILEDKERNEL_H

#include "test/numerics/Problem.h"

namespace tokentile {

/// Mistakes that kernels are known to make.
enum class Fault {
  None,
  /// The window of a request's first row serves all its rows.
  SharedWindow,
  /// Rows are mapped to (head, token) instead of (token, head).
  SwappedRows,
  /// One page is read for its neighbour.
  WrongPage,
  /// The last key is not seen by any row.
  DroppedKey,
  /// Keys past the length count with a score of zero.
  UnmaskedTail,
  /// Every split adds its own maximum's weight: partials are not rescaled.
  UnscaledMerge,
};

/// Runs `kernel` over the problem's host memory. `tile` keys at a time, in
/// `splits` pieces.
void runTiledKernel(Problem &problem, attn::KernelOp kernel, int64_t tile,
                    int64_t splits, Fault fault = Fault::None);

} // namespace tokentile

#endif // TOKENTILE_TEST_NUMERICS_TILEDKERNEL_H
