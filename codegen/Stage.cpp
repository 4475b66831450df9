//===- Stage.cpp - attn-stage ---------------------------------------------===//
//
// Tiles to staged. The loop over key tiles
//
//   for t: K = load t; ...; V = load t; ...
//
// becomes a pipeline over a ring of `stages` slots in shared memory:
//
//   begin copies of the first stages - 1 tiles
//   for t: wait for tile t; barrier; begin the copy of tile t + stages - 1
//          into the slot that tile t - 1 has left; K, V = views of t's slot;
//          ...
//
// Page lookups run one more tile ahead. Every other tensor becomes a fragment
// of the block's warps. Key warps meet once, behind the loop. Plans for wgmma
// divide their warps instead, see StageRoles.cpp.
//
//===----------------------------------------------------------------------===//

#include "codegen/Stage.h"

#include "codegen/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tokentile {
#define GEN_PASS_DEF_STAGEPASS
#include "codegen/Passes.h.inc"
} // namespace tokentile

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;

using arith::CmpIPredicate;

Stager::Stager(ProgramOp program)
    : program(program), plan(program.getPlan()),
      schedule(plan.getScheduleOrDefault()), mma(readSchedule(schedule)),
      layout(sharedLayout(plan, mma)),
      b(program.getLoc(), program.getContext()) {}

Value Stager::constant(int64_t value) {
  return arith::ConstantIntOp::create(b, value, 32);
}

static RankedTensorType encoded(RankedTensorType type, Attribute encoding) {
  return RankedTensorType::get(type.getShape(), type.getElementType(),
                               encoding);
}

RankedTensorType Stager::fragment(Type type, FragmentKind kind) {
  auto attr = FragmentAttr::get(b.getContext(), kind, schedule.getRowWarps(),
                                schedule.getKeyWarps());
  return encoded(cast<RankedTensorType>(type), attr);
}

Value Stager::allocate(int64_t offset, int64_t stages, RankedTensorType tile,
                       int64_t swizzle, int64_t panel) {
  auto shared = SharedAttr::get(b.getContext(), swizzle, panel);
  auto type = BufferType::get(b.getContext(), stages, encoded(tile, shared));
  return AllocSharedOp::create(b, type, offset);
}

LogicalResult Stager::findLoop() {
  program.walk([&](LoadTileOp load) {
    (load.getPlane() == Plane::Keys ? loadKeys : loadValues) = load;
  });
  if (!loadKeys || !loadValues)
    return program.emitOpError("expected one load of keys and one of values");
  loop = loadKeys->getParentOfType<scf::ForOp>();
  lookupPages = loadKeys.getPages().getDefiningOp<LookupPagesOp>();
  if (!loop || !lookupPages || loadValues->getParentOp() != loop)
    return program.emitOpError("expected keys and values loaded in one loop");
  return success();
}

/// Gives every tensor but loaded tiles the encoding of the fragment it is.
void Stager::encodeFragments() {
  int64_t dim = plan.getValueDim();
  auto encode = [&](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || type.getEncoding() || !type.getElementType().isF32())
      return;
    FragmentKind kind =
        type.getRank() == 1 ? FragmentKind::Statistics : FragmentKind::Scores;
    // Scores and outputs of equal width differ by who makes them.
    if (type.getRank() == 2 && type.getShape()[1] == dim &&
        !isa_and_nonnull<ScoresOp, MaskOp, scf::IfOp>(value.getDefiningOp()))
      kind = mma.meetAtTile ? FragmentKind::Slices : FragmentKind::Output;
    value.setType(fragment(type, kind));
  };
  program.walk([&](Operation *op) {
    for (Value result : op->getResults())
      encode(result);
    for (Region &region : op->getRegions())
      for (BlockArgument argument : region.getArguments())
        encode(argument);
    if (auto softmax = dyn_cast<SoftmaxOp>(op)) {
      Value p = softmax.getProbabilities();
      p.setType(fragment(p.getType(), FragmentKind::Probabilities));
    }
    if (auto splat = dyn_cast<arith::ConstantOp>(op))
      if (auto type = dyn_cast<RankedTensorType>(splat.getType())) {
        auto value = cast<DenseElementsAttr>(splat.getValue());
        splat.setValueAttr(value.reshape(type));
      }
  });
}

