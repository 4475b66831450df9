//===- MmaMerge.cpp - The merge of partial results ------------------------===//
//
// A block merges one unit of rows after another, of requests that have several
// parts, or pieces. A group of threads, one thread for eight dimensions, reads
// statistics and outputs of many parts at one time and adds them relative to
// the largest maximum it has met. Of one request, which may have many parts and
// few rows, and where the plan fixes the parts, all groups take the parts of a
// row in turn, and their sums meet in shared memory in a fixed order; of
// several requests each group has its own row.
//
//===----------------------------------------------------------------------===//

#include "codegen/KernelABI.h"
#include "codegen/mma/MmaEmitter.h"

#include <cmath>

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;

/// Elements of one thread: eight of two bytes make one 16-byte load.
static constexpr int64_t kElements = 8;
/// Groups of threads that share the parts of a row.
static constexpr int64_t kGroups = mergeUnitRows;
/// A row has as many slices of so many elements, at most.
static constexpr int64_t kMostSlices = 4, kLeastSlice = 64;
/// Parts that a group reads at one time.
static constexpr int64_t kLeastAtOnce = 4, kMostAtOnce = 9;
/// The same of a group that has a row to itself.
static constexpr int64_t kOwnAtOnce = 3;

/// Slices of a row that one launch of one request divides among blocks, where
/// rows are fewer than multiprocessors. An invariant schedule has one, whatever
/// its rows, as the order of sums depends on it.
int64_t tokentile::mergeSlices(KernelOp plan) {
  int64_t slices = 1;
  if (plan.getSplitOrDefault().isSized())
    return slices;
  int64_t rows = RowShape(plan).rows * plan.getHeads().getKv();
  while (slices < kMostSlices &&
         plan.getValueDim() / (2 * slices) >= kLeastSlice &&
         rows * 2 * slices <= chipOf(plan).multiprocessors)
    slices *= 2;
  return slices;
}

/// Parts that a group reads at one time: its share of those that one request
/// has, so that a merge waits for memory once, or twice with one kv head.
/// Depends on nothing that differs between launches of an invariant schedule.
static int64_t partsAtOnce(KernelOp plan) {
  int64_t parts = chipOf(plan).multiprocessors / plan.getHeads().getKv();
  int64_t groups = kGroups * mergeSlices(plan);
  return std::clamp<int64_t>(llvm::divideCeil(parts, groups), kLeastAtOnce,
                             kMostAtOnce);
}

int64_t tokentile::mergeThreads(KernelOp plan) {
  return kGroups * plan.getValueDim() / kElements;
}

int64_t tokentile::mergesPerSm(KernelOp plan) {
  // Of a part a thread holds four words of elements and four statistics. With
  // registers for more than five blocks loads of parts would wait for others.
  int64_t registers = 44 + 8 * std::max(partsAtOnce(plan), kOwnAtOnce);
  return std::clamp<int64_t>(65536 / (mergeThreads(plan) * registers), 1, 5);
}

/// Shared memory: the warps' sums, then their statistics.
static int64_t mergeWarps(KernelOp plan) {
  return mergeThreads(plan) / layout::kWarp;
}
static int64_t warpStats(KernelOp plan) {
  return mergeWarps(plan) * plan.getValueDim() / mergeSlices(plan) * 4;
}

int64_t tokentile::mergeSharedBytes(KernelOp plan) {
  return warpStats(plan) + mergeWarps(plan) * 8;
}

namespace {

class MergeEmitter {
public:
  MergeEmitter(Lane &b, ProgramOp program, Value args, Value shared)
      : b(b), plan(program.getPlan()), shared(shared), dim(plan.getValueDim()),
        perRow(dim / kElements), perSlice(perRow / mergeSlices(plan)),
        addsSink(!program.getBody().getOps<AddSinkOp>().empty()),
        block(b, b.getLoc(), program, args, team, /*globalSpace=*/1) {
    thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  }

  void emit();

private:
  /// A row's maximum and sum, and its elements that this thread has.
  struct Sums {
    Value max, sum;
    Registers elements;
  };

  void mergeRow(Value slice);
  void mergeOwnRows(RequestParts division, Value stores);
  void mergeGuessed();
  void mergeUnits(bool several);
  Value referenceOf(Value max);
  Sums sumParts(Value row, Value place, Value first, int64_t step,
                int64_t count);
  void storeOwn(Value row, Value place, Sums &sums);
  void meetGroups(Value row, Value slice, Sums &sums);
  void storeMet(Value row, Value slice);
  /// Dimensions of a slice.
  int64_t sliceDim() const { return perSlice * kElements; }
  Value finish(Value row, Sums &sums, Value speaks);
  void store(Value row, Sums &sums, ArrayRef<Value> columns, Value speaks);

