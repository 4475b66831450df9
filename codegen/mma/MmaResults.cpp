//===- MmaResults.cpp - Key warps meet; outputs and partial results -------===//

#include "codegen/mma/MmaEmitter.h"

#include <cmath>

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;

void MmaEmitter::emit(ReduceWarpsOp op) {
  Registers max = registers(op.getMax()), sum = registers(op.getSum());
  Registers output = registers(op.getOutput());
  Registers state = max;
  llvm::append_range(state, sum);
  llvm::append_range(state, output);

  // Register r of lane l of a warp stands at (warp, r, l): no bank conflicts.
  int64_t warpBytes = state.size() * layout::kWarp * 4;
  auto place = [&](Value warp) {
    Value byte = b.add(b.mul(warp, warpBytes), b.shiftLeft(lane, 2));
    return b.offset(shared, b.add(byte, op.getOffset()));
  };
  b.barrier();
  Value others = b.add(warp, -mma.rowWarps);
  b.when(b.is(Lane::Predicate::sge, others, b.i32(0)), [&] {
    Value at = place(others);
    for (auto [r, value] : llvm::enumerate(state))
      b.store(value, b.offset(at, r * layout::kWarp * 4));
  });
  b.barrier();

  Registers merged = b.choose(
      b.lessThan(warp, mma.rowWarps),
      [&] {
        Registers mine = state;
        for (int64_t k = 0; k < mma.keyWarps - 1; ++k) {
          Value at = place(b.add(rowWarp, k * mma.rowWarps));
          auto theirs = [&](size_t r) {
            return b.load(b.getF32Type(), b.offset(at, r * layout::kWarp * 4));
          };
          Registers scaleMine, scaleTheirs;
          size_t rows = laneRows();
          for (size_t r = 0; r < rows; ++r) {
            Value other = theirs(r);
            Value both = b.largerf(mine[r], other);
            Value empty = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ,
                                                both, b.f32(-INFINITY));
            Value reference = b.select(empty, b.f32(0), both);
            scaleMine.push_back(b.exp2(b.subf(mine[r], reference)));
            scaleTheirs.push_back(b.exp2(b.subf(other, reference)));
            mine[r] = both;
          }
          for (size_t r = rows; r < mine.size(); ++r) {
            size_t which =
                r < 2 * rows ? r - rows : rowOf(r - 2 * rows, dimsPerWarp());
            mine[r] = b.fma(theirs(r), scaleTheirs[which],
                            b.mulf(mine[r], scaleMine[which]));
          }
        }
        return mine;
      },
      [&] { return state; });
  ArrayRef<Value> all = merged;
  map[op.getNewMax()] = Registers(all.take_front(laneRows()));
  map[op.getNewSum()] = Registers(all.slice(laneRows(), laneRows()));
  map[op.getResult()] = Registers(all.drop_front(2 * laneRows()));
}

SinkOfRow tokentile::addSink(Lane &b, BlockContext &block, Value row,
                             Value max) {
  Value sink = block.sinkOfRow(b, row);
  Value empty = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, max,
                                      b.f32(-INFINITY));
  Value newMax = b.select(empty, max, b.largerf(max, sink));
  Value factor = b.select(empty, b.f32(1), b.exp2(b.subf(max, newMax)));
  Value added = b.select(empty, b.f32(0), b.exp2(b.subf(sink, newMax)));
  return {newMax, factor, added};
}

void MmaEmitter::emit(AddSinkOp op) {
  // Sums are partial in the lanes of a quad; one of them adds the sink.
  Value first = b.is(Lane::Predicate::eq, b.rem(lane, 4), b.i32(0));
  Registers max, sum, factors;
  for (int64_t r = 0; r < laneRows(); ++r) {
    SinkOfRow sink = addSink(b, *block, row[r], registers(op.getMax())[r]);
    Value added = b.select(first, sink.added, b.f32(0));
    max.push_back(sink.newMax);
    sum.push_back(b.fma(registers(op.getSum())[r], sink.factor, added));
    factors.push_back(sink.factor);
  }
  Registers output;
  for (auto [i, value] : llvm::enumerate(registers(op.getOutput())))
    output.push_back(b.mulf(value, factors[rowOf(i, dimsPerWarp())]));
  map[op.getNewMax()] = max;
  map[op.getNewSum()] = sum;
  map[op.getResult()] = output;
}

