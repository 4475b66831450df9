//===- BlockContext.cpp - What a block knows, as emitted code -------------===//

#include "codegen/BlockContext.h"

#include "codegen/KernelABI.h"
#include "codegen/Schedule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

#include <cmath>
#include <cstddef>

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;

using arith::CmpIPredicate;

#define ARG(name) offsetof(KernelArgs, name)

RowShape::RowShape(KernelOp plan) {
  ScheduleAttr schedule = plan.getScheduleOrDefault();
  group = plan.getHeads().getGroup();
  rows = plan.getRows();
  rowBlocks = std::max<int64_t>(1, schedule.getRowBlocks());
  rowsPerBlock = llvm::divideCeil(rows, rowBlocks);
  if (schedule.getRowWarps())
    rowsPerBlock = schedule.getRowWarps() * schedule.getRowTiles() * 16;
}

BlockContext::BlockContext(OpBuilder &b, Location loc, ProgramOp program,
                           Value args, const LaneTeam &team,
                           unsigned globalSpace)
    : plan(program.getPlan()), shape(plan), loc(loc), program(program),
      args(args), team(team), globalSpace(globalSpace) {
  if (plan.getQueryOrDefault().getPositions() == PositionsKind::Given)
    positions = field(b, ARG(positions), b.getI64Type());
  auto items = program.getBody().getOps<ItemOp>();
  if (items.empty())
    return;
  item = *items.begin();
  Type i32 = b.getI32Type();
  auto tiles = [this](ImplicitLocOpBuilder &b, Value request,
                      WorkItems::Rows rows) {
    Facts facts = factsOf(b, request);
    if (rows == WorkItems::Rows::Oldest)
      facts.maxPosition = facts.minPosition;
    return tilesOf(b, facts);
  };
  // A part's output is written once and read once, two bytes an element, much
  // of it in the cache; a tile is two planes of two bytes.
  ScheduleAttr schedule = plan.getScheduleOrDefault();
  int64_t partCost =
      llvm::divideCeil(shape.rowsPerBlock, 4 * schedule.getKeyTile());
  int64_t blocks = isForGpu(plan)
                       ? blocksPerSm(plan, readSchedule(schedule), chipOf(plan))
                       : 1;
  auto yield = cast<YieldTilesOp>(item.getTiles().front().getTerminator());
  DivisionKind kind = yield.getParts()  ? DivisionKind::Parts
                      : yield.getSize() ? DivisionKind::Pieces
                                        : DivisionKind::Lengths;
  SplitAttr split = plan.getSplitOrDefault();
  GrowingPieces pieces = {
      split.getKind() == SplitKind::Pieces ? split.getValue() : 0,
      leastTilesOfPiece(schedule.getKeyTile())};
  work = std::make_unique<WorkItems>(
      team, tiles, field(b, ARG(batch), i32), field(b, ARG(items), i32),
      field(b, ARG(slots), i32), plan.getHeads().getKv() * shape.rowBlocks,
      blocks, partCost, kind, pieces);
}

Value BlockContext::constant(OpBuilder &b, int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 32);
}

Value BlockContext::constant64(OpBuilder &b, int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 64);
}

Value BlockContext::extend(OpBuilder &b, Value value) {
  return arith::ExtSIOp::create(b, loc, b.getI64Type(), value);
}

Value BlockContext::field(OpBuilder &b, size_t offset, Type type) {
  auto ptr = LLVM::LLVMPointerType::get(b.getContext());
  Value address = LLVM::GEPOp::create(b, loc, ptr, b.getI8Type(), args,
                                      LLVM::GEPArg(int32_t(offset)));
  return LLVM::LoadOp::create(b, loc, type, address);
}

Value BlockContext::pointer(OpBuilder &b, Value address) {
  auto type = LLVM::LLVMPointerType::get(b.getContext(), globalSpace);
  return LLVM::IntToPtrOp::create(b, loc, type, address);
}

