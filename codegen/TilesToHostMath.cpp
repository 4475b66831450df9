//===- TilesToHostMath.cpp - Products, masks and softmax on the host ------===//

#include "codegen/TilesToHostOps.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;
using namespace tokentile::host;

using arith::CmpFPredicate;

static constexpr double negativeInfinity =
    -std::numeric_limits<double>::infinity();

/// Rows that share one loaded vector of the right operand: the accumulators
/// must fit the register file and cover the latency of an addition.
static int64_t rowsAtOnce(int64_t rows) {
  for (int64_t count : {4, 6, 5, 3, 7, 2})
    if (rows % count == 0)
      return count;
  return 1;
}

/// result = factor * accumulator + a b, or a b, with b of a.columns rows.
void Emitter::product(TileBuffer a, TileBuffer b, TileBuffer result,
                      const TileBuffer *accumulator, const TileBuffer *factor) {
  int64_t count = rowsAtOnce(a.rows), lanes = HostBuilder::lanes(b.columns);
  h.loop(a.rows, count, [&](Value first) {
    SmallVector<Value> rows, factors;
    for (int64_t i = 0; i < count; ++i) {
      rows.push_back(arith::AddIOp::create(h, first, h.i64(i)));
      if (factor)
        factors.push_back(
            h.broadcast(h.load(*factor, h.i64(0), rows.back()), lanes));
    }
    h.loop(b.columns, lanes, [&](Value column) {
      SmallVector<Value> init(count, h.broadcast(h.f32(0), lanes));
      if (accumulator)
        for (int64_t i = 0; i < count; ++i)
          init[i] = arith::MulFOp::create(
              h, factors[i], h.load(*accumulator, rows[i], column, lanes));
      auto sums = h.fold(
          h.i64(a.columns), 1, init, [&](Value inner, ValueRange partial) {
            Value right = h.load(b, inner, column, lanes);
            SmallVector<Value> next;
            for (int64_t i = 0; i < count; ++i)
              next.push_back(
                  h.multiplyAdd(h.broadcast(h.load(a, rows[i], inner), lanes),
                                right, partial[i]));
            return next;
          });
      for (int64_t i = 0; i < count; ++i)
        h.store(sums[i], result, rows[i], column);
    });
  });
}

void Emitter::scores(TileBuffer query, TileBuffer keys, TileBuffer result) {
  // Transposed keys let the product run along rows. Blocks of 16 dimensions
  // keep the written lines in the first cache.
  TileBuffer transposed = h.allocate(keys.columns, keys.rows);
  int64_t block = HostBuilder::lanes(keys.columns);
  h.loop(keys.columns, block, [&](Value first) {
    h.loop(keys.rows, 1, [&](Value key) {
      h.loop(block, 1, [&](Value i) {
        Value dim = arith::AddIOp::create(h, first, i);
        h.store(h.load(keys, key, dim), transposed, dim, key);
      });
    });
  });
  product(query, transposed, result, nullptr, nullptr);
}

void Emitter::mask(TileBuffer scores, Value tile, TileBuffer result) {
  Value first = firstKey(tile), unseen = h.f32(negativeInfinity);
  h.loop(scores.rows, 1, [&](Value index) {
    Value position = ctx.positionOfRow(h, rowOf(index));
    h.loop(scores.columns, 1, [&](Value column) {
      Value key = arith::AddIOp::create(h, first, h.toI32(column));
      Value seen = ctx.sees(h, position, key);
      Value score = h.load(scores, index, column);
      h.store(h.select(seen, score, unseen), result, index, column);
    });
  });
}

void Emitter::softmax(const Softmax &t) {
  ElementKind kind = ctx.plan.getValues().getElement();
  int64_t columns = t.scores.columns, lanes = HostBuilder::lanes(columns);
  Value scale = h.broadcast(h.f32(ctx.plan.getScaleFactor() * M_LOG2E), lanes);
  auto scaled = [&](Value row, Value column) -> Value {
    return arith::MulFOp::create(h, h.load(t.scores, row, column, lanes),
                                 scale);
  };
  auto reduce = [&](vector::CombiningKind kind, Value value) -> Value {
    if (lanes == 1)
      return value;
    return vector::ReductionOp::create(h, kind, value,
                                       arith::FastMathFlags::reassoc);
  };
  h.loop(t.scores.rows, 1, [&](Value row) {
    Value zero = h.i64(0);
    Value oldMax = h.load(t.max, zero, row), oldSum = h.load(t.sum, zero, row);
    Value lowest = h.broadcast(h.f32(negativeInfinity), lanes);
    Value highest = h.fold(
        h.i64(columns), lanes, lowest, [&](Value column, ValueRange best) {
          return SmallVector<Value>{
              arith::MaxNumFOp::create(h, best[0], scaled(row, column))};
        })[0];
    Value newMax = arith::MaxNumFOp::create(
        h, oldMax, reduce(vector::CombiningKind::MAXNUMF, highest));
    // A row that has seen nothing has no maximum to subtract: its scores are
    // minus infinity, and stay so when zero stands in for the maximum.
    Value nothing =
        h.compare(CmpFPredicate::OEQ, newMax, h.f32(negativeInfinity));
    Value reference = h.select(nothing, h.f32(0), newMax);
    Value alpha = h.select(nothing, h.f32(1),
                           h.exp2(arith::SubFOp::create(h, oldMax, reference)));
    Value references = h.broadcast(reference, lanes);
    Value sums =
        h.fold(h.i64(columns), lanes, h.broadcast(h.f32(0), lanes),
               [&](Value column, ValueRange sum) {
                 Value p = h.exp2(
                     arith::SubFOp::create(h, scaled(row, column), references));
                 h.store(h.round(p, kind), t.probabilities, row, column);
                 return SmallVector<Value>{arith::AddFOp::create(h, sum[0], p)};
               })[0];
    Value newSum =
        h.multiplyAdd(alpha, oldSum, reduce(vector::CombiningKind::ADD, sums));
    h.store(alpha, t.alpha, zero, row);
    h.store(newMax, t.newMax, zero, row);
    h.store(newSum, t.newSum, zero, row);
  });
}

void Emitter::accumulate(TileBuffer output, TileBuffer alpha,
                         TileBuffer probabilities, TileBuffer values,
                         TileBuffer result) {
  product(probabilities, values, result, &output, &alpha);
}