/// Begins the copy of the query rows; they are part of the first tile's group.
void Stager::stageQuery() {
  auto load = *program.getBody().getOps<LoadQueryOp>().begin();
  b.setInsertionPoint(load);
  auto type = cast<RankedTensorType>(load.getResult().getType());
  Value buffer = allocate(0, 1, type);
  CopyQueryOp::create(b, buffer);
  Value view = ViewOp::create(b, cast<BufferType>(buffer.getType()).getTile(),
                              buffer, constant(0));
  load.getResult().replaceAllUsesWith(view);
  load.erase();
  query = view;
}

/// Moves the query operand to registers, once the first group has landed.
void Stager::readQuery() {
  if (schedule.getQuery() != QueryPlace::Registers)
    return;
  b.setInsertionPoint(loop);
  AsyncWaitOp::create(b, schedule.getStages() - 2);
  BarrierOp::create(b);
  auto type = fragment(query.getType(), FragmentKind::Query);
  auto read = ReadQueryOp::create(b, type, query);
  query.replaceAllUsesExcept(read, read);
}

Value Stager::lookup(Value tile) {
  return LookupPagesOp::create(b, lookupPages.getPages().getType(), tile);
}

void Stager::viewInstead(LoadTileOp load, Value buffer, Value slot) {
  b.setInsertionPoint(load);
  Value tile = ViewOp::create(b, cast<BufferType>(buffer.getType()).getTile(),
                              buffer, slot);
  load.getResult().replaceAllUsesWith(tile);
  load.erase();
}

/// Begins the copies of `tile` if the split has it; closes a group always, so
/// that counts of groups do not depend on lengths.
void Stager::copyTile(Value tile, Value pages, Value slot) {
  Value inside =
      arith::CmpIOp::create(b, CmpIPredicate::slt, tile, loop.getUpperBound());
  auto copies = scf::IfOp::create(b, TypeRange(), inside,
                                  /*withElseRegion=*/false);
  OpBuilder inner = copies.getThenBodyBuilder();
  AsyncCopyOp::create(inner, b.getLoc(), Plane::Keys, tile, pages, keyBuffer,
                      slot);
  AsyncCopyOp::create(inner, b.getLoc(), Plane::Values, tile, pages,
                      valueBuffer, slot);
  AsyncCommitOp::create(b);
}

void Stager::pipeline() {
  int64_t stages = schedule.getStages();
  auto keyTile = cast<RankedTensorType>(loadKeys.getResult().getType());
  auto valueTile = cast<RankedTensorType>(loadValues.getResult().getType());

  b.setInsertionPoint(loop);
  keyBuffer = allocate(layout.tiles, stages, keyTile);
  int64_t keyBytes = cast<BufferType>(keyBuffer.getType()).getBytes();
  valueBuffer = allocate(layout.tiles + keyBytes, stages, valueTile);
  Value begin = loop.getLowerBound();
  auto ahead = [&](Value tile, int64_t count) -> Value {
    return arith::AddIOp::create(b, tile, constant(count));
  };
  for (int64_t i = 0; i < stages - 1; ++i) {
    Value tile = ahead(begin, i);
    copyTile(tile, lookup(tile), constant(i));
  }
  Value nextPages = lookup(ahead(begin, stages - 1));

  // The loop carries the slot of its tile and the pages of the next copy.
  SmallVector<Value> extra{constant(0), nextPages};
  IRRewriter rewriter(b.getContext());
  rewriter.setInsertionPoint(loop);
  auto replaced = *loop.replaceWithAdditionalYields(
      rewriter, extra, /*replaceInitOperandUsesInLoop=*/false,
      [&](OpBuilder &inner, Location loc, ArrayRef<BlockArgument> args) {
        Value slot = args[0];
        Value one = arith::ConstantIntOp::create(inner, loc, 1, 32);
        Value zero = arith::ConstantIntOp::create(inner, loc, 0, 32);
        Value last = arith::ConstantIntOp::create(inner, loc, stages - 1, 32);
        Value next = arith::AddIOp::create(inner, loc, slot, one);
        Value wraps =
            arith::CmpIOp::create(inner, loc, CmpIPredicate::eq, slot, last);
        next = arith::SelectOp::create(inner, loc, wraps, zero, next);
        return SmallVector<Value>{next, args[1]};
      });
  loop = cast<scf::ForOp>(replaced.getOperation());

  Block *body = loop.getBody();
  b.setInsertionPointToStart(body);
  Value tile = loop.getInductionVar();
  Value slot = body->getArgument(body->getNumArguments() - 2);
  Value pages = body->getArgument(body->getNumArguments() - 1);
  AsyncWaitOp::create(b, stages - 2);
  BarrierOp::create(b);
  Value first = arith::CmpIOp::create(b, CmpIPredicate::eq, slot, constant(0));
  Value left =
      arith::SelectOp::create(b, first, constant(stages - 1),
                              arith::SubIOp::create(b, slot, constant(1)));
  copyTile(ahead(tile, stages - 1), pages, left);
  Value following = lookup(ahead(tile, stages));
  auto yield = cast<scf::YieldOp>(body->getTerminator());
  yield.setOperand(yield.getNumOperands() - 1, following);

  viewInstead(loadKeys, keyBuffer, slot);
  viewInstead(loadValues, valueBuffer, slot);
  lookupPages.erase();
}