Value tokentile::outputFactor(Lane &b, KernelOp plan, Value sum) {
  bool zero = plan.getOutputOrDefault().getEmpty() == EmptyKind::Zero;
  Value inverse = arith::DivFOp::create(b, b.f32(1), sum);
  return b.select(b.isPositive(sum), inverse, b.f32(zero ? 0 : NAN));
}

Value tokentile::logSumExp(Lane &b, Value max, Value sum) {
  Value natural = b.mulf(b.addf(max, b.log2(sum)), b.f32(M_LN2));
  return b.select(b.isPositive(sum), natural, b.f32(-INFINITY));
}

Value tokentile::rowHasPlace(Lane &b, BlockContext &block, Value row) {
  if (block.plan.getQueryOrDefault().getColumns() == ColumnsKind::Packed)
    return b.both(block.rowIsLive(b, row), b.lessThan(row, block.shape.rows));
  return b.lessThan(row, block.shape.rows);
}

void MmaEmitter::emit(StoreResultOp op) {
  auto store = [&] {
    Registers sum;
    for (Value part : registers(op.getSum()))
      sum.push_back(b.sumOver(part, {1, 2}));
    op.getPartial() ? storePartial(op, sum) : storeOutput(op, sum);
  };
  if (Value holds = holdsResult())
    b.when(holds, store);
  else
    store();
}

Value MmaEmitter::holdsResult() {
  // After attn.reduce_warps key warp 0 holds the result.
  if (mma.keyWarps == 1 || mma.meetAtTile)
    return Value();
  return b.lessThan(warp, mma.rowWarps);
}

Value MmaEmitter::firstColumn() {
  return mma.meetAtTile ? b.mul(keyWarp, dimsPerWarp()) : b.i32(0);
}

/// Where the registers of row `r` of a lane begin among its outputs.
static int64_t firstRegister(int64_t r, int64_t dims) {
  return r / 2 * (dims / 2) + r % 2 * 2;
}

int64_t tokentile::partialBlock(KernelOp plan) {
  MmaSchedule s = readSchedule(plan.getScheduleOrDefault());
  int64_t slice = plan.getValueDim() / (s.meetAtTile ? s.keyWarps : 1);
  return std::min(slice, layout::kPartialBlock);
}

/// The factors from a row to its partial output and back: powers of two with
/// which the largest element, of magnitude `largest`, is 2^14 to 2^15. Beside
/// an infinite element the others keep their magnitude.
static std::pair<Value, Value> partialFactors(Lane &b, Value largest) {
  constexpr int64_t kExponent = 23, kMask = 0xff << kExponent;
  constexpr int64_t kBias = 127, kTop = 14;
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  Value bits = arith::BitcastOp::create(b, i32, largest);
  Value exponent = arith::AndIOp::create(b, bits, b.i32(kMask));
  Value infinite = b.is(Lane::Predicate::eq, exponent, b.i32(kMask));
  exponent = b.select(infinite, b.i32((kBias + kTop) << kExponent), exponent);
  // Both are normal numbers.
  exponent = b.larger(exponent, b.i32((kTop + 1) << kExponent));
  Value down = b.add(exponent, -(kTop << kExponent));
  Value up = arith::SubIOp::create(
      b, b.i32(int32_t(uint32_t(2 * kBias + kTop) << kExponent)), exponent);
  return {arith::BitcastOp::create(b, f32, up),
          arith::BitcastOp::create(b, f32, down)};
}

Registers MmaEmitter::largestOutputs(ArrayRef<Value> output) {
  Registers largest(laneRows(), b.f32(0));
  for (auto [i, value] : llvm::enumerate(output)) {
    Value &best = largest[rowOf(i, dimsPerWarp())];
    best = b.largerf(best, b.magnitude(value));
  }
  for (Value &best : largest)
    best = b.maxOver(best, {1, 2});
  if (!mma.meetAtTile)
    return largest;
  // What was exchanged last has been read by all.
  meet();
  Value scratch = b.i32(sharedLayout(plan, mma).scratch);
  for (auto [best, row] : llvm::zip(largest, exchange(scratch, largest)))
    for (Value other : row)
      best = b.largerf(best, other);
  return largest;
}

