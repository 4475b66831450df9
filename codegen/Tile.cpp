//===- Tile.cpp - attn-tile -----------------------------------------------===//
//
// Plan to tiles. The sweep is one loop over the key tiles of a part:
//
//   first, last tile of a request  <- lengths, window, causality
//   first, last tile of the part   <- attn.item, by the tiles of all requests
//   for t: K = load, S = Q K^T, mask if some row does not see all of t,
//          (P, alpha, m, l) = softmax, V = load, O = alpha O + P V
//   store the output, or the partial result if there are other parts
//
// All of it is ordinary i32 arithmetic, so each lowering runs one decision.
//
//===----------------------------------------------------------------------===//

#include "codegen/BlockContext.h"
#include "codegen/KernelABI.h"
#include "codegen/Passes.h"
#include "codegen/Schedule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace tokentile {
#define GEN_PASS_DEF_TILEPASS
#include "codegen/Passes.h.inc"
} // namespace tokentile

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;

using arith::CmpIPredicate;

static Type elementType(OpBuilder &b, StorageAttr storage) {
  return storage.getElement() == ElementKind::FP16 ? Type(b.getF16Type())
                                                   : Type(b.getBF16Type());
}

/// Stores the output of (max, sum, output) over all keys. Here, once for each
/// row, a sink joins the sum.
static void storeOutput(OpBuilder &b, KernelOp plan, ValueRange result) {
  Location loc = plan.getLoc();
  if (plan.getSink())
    result = AddSinkOp::create(b, loc, result.getTypes(), result)->getResults();
  StoreResultOp::create(b, loc, result[0], result[1], result[2], false);
}

namespace {

/// i32 arithmetic of a program.
class ScalarBuilder {
public:
  ScalarBuilder(ImplicitLocOpBuilder &b, KernelOp plan)
      : b(b), plan(plan), keyTile(plan.getScheduleOrDefault().getKeyTile()) {}

protected:
  Value constant(int64_t value) {
    return arith::ConstantIntOp::create(b, value, 32);
  }
  Value add(Value l, Value r) { return arith::AddIOp::create(b, l, r); }
  Value sub(Value l, Value r) { return arith::SubIOp::create(b, l, r); }
  Value mul(Value l, Value r) { return arith::MulIOp::create(b, l, r); }
  Value div(Value l, Value r) { return arith::DivUIOp::create(b, l, r); }
  Value smaller(Value l, Value r) { return arith::MinSIOp::create(b, l, r); }
  Value larger(Value l, Value r) { return arith::MaxSIOp::create(b, l, r); }
  Value both(Value l, Value r) { return arith::AndIOp::create(b, l, r); }
  Value is(CmpIPredicate predicate, Value l, Value r) {
    return arith::CmpIOp::create(b, predicate, l, r);
  }

  bool causal() { return plan.getSees().getSuffix() == SuffixKind::Causal; }
  bool windowed() { return plan.getSees().getPrefix() != PrefixKind::All; }
  bool boundedRight() {
    return plan.getSees().getPrefix() == PrefixKind::Symmetric && !causal();
  }

  ImplicitLocOpBuilder &b;
  KernelOp plan;
  int64_t keyTile;
};

/// Builds attn.item of one plan, which its sweep and its merge share.
class ItemBuilder : ScalarBuilder {
public:
  using ScalarBuilder::ScalarBuilder;

  ItemOp build();

private:
  std::pair<Value, Value> tilesOfRequest(Block &facts);
  Value sizeOfPiece(Value end);
};

/// Builds the sweep of one plan.
class SweepBuilder : ScalarBuilder {
public:
  SweepBuilder(ImplicitLocOpBuilder &b, KernelOp plan)
      : ScalarBuilder(b, plan), shape(plan) {}

  void build();

private:
  Value splat(float value, RankedTensorType type) {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(type, b.getF32FloatAttr(value)));
  }
  RankedTensorType tensor(ArrayRef<int64_t> dims, Type element) {
    return RankedTensorType::get(dims, element);
  }

  Value seenByAll(Value tile);
  SmallVector<Value> step(Value tile, Value query, ValueRange state);

  RowShape shape;
  RequestOp request;
};

} // namespace

