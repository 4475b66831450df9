//===- AttnReference.h - What a spec means, in fp64 -------------*- C++ -*-===//
//
// Evaluates an `attn.kernel` directly: for each request and each query row, a
// loop in double precision over every key that the row sees. It shares nothing
// with any lowering, reads raw host memory through a plain struct of its own,
// and knows nothing of tiles, splits or schedules. Beside the exact result it
// gives what a plain computation in the spec's storage precision gives, which
// is what the numerics rule measures a kernel against.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_DIALECT_ATTNREFERENCE_H
#define TOKENTILE_DIALECT_ATTNREFERENCE_H

#include "dialect/AttnOps.h"

#include <cstdint>
#include <vector>

namespace tokentile::attn {

/// The key or value rows of a problem. All strides are in bytes.
struct ReferencePlane {
  /// Row `slot` of page `page` of kv head `head` starts at
  /// rows + page * pageStride + head * headStride + slot * slotStride; a
  /// contiguous row at rows + head * headStride + (first + key) * slotStride.
  const void *rows = nullptr;
  int64_t pageStride = 0;
  int64_t headStride = 0;
  int64_t slotStride = 0;
  /// Dense block rows [T, kv heads, dim], or null.
  const void *block = nullptr;
  /// Scales of quantised rows, addressed like the rows with strides of their
  /// own, so that `scale head` has zero page and slot strides and `scale
  /// tensor` only zeros. They are fp32, one behind another for the groups of a
  /// row; those of nvfp4 are e4m3, one for 16 elements.
  const void *scales = nullptr;
  int64_t scalePageStride = 0;
  int64_t scaleHeadStride = 0;
  int64_t scaleSlotStride = 0;
  /// A factor on every element of a quantised plane.
  double factor = 1.0;
};

/// Host memory of one problem. T is the count of query tokens: batch * tokens,
/// or columns[batch] if columns are packed.
struct ReferenceInputs {
  const void *query = nullptr;
  int64_t queryTokenStride = 0;
  int64_t queryHeadStride = 0;
  ReferencePlane keys;
  ReferencePlane values;
  /// Page ids [batch, tableStride], i32 or i64 as the spec says.
  const void *table = nullptr;
  int64_t tableStride = 0;
  const int32_t *lengths = nullptr;
  /// Counts [batch] or offsets [batch + 1], as the spec says.
  const int32_t *columns = nullptr;
  /// [T], read if the spec says `positions given`.
  const int32_t *positions = nullptr;
  /// [batch + 1], read if the paging is contiguous.
  const int32_t *keyOffsets = nullptr;
  /// [T, ceil(tokens / 32)]: bit i of a row admits block row i.
  const uint32_t *ancestors = nullptr;
  /// [query heads]: a logit per head, as it stands after scaling.
  const float *sinks = nullptr;
  int32_t batch = 0;
  /// Bound of a request's length; 0 if there is none.
  int32_t maxKeys = 0;
};

/// What a row's error may depend on.
struct ReferenceRow {
  /// Keys the row sees.
  int64_t keys = 0;
  /// max_d sum_j p_j |v_jd|: a relative error u in every p moves the output by
  /// at most u times this.
  double absolute = 0;
  /// sum_d sum_j (p_j v_jd)^2: what independent errors add up to.
  double square = 0;
  /// max_j scale * sum_d |q_d k_jd|: magnitude of the terms of a score.
  double scores = 0;
};

/// Results of one problem, token-major: element (token, head, d) at
/// (token * heads + head) * dim + d.
struct ReferenceResult {
  int64_t tokens = 0;
  int64_t heads = 0;
  int64_t dim = 0;
  /// The exact output, and the natural log-sum-exp of each row.
  std::vector<double> output;
  std::vector<double> logSumExp;
  /// Queries rounded to the keys' type, products and sums in fp32,
  /// probabilities rounded to the values' type, the output to its own.
  /// Quantised rows, and the probabilities that meet them, are rounded to the
  /// query's type.
  std::vector<double> naiveOutput;
  std::vector<double> naiveLogSumExp;
  /// [tokens, heads].
  std::vector<ReferenceRow> rows;
};

/// Evaluates `kernel` over `inputs`. Emits an error on the op that names the
/// axis, and fails, if the spec says something this file does not evaluate or
/// `inputs` lacks a tensor that the spec needs.
///
/// Order of operations: scale, softcap, score region, mask, softmax. A sink
/// enters the denominator (and so the log-sum-exp) once. A row that sees no
/// key, or only keys of score minus infinity, yields what `empty` says and
/// minus infinity, sink or not. Masked columns yield zero and minus infinity.
mlir::FailureOr<ReferenceResult>
evaluateReference(KernelOp kernel, const ReferenceInputs &inputs);

} // namespace tokentile::attn

#endif // TOKENTILE_DIALECT_ATTNREFERENCE_H
