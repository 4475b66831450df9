//===- MmaMerge.cpp - The merge of one row --------------------------------===//
//
// A block merges one row after another, of requests that have several parts.
// Every warp finds the row's maximum over all parts (a lane for each part);
// then groups of threads, one thread for four dimensions, take the parts in
// turn, and the groups' sums meet in shared memory in a fixed order.
//
//===----------------------------------------------------------------------===//

#include "codegen/mma/MmaEmitter.h"

#include <cmath>

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;

/// Dimensions of one thread: four floats make one 16-byte load.
static constexpr int64_t kDims = 4;
/// Groups of threads that share the parts of a row.
static constexpr int64_t kGroups = 8;
/// Loads of one thread in flight.
static constexpr int64_t kUnroll = 4;

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
        perRow(plan.getValueDim() / kDims),
        addsSink(!program.getBody().getOps<AddSinkOp>().empty()) {
    block = std::make_unique<BlockContext>(b, b.getLoc(), program, args, team,
                                           /*globalSpace=*/1);
    thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
    lane = b.rem(thread, layout::kWarp);
    group = b.div(thread, perRow);
    column = b.rem(thread, perRow);
  }

  void emit();

private:
  /// Bytes from a part's rows of `columns` floats to the next part's.
  int64_t partStride(int64_t columns) {
    return plan.getHeads().getKv() * block->shape.paddedRows() * columns * 4;
  }
  Value stat(Value part, int which) {
    Value at = b.add(firstStats, b.mul(b.extend(part), partStride(2)));
    int64_t behind = which * block->shape.paddedRows() * 4;
    return b.load(b.getF32Type(), b.offset(b.global(at), behind));
  }
  /// The first part of `worker`, of `workers` (a power of two) that take the
  /// pieces in turn, by their numbers.
  Value firstPart(Value worker, int64_t workers) {
    if (!block->firstPiece)
      return worker;
    Value behind = arith::SubIOp::create(b, worker, block->firstPiece);
    return b.rem(behind, workers);
  }
  void mergeRow();
  void findMaximum();
  Registers sumParts();
  Registers meet(Registers partial);
  void store(ArrayRef<Value> output);

  Lane &b;
  KernelOp plan;
  Value shared;
  int64_t perRow;
  bool addsSink;
  WarpTeam team;
  std::unique_ptr<BlockContext> block;
  Value thread, lane, group, column;
  /// The row's maximum, and this thread's four dimensions, of part 0.
  Value firstStats, firstOutput;
  Value max, reference, sum;
};

} // namespace

void MergeEmitter::findMaximum() {
  const int64_t all[] = {1, 2, 4, 8, 16};
  Value step = b.i32(layout::kWarp);
  Value first = firstPart(lane, layout::kWarp);
  Registers found =
      b.loop(first, block->parts, step, {b.f32(-INFINITY)},
             [&](Value part, ValueRange carried) {
               return Registers{b.largerf(carried[0], stat(part, 0))};
             });
  max = b.maxOver(found[0], all);
  Value empty = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, max,
                                      b.f32(-INFINITY));
  reference = b.select(empty, b.f32(0), max);
  found = b.loop(first, block->parts, step, {b.f32(0)},
                 [&](Value part, ValueRange carried) {
                   Value weight = b.exp2(b.subf(stat(part, 0), reference));
                   return Registers{b.fma(weight, stat(part, 1), carried[0])};
                 });
  sum = b.sumOver(found[0], all);
}

/// This group's weighted sum over its parts, for this thread's dimensions.
Registers MergeEmitter::sumParts() {
  Type four = b.vector(kDims, b.getF32Type());
  return b.loop(
      firstPart(group, kGroups), block->parts, b.i32(kGroups * kUnroll),
      Registers(kDims, b.f32(0)), [&](Value first, ValueRange carried) {
        // All loads first, so that they are in flight together. A part
        // without a sum has no output: its memory is not read.
        Registers weights, loaded;
        for (int64_t u = 0; u < kUnroll; ++u) {
          Value part = b.add(first, u * kGroups);
          Value inside = b.is(Lane::Predicate::slt, part, block->parts);
          Value safe = b.select(inside, part, first);
          Value some = b.both(inside, b.isPositive(stat(safe, 1)));
          Value weight = b.exp2(b.subf(stat(safe, 0), reference));
          weights.push_back(b.select(some, weight, b.f32(0)));
          int64_t stride = partStride(plan.getValueDim());
          Value address = b.add(firstOutput, b.mul(b.extend(safe), stride));
          loaded.push_back(b.choose(
              some, [&] { return Registers{b.load(four, b.global(address))}; },
              [&] {
                Value none = b.f32(0);
                return Registers{b.gather({none, none, none, none})};
              })[0]);
        }
        Registers acc(carried);
        for (int64_t u = 0; u < kUnroll; ++u)
          for (int64_t d = 0; d < kDims; ++d)
            acc[d] = b.fma(weights[u], b.element(loaded[u], d), acc[d]);
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
  Value scale = b.f32(1);
  if (addsSink) {
    SinkOfRow sink = addSink(b, *block, row, max);
    max = sink.newMax;
    sum = b.fma(sum, sink.factor, sink.added);
    scale = sink.factor;
  }
  Value factor = b.mulf(scale, outputFactor(b, plan, sum));
  factor = b.select(live, factor, b.f32(0));
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

void MergeEmitter::mergeRow() {
  firstStats = block->statsAddress(b, block->slot, block->firstRow, 0);
  firstOutput = b.add(block->partialAddress(b, block->slot, block->firstRow),
                      b.extend(b.shiftLeft(column, 4)));
  findMaximum();
  store(meet(sumParts()));
  // The next row's sums go where these lie.
  b.barrier();
}

void MergeEmitter::emit() {
  // Lengths were complete before the sweep began; its results must be waited
  // for, also by a block that has no row: nothing behind this launch may begin
  // before the sweep has ended.
  Value rows = block->countRows(b);
  if (mergeIsDependent(plan))
    NVVM::GriddepcontrolOp::create(b, NVVM::GridDepActionKind::wait);
  Value x = NVVM::BlockIdXOp::create(b, b.getI32Type());
  b.loop(x, rows, block->rowStride(b), {}, [&](Value row, ValueRange) {
    b.when(block->findRow(b, row), [&] { mergeRow(); });
    return Registers();
  });
}

void tokentile::emitMerge(Lane &b, ProgramOp program, Value args,
                          Value shared) {
  MergeEmitter(b, program, args, shared).emit();
}