/// Tiles that hold a key some row sees: [first, end).
std::pair<Value, Value> ItemBuilder::tilesOfRequest(Block &facts) {
  Value length = facts.getArgument(0), columns = facts.getArgument(2);
  Value minPosition = facts.getArgument(3), maxPosition = facts.getArgument(4);
  Value zero = constant(0), one = constant(1), size = constant(keyTile);
  Value window = constant(plan.getSees().getWindow());
  Value low = zero, high = length;
  if (windowed())
    low = larger(zero, add(sub(minPosition, window), one));
  if (causal())
    high = smaller(high, add(maxPosition, one));
  if (boundedRight())
    high = smaller(high, add(maxPosition, window));
  high = larger(high, zero);
  // A request without query tokens costs nothing, however long it is.
  if (plan.getQueryOrDefault().getColumns() != ColumnsKind::Uniform) {
    Value some = is(CmpIPredicate::sgt, columns, zero);
    high = arith::SelectOp::create(b, some, high, zero);
  }
  Value first = div(low, size);
  Value end = div(add(high, constant(keyTile - 1)), size);
  return {first, larger(first, end)};
}

/// Tiles of one piece, if the plan fixes them. That of growing pieces follows
/// from the last tile that a row sees, or from its window.
Value ItemBuilder::sizeOfPiece(Value end) {
  SplitAttr split = plan.getSplitOrDefault();
  if (split.getKind() == SplitKind::Keys)
    return constant(split.getValue() / keyTile);
  Value seen = end;
  if (int64_t window = plan.getSees().getWindow()) {
    int64_t keys = boundedRight() ? 2 * window : window;
    seen = smaller(seen, constant(llvm::divideCeil(keys, keyTile) + 1));
  }
  Value above = add(seen, constant(split.getValue() - 1));
  return larger(div(above, constant(split.getValue())),
                constant(leastTilesOfPiece(keyTile)));
}

ItemOp ItemBuilder::build() {
  SmallVector<Type> i32(6, b.getI32Type());
  auto item = ItemOp::create(b, i32);
  OpBuilder::InsertionGuard guard(b);
  Block &facts = item.getTiles().emplaceBlock();
  for (int i = 0; i < 5; ++i)
    facts.addArgument(b.getI32Type(), b.getLoc());
  b.setInsertionPointToStart(&facts);
  auto [first, end] = tilesOfRequest(facts);
  SplitAttr split = plan.getSplitOrDefault();
  Value parts, size;
  if (split.getKind() == SplitKind::Count)
    parts = larger(constant(1),
                   smaller(sub(end, first), constant(split.getValue())));
  if (split.isSized())
    size = sizeOfPiece(end);
  YieldTilesOp::create(b, first, end, parts, size);
  return item;
}

/// i1: every row sees every key of the tile.
Value SweepBuilder::seenByAll(Value tile) {
  Value first = mul(tile, constant(keyTile));
  Value last = add(first, constant(keyTile - 1));
  Value window = constant(plan.getSees().getWindow());
  Value all = is(CmpIPredicate::slt, last, request.getLength());
  if (causal())
    all = both(all, is(CmpIPredicate::sle, last, request.getMinPosition()));
  if (windowed()) {
    Value oldest = sub(request.getMaxPosition(), window);
    all = both(all, is(CmpIPredicate::sgt, first, oldest));
  }
  if (boundedRight()) {
    Value newest = add(request.getMinPosition(), window);
    all = both(all, is(CmpIPredicate::slt, last, newest));
  }
  return all;
}