Value BlockContext::loadI32(OpBuilder &b, Value address, Value index) {
  Value bytes =
      arith::ShLIOp::create(b, loc, extend(b, index), constant64(b, 2));
  Value at = arith::AddIOp::create(b, loc, address, bytes);
  return LLVM::LoadOp::create(b, loc, b.getI32Type(), pointer(b, at));
}

BlockContext::Facts BlockContext::factsOf(OpBuilder &b, Value request) {
  Facts facts;
  QueryAttr query = plan.getQueryOrDefault();
  Value zero = constant(b, 0), tokens = constant(b, plan.getTokens());
  Value list = field(b, ARG(columns), b.getI64Type());
  if (query.getColumns() == ColumnsKind::Packed) {
    Value next = arith::AddIOp::create(b, loc, request, constant(b, 1));
    facts.tokenBase = loadI32(b, list, request);
    facts.columns =
        arith::SubIOp::create(b, loc, loadI32(b, list, next), facts.tokenBase);
  } else {
    facts.tokenBase = arith::MulIOp::create(b, loc, request, tokens);
    facts.columns = query.getColumns() == ColumnsKind::Counted
                        ? loadI32(b, list, request)
                        : tokens;
  }
  if (query.getColumns() != ColumnsKind::Uniform) {
    facts.columns = arith::MaxSIOp::create(b, loc, facts.columns, zero);
    facts.columns = arith::MinSIOp::create(b, loc, facts.columns, tokens);
  }
  Value given = loadI32(b, field(b, ARG(lengths), b.getI64Type()), request);
  // Clamped before the block is added, so that no length is too long for i32.
  Value bound = field(b, ARG(maxKeys), b.getI32Type());
  given = arith::MinSIOp::create(b, loc, given, bound);
  given = arith::MaxSIOp::create(b, loc, given, zero);
  facts.length = given;
  if (query.getLengths() == LengthsKind::Context) {
    facts.length = arith::AddIOp::create(b, loc, given, facts.columns);
    facts.length = arith::MinSIOp::create(b, loc, facts.length, bound);
  }
  facts.context = arith::SubIOp::create(b, loc, facts.length, facts.columns);
  facts.context = arith::MaxSIOp::create(b, loc, facts.context, zero);
  emitPositions(b, facts);
  return facts;
}

void BlockContext::emitPositions(OpBuilder &b, Facts &facts) {
  Value one = constant(b, 1);
  if (!positions) {
    facts.minPosition = facts.context;
    Value end = arith::AddIOp::create(b, loc, facts.context, facts.columns);
    facts.maxPosition = arith::SubIOp::create(b, loc, end, one);
    return;
  }
  // Lanes may look at requests of different columns; their loop is the same.
  Value none = constant(b, INT32_MAX), never = constant(b, -1);
  auto loop =
      scf::ForOp::create(b, loc, constant(b, 0), constant(b, plan.getTokens()),
                         one, ValueRange{none, never});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value column = loop.getInductionVar();
  Value exists =
      arith::CmpIOp::create(b, loc, CmpIPredicate::slt, column, facts.columns);
  ValueRange before = loop.getRegionIterArgs();
  auto read = scf::IfOp::create(b, loc, before.getTypes(), exists,
                                /*withElseRegion=*/true);
  scf::YieldOp::create(b, loc, read.getResults());
  OpBuilder inner = read.getElseBodyBuilder();
  scf::YieldOp::create(inner, loc, before);
  inner = read.getThenBodyBuilder();
  Value token = arith::AddIOp::create(inner, loc, facts.tokenBase, column);
  Value position = loadI32(inner, positions, token);
  Value low = arith::MinSIOp::create(inner, loc, before[0], position);
  Value high = arith::MaxSIOp::create(inner, loc, before[1], position);
  scf::YieldOp::create(inner, loc, ValueRange{low, high});
  facts.minPosition = loop.getResult(0);
  facts.maxPosition = loop.getResult(1);
}