void MmaEmitter::storePartial(StoreResultOp op, ArrayRef<Value> sum) {
  ArrayRef<Value> output = registers(op.getOutput());
  Registers largest = largestOutputs(output);
  // One lane of a quad, and one key warp, speaks for a row.
  Value first = b.is(Lane::Predicate::eq, b.rem(lane, 4), b.i32(0));
  first = b.both(first, b.is(Lane::Predicate::eq, keyWarp, b.i32(0)));
  int64_t columns = partialBlock(plan), perLane = columns / 4;
  Value ownBytes =
      b.add(b.mul(firstColumn(), 2), b.mul(b.rem(lane, 4), perLane * 2));
  auto storeRow = [&](int64_t r) {
    std::pair<Value, Value> factors = partialFactors(b, largest[r]);
    Value up = factors.first, down = factors.second;
    b.when(first, [&] {
      Value at = block->statsAddress(b, block->slot, row[r]);
      b.store(b.gather({registers(op.getMax())[r], sum[r], down, b.f32(0)}),
              b.global(at));
    });
    b.when(b.isPositive(sum[r]), [&] {
      Value address = block->partialAddress(b, block->slot, row[r]);
      Value at = b.global(b.add(address, b.extend(ownBytes)));
      int64_t start = firstRegister(r, dimsPerWarp());
      for (int64_t column = 0; column < dimsPerWarp(); column += columns) {
        Registers pairs;
        for (int64_t i = 0; i < columns / 8; ++i) {
          ArrayRef<Value> pair = output.slice(start + column / 2 + 4 * i, 2);
          pairs.push_back(
              b.pack(b.mulf(pair[0], up), b.mulf(pair[1], up), b.getF16Type()));
        }
        b.store(b.gather(pairs), b.offset(at, column * 2));
      }
    });
  };
  // No merge reads rows that only fill the tile up.
  for (int64_t r = 0; r < laneRows(); ++r)
    b.when(b.lessThan(row[r], block->shape.rows), [&] { storeRow(r); });
}

void MmaEmitter::storeOutput(StoreResultOp op, ArrayRef<Value> sum) {
  ArrayRef<Value> output = registers(op.getOutput());
  OutputAttr clause = plan.getOutputOrDefault();
  Type element = clause.getElement() == ElementKind::FP16
                     ? Type(b.getF16Type())
                     : Type(b.getBF16Type());
  Value first = b.is(Lane::Predicate::eq, b.rem(lane, 4), b.i32(0));
  first = b.both(first, b.is(Lane::Predicate::eq, keyWarp, b.i32(0)));
  // accumulator(lane, reg): this lane's columns begin at 2 (lane % 4).
  Value column = b.add(firstColumn(), b.shiftLeft(b.rem(lane, 4), 1));
  Value ownBytes = b.extend(b.shiftLeft(column, 1));
  for (int64_t r = 0; r < laneRows(); ++r)
    b.when(rowHasPlace(b, *block, row[r]), [&] {
      // Masked columns are zero, whatever an empty row yields.
      Value live = block->rowIsLive(b, row[r]);
      Value factor = b.select(live, outputFactor(b, plan, sum[r]), b.f32(0));
      Value address = block->outputAddress(b, row[r]);
      Value at = b.global(b.add(address, ownBytes));
      int64_t start = firstRegister(r, dimsPerWarp());
      for (int64_t i = 0; i < dimsPerWarp() / 8; ++i) {
        Value low = b.mulf(output[start + 4 * i], factor);
        Value high = b.mulf(output[start + 4 * i + 1], factor);
        b.store(b.pack(low, high, element), b.offset(at, i * 16));
      }
      if (clause.getExtra() != ExtraResult::LogSumExp)
        return;
      b.when(first, [&] {
        Value lse =
            b.select(live, logSumExp(b, registers(op.getMax())[r], sum[r]),
                     b.f32(-INFINITY));
        b.store(lse, b.global(block->logSumExpAddress(b, row[r])));
      });
    });
}
