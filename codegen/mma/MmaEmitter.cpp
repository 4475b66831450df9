//===- MmaEmitter.cpp - From staged programs to lanes ---------------------===//
//
// The walk over a program, its control flow and its scalars. Tensor operations
// are in the files that MmaEmitter.h names.
//
//===----------------------------------------------------------------------===//

#include "codegen/mma/MmaEmitter.h"

#include "codegen/KernelABI.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;

MmaEmitter::MmaEmitter(Lane &b, ProgramOp program, Value args, Value shared)
    : b(b), program(program), plan(program.getPlan()), args(args),
      shared(shared), team(shared) {
  mma = readSchedule(plan.getScheduleOrDefault());
  keyTile = mma.keyTile;
  dim = plan.getHeads().getDim();
}

Type MmaEmitter::element(StorageAttr storage) {
  return storage.getElement() == ElementKind::FP16 ? Type(b.getF16Type())
                                                   : Type(b.getBF16Type());
}

/// sm_90 and newer.
static bool isHopperOn(KernelOp plan) {
  int64_t number = 0;
  StringRef chip = plan.getScheduleOrDefault().getChip().getValue();
  return !chip.drop_front(3).consumeInteger(10, number) && number >= 90;
}

bool tokentile::mergeIsDependent(KernelOp plan) { return isHopperOn(plan); }

LogicalResult MmaEmitter::emit() {
  Type i32 = b.getI32Type();
  block = std::make_unique<BlockContext>(b, b.getLoc(), program, args, team,
                                         /*globalSpace=*/1);
  thread = NVVM::ThreadIdXOp::create(b, i32);
  emitPrefetch();
  Value busy = findWork(NVVM::BlockIdXOp::create(b, i32));
  LogicalResult result = success();
  // Blocks of the merge take their places as soon as ours leave them, and wait
  // for the rest. A launch of them asks for so much shared memory that those
  // that leave first do not get all.
  if (mergeIsDependent(plan))
    NVVM::GriddepcontrolOp::create(b,
                                   NVVM::GridDepActionKind::launch_dependents);
  b.when(busy, [&] { result = emitItem(); });
  return result;
}

Value MmaEmitter::findWork(Value x) { return block->findItem(b, x); }

Value MmaEmitter::helper() {
  return b.add(thread, layout::kWarp - mma.blockThreads());
}

void MmaEmitter::emitPrefetch() {
  // LLVM has the instruction for these chips.
  if (!plan.getPaging().getPage() || !isHopperOn(plan))
    return;
  // The last warp has time while the first finds the block's item.
  Value mine = helper();
  b.when(b.is(Lane::Predicate::sge, mine, b.i32(0)),
         [&] { prefetchTable(mine); });
}

/// The rows of the table, of which the blocks divide the lines. Which entries a
/// block needs it learns from lengths; both then come at one time.
void MmaEmitter::prefetchTable(Value lane) {
  constexpr int64_t line = 128;
  int64_t page = plan.getPaging().getPage();
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  Value last = b.add(block->field(b, offsetof(KernelArgs, maxKeys), i32), -1);
  last = b.div(last, page);
  if (int64_t ring = plan.getPaging().getRing())
    last = b.smaller(last, b.i32(ring / page - 1));
  Value lastByte = b.shiftLeft(last, 2);
  // A row may begin within a line.
  Value lines = b.add(b.div(lastByte, line), 2);
  Value blocks = NVVM::GridDimXOp::create(b, i32);
  Value x = NVVM::BlockIdXOp::create(b, i32);
  Value mine = b.add(x, arith::MulIOp::create(b, lane, blocks));
  Value request = arith::DivUIOp::create(b, mine, lines);
  Value within = arith::RemUIOp::create(b, mine, lines);
  Value byte = b.smaller(b.mul(within, line), lastByte);
  Value batch = block->field(b, offsetof(KernelArgs, batch), i32);
  b.when(b.is(Lane::Predicate::slt, request, batch), [&] {
    Value stride = block->field(b, offsetof(KernelArgs, tableStride), i64);
    Value row = arith::MulIOp::create(b, b.extend(request), b.mul(stride, 4));
    row = arith::AddIOp::create(
        b, row, block->field(b, offsetof(KernelArgs, table), i64));
    NVVM::PrefetchOp::create(b,
                             NVVM::PrefetchCacheLevelAttr::get(
                                 b.getContext(), NVVM::PrefetchCacheLevel::L2),
                             /*evictPriority=*/{},
                             b.global(b.add(row, b.extend(byte))),
                             /*predicate=*/{}, /*tensormap=*/{}, /*uniform=*/{},
                             /*in_param_space=*/{});
  });
}

