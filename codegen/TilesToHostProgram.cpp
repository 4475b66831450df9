//===- TilesToHostProgram.cpp - One program as a host function ------------===//
//
// Walks a program in order. Each tensor is a buffer on the stack and scf loops
// carry scalars only. A result takes the buffer of an operand that dies with
// it; other tensors that control flow carries are copied.
//
//===----------------------------------------------------------------------===//

#include "codegen/TilesToHostProgram.h"

#include "codegen/TilesToHostLiveness.h"
#include "codegen/TilesToHostOps.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;
using namespace tokentile::host;

namespace {

bool isTile(Value value) { return isa<TensorType>(value.getType()); }

/// Walks one program in order and emits it into a function.
class ProgramEmitter {
public:
  ProgramEmitter(HostBuilder &h, BlockContext &ctx) : h(h), emit{h, ctx} {}

  LogicalResult emitBlock(Block &block);

private:
  LogicalResult emitOp(Operation *op);
  LogicalResult emitTileOp(Operation *op);
  LogicalResult emitFor(scf::ForOp op);
  LogicalResult emitIf(scf::IfOp op);
  void emitLoopYield(scf::YieldOp yield, ArrayRef<TileBuffer> carried);
  LogicalResult emitBranch(Region &from, Region &to);
  void emitRequest(RequestOp op);
  void emitItem(ItemOp op);
  void emitSoftmax(SoftmaxOp op);

  TileBuffer allocate(Value tile);
  /// The buffer that holds `tile`, to be read.
  TileBuffer read(Value tile);
  /// A buffer that `op` may overwrite and that holds `tile`.
  TileBuffer take(Value tile, Operation *op);
  /// A buffer for `result`: that of `operand` if it dies at `op`.
  TileBuffer reuse(Value operand, Value result, Operation *op);
  /// Writes `tile` into `target`.
  void assign(Value tile, TileBuffer target);
  Emitter::Result result(Value max, Value sum, Value output) {
    return {read(max), read(sum), read(output)};
  }
  Value scalar(Value value) { return scalars.lookup(value); }