RequestTiles BlockContext::tilesOf(OpBuilder &b, const Facts &facts) {
  Block &body = item.getTiles().front();
  IRMapping map;
  map.map(body.getArguments(),
          ValueRange{facts.length, facts.context, facts.columns,
                     facts.minPosition, facts.maxPosition});
  for (Operation &op : body.without_terminator())
    b.clone(op, map);
  auto yield = cast<YieldTilesOp>(body.getTerminator());
  auto emitted = [&](Value value) {
    return value ? map.lookupOrDefault(value) : Value();
  };
  return {emitted(yield.getFirst()), emitted(yield.getEnd()),
          emitted(yield.getParts()), emitted(yield.getSize())};
}

void BlockContext::emitPools(OpBuilder &b) {
  Type i64 = b.getI64Type();
  size_t pools[] = {ARG(keys), ARG(values)};
  size_t heads[] = {ARG(keyHeadStride), ARG(valueHeadStride)};
  size_t pages[] = {ARG(keyPageStride), ARG(valuePageStride)};
  size_t denses[] = {ARG(blockKeys), ARG(blockValues)};
  bool contiguous = plan.getPaging().getOrder() == PageOrderKind::Contiguous;
  if (contiguous)
    keyOffset = loadI32(b, field(b, ARG(keyOffsets), i64), request);
  for (int plane : {0, 1}) {
    Value offset = arith::MulIOp::create(b, loc, extend(b, kvHead),
                                         field(b, heads[plane], i64));
    pool[plane] =
        arith::AddIOp::create(b, loc, field(b, pools[plane], i64), offset);
    if (contiguous) {
      Value stride = constant64(
          b, plan.getSlotStride(plane ? plan.getValues() : plan.getKeys(),
                                plan.getHeads().getDim()));
      Value skipped =
          arith::MulIOp::create(b, loc, extend(b, keyOffset), stride);
      pool[plane] = arith::AddIOp::create(b, loc, pool[plane], skipped);
    } else {
      pageStride[plane] = field(b, pages[plane], i64);
    }
    if (plan.getBlockKind() == BlockKind::Dense)
      dense[plane] = field(b, denses[plane], i64);
  }
  if (contiguous)
    return;
  Value row = arith::MulIOp::create(b, loc, extend(b, request),
                                    field(b, ARG(tableStride), i64));
  row = arith::ShLIOp::create(b, loc, row, constant64(b, 2));
  tableRow = arith::AddIOp::create(b, loc, field(b, ARG(table), i64), row);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

Value BlockContext::tokenOfRow(OpBuilder &b, Value row) {
  return arith::DivUIOp::create(b, loc, row, constant(b, shape.group));
}

Value BlockContext::rowIsLive(OpBuilder &b, Value row) {
  return arith::CmpIOp::create(b, loc, CmpIPredicate::slt, tokenOfRow(b, row),
                               columns);
}

Value BlockContext::positionOfRow(OpBuilder &b, Value row) {
  Value last = arith::SubIOp::create(b, loc, columns, constant(b, 1));
  Value token = arith::MinSIOp::create(b, loc, tokenOfRow(b, row), last);
  token = arith::MaxSIOp::create(b, loc, token, constant(b, 0));
  if (!positions)
    return arith::AddIOp::create(b, loc, context, token);
  // Without query tokens there is no position to read.
  Value some = arith::CmpIOp::create(b, loc, CmpIPredicate::sgt, columns,
                                     constant(b, 0));
  auto read = scf::IfOp::create(b, loc, TypeRange{b.getI32Type()}, some,
                                /*withElseRegion=*/true);
  OpBuilder inner = read.getThenBodyBuilder();
  Value at = arith::AddIOp::create(inner, loc, tokenBase, token);
  scf::YieldOp::create(inner, loc, loadI32(inner, positions, at));
  inner = read.getElseBodyBuilder();
  scf::YieldOp::create(inner, loc, constant(inner, -1));
  return read.getResult(0);
}

Value BlockContext::rowAddress(OpBuilder &b, Value base, Value firstToken,
                               Value tokenStride, Value headStride, Value row) {
  Value group = constant(b, shape.group);
  Value token = arith::AddIOp::create(b, loc, firstToken, tokenOfRow(b, row));
  Value head = arith::AddIOp::create(
      b, loc, arith::MulIOp::create(b, loc, kvHead, group),
      arith::RemUIOp::create(b, loc, row, group));
  Value tokenBytes =
      arith::MulIOp::create(b, loc, extend(b, token), tokenStride);
  Value headBytes = arith::MulIOp::create(b, loc, extend(b, head), headStride);
  return arith::AddIOp::create(
      b, loc, base, arith::AddIOp::create(b, loc, tokenBytes, headBytes));
}

Value BlockContext::queryAddress(OpBuilder &b, Value row) {
  Type i64 = b.getI64Type();
  return rowAddress(b, field(b, ARG(query), i64), tokenBase,
                    field(b, ARG(queryTokenStride), i64),
                    field(b, ARG(queryHeadStride), i64), row);
}

/// Of an item that is a whole request, from its slot.
Value BlockContext::outputTokenBase(OpBuilder &b) {
  if (program.getRole() == ProgramRole::Merge ||
      plan.getQueryOrDefault().getColumns() == ColumnsKind::Packed)
    return tokenBase;
  Value whole = arith::SubIOp::create(b, loc, constant(b, -1), slot);
  return arith::MulIOp::create(b, loc, whole, constant(b, plan.getTokens()));
}

Value BlockContext::outputAddress(OpBuilder &b, Value row) {
  Type i64 = b.getI64Type();
  return rowAddress(b, field(b, ARG(output), i64), outputTokenBase(b),
                    field(b, ARG(outputTokenStride), i64),
                    field(b, ARG(outputHeadStride), i64), row);
}

Value BlockContext::logSumExpAddress(OpBuilder &b, Value row) {
  return rowAddress(
      b, field(b, ARG(logSumExp), b.getI64Type()), outputTokenBase(b),
      constant64(b, plan.getHeads().getQuery() * 4), constant64(b, 4), row);
}

Value BlockContext::sinkOfRow(OpBuilder &b, Value row) {
  Value group = constant(b, shape.group);
  Value head = arith::AddIOp::create(
      b, loc, arith::MulIOp::create(b, loc, kvHead, group),
      arith::RemUIOp::create(b, loc, row, group));
  Value bytes =
      arith::ShLIOp::create(b, loc, extend(b, head), constant64(b, 2));
  Value list = field(b, ARG(sinks), b.getI64Type());
  Value at = pointer(b, arith::AddIOp::create(b, loc, list, bytes));
  Value natural = LLVM::LoadOp::create(b, loc, b.getF32Type(), at);
  auto log2e = b.getF32FloatAttr(M_LOG2E);
  return arith::MulFOp::create(b, loc, natural,
                               arith::ConstantOp::create(b, loc, log2e));
}

Value BlockContext::slotIndex(OpBuilder &b, Value slot) {
  Value index = arith::MulIOp::create(b, loc, extend(b, slot),
                                      constant64(b, plan.getHeads().getKv()));
  return arith::AddIOp::create(b, loc, index, extend(b, kvHead));
}

Value BlockContext::partialAddress(OpBuilder &b, Value slot, Value row) {
  // [slots, kvHeads, paddedRows, D].
  Value index = arith::MulIOp::create(b, loc, slotIndex(b, slot),
                                      constant64(b, shape.paddedRows()));
  index = arith::AddIOp::create(b, loc, index, extend(b, row));
  Value bytes = arith::MulIOp::create(
      b, loc, index, constant64(b, plan.getValueDim() * partialElementBytes()));
  return arith::AddIOp::create(
      b, loc, field(b, ARG(partialOutput), b.getI64Type()), bytes);
}

Value BlockContext::statsAddress(OpBuilder &b, Value slot, Value row) {
  // [slots, kvHeads, paddedRows, 4] floats.
  Value index = arith::MulIOp::create(b, loc, slotIndex(b, slot),
                                      constant64(b, shape.paddedRows()));
  index = arith::AddIOp::create(b, loc, index, extend(b, row));
  Value bytes = arith::ShLIOp::create(b, loc, index, constant64(b, 4));
  return arith::AddIOp::create(
      b, loc, field(b, ARG(partialStats), b.getI64Type()), bytes);
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

Value BlockContext::tableAddress(OpBuilder &b, Value page) {
  PagingAttr paging = plan.getPaging();
  if (int64_t ring = paging.getRing())
    page = arith::RemUIOp::create(b, loc, page,
                                  constant(b, ring / paging.getPage()));
  Value bytes =
      arith::ShLIOp::create(b, loc, extend(b, page), constant64(b, 2));
  return arith::AddIOp::create(b, loc, tableRow, bytes);
}

Value BlockContext::keyAddress(OpBuilder &b, Plane plane, Value pageId,
                               Value key) {
  int which = plane == Plane::Values;
  Value stride = constant64(
      b, plan.getSlotStride(which ? plan.getValues() : plan.getKeys(),
                            plan.getHeads().getDim()));
  Value base = pool[which], slot = key;
  if (int64_t page = plan.getPaging().getPage()) {
    slot = arith::AndIOp::create(b, loc, key, constant(b, page - 1));
    Value pageBytes =
        arith::MulIOp::create(b, loc, extend(b, pageId), pageStride[which]);
    base = arith::AddIOp::create(b, loc, base, pageBytes);
  }
  Value bytes = arith::MulIOp::create(b, loc, extend(b, slot), stride);
  return arith::AddIOp::create(b, loc, base, bytes);
}

Value BlockContext::denseAddress(OpBuilder &b, Plane plane, Value key) {
  // [query tokens, kv heads, dim].
  Value token = arith::AddIOp::create(
      b, loc, tokenBase, arith::SubIOp::create(b, loc, key, context));
  Value index = arith::MulIOp::create(b, loc, extend(b, token),
                                      constant64(b, plan.getHeads().getKv()));
  index = arith::AddIOp::create(b, loc, index, extend(b, kvHead));
  Value bytes = arith::MulIOp::create(
      b, loc, index, constant64(b, plan.getHeads().getDim() * 2));
  return arith::AddIOp::create(b, loc, dense[plane == Plane::Values], bytes);
}

Value BlockContext::keyIsHeld(OpBuilder &b, Value key) {
  Value held = arith::CmpIOp::create(b, loc, CmpIPredicate::slt, key, length);
  if (!oldestKey)
    return held;
  Value young =
      arith::CmpIOp::create(b, loc, CmpIPredicate::sge, key, oldestKey);
  return arith::AndIOp::create(b, loc, held, young);
}

Value BlockContext::sees(OpBuilder &b, Value position, Value key) {
  SeesAttr sees = plan.getSees();
  auto compare = [&](CmpIPredicate predicate, Value l, Value r) -> Value {
    return arith::CmpIOp::create(b, loc, predicate, l, r);
  };
  Value seen = compare(CmpIPredicate::slt, key, length);
  auto require = [&](Value condition) {
    seen = arith::AndIOp::create(b, loc, seen, condition);
  };
  if (sees.getSuffix() == SuffixKind::Causal)
    require(compare(CmpIPredicate::sle, key, position));
  Value window = constant(b, sees.getWindow());
  if (sees.getPrefix() != PrefixKind::All) {
    Value distance = arith::SubIOp::create(b, loc, position, key);
    require(compare(CmpIPredicate::slt, distance, window));
  }
  if (sees.getPrefix() == PrefixKind::Symmetric &&
      sees.getSuffix() != SuffixKind::Causal) {
    Value distance = arith::SubIOp::create(b, loc, key, position);
    require(compare(CmpIPredicate::slt, distance, window));
  }
  return seen;
}