  Lane &b;
  KernelOp plan;
  Value shared;
  /// Dimensions of a row, and threads that hold it and a slice of it.
  int64_t dim, perRow, perSlice;
  bool addsSink;
  WarpTeam team;
  BlockContext block;
  Value thread;
};

} // namespace

/// What is subtracted from exponents: zero for a row that has seen nothing.
Value MergeEmitter::referenceOf(Value max) {
  Value empty = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, max,
                                      b.f32(-INFINITY));
  return b.select(empty, b.f32(0), max);
}

/// Adds parts `first`, `first + step`, ... of a row, `count` at one time: the
/// elements at `place`.
MergeEmitter::Sums MergeEmitter::sumParts(Value row, Value place, Value first,
                                          int64_t step, int64_t count) {
  Type four = b.vector(4, b.getF32Type());
  Type words = b.vector(kElements / 2, b.getI32Type());
  Value nothing = b.f32(-INFINITY), zero = b.f32(0);
  Value start = b.i32(0);
  Value firstStats = block.statsAddress(b, start, row);
  Value firstOutput = b.add(block.partialAddress(b, start, row),
                            b.extend(b.shiftLeft(place, 4)));
  // Rows from a slot to the next.
  int64_t rows = plan.getHeads().getKv() * block.shape.paddedRows();
  Registers init{nothing};
  init.append(1 + kElements, zero);
  Registers sums = b.loop(
      first, block.parts, b.i32(step * count), init,
      [&](Value part, ValueRange carried) {
        // All loads first, so that they are in flight together. A part without
        // a sum has no output; what lies there is read but not used.
        Registers stats, outputs, inside;
        for (int64_t i = 0; i < count; ++i) {
          inside.push_back(b.is(Lane::Predicate::ult, part, block.parts));
          Value safe = b.select(inside[i], part, b.i32(0));
          Value slot = block.slotOfPart(b, safe);
          Value behind = b.mul(b.extend(slot), rows * 4 * 4);
          Value at = b.add(firstStats, behind);
          stats.push_back(b.load(four, b.global(at)));
          at = b.add(firstOutput, b.mul(behind, dim / 8));
          outputs.push_back(b.load(words, b.global(at)));
          part = b.add(part, step);
        }
        Registers maxima, theirSums, some;
        Value newMax = carried[0];
        for (int64_t i = 0; i < count; ++i) {
          theirSums.push_back(
              b.select(inside[i], b.element(stats[i], 1), zero));
          some.push_back(b.isPositive(theirSums[i]));
          maxima.push_back(b.select(some[i], b.element(stats[i], 0), nothing));
          newMax = b.largerf(newMax, maxima[i]);
        }
        Value reference = referenceOf(newMax);
        Value factor = b.exp2(b.subf(carried[0], reference));
        Registers next{newMax};
        for (Value sum : carried.drop_front())
          next.push_back(b.mulf(sum, factor));
        for (int64_t i = 0; i < count; ++i) {
          Value weight = b.exp2(b.subf(maxima[i], reference));
          next[1] = b.fma(theirSums[i], weight, next[1]);
          Value scaled = b.mulf(weight, b.element(stats[i], 2));
          scaled = b.select(some[i], scaled, zero);
          for (int64_t e = 0; e < kElements; e += 2) {
            Value word = b.element(outputs[i], e / 2);
            Registers pair = b.unpack(b.select(some[i], word, b.i32(0)));
            for (int64_t half : {0, 1})
              next[2 + e + half] =
                  b.fma(scaled, pair[half], next[2 + e + half]);
          }
        }
        return next;
      });
  return {sums[0], sums[1], Registers(ArrayRef<Value>(sums).drop_front(2))};
}

/// The factor on the sums of a row's elements; `speaks` stores its log-sum-exp.
Value MergeEmitter::finish(Value row, Sums &sums, Value speaks) {
  Value live = block.rowIsLive(b, row);
  Value scale = b.f32(1);
  if (addsSink) {
    SinkOfRow sink = addSink(b, block, row, sums.max);
    sums.max = sink.newMax;
    sums.sum = b.fma(sums.sum, sink.factor, sink.added);
    scale = sink.factor;
  }
  if (plan.getOutputOrDefault().getExtra() == ExtraResult::LogSumExp)
    b.when(speaks, [&] {
      Value lse =
          b.select(live, logSumExp(b, sums.max, sums.sum), b.f32(-INFINITY));
      b.store(lse, b.global(block.logSumExpAddress(b, row)));
    });
  Value factor = b.mulf(scale, outputFactor(b, plan, sums.sum));
  return b.select(live, factor, b.f32(0));
}