void MmaEmitter::beginThread() {
  lane = b.rem(thread, layout::kWarp);
  warp = b.div(thread, layout::kWarp);
  rowWarp = b.rem(warp, mma.rowWarps);
  keyWarp = b.div(warp, mma.rowWarps);
}

void MmaEmitter::beginRows() {
  row.clear();
  position.clear();
  // accumulator(lane, 0) and accumulator(lane, 2) of each row tile.
  Value firstRow = b.mul(rowWarp, mma.rowTiles * layout::kRows);
  for (int64_t i = 0; i < laneRows(); ++i) {
    Value within = b.add(b.div(lane, 4), i * 8);
    row.push_back(b.add(b.add(block->firstRow, firstRow), within));
    position.push_back(block->positionOfRow(b, row[i]));
  }
}

LogicalResult MmaEmitter::emitItem() {
  beginThread();
  beginRows();
  // ldmatrixLeft and ldmatrixKeys, for this lane.
  Value half = b.div(lane, 16), odd = b.rem(b.div(lane, 8), 2);
  Value within = b.rem(lane, 8);
  Value leftRow = b.add(b.mul(odd, 8), within);
  Value keysRow = b.add(b.mul(half, 8), within);
  Value firstRow = b.mul(rowWarp, mma.rowTiles * layout::kRows);
  Value firstKey = b.mul(keyWarp, keysPerWarp());
  queryOperand = operand(dim, firstRow, leftRow, half);
  keyOperand = operand(dim, firstKey, keysRow, odd);
  if (mma.meetAtTile) {
    Value firstDim = b.mul(keyWarp, dimsPerWarp());
    valueOperand = operand(dim, b.i32(0), leftRow, half, firstDim);
    sharedOperand = operand(keyTile, firstRow, leftRow, half);
  } else {
    valueOperand = operand(dim, firstKey, leftRow, half);
  }
  return emitBlock(program.getBody().front());
}

LogicalResult MmaEmitter::emitBlock(Block &block) {
  for (Operation &op : block)
    if (!isa<scf::YieldOp>(op) && failed(emitOp(op)))
      return failure();
  return success();
}

LogicalResult MmaEmitter::emitOp(Operation &op) {
  b.setLoc(op.getLoc());
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case<scf::ForOp>([&](auto loop) { return emitFor(loop); })
      .Case<scf::IfOp>([&](auto branch) { return emitIf(branch); })
      .Case<RequestOp, ItemOp, CopyQueryOp, LookupPagesOp, AsyncCopyOp,
            AsyncWaitOp, ViewOp, ReadQueryOp, ScoresOp, AccumulateOp, MaskOp,
            SoftmaxOp, ReduceWarpsOp, AddSinkOp, StoreResultOp, AgreeMaxOp,
            ShareOp, AgreeSumOp, BarrierOp>([&](auto known) {
        emit(known);
        return success();
      })
      .Case<AsyncCommitOp>([&](auto) {
        NVVM::CpAsyncCommitGroupOp::create(b);
        return success();
      })
      .Case<AllocSharedOp>([&](auto alloc) {
        map[alloc.getBuffer()] = {b.i32(alloc.getOffset())};
        return success();
      })
      .Default([&](Operation *other) {
        if (auto splat = dyn_cast<arith::ConstantOp>(other))
          if (isa<RankedTensorType>(splat.getType())) {
            emitSplat(splat);
            return success();
          }
        if (!isa<arith::ArithDialect>(other->getDialect()))
          return LogicalResult(
              other->emitOpError("has no lowering to ")
              << stringifyLoweringKind(
                     plan.getScheduleOrDefault().getLowering()));
        emitScalar(*other);
        return success();
      });
}

void MmaEmitter::emitScalar(Operation &op) {
  IRMapping scalars;
  for (Value operand : op.getOperands())
    scalars.map(operand, single(operand));
  Operation *clone = b.clone(op, scalars);
  map[op.getResult(0)] = {clone->getResult(0)};
}

void MmaEmitter::emitSplat(arith::ConstantOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  float value = cast<DenseElementsAttr>(op.getValue()).getSplatValue<float>();
  int64_t count =
      type.getRank() == 1 ? laneRows() : mma.rowTiles * dimsPerWarp() / 2;
  map[op.getResult()] = Registers(count, b.f32(value));
}

