//===- MmaMerge.cpp - The merge of one row --------------------------------===//
//
// A block merges one row after another, of requests that have several parts.
// Groups of threads, one thread for four dimensions, take the parts in turn. A
// group reads statistics and outputs of many parts at one time and adds them
// relative to the largest maximum it has met; the groups' sums meet in shared
// memory in a fixed order.
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
static constexpr int64_t kGroups = 4;
/// Parts that a group reads at one time, at most.
static constexpr int64_t kMostAtOnce = 17;

/// Parts that a group reads at one time: its share of those that one request
/// has, so that a merge waits for memory once. Depends on nothing that differs
/// between launches of an invariant schedule.
static int64_t partsAtOnce(KernelOp plan) {
  StringRef chip = plan.getScheduleOrDefault().getChip().getValue();
  int64_t parts = findChip(chip)->multiprocessors / plan.getHeads().getKv();
  return std::clamp<int64_t>(llvm::divideCeil(parts, kGroups), 2, kMostAtOnce);
}

int64_t tokentile::mergeThreads(KernelOp plan) {
  return kGroups * plan.getValueDim() / kDims;
}

int64_t tokentile::mergesPerSm(KernelOp plan) {
  // Of a part a thread holds four dimensions and two statistics.
  int64_t registers = 44 + 6 * partsAtOnce(plan);
  return std::clamp<int64_t>(65536 / (mergeThreads(plan) * registers), 1, 8);
}

/// Shared memory: the groups' sums, their statistics, what one warp says to
/// the others.
static int64_t groupStats(KernelOp plan) {
  return kGroups * plan.getValueDim() * 4;
}
static int64_t mergeScratch(KernelOp plan) {
  return groupStats(plan) + kGroups * 8;
}

int64_t tokentile::mergeSharedBytes(KernelOp plan) {
  return mergeScratch(plan) + BlockTeam::kMost * 4;
}

namespace {

class MergeEmitter {
public:
  /// `threads` threads merge, the first of the block, and `meet` is where they
  /// meet; `team` finds their rows.
  MergeEmitter(Lane &b, ProgramOp program, Value args, Value shared,
               int64_t threads, const LaneTeam &team,
               llvm::function_ref<void()> meet)
      : b(b), plan(program.getPlan()), shared(shared),
        perRow(plan.getValueDim() / kDims),
        perThread(std::max<int64_t>(1, kGroups * perRow / threads)),
        teams(kGroups / perThread), threads(threads), meet(meet),
        addsSink(!program.getBody().getOps<AddSinkOp>().empty()) {
    block = std::make_unique<BlockContext>(b, b.getLoc(), program, args, team,
                                           /*globalSpace=*/1);
    thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
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
  Value referenceOf(Value max);
  void sumParts(int64_t turn);
  Registers meetGroups();
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
  std::unique_ptr<BlockContext> block;
  Value thread, group, column;
  /// The row's maximum, and this thread's four dimensions, of part 0.
  Value firstStats, firstOutput;
  Value max, sum;
};

} // namespace

/// What is subtracted from exponents: zero for a row that has seen nothing.
Value MergeEmitter::referenceOf(Value max) {
  Value empty = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, max,
                                      b.f32(-INFINITY));
  return b.select(empty, b.f32(0), max);
}