/// Stores pairs of elements, at the columns that they begin with.
void MergeEmitter::store(Value row, Sums &sums, ArrayRef<Value> columns,
                         Value speaks) {
  Type element = plan.getOutputOrDefault().getElement() == ElementKind::FP16
                     ? Type(b.getF16Type())
                     : Type(b.getBF16Type());
  b.when(rowHasPlace(b, block, row), [&] {
    Value factor = finish(row, sums, speaks);
    Value address = block.outputAddress(b, row);
    for (auto [i, column] : llvm::enumerate(columns)) {
      Value low = b.mulf(sums.elements[2 * i], factor);
      Value high = b.mulf(sums.elements[2 * i + 1], factor);
      Value at = b.add(address, b.extend(b.shiftLeft(column, 1)));
      b.store(b.pack(low, high, element), b.global(at));
    }
  });
}

/// Stores a row all parts of which this group has added.
void MergeEmitter::storeOwn(Value row, Value place, Sums &sums) {
  // The columns that layout::partialPlace puts where this thread reads.
  int64_t block = partialBlock(plan), perLane = block / 4;
  Registers columns;
  for (int64_t e = 0; e < kElements; e += 2) {
    Value at = b.add(b.mul(place, kElements), e), within = b.rem(at, block);
    Value quarter = b.div(within, perLane), pair = b.rem(within, perLane);
    Value column = b.add(b.shiftLeft(pair, 2), b.shiftLeft(quarter, 1));
    columns.push_back(b.add(b.mul(b.div(at, block), block), column));
  }
  store(row, sums, columns, b.is(Lane::Predicate::eq, place, b.i32(0)));
}

/// Adds up what the groups have of a slice, and stores it. Groups of a warp
/// meet first.
void MergeEmitter::meetGroups(Value row, Value slice, Sums &sums) {
  SmallVector<int64_t> masks;
  for (int64_t mask = perSlice; mask < layout::kWarp; mask *= 2)
    masks.push_back(mask);
  if (!masks.empty()) {
    Value max = b.maxOver(sums.max, masks);
    Value weight = b.exp2(b.subf(sums.max, referenceOf(max)));
    sums.max = max;
    sums.sum = b.sumOver(b.mulf(sums.sum, weight), masks);
    for (Value &element : sums.elements)
      element = b.sumOver(b.mulf(element, weight), masks);
  }
  Value lane = b.rem(thread, layout::kWarp);
  Value warp = b.div(thread, layout::kWarp);
  b.when(b.lessThan(lane, perSlice), [&] {
    Value place = b.add(b.mul(warp, std::min(perSlice, layout::kWarp)), lane);
    Value at = b.offset(shared, b.shiftLeft(place, 5));
    for (int64_t half : {0, 1})
      b.store(b.gather(ArrayRef<Value>(sums.elements).slice(half * 4, 4)),
              b.offset(at, half * 16));
  });
  b.when(b.is(Lane::Predicate::eq, lane, b.i32(0)), [&] {
    Value at = b.offset(shared, b.add(b.shiftLeft(warp, 3), warpStats(plan)));
    b.store(b.gather({sums.max, sums.sum}), at);
  });
  b.barrier();
  b.when(b.lessThan(thread, sliceDim() / 2), [&] { storeMet(row, slice); });
  // The next row's sums go where these lie.
  b.barrier();
}

