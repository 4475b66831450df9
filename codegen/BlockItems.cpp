//===- BlockItems.cpp - Which item a block has, emitted -------------------===//

#include "codegen/BlockContext.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cstddef>

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;

using arith::CmpIPredicate;

#define ARG(name) offsetof(KernelArgs, name)

/// Heads and rows of block `x`. Returns the number of its item. The blocks of
/// one item are neighbours: of all heads the longest items begin first, and
/// where a page holds all heads it is read at one time.
Value BlockContext::findHead(OpBuilder &b, Value x) {
  int64_t blocks = shape.rowBlocks, heads = plan.getHeads().getKv() * blocks;
  Value head = arith::RemUIOp::create(b, loc, x, constant(b, heads));
  kvHead = arith::DivUIOp::create(b, loc, head, constant(b, blocks));
  Value rowBlock = arith::RemUIOp::create(b, loc, head, constant(b, blocks));
  firstRow =
      arith::MulIOp::create(b, loc, rowBlock, constant(b, shape.rowsPerBlock));
  isFirstHead =
      arith::CmpIOp::create(b, loc, CmpIPredicate::eq, head, constant(b, 0));
  return arith::DivUIOp::create(b, loc, x, constant(b, heads));
}

Value BlockContext::findItem(OpBuilder &b, Value x) {
  Value number = findHead(b, x);
  WorkItem found{number, constant(b, 0), constant(b, 1), constant(b, 0)};
  if (work) {
    ImplicitLocOpBuilder inner(loc, b);
    found = work->find(inner, number);
    if (work->getKind() == DivisionKind::Lengths)
      leaveDivision(b, found);
  }
  RequestTiles tiles = setRequest(b, found.request);
  setItem(b, found, tiles);
  emitPools(b);
  return arith::CmpIOp::create(b, loc, CmpIPredicate::ne, parts,
                               constant(b, 0));
}

Value BlockContext::findRange(OpBuilder &b, Value x) {
  ImplicitLocOpBuilder inner(loc, b);
  range = work->findRange(inner, findHead(b, x));
  return range.count;
}

Value BlockContext::beginInRange(OpBuilder &b, Value index, Value start,
                                 bool leaves) {
  ImplicitLocOpBuilder inner(loc, b);
  Value wanted = arith::AddIOp::create(b, loc, range.request, index);
  RequestTiles tiles = setRequest(b, wanted);
  auto [found, next] = work->inRange(inner, range, wanted, start, tiles);
  if (leaves)
    leaveDivision(b, found);
  setItem(b, found, tiles);
  emitPools(b);
  return next;
}

/// Facts of a request. Returns the tiles that its rows see.
RequestTiles BlockContext::setRequest(OpBuilder &b, Value wanted) {
  request = wanted;
  Facts facts = factsOf(b, request);
  columns = facts.columns;
  tokenBase = facts.tokenBase;
  length = facts.length;
  context = facts.context;
  minPosition = facts.minPosition;
  maxPosition = facts.maxPosition;
  if (plan.getSees().getPrefix() != PrefixKind::All) {
    int64_t reach = plan.getSees().getWindow() - 1;
    Value oldest =
        arith::SubIOp::create(b, loc, minPosition, constant(b, reach));
    oldestKey = arith::MaxSIOp::create(b, loc, oldest, constant(b, 0));
  }
  return item ? tilesOf(b, facts) : RequestTiles();
}

/// What a block has of its request, which has `tiles`.
void BlockContext::setItem(OpBuilder &b, const WorkItem &found,
                           const RequestTiles &tiles) {
  Value one = constant(b, 1);
  part = found.part;
  parts = found.parts;
  slot = found.slot;
  if (!hasPieces()) {
    Value whole = arith::CmpIOp::create(b, loc, CmpIPredicate::eq, parts, one);
    slot = arith::SelectOp::create(
        b, loc, whole, arith::SubIOp::create(b, loc, constant(b, -1), request),
        slot);
  }
  firstTile = found.first;
  endTile = found.end;
  if (firstTile || !item || program.getRole() == ProgramRole::Merge)
    return;
  // An idle block has no parts.
  Value count = arith::SubIOp::create(b, loc, tiles.end, tiles.first);
  Value divisor = arith::MaxSIOp::create(b, loc, parts, one);
  auto edge = [&](Value part) -> Value {
    Value before = arith::MulIOp::create(b, loc, count, part);
    before = arith::DivUIOp::create(b, loc, before, divisor);
    return arith::AddIOp::create(b, loc, tiles.first, before);
  };
  firstTile = edge(part);
  endTile = edge(arith::AddIOp::create(b, loc, part, one));
}

/// Leaves the division of a request to the merge, if there is one; by the first
/// head's block of its first part.
void BlockContext::leaveDivision(OpBuilder &b, const WorkItem &item) {
  auto both = [&](Value l, Value r) -> Value {
    return arith::AndIOp::create(b, loc, l, r);
  };
  Value list = field(b, ARG(divisions), b.getI64Type());
  Value wanted =
      arith::CmpIOp::create(b, loc, CmpIPredicate::ne, list, constant64(b, 0));
  Value isFirstPart = arith::CmpIOp::create(b, loc, CmpIPredicate::eq,
                                            item.part, constant(b, 0));
  Value writes =
      both(both(wanted, isFirstPart), both(isFirstHead, team.speaks(b, loc)));
  auto branch = scf::IfOp::create(b, loc, writes, /*withElseRegion=*/false);
  OpBuilder inner = branch.getThenBodyBuilder();
  Value at = divisionAddress(inner, item.request);
  LLVM::StoreOp::create(inner, loc, item.parts, pointer(inner, at));
  at = arith::AddIOp::create(inner, loc, at, constant64(inner, 4));
  LLVM::StoreOp::create(inner, loc, item.slot, pointer(inner, at));
}

