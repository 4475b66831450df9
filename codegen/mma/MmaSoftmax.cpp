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
  int64_t perTile = keysPerWarp() / 2;
  for (auto [i, score] : llvm::enumerate(scores)) {
    Value key = b.add(first, i % perTile / 4 * 8 + i % 2);
    Value seen = block->sees(b, position[rowOf(i, keysPerWarp())], key);
    result.push_back(b.select(seen, score, hidden));
  }
}

/// The largest of this warp's scores of each row of the lane, scaled.
static Registers rowMaxima(Lane &b, ArrayRef<Value> scores, int64_t rows,
                           llvm::function_ref<int64_t(size_t)> rowOf,
                           Value scale) {
  Registers largest(rows);
  for (auto [i, score] : llvm::enumerate(scores)) {
    Value &best = largest[rowOf(i)];
    best = best ? b.largerf(best, score) : score;
  }
  for (Value &best : largest)
    best = b.mulf(b.maxOver(best, {1, 2}), scale);
  return largest;
}

SmallVector<Registers> MmaEmitter::exchange(Value scratch,
                                            ArrayRef<Value> mine) {
  // Row r of the block at 16 r, key warp k at 4 k within.
  Value first =
      b.add(b.mul(rowWarp, mma.rowTiles * layout::kRows), b.div(lane, 4));
  Value base = b.offset(shared, b.add(scratch, b.shiftLeft(first, 4)));
  Value own = b.offset(base, b.shiftLeft(keyWarp, 2));
  b.when(b.is(Lane::Predicate::eq, b.rem(lane, 4), b.i32(0)), [&] {
    for (auto [r, value] : llvm::enumerate(mine))
      b.store(value, b.offset(own, r * 8 * 16));
  });
  b.barrier();
  SmallVector<Registers> all;
  for (size_t r = 0; r < mine.size(); ++r) {
    Value read = b.load(b.vector(mma.keyWarps, b.getF32Type()),
                        b.offset(base, r * 8 * 16));
    Registers &row = all.emplace_back();
    for (int64_t k = 0; k < mma.keyWarps; ++k)
      row.push_back(b.element(read, k));
  }
  return all;
}

void MmaEmitter::emit(AgreeMaxOp op) {
  Value scale = b.f32(plan.getScaleFactor() * M_LOG2E);
  auto rowOfScore = [&](size_t i) { return rowOf(i, keysPerWarp()); };
  Registers mine =
      rowMaxima(b, registers(op.getScores()), laneRows(), rowOfScore, scale);
  Registers &agreed = map[op.getMax()];
  for (Registers &row : exchange(single(op.getScratch()), mine)) {
    Value largest = row[0];
    for (Value other : ArrayRef<Value>(row).drop_front())
      largest = b.largerf(largest, other);
    agreed.push_back(largest);
  }
}

void MmaEmitter::emit(AgreeSumOp op) {
  Registers mine;
  for (Value sum : registers(op.getSum()))
    mine.push_back(b.sumOver(sum, {1, 2}));
  // One lane of each quad keeps the total: what reads sums adds up a quad.
  Value first = b.is(Lane::Predicate::eq, b.rem(lane, 4), b.i32(0));
  Registers &total = map[op.getResult()];
  for (Registers &row : exchange(single(op.getScratch()), mine)) {
    Value sum = row[0];
    for (Value other : ArrayRef<Value>(row).drop_front())
      sum = b.addf(sum, other);
    total.push_back(b.select(first, sum, b.f32(0)));
  }
}

void MmaEmitter::emit(SoftmaxOp op) {
  Registers scores = registers(op.getScores());
  Registers oldMax = registers(op.getMax()), oldSum = registers(op.getSum());
  Value scale = b.f32(plan.getScaleFactor() * M_LOG2E);
  Value nothing = b.f32(-INFINITY), zero = b.f32(0);
  auto rowOfScore = [&](size_t i) { return rowOf(i, keysPerWarp()); };
  Registers largest = op.getAgreed()
                          ? registers(op.getAgreed())
                          : rowMaxima(b, scores, laneRows(), rowOfScore, scale);

  Registers alpha, newMax, newSum, minus;
  for (int64_t r = 0; r < laneRows(); ++r) {
    newMax.push_back(b.largerf(oldMax[r], largest[r]));
    // A row that has seen nothing keeps minus infinity; subtract zero instead.
    Value empty =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, newMax[r], nothing);
    Value reference = b.select(empty, zero, newMax[r]);
    minus.push_back(b.subf(zero, reference));
    Value factor = b.exp2(b.subf(oldMax[r], reference));
    alpha.push_back(b.select(empty, b.f32(1), factor));
    newSum.push_back(b.mulf(oldSum[r], alpha[r]));
  }

  auto type = cast<RankedTensorType>(op.getProbabilities().getType());
  Registers packed;
  for (size_t i = 0; i < scores.size(); i += 2) {
    int64_t r = rowOfScore(i);
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

void MmaEmitter::emit(ShareOp op) {
  // accumulator(lane, reg): each packed register is two columns of a row.
  ArrayRef<Value> packed = registers(op.getProbabilities());
  int64_t perTile = packed.size() / mma.rowTiles;
  Value quad = b.div(lane, 4), within = b.shiftLeft(b.rem(lane, 4), 2);
  Value first = b.add(b.mul(rowWarp, mma.rowTiles * layout::kRows), quad);
  Value start = b.add(b.mul(first, keyTile * 2), within);
  start = b.add(start, single(op.getBuffer()));
  Value firstChunk = b.mul(keyWarp, keysPerWarp() / 8);
  for (int64_t column = 0; column < keysPerWarp() / 8; ++column) {
    // The rows of a lane differ by multiples of eight: one swizzle for all.
    Value chunk = b.xorBits(b.add(firstChunk, column), quad);
    Value at = b.offset(shared, b.add(start, b.shiftLeft(chunk, 4)));
    for (int64_t r = 0; r < laneRows(); ++r)
      b.store(packed[r / 2 * perTile + column * 2 + r % 2],
              b.offset(at, r * 8 * keyTile * 2));
  }
}
