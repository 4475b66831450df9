//===- MmaMerge.cpp - The merge of one row --------------------------------===//
//
// One block merges one row. Every warp finds the row's maximum and sum over all
// splits (a lane for each split); then groups of threads, one thread for four
// dimensions, take the splits in turn, and the groups' sums meet in shared
// memory in a fixed order. Latency is all that counts: statistics and outputs
// are loaded without waiting for one another.
//
//===----------------------------------------------------------------------===//

#include "codegen/mma/MmaEmitter.h"

#include <cmath>

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;

/// Dimensions of one thread: four floats make one 16-byte load.
static constexpr int64_t kDims = 4;
/// Groups of threads that share the splits of a row.
static constexpr int64_t kGroups = 4;
/// Splits whose loads one thread has in flight.
static constexpr int64_t kUnroll = 5;

int64_t tokentile::mergeThreads(KernelOp plan) {
  return kGroups * plan.getValueDim() / kDims;
}

int64_t tokentile::mergeSharedBytes(KernelOp plan) {
  return kGroups * plan.getValueDim() * 4;
}

namespace {

class MergeEmitter {
public:
  MergeEmitter(Lane &b, ProgramOp program, Value args, Value shared)
      : b(b), plan(program.getPlan()), shared(shared),
        perRow(plan.getValueDim() / kDims) {
    Type i32 = b.getI32Type();
    // The partial results of the sweep before this launch must be complete.
    if (mergeIsDependent(plan))
      NVVM::GriddepcontrolOp::create(b, NVVM::GridDepActionKind::wait);
    Value x = NVVM::BlockIdXOp::create(b, i32);
    Value y = NVVM::BlockIdYOp::create(b, i32);
    Value z = NVVM::BlockIdZOp::create(b, i32);
    block = std::make_unique<BlockContext>(b, b.getLoc(), program, args, x, y,
                                           z, /*globalSpace=*/1);
    thread = NVVM::ThreadIdXOp::create(b, i32);
    lane = b.rem(thread, layout::kWarp);
    group = b.div(thread, perRow);
    column = b.rem(thread, perRow);
  }

  void emit();

private:
  Value stat(Value split, int which) {
    Value at = block->statsAddress(b, split, block->firstRow, which);
    return b.load(b.getF32Type(), b.global(at));
  }
  /// What a split says of the row. Where `inside` is false, `index` is
  /// another split and the sum is zero; without `inside` the split exists.
  struct Stats {
    Value index;
    Value inside;
    Value max;
    Value sum;
  };
  SmallVector<Stats> loadStats(Value first, int64_t step, int64_t count);
  Value weight(const Stats &split, Value from);
  void findMaximum();
  Registers sumSplits();
  Registers meet(Registers partial);
  void store(ArrayRef<Value> output);

  Lane &b;
  KernelOp plan;
  Value shared;
  int64_t perRow;
  std::unique_ptr<BlockContext> block;
  Value thread, lane, group, column;
  Value max, sum;
  /// The maximum, or zero if no split has seen a key.
  Value origin;
};

} // namespace

/// Statistics of `count` splits from `first` in steps of `step`, all loads in
/// flight together. A split that is not there has a sum of zero.
SmallVector<MergeEmitter::Stats>
MergeEmitter::loadStats(Value first, int64_t step, int64_t count) {
  SmallVector<Stats> stats;
  for (int64_t u = 0; u < count; ++u) {
    Value split = b.add(first, u * step);
    Value inside, sum;
    // The loop has seen to the first one.
    if (u > 0) {
      inside = b.is(Lane::Predicate::slt, split, block->splits);
      split = b.select(inside, split, first);
    }
    sum = stat(split, 1);
    if (inside)
      sum = b.select(inside, sum, b.f32(0));
    stats.push_back({split, inside, stat(split, 0), sum});
  }
  return stats;
}

/// Maximum and sum of the row: a lane for each split, then over the warp.
void MergeEmitter::findMaximum() {
  const int64_t all[] = {1, 2, 4, 8, 16};
  Value none = b.f32(-INFINITY);
  auto reference = [&](Value max) {
    Value empty =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, max, none);
    return b.select(empty, b.f32(0), max);
  };
  Registers found = b.loop(
      lane, block->splits, b.i32(layout::kWarp * kUnroll), {none, b.f32(0)},
      [&](Value first, ValueRange carried) {
        SmallVector<Stats> stats = loadStats(first, layout::kWarp, kUnroll);
        Value largest = carried[0];
        for (Stats &split : stats)
          largest = b.largerf(
              largest, b.select(b.isPositive(split.sum), split.max, none));
        Value from = reference(largest);
        Value total = b.mulf(carried[1], b.exp2(b.subf(carried[0], from)));
        for (Stats &split : stats)
          total = b.fma(weight(split, from), split.sum, total);
        return Registers{largest, total};
      });
  max = b.maxOver(found[0], all);
  origin = reference(max);
  Value share = b.mulf(found[1], b.exp2(b.subf(found[0], origin)));
  sum = b.sumOver(share, all);
}

