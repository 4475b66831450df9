//===- ReferenceScore.h - Score regions over doubles ------------*- C++ -*-===//
//
// Evaluates the `score` region of an `attn.kernel`: straight-line arith and
// math operations over scalars. Floating-point values are doubles whatever
// their type says; integers wrap at their width.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_DIALECT_REFERENCESCORE_H
#define TOKENTILE_DIALECT_REFERENCESCORE_H

#include "dialect/AttnOps.h"

#include "llvm/ADT/DenseMap.h"

#include <functional>
#include <vector>

namespace tokentile::attn {

class ScoreFunction {
public:
  /// Compiles the region of `kernel`; the identity if it has none. Emits an
  /// error that names the operation if the region holds one that is unknown.
  static mlir::FailureOr<ScoreFunction> create(KernelOp kernel);

  /// Whether the spec has a region.
  bool isIdentity() const { return identity; }

  double operator()(double score, int64_t head, int64_t queryPosition,
                    int64_t keyPosition);

private:
  struct Cell {
    double real = 0;
    int64_t integer = 0;
  };
  using Step = std::function<void(Cell *)>;

  unsigned slotOf(mlir::Value value);
  Step compile(mlir::Operation *op);
  Step compileReal(mlir::Operation *op);
  Step compileInteger(mlir::Operation *op);
  Step compileConversion(mlir::Operation *op);

  bool identity = true;
  llvm::DenseMap<mlir::Value, unsigned> slots;
  std::vector<Step> steps;
  std::vector<Cell> cells;
  unsigned arguments[4] = {};
  unsigned result = 0;
};

} // namespace tokentile::attn

#endif // TOKENTILE_DIALECT_REFERENCESCORE_H
