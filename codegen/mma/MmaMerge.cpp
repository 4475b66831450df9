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
  /// `threads` threads merge, the first of the block, and `meet` is where they
  /// meet.
  MergeEmitter(Lane &b, ProgramOp program, Value args, Value shared,
               int64_t threads, llvm::function_ref<void()> meet)
      : b(b), plan(program.getPlan()), shared(shared),
        perRow(plan.getValueDim() / kDims),
        perThread(std::max<int64_t>(1, kGroups * perRow / threads)),
        teams(kGroups / perThread), threads(threads), meet(meet),
        addsSink(!program.getBody().getOps<AddSinkOp>().empty()) {
    block = std::make_unique<BlockContext>(b, b.getLoc(), program, args, team,
                                           /*globalSpace=*/1);
    thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
    lane = b.rem(thread, layout::kWarp);
    group = b.div(thread, perRow);
    column = b.rem(thread, perRow);
  }

  /// A kernel of its own, behind the sweep.
  void emit();
  /// In a sweep all blocks of which run at once, behind the store of its
  /// partial result.
  void emitInSweep();

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
  void mergeRows(Value rows, Value stride);
  void mergeRow();
  void findMaximum();
  Registers sumParts();
  Registers meetGroups(ArrayRef<Value> partial);
  void store(ArrayRef<Value> output);

  Lane &b;
  KernelOp plan;
  Value shared;
  /// Threads that hold a row, groups that one of them plays in turn, and how
  /// many play at once.
  int64_t perRow, perThread, teams;
  int64_t threads;
  llvm::function_ref<void()> meet;
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
  // Each lane goes over its parts once, with the sum that belongs to the
  // maximum so far.
  const int64_t all[] = {1, 2, 4, 8, 16};
  Value nothing = b.f32(-INFINITY), zero = b.f32(0);
  auto referenceOf = [&](Value max) {
    Value empty =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, max, nothing);
    return b.select(empty, zero, max);
  };
  Registers found = b.loop(
      firstPart(lane, layout::kWarp), block->parts, b.i32(layout::kWarp),
      {nothing, zero}, [&](Value part, ValueRange carried) {
        Value theirs = stat(part, 0), sum = stat(part, 1);
        Value most = b.largerf(carried[0], theirs);
        Value against = referenceOf(most);
        Value mine = b.mulf(carried[1], b.exp2(b.subf(carried[0], against)));
        return Registers{most,
                         b.fma(sum, b.exp2(b.subf(theirs, against)), mine)};
      });
  max = b.maxOver(found[0], all);
  reference = referenceOf(max);
  Value weight = b.exp2(b.subf(found[0], reference));
  sum = b.sumOver(b.mulf(found[1], weight), all);
}