/// 2^(max - from), zero for a split without a sum.
Value MergeEmitter::weight(const Stats &split, Value from) {
  Value factor = b.exp2(b.subf(split.max, from));
  return b.select(b.isPositive(split.sum), factor, b.f32(0));
}

/// This group's weighted sum over its splits, for this thread's dimensions.
Registers MergeEmitter::sumSplits() {
  Type four = b.vector(kDims, b.getF32Type());
  Value bytes = b.extend(b.shiftLeft(column, 4));
  return b.loop(
      group, block->splits, b.i32(kGroups * kUnroll),
      Registers(kDims, b.f32(0)), [&](Value first, ValueRange carried) {
        SmallVector<Stats> stats = loadStats(first, kGroups, kUnroll);
        Registers loaded;
        for (Stats &split : stats) {
          Value address =
              block->partialAddress(b, split.index, block->firstRow);
          // Whether the split has a sum is not known yet: load all the same.
          auto load = [&] {
            return Registers{b.load(four, b.global(b.add(address, bytes)))};
          };
          auto nothing = [&] {
            Value none = b.f32(0);
            return Registers{b.gather({none, none, none, none})};
          };
          loaded.push_back(split.inside
                               ? b.choose(split.inside, load, nothing)[0]
                               : load()[0]);
        }
        Registers acc(carried);
        for (auto [split, values] : llvm::zip(stats, loaded)) {
          // A split without a sum has left its output unwritten.
          Value some = b.isPositive(split.sum);
          Value factor = weight(split, origin);
          for (int64_t d = 0; d < kDims; ++d) {
            Value value = b.select(some, b.element(values, d), b.f32(0));
            acc[d] = b.fma(factor, value, acc[d]);
          }
        }
        return acc;
      });
}

/// Adds the groups' sums; threads of group 0 hold the result.
Registers MergeEmitter::meet(Registers partial) {
  Value mine = b.offset(shared, b.shiftLeft(thread, 4));
  b.store(b.gather(partial), mine);
  b.barrier();
  Registers total(kDims, b.f32(0));
  Value first = b.offset(shared, b.shiftLeft(column, 4));
  for (int64_t g = 0; g < kGroups; ++g) {
    Value theirs = b.load(b.vector(kDims, b.getF32Type()),
                          b.offset(first, g * perRow * 16));
    for (int64_t d = 0; d < kDims; ++d)
      total[d] = b.addf(total[d], b.element(theirs, d));
  }
  return total;
}

void MergeEmitter::store(ArrayRef<Value> output) {
  OutputAttr clause = plan.getOutputOrDefault();
  Type element = clause.getElement() == ElementKind::FP16
                     ? Type(b.getF16Type())
                     : Type(b.getBF16Type());
  Value row = block->firstRow;
  Value live = block->rowIsLive(b, row);
  Value factor = b.select(live, outputFactor(b, plan, sum), b.f32(0));
  Value writes =
      b.both(b.lessThan(thread, perRow), rowHasPlace(b, *block, row));
  b.when(writes, [&] {
    Value address = block->outputAddress(b, row);
    address = b.add(address, b.extend(b.shiftLeft(column, 3)));
    Registers scaled;
    for (Value value : output)
      scaled.push_back(b.mulf(value, factor));
    b.store(b.gather({b.pack(scaled[0], scaled[1], element),
                      b.pack(scaled[2], scaled[3], element)}),
            b.global(address));
    if (clause.getExtra() != ExtraResult::LogSumExp)
      return;
    b.when(b.is(Lane::Predicate::eq, thread, b.i32(0)), [&] {
      Value lse = b.select(live, logSumExp(b, max, sum), b.f32(-INFINITY));
      b.store(lse, b.global(block->logSumExpAddress(b, row)));
    });
  });
}

void MergeEmitter::emit() {
  findMaximum();
  store(meet(sumSplits()));
}

void tokentile::emitMerge(Lane &b, ProgramOp program, Value args,
                          Value shared) {
  MergeEmitter(b, program, args, shared).emit();
}