/// Key warps add up their outputs behind the loop.
void Stager::meetAtEnd() {
  b.setInsertionPointAfter(loop);
  // Copies still in flight must not land on the scratch behind the query.
  AsyncWaitOp::create(b, 0);
  auto reduce = ReduceWarpsOp::create(
      b, loop.getResult(0).getType(), loop.getResult(1).getType(),
      loop.getResult(2).getType(), loop.getResult(0), loop.getResult(1),
      loop.getResult(2), layout.tiles);
  for (int i : {0, 1, 2})
    loop.getResult(i).replaceAllUsesExcept(reduce->getResult(i), reduce);
}

/// Key warps agree on maxima, share probabilities and divide the dimensions.
void Stager::meetAtTile() {
  SoftmaxOp softmax;
  AccumulateOp accumulate;
  loop.walk([&](SoftmaxOp op) { softmax = op; });
  loop.walk([&](AccumulateOp op) { accumulate = op; });
  auto shape = cast<RankedTensorType>(softmax.getProbabilities().getType());

  b.setInsertionPoint(loop);
  auto plain = RankedTensorType::get(shape.getShape(), shape.getElementType());
  Value probabilities = allocate(layout.probabilities, 1, plain);
  // One 16-byte row for the numbers of up to four key warps.
  auto numbers = RankedTensorType::get({mma.rows(), 4}, b.getF32Type());
  Value scratch = allocate(layout.scratch, 1, numbers, /*swizzle=*/1);
  Value zero = constant(0);

  b.setInsertionPoint(softmax);
  Value agreed = AgreeMaxOp::create(b, softmax.getMax().getType(),
                                    softmax.getScores(), scratch);
  softmax.getAgreedMutable().assign(agreed);

  b.setInsertionPoint(accumulate);
  ShareOp::create(b, softmax.getProbabilities(), probabilities);
  BarrierOp::create(b);
  Value view =
      ViewOp::create(b, cast<BufferType>(probabilities.getType()).getTile(),
                     probabilities, zero);
  accumulate.getProbabilitiesMutable().assign(view);

  b.setInsertionPointAfter(loop);
  Value sum = loop.getResult(1);
  auto total = AgreeSumOp::create(b, sum.getType(), sum, scratch);
  sum.replaceAllUsesExcept(total, total);
}

LogicalResult Stager::run() {
  if (failed(findLoop()))
    return failure();
  encodeFragments();
  if (mma.wgmma) {
    stageRoles();
    return success();
  }
  stageQuery();
  pipeline();
  readQuery();
  if (mma.meetAtTile)
    meetAtTile();
  else if (mma.keyWarps > 1)
    meetAtEnd();
  return success();
}

namespace {

struct StagePass : tokentile::impl::StagePassBase<StagePass> {
  using StagePassBase::StagePassBase;

  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>()) {
      KernelOp plan = program.getPlan();
      if (!isForGpu(plan)) {
        program.emitOpError("is planned for ")
            << stringifyLoweringKind(plan.getScheduleOrDefault().getLowering())
            << ", expected a lowering for a GPU";
        return signalPassFailure();
      }
      if (failed(checkComplete(plan)))
        return signalPassFailure();
      if (program.getRole() == ProgramRole::Sweep &&
          failed(Stager(program).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