  HostBuilder &h;
  Emitter emit;
  IRMapping scalars;
  DenseMap<Value, TileBuffer> buffers;
};

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

/// The scalar of a splat constant tile, or null.
Attribute splatOf(Value tile) {
  DenseElementsAttr elements;
  if (matchPattern(tile, m_Constant(&elements)) && elements.isSplat())
    return elements.getSplatValue<Attribute>();
  return {};
}

TileBuffer ProgramEmitter::allocate(Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  int64_t rows = type.getRank() == 2 ? type.getDimSize(0) : 1;
  Type element = type.getElementType();
  if (isa<FloatType>(element))
    element = h.getF32Type();
  return h.allocate(rows, type.getShape().back(), element);
}

TileBuffer ProgramEmitter::read(Value tile) {
  auto found = buffers.find(tile);
  if (found != buffers.end())
    return found->second;
  // A constant is written where it is read: the buffer may be of one branch.
  TileBuffer buffer = allocate(tile);
  assign(tile, buffer);
  return buffer;
}

void ProgramEmitter::assign(Value tile, TileBuffer target) {
  if (Attribute splat = splatOf(tile)) {
    auto value = cast<TypedAttr>(splat);
    if (auto number = dyn_cast<FloatAttr>(splat))
      value = h.getF32FloatAttr(float(number.getValueAsDouble()));
    h.fill(target, arith::ConstantOp::create(h, value));
    return;
  }
  TileBuffer source = buffers.lookup(tile);
  if (!(source == target))
    h.copy(source, target);
}

TileBuffer ProgramEmitter::take(Value tile, Operation *op) {
  if (buffers.count(tile) && diesAt(tile, op))
    return buffers.lookup(tile);
  TileBuffer buffer = allocate(tile);
  assign(tile, buffer);
  return buffer;
}

TileBuffer ProgramEmitter::reuse(Value operand, Value result, Operation *op) {
  bool dies = buffers.count(operand) && diesAt(operand, op);
  TileBuffer buffer = dies ? buffers.lookup(operand) : allocate(result);
  buffers[result] = buffer;
  return buffer;
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

LogicalResult ProgramEmitter::emitBlock(Block &block) {
  for (Operation &op : block)
    if (!isa<scf::YieldOp>(op) && failed(emitOp(&op)))
      return failure();
  return success();
}

LogicalResult ProgramEmitter::emitOp(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return emitFor(loop);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return emitIf(branch);
  if (isa<AttnDialect>(op->getDialect()))
    return emitTileOp(op);
  if (op->getNumResults() == 1 && isTile(op->getResult(0)) &&
      splatOf(op->getResult(0)))
    return success();
  if (op->getNumRegions() || llvm::any_of(op->getOperands(), isTile) ||
      llvm::any_of(op->getResults(), isTile))
    return op->emitOpError("has no lowering to the host");
  h.clone(*op, scalars);
  return success();
}

LogicalResult ProgramEmitter::emitFor(scf::ForOp op) {
  SmallVector<Value> init;
  SmallVector<TileBuffer> carried;
  for (Value value : op.getInitArgs()) {
    if (isTile(value))
      carried.push_back(take(value, op));
    else
      init.push_back(scalar(value));
  }
  auto loop = scf::ForOp::create(h, scalar(op.getLowerBound()),
                                 scalar(op.getUpperBound()),
                                 scalar(op.getStep()), init);
  scalars.map(op.getInductionVar(), loop.getInductionVar());
  auto nextTile = carried.begin();
  auto nextScalar = llvm::zip(loop.getRegionIterArgs(), loop.getResults());
  auto scalarPair = nextScalar.begin();
  for (auto [argument, result] :
       llvm::zip(op.getRegionIterArgs(), op.getResults())) {
    if (isTile(argument)) {
      TileBuffer buffer = *nextTile++;
      buffers[argument] = buffer;
      buffers[result] = buffer;
      continue;
    }
    scalars.map(argument, std::get<0>(*scalarPair));
    scalars.map(result, std::get<1>(*scalarPair));
    ++scalarPair;
  }
  OpBuilder::InsertionGuard guard(h);
  Block *body = loop.getBody();
  if (init.empty())
    body->getTerminator()->erase();
  h.setInsertionPointToEnd(body);
  if (failed(emitBlock(*op.getBody())))
    return failure();
  emitLoopYield(cast<scf::YieldOp>(op.getBody()->getTerminator()), carried);
  return success();
}

void ProgramEmitter::emitLoopYield(scf::YieldOp yield,
                                   ArrayRef<TileBuffer> carried) {
  SmallVector<Value> tiles, values;
  for (Value value : yield.getOperands()) {
    if (isTile(value))
      tiles.push_back(value);
    else
      values.push_back(scalar(value));
  }
  // A tile that moves to another loop-carried buffer moves by way of a third,
  // since its own may be overwritten first.
  DenseMap<Value, TileBuffer> saved;
  for (auto [tile, target] : llvm::zip(tiles, carried)) {
    auto found = buffers.find(tile);
    if (found == buffers.end() || found->second == target ||
        !llvm::is_contained(carried, found->second) || saved.count(tile))
      continue;
    TileBuffer third = allocate(tile);
    assign(tile, third);
    saved[tile] = third;
  }
  for (auto [tile, target] : llvm::zip(tiles, carried)) {
    if (saved.count(tile) && !(buffers.lookup(tile) == target))
      h.copy(saved.lookup(tile), target);
    else
      assign(tile, target);
  }
  scf::YieldOp::create(h, values);
}

LogicalResult ProgramEmitter::emitBranch(Region &from, Region &to) {
  if (from.empty())
    return success();
  OpBuilder::InsertionGuard guard(h);
  Block &block = to.front();
  if (block.mightHaveTerminator())
    block.getTerminator()->erase();
  h.setInsertionPointToEnd(&block);
  return emitBlock(from.front());
}

LogicalResult ProgramEmitter::emitIf(scf::IfOp op) {
  SmallVector<Type> types;
  for (Value result : op.getResults())
    if (!isTile(result))
      types.push_back(result.getType());
  bool withElse = !op.getElseRegion().empty();
  auto branch =
      scf::IfOp::create(h, types, scalar(op.getCondition()), withElse);
  Region *sources[] = {&op.getThenRegion(), &op.getElseRegion()};
  Region *targets[] = {&branch.getThenRegion(), &branch.getElseRegion()};
  for (int i = 0; i <= int(withElse); ++i)
    if (failed(emitBranch(*sources[i], *targets[i])))
      return failure();

  // A result that both branches leave in one buffer stays there, unless a
  // tile from outside lies in it that is wanted later.
  auto isFree = [&](Value tile) {
    return op->isAncestor(tile.getParentBlock()->getParentOp()) ||
           diesAt(tile, op);
  };
  auto yielded = [&](int i, unsigned number) {
    return sources[i]->front().getTerminator()->getOperand(number);
  };
  auto nextScalar = branch.result_begin();
  for (OpResult result : op.getResults()) {
    unsigned number = result.getResultNumber();
    if (!isTile(result)) {
      scalars.map(result, *nextScalar++);
      continue;
    }
    Value tiles[] = {yielded(0, number), yielded(1, number)};
    bool together = llvm::all_of(tiles, [&](Value tile) {
      return buffers.count(tile) && isFree(tile) &&
             buffers.lookup(tile) == buffers.lookup(tiles[0]);
    });
    buffers[result] = together ? buffers.lookup(tiles[0]) : allocate(result);
  }
  for (int i = 0; i <= int(withElse); ++i) {
    OpBuilder::InsertionGuard guard(h);
    h.setInsertionPointToEnd(&targets[i]->front());
    SmallVector<Value> values;
    for (OpResult result : op.getResults()) {
      Value value = yielded(i, result.getResultNumber());
      if (isTile(value))
        assign(value, buffers.lookup(result));
      else
        values.push_back(scalar(value));
    }
    scf::YieldOp::create(h, values);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Tile operations
//===----------------------------------------------------------------------===//

void ProgramEmitter::emitRequest(RequestOp op) {
  BlockContext &ctx = emit.ctx;
  Value facts[] = {ctx.length, ctx.context, ctx.columns, ctx.minPosition,
                   ctx.maxPosition};
  for (auto [result, fact] : llvm::zip(op->getResults(), facts))
    if (fact)
      scalars.map(result, fact);
}

void ProgramEmitter::emitItem(ItemOp op) {
  BlockContext &ctx = emit.ctx;
  Value item[] = {ctx.request, ctx.part,      ctx.parts,
                  ctx.slot,    ctx.firstTile, ctx.endTile};
  for (auto [result, value] : llvm::zip(op->getResults(), item))
    if (value)
      scalars.map(result, value);
}

void ProgramEmitter::emitSoftmax(SoftmaxOp op) {
  Emitter::Softmax tiles;
  tiles.scores = read(op.getScores());
  tiles.max = read(op.getMax());
  tiles.sum = read(op.getSum());
  tiles.probabilities = reuse(op.getScores(), op.getProbabilities(), op);
  tiles.newMax = reuse(op.getMax(), op.getNewMax(), op);
  tiles.newSum = reuse(op.getSum(), op.getNewSum(), op);
  tiles.alpha = buffers[op.getAlpha()] = allocate(op.getAlpha());
  emit.softmax(tiles);
}

LogicalResult ProgramEmitter::emitTileOp(Operation *operation) {
  auto fresh = [&](Value tile) { return buffers[tile] = allocate(tile); };
  return TypeSwitch<Operation *, LogicalResult>(operation)
      .Case([&](RequestOp op) { return emitRequest(op), success(); })
      .Case([&](ItemOp op) { return emitItem(op), success(); })
      .Case([&](LoadQueryOp op) {
        return emit.loadQuery(fresh(op.getResult())), success();
      })
      .Case([&](LookupPagesOp op) {
        emit.lookupPages(scalar(op.getTile()), fresh(op.getPages()));
        return success();
      })
      .Case([&](LoadTileOp op) {
        emit.loadTile(op.getPlane(), scalar(op.getTile()), read(op.getPages()),
                      fresh(op.getResult()));
        return success();
      })
      .Case([&](ScoresOp op) {
        emit.scores(read(op.getQuery()), read(op.getKeys()),
                    fresh(op.getScores()));
        return success();
      })
      .Case([&](MaskOp op) {
        TileBuffer scores = read(op.getScores());
        emit.mask(scores, scalar(op.getTile()),
                  reuse(op.getScores(), op.getResult(), op));
        return success();
      })
      .Case([&](SoftmaxOp op) { return emitSoftmax(op), success(); })
      .Case([&](AccumulateOp op) {
        TileBuffer output = read(op.getOutput());
        emit.accumulate(output, read(op.getAlpha()),
                        read(op.getProbabilities()), read(op.getValues()),
                        reuse(op.getOutput(), op.getResult(), op));
        return success();
      })
      .Case([&](MergePartialsOp op) {
        emit.mergePartials(
            {fresh(op.getMax()), fresh(op.getSum()), fresh(op.getOutput())});
        return success();
      })
      .Case([&](AddSinkOp op) {
        Emitter::Result from = result(op.getMax(), op.getSum(), op.getOutput());
        emit.addSink(from, {reuse(op.getMax(), op.getNewMax(), op),
                            reuse(op.getSum(), op.getNewSum(), op),
                            reuse(op.getOutput(), op.getResult(), op)});
        return success();
      })
      .Case([&](StoreResultOp op) {
        Emitter::Result tiles =
            result(op.getMax(), op.getSum(), op.getOutput());
        op.getPartial() ? emit.storePartial(tiles) : emit.storeResult(tiles);
        return success();
      })
      .Default([](Operation *op) {
        return op->emitOpError("has no lowering to the host");
      });
}

} // namespace

LogicalResult tokentile::host::lowerToFunction(ProgramOp program) {
  MLIRContext *context = program.getContext();
  OpBuilder builder(program);
  Location loc = program.getLoc();
  Type i32 = builder.getI32Type();
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context),
                                  {LLVM::LLVMPointerType::get(context), i32});
  auto function =
      LLVM::LLVMFuncOp::create(builder, loc, program.getSymName(), type);
  Block *entry = function.addEntryBlock(builder);
  HostBuilder h(loc, entry);
  LaneTeam alone;
  BlockContext ctx(h, loc, program, entry->getArgument(0), alone,
                   /*globalSpace=*/0);
  ProgramEmitter emitter(h, ctx);
  Value x = entry->getArgument(1);
  LogicalResult result = success();
  auto emit = [&] { result = emitter.emitBlock(*program.getBody().begin()); };
  if (program.getRole() == ProgramRole::Sweep) {
    h.branch(ctx.findItem(h, x), emit);
  } else {
    MergeUnits units = ctx.countUnits(h, /*rows=*/1, /*several=*/true);
    auto rows = scf::ForOp::create(h, x, units.count, ctx.unitStride(h));
    OpBuilder::InsertionGuard guard(h);
    h.setInsertionPoint(rows.getBody()->getTerminator());
    h.branch(ctx.findUnit(h, units, rows.getInductionVar()), emit);
  }
  if (failed(result))
    return failure();
  h.setInsertionPointToEnd(entry);
  LLVM::ReturnOp::create(h, ValueRange());
  return success();
}
