//===- WarpTeam.cpp - A warp as a team of lanes ---------------------------===//

#include "codegen/mma/WarpTeam.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace tokentile;

static Value number(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 32);
}

static Value shuffle(OpBuilder &b, Location loc, Value value, Value by,
                     int64_t clamp, NVVM::ShflKind kind) {
  return NVVM::ShflOp::create(b, loc, value.getType(), number(b, loc, -1),
                              value, by, number(b, loc, clamp), kind,
                              UnitAttr());
}

static Value reduce(OpBuilder &b, Location loc, Value value,
                    NVVM::ReduxKind kind) {
  return NVVM::ReduxOp::create(b, loc, value.getType(), value, kind,
                               number(b, loc, -1));
}

Value WarpTeam::lane(OpBuilder &b, Location loc) const {
  Value thread = NVVM::ThreadIdXOp::create(b, loc, b.getI32Type());
  return arith::AndIOp::create(b, loc, thread, number(b, loc, 31));
}

Value WarpTeam::sum(OpBuilder &b, Location loc, Value v) const {
  return reduce(b, loc, v, NVVM::ReduxKind::ADD);
}

Value WarpTeam::largest(OpBuilder &b, Location loc, Value v) const {
  return reduce(b, loc, v, NVVM::ReduxKind::MAX);
}

Value WarpTeam::before(OpBuilder &b, Location loc, Value value) const {
  Value here = lane(b, loc), all = value;
  for (int64_t distance = 1; distance < 32; distance *= 2) {
    Value from = number(b, loc, distance);
    Value other = shuffle(b, loc, all, from, 0, NVVM::ShflKind::up);
    Value has =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, here, from);
    other = arith::SelectOp::create(b, loc, has, other, number(b, loc, 0));
    all = arith::AddIOp::create(b, loc, all, other);
  }
  return arith::SubIOp::create(b, loc, all, value);
}

Value WarpTeam::of(OpBuilder &b, Location loc, Value v, Value lane) const {
  return shuffle(b, loc, v, lane, 31, NVVM::ShflKind::idx);
}