/// One tile: the new (max, sum, output).
SmallVector<Value> SweepBuilder::step(Value tile, Value query,
                                      ValueRange state) {
  int64_t rows = shape.rowsPerBlock, dim = plan.getHeads().getDim();
  int64_t page = plan.getPaging().getPage();
  Type key = elementType(b, plan.getKeys());
  Type value = elementType(b, plan.getValues());
  RankedTensorType scores = tensor({rows, keyTile}, b.getF32Type());
  RankedTensorType stats = tensor({rows}, b.getF32Type());

  int64_t pageCount = page ? std::max<int64_t>(1, keyTile / page) : 1;
  Value pages =
      LookupPagesOp::create(b, tensor({pageCount}, b.getI32Type()), tile);
  Value keys = LoadTileOp::create(b, tensor({keyTile, dim}, key), Plane::Keys,
                                  tile, pages);
  Value raw = ScoresOp::create(b, scores, query, keys);
  auto masked = scf::IfOp::create(b, scores, seenByAll(tile),
                                  /*withElseRegion=*/true);
  OpBuilder inner = masked.getThenBodyBuilder();
  scf::YieldOp::create(inner, b.getLoc(), raw);
  inner = masked.getElseBodyBuilder();
  Value kept = MaskOp::create(inner, b.getLoc(), scores, raw, tile);
  scf::YieldOp::create(inner, b.getLoc(), kept);

  auto softmax =
      SoftmaxOp::create(b, tensor({rows, keyTile}, value), stats, stats, stats,
                        masked.getResult(0), state[0], state[1],
                        /*agreed=*/Value());
  Value values = LoadTileOp::create(b, tensor({keyTile, dim}, value),
                                    Plane::Values, tile, pages);
  Value output =
      AccumulateOp::create(b, state[2].getType(), state[2], softmax.getAlpha(),
                           softmax.getProbabilities(), values);
  return {softmax.getNewMax(), softmax.getNewSum(), output};
}

void SweepBuilder::build() {
  int64_t rows = shape.rowsPerBlock, dim = plan.getHeads().getDim();
  SmallVector<Type> i32(5, b.getI32Type());
  ItemOp item = ItemBuilder(b, plan).build();
  request = RequestOp::create(b, i32);

  Value query = LoadQueryOp::create(
      b, tensor({rows, dim}, elementType(b, plan.getKeys())));
  RankedTensorType stats = tensor({rows}, b.getF32Type());
  SmallVector<Value> start{
      splat(-std::numeric_limits<float>::infinity(), stats), splat(0, stats),
      splat(0, tensor({rows, dim}, b.getF32Type()))};

  auto loop =
      scf::ForOp::create(b, item.getFirst(), item.getEnd(), constant(1), start);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> next =
        step(loop.getInductionVar(), query, loop.getRegionIterArgs());
    scf::YieldOp::create(b, next);
  }

  auto storePartial = [&](OpBuilder &b) {
    StoreResultOp::create(b, loop.getLoc(), loop.getResult(0),
                          loop.getResult(1), loop.getResult(2), true);
  };
  if (plan.getSplitOrDefault().isSized())
    return storePartial(b);
  Value alone = is(CmpIPredicate::slt, item.getSlot(), constant(0));
  auto store = scf::IfOp::create(b, TypeRange(), alone,
                                 /*withElseRegion=*/true);
  OpBuilder inner = store.getThenBodyBuilder();
  storeOutput(inner, plan, loop.getResults());
  inner = store.getElseBodyBuilder();
  storePartial(inner);
}

/// Adds an empty program for `plan` and moves the builder into it.
static void beginProgram(ImplicitLocOpBuilder &b, KernelOp plan,
                         ProgramRole role) {
  b.setLoc(plan.getLoc());
  StringRef suffix = role == ProgramRole::Sweep ? "_sweep" : "_merge";
  auto program = ProgramOp::create(b, (plan.getSymName() + suffix).str(), role,
                                   plan.getSymName());
  b.setInsertionPointToStart(&program.getBody().emplaceBlock());
}

namespace {

struct TilePass : tokentile::impl::TilePassBase<TilePass> {
  using TilePassBase::TilePassBase;

  void runOnOperation() override {
    auto plans = llvm::to_vector(getOperation().getOps<KernelOp>());
    for (KernelOp plan : plans) {
      if (failed(checkComplete(plan)))
        return signalPassFailure();
      ImplicitLocOpBuilder b(plan.getLoc(), &getContext());
      b.setInsertionPointToEnd(getOperation().getBody());
      beginProgram(b, plan, ProgramRole::Sweep);
      SweepBuilder(b, plan).build();

      b.setInsertionPointToEnd(getOperation().getBody());
      beginProgram(b, plan, ProgramRole::Merge);
      ItemBuilder(b, plan).build();
      auto stats = RankedTensorType::get({1}, b.getF32Type());
      auto row = RankedTensorType::get({1, plan.getValueDim()}, b.getF32Type());
      auto merged = MergePartialsOp::create(b, stats, stats, row);
      storeOutput(b, plan, merged.getResults());
    }
  }
};

} // namespace
