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

Registers MmaEmitter::loadLeft(const Operand &operand, Value source,
                               int64_t step) {
  Registers left;
  for (int64_t tile = 0; tile < mma.rowTiles; ++tile)
    llvm::append_range(left,
                       b.ldmatrix(operandAddress(operand, single(source),
                                                 tile * layout::kRows, step),
                                  /*transposed=*/false));
  return left;
}

void MmaEmitter::emit(ReadQueryOp op) {
  Registers &query = map[op.getResult()];
  for (int64_t step = 0; step < dim / layout::kDepth; ++step)
    llvm::append_range(query, loadLeft(queryOperand, op.getSource(), step));
}

/// Multiplies one step: `left` holds kLeft registers of each row tile, `right`
/// two columns of eight; `pair` counts those 16 columns.
static void multiply(Lane &b, MutableArrayRef<Value> acc, ArrayRef<Value> left,
                     ArrayRef<Value> right, int64_t pair, Type element) {
  int64_t tiles = left.size() / kLeft, perTile = acc.size() / tiles;
  for (int64_t tile = 0; tile < tiles; ++tile)
    for (int64_t half : {0, 1})
      b.mma(acc.slice(tile * perTile + pair * 8 + half * 4, 4),
            left.slice(tile * kLeft, kLeft), right.slice(half * 2, 2), element);
}

void MmaEmitter::emit(ScoresOp op) {
  auto type = cast<RankedTensorType>(op.getQuery().getType());
  bool shared = isa<SharedAttr>(type.getEncoding());
  int64_t pairs = keysPerWarp() / 16, left = mma.rowTiles * kLeft;
  Registers scores(mma.rowTiles * pairs * 8, b.f32(0));
  for (int64_t step = 0; step < dim / layout::kDepth; ++step) {
    Registers query = shared
                          ? loadLeft(queryOperand, op.getQuery(), step)
                          : Registers(ArrayRef<Value>(registers(op.getQuery()))
                                          .slice(step * left, left));
    for (int64_t pair = 0; pair < pairs; ++pair) {
      Registers keys = b.ldmatrix(
          operandAddress(keyOperand, single(op.getKeys()), pair * 16, step),
          /*transposed=*/false);
      multiply(b, scores, query, keys, pair, type.getElementType());
    }
  }
  map[op.getScores()] = scores;
}

Registers MmaEmitter::rescale(AccumulateOp op) {
  Registers old = registers(op.getOutput()), alpha = registers(op.getAlpha());

  // Most tiles leave every maximum of a warp as it is.
  Value one = b.f32(1);
  Value changed;
  for (Value factor : alpha) {
    Value differs =
        arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, factor, one);
    changed = changed ? arith::OrIOp::create(b, changed, differs) : differs;
  }
  return b.choose(
      b.any(changed),
      [&] {
        Registers scaled;
        for (auto [i, value] : llvm::enumerate(old))
          scaled.push_back(b.mulf(value, alpha[rowOf(i, dimsPerWarp())]));
        return scaled;
      },
      [&] { return old; });
}

void MmaEmitter::emit(AccumulateOp op) {
  auto type = cast<RankedTensorType>(op.getProbabilities().getType());
  Registers output = rescale(op);

  // Probabilities of this warp's keys in registers, or of all keys in shared
  // memory.
  bool shared = isa<SharedAttr>(type.getEncoding());
  int64_t keys = shared ? keyTile : keysPerWarp();
  for (int64_t step = 0; step < keys / layout::kDepth; ++step) {
    Registers left;
    if (shared) {
      left = loadLeft(sharedOperand, op.getProbabilities(), step);
    } else {
      ArrayRef<Value> all = registers(op.getProbabilities());
      int64_t perTile = all.size() / mma.rowTiles;
      for (int64_t tile = 0; tile < mma.rowTiles; ++tile)
        llvm::append_range(left,
                           all.slice(tile * perTile + step * kLeft, kLeft));
    }
    for (int64_t pair = 0; pair < dimsPerWarp() / 16; ++pair) {
      Registers values = b.ldmatrix(
          operandAddress(valueOperand, single(op.getValues()), step * 16, pair),
          /*transposed=*/true);
      multiply(b, output, left, values, pair, type.getElementType());
    }
  }
  map[op.getResult()] = output;
}