/// Adds the parts of the group that this thread is in at turn `turn` of its
/// groups, for its dimensions, and leaves the sums in shared memory.
void MergeEmitter::sumParts(int64_t turn) {
  Type four = b.vector(kDims, b.getF32Type());
  Value nothing = b.f32(-INFINITY), zero = b.f32(0);
  Value mine = b.add(group, turn * teams);
  Value start = firstPart(mine, kGroups);
  int64_t count = partsAtOnce(plan);
  Registers init{nothing};
  init.append(1 + kDims, zero);
  Registers sums = b.loop(
      b.i32(0), block->parts, b.i32(kGroups * count), init,
      [&](Value base, ValueRange carried) {
        // All loads first, so that they are in flight together. A part without
        // a sum has no output; what lies there is read but not used.
        Registers maxima, theirSums, outputs, inside;
        for (int64_t i = 0; i < count; ++i) {
          Value part = b.add(b.add(base, start), i * kGroups);
          inside.push_back(b.is(Lane::Predicate::slt, part, block->parts));
          Value safe = b.select(inside[i], part, b.i32(0));
          maxima.push_back(stat(safe, 0));
          theirSums.push_back(stat(safe, 1));
          int64_t stride = partStride(plan.getValueDim());
          Value address = b.add(firstOutput, b.mul(b.extend(safe), stride));
          outputs.push_back(b.load(four, b.global(address)));
        }
        Registers some;
        Value newMax = carried[0];
        for (int64_t i = 0; i < count; ++i) {
          some.push_back(b.both(inside[i], b.isPositive(theirSums[i])));
          maxima[i] = b.select(some[i], maxima[i], nothing);
          newMax = b.largerf(newMax, maxima[i]);
        }
        Value reference = referenceOf(newMax);
        Value factor = b.exp2(b.subf(carried[0], reference));
        Registers next{newMax};
        for (Value sum : carried.drop_front())
          next.push_back(b.mulf(sum, factor));
        for (int64_t i = 0; i < count; ++i) {
          Value weight = b.exp2(b.subf(maxima[i], reference));
          Value sum = b.select(inside[i], theirSums[i], zero);
          next[1] = b.fma(sum, weight, next[1]);
          for (int64_t d = 0; d < kDims; ++d) {
            Value value = b.select(some[i], b.element(outputs[i], d), zero);
            next[2 + d] = b.fma(weight, value, next[2 + d]);
          }
        }
        return next;
      });
  Value place = b.add(b.mul(mine, perRow * 16), b.shiftLeft(column, 4));
  b.store(b.gather(ArrayRef<Value>(sums).drop_front(2)),
          b.offset(shared, place));
  b.when(b.is(Lane::Predicate::eq, column, b.i32(0)), [&] {
    Value at = b.offset(shared, b.add(b.shiftLeft(mine, 3), groupStats(plan)));
    b.store(b.gather({sums[0], sums[1]}), at);
  });
}

/// Adds the groups' sums.
Registers MergeEmitter::meetGroups() {
  Type two = b.vector(2, b.getF32Type());
  Type four = b.vector(kDims, b.getF32Type());
  Registers maxima, sums;
  max = b.f32(-INFINITY);
  for (int64_t g = 0; g < kGroups; ++g) {
    Value stats = b.load(two, b.offset(shared, groupStats(plan) + g * 8));
    maxima.push_back(b.element(stats, 0));
    sums.push_back(b.element(stats, 1));
    max = b.largerf(max, maxima[g]);
  }
  Value reference = referenceOf(max);
  sum = b.f32(0);
  Registers total(kDims, b.f32(0));
  for (int64_t g = 0; g < kGroups; ++g) {
    Value weight = b.exp2(b.subf(maxima[g], reference));
    sum = b.fma(sums[g], weight, sum);
    Value at = b.offset(shared, b.shiftLeft(column, 4));
    Value theirs = b.load(four, b.offset(at, g * perRow * 16));
    for (int64_t d = 0; d < kDims; ++d)
      total[d] = b.fma(weight, b.element(theirs, d), total[d]);
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
  auto add = [&] {
    for (int64_t turn = 0; turn < perThread; ++turn)
      sumParts(turn);
  };
  if (threads > teams * perRow)
    b.when(b.lessThan(thread, teams * perRow), add);
  else
    add();
  meet();
  store(meetGroups());
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
  KernelOp plan = program.getPlan();
  BlockTeam team(b.offset(shared, mergeScratch(plan)));
  MergeEmitter(b, program, args, shared, mergeThreads(plan), team, meet).emit();
}

void tokentile::emitMergeInSweep(Lane &b, ProgramOp program, Value args,
                                 Value shared, int64_t threads,
                                 llvm::function_ref<void()> meet) {
  // One request: there is nothing to find.
  MergeEmitter(b, program, args, shared, threads, WarpTeam(), meet)
      .emitInSweep();
}
