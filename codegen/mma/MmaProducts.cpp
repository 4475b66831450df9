//===- MmaProducts.cpp - ldmatrix and mma.sync ----------------------------===//
//
// A row warp multiplies its 16 query rows with the keys of its key warp, 16
// dimensions a step, and its probabilities with their values, 16 keys a step.
// The accumulators of the scores are the left operand of the second product.
//
//===----------------------------------------------------------------------===//

#include "codegen/mma/MmaEmitter.h"

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;

/// Registers of the left operand of one step.
static constexpr int64_t kLeft = 4;

Registers MmaEmitter::loadQuery(Value source, int64_t step) {
  return b.ldmatrix(operandAddress(queryOperand, single(source), 0, step),
                    /*transposed=*/false);
}

void MmaEmitter::emit(ReadQueryOp op) {
  Registers &query = map[op.getResult()];
  for (int64_t step = 0; step < dim / layout::kDepth; ++step)
    llvm::append_range(query, loadQuery(op.getSource(), step));
}

void MmaEmitter::emit(ScoresOp op) {
  auto type = cast<RankedTensorType>(op.getQuery().getType());
  bool shared = isa<SharedAttr>(type.getEncoding());
  int64_t pairs = keysPerWarp() / 16;
  Registers scores(pairs * 8, b.f32(0));
  for (int64_t step = 0; step < dim / layout::kDepth; ++step) {
    Registers query = shared
                          ? loadQuery(op.getQuery(), step)
                          : Registers(ArrayRef<Value>(registers(op.getQuery()))
                                          .slice(step * kLeft, kLeft));
    for (int64_t pair = 0; pair < pairs; ++pair) {
      Registers keys = b.ldmatrix(
          operandAddress(keyOperand, single(op.getKeys()), pair * 16, step),
          /*transposed=*/false);
      MutableArrayRef<Value> acc(scores);
      for (int64_t half : {0, 1})
        b.mma(acc.slice(pair * 8 + half * 4, 4), query,
              ArrayRef<Value>(keys).slice(half * 2, 2), type.getElementType());
    }
  }
  map[op.getScores()] = scores;
}

void MmaEmitter::emit(AccumulateOp op) {
  auto type = cast<RankedTensorType>(op.getProbabilities().getType());
  Registers old = registers(op.getOutput()), alpha = registers(op.getAlpha());

  // Most tiles leave every maximum of a warp as it is.
  Value one = b.f32(1);
  Value changed;
  for (Value factor : alpha) {
    Value differs =
        arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, factor, one);
    changed = changed ? arith::OrIOp::create(b, changed, differs) : differs;
  }
  Registers output = b.choose(
      b.any(changed),
      [&] {
        Registers scaled;
        for (auto [i, value] : llvm::enumerate(old))
          scaled.push_back(b.mulf(value, alpha[i % 4 / 2]));
        return scaled;
      },
      [&] { return old; });

  ArrayRef<Value> probabilities = registers(op.getProbabilities());
  for (int64_t step = 0; step < keysPerWarp() / layout::kDepth; ++step)
    for (int64_t pair = 0; pair < dim / 16; ++pair) {
      Registers values = b.ldmatrix(
          operandAddress(valueOperand, single(op.getValues()), step * 16, pair),
          /*transposed=*/true);
      MutableArrayRef<Value> acc(output);
      for (int64_t half : {0, 1})
        b.mma(acc.slice(pair * 8 + half * 4, 4),
              probabilities.slice(step * kLeft, kLeft),
              ArrayRef<Value>(values).slice(half * 2, 2),
              type.getElementType());
    }
  map[op.getResult()] = output;
}
