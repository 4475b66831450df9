//===- WarpTeam.cpp - A warp as a team of lanes ---------------------------===//

#include "codegen/mma/WarpTeam.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

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

Value WarpTeam::speaks(OpBuilder &b, Location loc) const {
  Value thread = NVVM::ThreadIdXOp::create(b, loc, b.getI32Type());
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, thread,
                               number(b, loc, 0));
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

SmallVector<Value>
BlockTeam::once(ImplicitLocOpBuilder &b,
                llvm::function_ref<SmallVector<Value>()> body) const {
  Location loc = b.getLoc();
  auto place = [&](size_t i) -> Value {
    return LLVM::GEPOp::create(b, scratch.getType(), b.getI32Type(), scratch,
                               LLVM::GEPArg(int32_t(i)));
  };
  Value thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, thread,
                                        number(b, loc, count()));
  auto branch = scf::IfOp::create(b, isFirst);
  size_t results;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    SmallVector<Value> found = body();
    results = found.size();
    auto write = scf::IfOp::create(b, speaks(b, loc));
    b.setInsertionPointToStart(write.thenBlock());
    for (auto [i, value] : llvm::enumerate(found))
      LLVM::StoreOp::create(b, value, place(i));
  }
  NVVM::BarrierOp::create(b);
  SmallVector<Value> heard;
  for (size_t i = 0; i < results; ++i)
    heard.push_back(LLVM::LoadOp::create(b, b.getI32Type(), place(i)));
  // The scratch is anyone's again.
  NVVM::BarrierOp::create(b);
  return heard;
}