/// Columns 2 `thread` and the next one of a slice.
void MergeEmitter::storeMet(Value row, Value slice) {
  Type two = b.vector(2, b.getF32Type());
  int64_t warps = mergeWarps(plan);
  Registers maxima, warpSums;
  Sums total{b.f32(-INFINITY), b.f32(0), Registers(2, b.f32(0))};
  for (int64_t w = 0; w < warps; ++w) {
    Value stats = b.load(two, b.offset(shared, warpStats(plan) + w * 8));
    maxima.push_back(b.element(stats, 0));
    warpSums.push_back(b.element(stats, 1));
    total.max = b.largerf(total.max, maxima[w]);
  }
  // layout::partialPlace of an even column.
  int64_t columns = partialBlock(plan);
  Value pair = b.rem(thread, columns / 2);
  Value within =
      b.add(b.mul(b.rem(pair, 4), columns / 4), b.shiftLeft(b.div(pair, 4), 1));
  Value from = b.add(b.mul(b.div(thread, columns / 2), columns), within);
  Value at = b.offset(shared, b.shiftLeft(from, 2));
  Value reference = referenceOf(total.max);
  for (int64_t w = 0; w < warps; ++w) {
    Value weight = b.exp2(b.subf(maxima[w], reference));
    total.sum = b.fma(warpSums[w], weight, total.sum);
    Value theirs = b.load(two, b.offset(at, w * sliceDim() * 4));
    for (int64_t e : {0, 1})
      total.elements[e] =
          b.fma(weight, b.element(theirs, e), total.elements[e]);
  }
  Value column = b.add(b.mul(slice, sliceDim()), b.shiftLeft(thread, 1));
  store(row, total, {column}, b.is(Lane::Predicate::eq, column, b.i32(0)));
}

/// A slice of a row: the groups share its parts.
void MergeEmitter::mergeRow(Value slice) {
  Value group = b.div(thread, perSlice);
  Value place = b.add(b.mul(slice, perSlice), b.rem(thread, perSlice));
  int64_t groups = mergeThreads(plan) / perSlice;
  Sums sums = sumParts(block.firstRow, place, group, groups, partsAtOnce(plan));
  meetGroups(block.firstRow, slice, sums);
}

/// A unit of a row for each group, of a request with these parts. Stores where
/// `stores` holds, or is null.
void MergeEmitter::mergeOwnRows(RequestParts division, Value stores) {
  block.setParts(division);
  Value row = b.add(block.firstRow, b.div(thread, perRow));
  Value place = b.rem(thread, perRow);
  Value merges = b.both(b.is(Lane::Predicate::sgt, division.parts, b.i32(1)),
                        b.lessThan(row, block.shape.rows));
  b.when(merges, [&] {
    Sums sums = sumParts(row, place, b.i32(0), /*step=*/1, kOwnAtOnce);
    auto store = [&] { storeOwn(row, place, sums); };
    stores ? b.when(stores, store) : store();
  });
}

/// What was read of the division before the wait is a guess. Most often the
/// sweep has written it long ago; but a block may come late to a request of its
/// range, and only the wait promises that what is written is seen. So partial
/// results are read by the guess while the division is read again; if that is
/// another one nothing is stored, and they are read once more.
void MergeEmitter::mergeGuessed() {
  RequestParts guess = block.division;
  RequestParts left = block.readDivision(b, block.request);
  Value holds = b.both(b.is(Lane::Predicate::eq, guess.parts, left.parts),
                       b.is(Lane::Predicate::eq, guess.slot, left.slot));
  mergeOwnRows(guess, holds);
  b.choose(
      holds, [] { return Registers(); },
      [&] {
        mergeOwnRows(left, /*stores=*/Value());
        return Registers();
      });
}

void MergeEmitter::mergeUnits(bool several) {
  auto waitForSweep = [&] {
    if (mergeIsDependent(plan))
      b.waitForGrid();
  };
  Value x = NVVM::BlockIdXOp::create(b, b.getI32Type());
  MergeUnits units = block.countUnits(b, several ? kGroups : 1, several);
  // Slices of a row are neighbours.
  int64_t slices = several ? 1 : mergeSlices(plan);
  Value end = b.mul(units.count, slices);
  b.loop(x, end, block.unitStride(b), {}, [&](Value number, ValueRange) {
    Value slice = b.rem(number, slices);
    Value merges = block.findUnit(b, units, b.div(number, slices));
    waitForSweep();
    if (several)
      mergeGuessed();
    else
      b.when(merges, [&] { mergeRow(slice); });
    return Registers();
  });
  // A block without a unit waits too: nothing behind this launch may begin
  // before the sweep has ended.
  waitForSweep();
}

void MergeEmitter::emit() {
  Value several = block.prepareMerge(b);
  if (!several)
    return mergeUnits(/*several=*/false);
  // Two pieces of code, each short: what a cold merge executes it must fetch.
  b.choose(
      several,
      [&] {
        mergeUnits(/*several=*/true);
        return Registers();
      },
      [&] {
        mergeUnits(/*several=*/false);
        return Registers();
      });
}

void tokentile::emitMerge(Lane &b, ProgramOp program, Value args,
                          Value shared) {
  MergeEmitter(b, program, args, shared).emit();
}
