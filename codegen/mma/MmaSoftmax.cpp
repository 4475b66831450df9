//===- MmaSoftmax.cpp - Masks and the online softmax in registers ---------===//
//
// A row's scores lie in the four lanes of a quad. Maxima are agreed on within
// the quad at every tile; sums stay partial in each lane until the end.
//
//===----------------------------------------------------------------------===//

#include "codegen/mma/MmaEmitter.h"

#include <cmath>

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;

void MmaEmitter::emit(MaskOp op) {
  Registers &result = map[op.getResult()];
  Registers scores = registers(op.getScores());
  Value hidden = b.f32(-INFINITY);
  // accumulator(lane, reg): columns 8 (reg / 4) + 2 (lane % 4) + reg % 2.
  Value first = b.add(b.mul(single(op.getTile()), keyTile),
                      b.mul(keyWarp, keysPerWarp()));
  first = b.add(first, b.shiftLeft(b.rem(lane, 4), 1));
  for (auto [i, score] : llvm::enumerate(scores)) {
    Value key = b.add(first, i / 4 * 8 + i % 2);
    Value seen = block->sees(b, position[i % 4 / 2], key);
    result.push_back(b.select(seen, score, hidden));
  }
}

void MmaEmitter::emit(SoftmaxOp op) {
  Registers scores = registers(op.getScores());
  Registers oldMax = registers(op.getMax()), oldSum = registers(op.getSum());
  Value scale = b.f32(plan.getScaleFactor() * M_LOG2E);
  Value nothing = b.f32(-INFINITY), zero = b.f32(0);

  Registers alpha, newMax, newSum, reference;
  for (size_t r : {0, 1}) {
    Value largest;
    for (size_t i = 0; i < scores.size(); i += 4)
      for (size_t e : {0, 1}) {
        Value score = scores[i + 2 * r + e];
        largest = largest ? b.largerf(largest, score) : score;
      }
    largest = b.mulf(b.maxOver(largest, {1, 2}), scale);
    newMax.push_back(b.largerf(oldMax[r], largest));
    // A row that has seen nothing keeps minus infinity; subtract zero instead.
    Value empty =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, newMax[r], nothing);
    reference.push_back(b.select(empty, zero, newMax[r]));
    Value factor = b.exp2(b.subf(oldMax[r], reference[r]));
    alpha.push_back(b.select(empty, b.f32(1), factor));
    newSum.push_back(b.mulf(oldSum[r], alpha[r]));
  }

  auto type = cast<RankedTensorType>(op.getProbabilities().getType());
  Registers minus{b.subf(zero, reference[0]), b.subf(zero, reference[1])};
  Registers packed;
  for (size_t i = 0; i < scores.size(); i += 2) {
    size_t r = i % 4 / 2;
    Registers pair;
    for (size_t e : {0, 1}) {
      pair.push_back(b.exp2(b.fma(scores[i + e], scale, minus[r])));
      newSum[r] = b.addf(newSum[r], pair[e]);
    }
    packed.push_back(b.pack(pair[0], pair[1], type.getElementType()));
  }
  map[op.getProbabilities()] = packed;
  map[op.getAlpha()] = alpha;
  map[op.getNewMax()] = newMax;
  map[op.getNewSum()] = newSum;
}