RequestParts BlockContext::readDivision(OpBuilder &b, Value request) {
  Type i32 = b.getI32Type();
  auto pair = VectorType::get({2}, i32);
  Value both = LLVM::LoadOp::create(b, loc, pair,
                                    pointer(b, divisionAddress(b, request)),
                                    /*alignment=*/8, /*isVolatile=*/true);
  // What is left of another launch must not lead out of the workspace.
  Value most = arith::TruncIOp::create(b, loc, i32,
                                       field(b, ARG(partials), b.getI64Type()));
  auto within = [&](int64_t index, Value bound) -> Value {
    Value value =
        LLVM::ExtractElementOp::create(b, loc, both, constant(b, index));
    value = arith::MaxSIOp::create(b, loc, value, constant(b, 0));
    return arith::MinSIOp::create(b, loc, value, bound);
  };
  Value parts = within(0, most);
  return {parts, within(1, arith::SubIOp::create(b, loc, most, parts))};
}

void BlockContext::setParts(RequestParts given) {
  parts = given.parts;
  slot = given.slot;
}

Value BlockContext::divisionAddress(OpBuilder &b, Value request) {
  Value bytes =
      arith::ShLIOp::create(b, loc, extend(b, request), constant64(b, 3));
  return arith::AddIOp::create(b, loc, field(b, ARG(divisions), b.getI64Type()),
                               bytes);
}

Value BlockContext::prepareMerge(OpBuilder &b) {
  ImplicitLocOpBuilder inner(loc, b);
  return work ? work->prepare(inner) : Value();
}

/// Units of one head.
static int64_t unitsOfHead(const RowShape &shape, int64_t rows) {
  return llvm::divideCeil(shape.rows, rows);
}

MergeUnits BlockContext::countUnits(OpBuilder &b, int64_t rows, bool several) {
  int64_t units = unitsOfHead(shape, rows) * plan.getHeads().getKv();
  Value count = arith::MulIOp::create(
      b, loc, field(b, ARG(batch), b.getI32Type()), constant(b, units));
  return {rows, several, count};
}

Value BlockContext::findUnit(OpBuilder &b, const MergeUnits &all,
                             Value number) {
  Value units = constant(b, unitsOfHead(shape, all.rows));
  Value heads = constant(b, plan.getHeads().getKv());
  Value unit = arith::RemUIOp::create(b, loc, number, units);
  firstRow = arith::MulIOp::create(b, loc, unit, constant(b, all.rows));
  Value rest = arith::DivUIOp::create(b, loc, number, units);
  kvHead = arith::RemUIOp::create(b, loc, rest, heads);
  Value request = arith::DivUIOp::create(b, loc, rest, heads);
  WorkItem found{request, constant(b, 0), constant(b, 1), constant(b, 0)};
  RequestTiles tiles = setRequest(b, request);
  if (hasPieces()) {
    setItem(b, found, tiles);
    findPieces(b);
    return arith::ConstantIntOp::create(b, loc, 1, 1);
  }
  if (all.several && work && work->getKind() == DivisionKind::Lengths) {
    division = readDivision(b, request);
    found.parts = division.parts;
    found.slot = division.slot;
  } else if (work) {
    ImplicitLocOpBuilder inner(loc, b);
    found = work->findFixed(inner, request);
  }
  setItem(b, found, tiles);
  return arith::CmpIOp::create(b, loc, CmpIPredicate::sgt, parts,
                               constant(b, 1));
}

bool BlockContext::hasPieces() const {
  return work && work->getKind() == DivisionKind::Pieces;
}

/// The pieces of row `firstRow`, of its own position.
void BlockContext::findPieces(OpBuilder &b) {
  ImplicitLocOpBuilder inner(loc, b);
  Value position = positionOfRow(b, firstRow);
  RowPieces pieces = work->piecesOfRow(
      inner, request,
      tilesOf(b, {columns, tokenBase, length, context, position, position}));
  parts = pieces.count;
  slot = pieces.slot;
  firstPiece = pieces.first;
}

Value BlockContext::slotOfPart(OpBuilder &b, Value index) {
  if (!hasPieces())
    return arith::AddIOp::create(b, loc, slot, index);
  Value slots = field(b, ARG(slots), b.getI32Type());
  Value place = arith::AddIOp::create(b, loc, firstPiece, index);
  Value wraps = arith::CmpIOp::create(b, loc, CmpIPredicate::sge, place, slots);
  Value before = arith::SubIOp::create(b, loc, place, slots);
  place = arith::SelectOp::create(b, loc, wraps, before, place);
  return arith::AddIOp::create(b, loc, slot, place);
}

Value BlockContext::unitStride(OpBuilder &b) {
  return field(b, ARG(mergeBlocks), b.getI32Type());
}