/// The weighted sums of this thread's groups over their parts, for its
/// dimensions, one group behind the other.
Registers MergeEmitter::sumParts() {
  Type four = b.vector(kDims, b.getF32Type());
  Registers starts;
  for (int64_t i = 0; i < perThread; ++i)
    starts.push_back(firstPart(b.add(group, i * teams), kGroups));
  return b.loop(
      b.i32(0), block->parts, b.i32(kGroups * kUnroll),
      Registers(kDims * perThread, b.f32(0)),
      [&](Value base, ValueRange carried) {
        // All loads first, so that they are in flight together. A part
        // without a sum has no output: its memory is not read.
        Registers weights, loaded;
        for (int64_t i = 0; i < kUnroll * perThread; ++i) {
          Value part = b.add(base, starts[i % perThread]);
          part = b.add(part, i / perThread * kGroups);
          Value inside = b.is(Lane::Predicate::slt, part, block->parts);
          Value safe = b.select(inside, part, b.i32(0));
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
        for (int64_t i = 0; i < kUnroll * perThread; ++i)
          for (int64_t d = 0; d < kDims; ++d) {
            Value &sum = acc[i % perThread * kDims + d];
            sum = b.fma(weights[i], b.element(loaded[i], d), sum);
          }
        return acc;
      });
}

/// Adds the groups' sums; the first threads hold the result.
Registers MergeEmitter::meetGroups(ArrayRef<Value> partial) {
  auto place = [&](Value thread) {
    return b.offset(shared, b.shiftLeft(thread, 4));
  };
  auto write = [&] {
    for (int64_t i = 0; i < perThread; ++i)
      b.store(b.gather(partial.slice(i * kDims, kDims)),
              b.offset(place(thread), i * teams * perRow * 16));
  };
  if (threads > teams * perRow)
    b.when(b.lessThan(thread, teams * perRow), write);
  else
    write();
  meet();
  Registers total(kDims, b.f32(0));
  for (int64_t g = 0; g < kGroups; ++g) {
    Value theirs = b.load(b.vector(kDims, b.getF32Type()),
                          b.offset(place(column), g * perRow * 16));
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
  store(meetGroups(sumParts()));
  // The next row's sums go where these lie.
  meet();
}

void MergeEmitter::mergeRows(Value rows, Value stride) {
  Value x = NVVM::BlockIdXOp::create(b, b.getI32Type());
  b.loop(x, rows, stride, {}, [&](Value row, ValueRange) {
    b.when(block->findRow(b, row), [&] { mergeRow(); });
    return Registers();
  });
}

void MergeEmitter::emit() {
  // Lengths were complete before the sweep began; its results must be waited
  // for, also by a block that has no row: nothing behind this launch may begin
  // before the sweep has ended.
  Value rows = block->countRows(b);
  if (mergeIsDependent(plan))
    NVVM::GriddepcontrolOp::create(b, NVVM::GridDepActionKind::wait);
  mergeRows(rows, block->rowStride(b));
}

/// The barrier of a cooperative launch: a word that the driver keeps. Arrivals
/// add up to 2^31, so that the highest bit flips when all are there. Source:
/// the device code of CUDA's cooperative groups, which is public.
static constexpr StringLiteral kMeetGrid = R"({
  .reg .b64 words;
  .reg .b32 before, now;
  .reg .pred waits;
  mov.b64 words, {%envreg2, %envreg1};
  atom.add.release.gpu.u32 before, [words+4], $0;
again:
  ld.acquire.gpu.u32 now, [words+4];
  xor.b32 now, now, before;
  setp.ge.s32 waits, now, 0;
  @waits bra again;
})";

void MergeEmitter::emitInSweep() {
  // One request: every head has its parts, and their blocks are the first.
  Value rows = block->countRows(b);
  block->findRow(b, b.i32(0));
  int64_t heads = plan.getHeads().getKv() * block->shape.rowBlocks;
  Value blocks = b.mul(block->parts, heads);
  meet();
  b.when(b.is(Lane::Predicate::eq, thread, b.i32(0)), [&] {
    Value x = NVVM::BlockIdXOp::create(b, b.getI32Type());
    Value first = b.is(Lane::Predicate::eq, x, b.i32(0));
    Value rest = arith::SubIOp::create(b, b.i32(INT32_MIN), b.add(blocks, -1));
    LLVM::InlineAsmOp::create(
        b, TypeRange(), b.select(first, rest, b.i32(1)), kMeetGrid,
        "r,~{memory}", /*has_side_effects=*/true, /*is_align_stack=*/false,
        LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(),
        ArrayAttr());
  });
  meet();
  mergeRows(rows, blocks);
}

void tokentile::emitMerge(Lane &b, ProgramOp program, Value args,
                          Value shared) {
  auto meet = [&] { b.barrier(); };
  MergeEmitter(b, program, args, shared, mergeThreads(program.getPlan()), meet)
      .emit();
}

void tokentile::emitMergeInSweep(Lane &b, ProgramOp program, Value args,
                                 Value shared, int64_t threads,
                                 llvm::function_ref<void()> meet) {
  MergeEmitter(b, program, args, shared, threads, meet).emitInSweep();
}