LogicalResult MmaEmitter::emitFor(scf::ForOp op) {
  Registers init;
  SmallVector<size_t> counts;
  for (Value value : op.getInitArgs()) {
    llvm::append_range(init, registers(value));
    counts.push_back(registers(value).size());
  }
  /// Hands out consecutive registers to the values they belong to.
  auto assign = [&](ValueRange values, ArrayRef<Value> all) {
    for (auto [value, count] : llvm::zip(values, counts)) {
      map[value] = Registers(all.take_front(count));
      all = all.drop_front(count);
    }
  };
  LogicalResult result = success();
  Registers finals = b.loop(
      single(op.getLowerBound()), single(op.getUpperBound()),
      single(op.getStep()), init, [&](Value index, ValueRange carried) {
        map[op.getInductionVar()] = {index};
        assign(op.getRegionIterArgs(), Registers(carried));
        result = emitBlock(*op.getBody());
        Registers next;
        if (succeeded(result))
          for (Value value : op.getBody()->getTerminator()->getOperands())
            llvm::append_range(next, registers(value));
        return next;
      });
  if (failed(result))
    return failure();
  assign(op.getResults(), finals);
  return success();
}

LogicalResult MmaEmitter::emitIf(scf::IfOp op) {
  LogicalResult result = success();
  SmallVector<size_t> counts;
  auto arm = [&](Block *block) {
    Registers values;
    counts.clear();
    if (!block)
      return values;
    if (failed(emitBlock(*block)))
      result = failure();
    else
      for (Value value : block->getTerminator()->getOperands()) {
        llvm::append_range(values, registers(value));
        counts.push_back(registers(value).size());
      }
    return values;
  };
  Registers all = b.choose(
      single(op.getCondition()), [&] { return arm(op.thenBlock()); },
      [&] { return arm(op.elseBlock()); });
  if (failed(result))
    return failure();
  ArrayRef<Value> rest = all;
  for (auto [value, count] : llvm::zip(op.getResults(), counts)) {
    map[value] = Registers(rest.take_front(count));
    rest = rest.drop_front(count);
  }
  return success();
}

void MmaEmitter::emit(RequestOp op) {
  map[op.getLength()] = {block->length};
  map[op.getContext()] = {block->context};
  map[op.getColumns()] = {block->columns};
  map[op.getMinPosition()] = {block->minPosition};
  map[op.getMaxPosition()] = {block->maxPosition};
}

void MmaEmitter::emit(ItemOp op) {
  map[op.getRequest()] = {block->request};
  map[op.getPart()] = {block->part};
  map[op.getParts()] = {block->parts};
  map[op.getSlot()] = {block->slot};
  map[op.getFirst()] = {block->firstTile};
  map[op.getEnd()] = {block->endTile};
}

void MmaEmitter::emit(BarrierOp) { meet(); }

MmaEmitter::Operand MmaEmitter::operand(int64_t columns, Value firstRow,
                                        Value row, Value chunk,
                                        Value firstColumn) {
  // sharedByte(row, chunk + 2 * step): the low bits of 2 * step swap within
  // the swizzle, the rest is added by operandAddress.
  Operand operand;
  operand.rowBytes = columns * 2;
  Value start = b.mul(b.add(firstRow, row), operand.rowBytes);
  Value swapped = b.xorBits(chunk, b.rem(row, 8));
  if (firstColumn) {
    // A slice may begin inside a swizzle's 64 columns.
    Value firstChunk = b.div(firstColumn, 8);
    swapped = b.xorBits(swapped, b.rem(firstChunk, 8));
    start = b.add(start, b.shiftLeft(b.mul(b.div(firstChunk, 8), 8), 4));
  }
  int64_t places = std::min<int64_t>(4, columns / layout::kDepth);
  for (int64_t place = 0; place < places; ++place) {
    Value at = b.shiftLeft(b.xorBits(swapped, 2 * place), 4);
    operand.places.push_back(b.add(start, at));
  }
  return operand;
}

Value MmaEmitter::operandAddress(const Operand &operand, Value base,
                                 int64_t rows, int64_t step) {
  Value at = b.offset(shared, b.add(base, operand.places[step % 4]));
  return b.offset(at, rows * operand.rowBytes + step / 4 * 8 * layout::kChunk);
}
