//===- TinyProblem.h - Attention small enough to do by hand -----*- C++ -*-===//
//
// One request over contiguous bf16 keys, built from a spec and a few numbers,
// apart from Problem. Rows are 64 wide and zero but for what a test sets.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TEST_NUMERICS_TINYPROBLEM_H
#define TOKENTILE_TEST_NUMERICS_TINYPROBLEM_H

#include "dialect/AttnReference.h"
#include "dialect/ReferenceElements.h"
#include "test/numerics/SpecText.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include <gtest/gtest.h>

namespace tokentile {

struct TinyProblem {
  static constexpr int64_t dim = 64;

  /// `clauses` is the text after the name. `keys` keys are stored, of which
  /// all but the block's tokens are context.
  TinyProblem(const std::string &clauses, int64_t keys, int64_t tokens = 1,
              int64_t heads = 1, int64_t kvHeads = 1)
      : heads(heads), kvHeads(kvHeads), query(tokens * heads * dim),
        keyRows(keys * kvHeads * dim), valueRows(keys * kvHeads * dim),
        lengths{int32_t(keys - tokens)}, keyOffsets{0, int32_t(keys)},
        spec(parseSpec(context, "attn.kernel @tiny " + clauses)) {
    in.queryTokenStride = heads * dim * 2;
    in.queryHeadStride = dim * 2;
    in.keys.headStride = in.values.headStride = dim * 2;
    in.keys.slotStride = in.values.slotStride = kvHeads * dim * 2;
    in.batch = 1;
  }

  static uint16_t bits(double value) {
    return attn::encodeHalf(value, attn::ElementKind::BF16);
  }
  void setQuery(int64_t token, int64_t head, int64_t d, double value) {
    query[(token * heads + head) * dim + d] = bits(value);
  }
  void setKey(int64_t key, int64_t head, int64_t d, double value) {
    keyRows[(key * kvHeads + head) * dim + d] = bits(value);
  }
  void setValue(int64_t key, int64_t head, int64_t d, double value) {
    valueRows[(key * kvHeads + head) * dim + d] = bits(value);
  }

  /// Evaluates; `error` holds what was said if that fails.
  mlir::FailureOr<attn::ReferenceResult> evaluate() {
    if (!spec.kernel) {
      error = spec.error;
      return mlir::failure();
    }
    in.query = query.data();
    in.keys.rows = in.keys.rows ? in.keys.rows : keyRows.data();
    in.values.rows = in.values.rows ? in.values.rows : valueRows.data();
    in.lengths = lengths.data();
    in.keyOffsets = keyOffsets.data();
    mlir::ScopedDiagnosticHandler handler(&context,
                                          [&](mlir::Diagnostic &diagnostic) {
                                            error += diagnostic.str();
                                            return mlir::success();
                                          });
    return attn::evaluateReference(spec.kernel, in);
  }

  /// Evaluates and expects that to succeed.
  attn::ReferenceResult run() {
    mlir::FailureOr<attn::ReferenceResult> result = evaluate();
    EXPECT_TRUE(succeeded(result)) << error;
    return succeeded(result) ? *result : attn::ReferenceResult();
  }

  int64_t heads, kvHeads;
  std::vector<uint16_t> query, keyRows, valueRows;
  std::vector<int32_t> lengths, keyOffsets;
  attn::ReferenceInputs in;
  mlir::MLIRContext context;
  SpecModule spec;
  std::string error;
};

} // namespace tokentile

#endif // TOKENTILE_TEST_NUMERICS_TINYPROBLEM_H
