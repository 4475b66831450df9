//===- Scalars.h - Integer arithmetic of emitted code -----------*- C++ -*-===//

#ifndef TOKENTILE_CODEGEN_SCALARS_H
#define TOKENTILE_CODEGEN_SCALARS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace tokentile {

/// i32 arithmetic at an insertion point.
struct Scalars {
  using Value = mlir::Value;
  using Predicate = mlir::arith::CmpIPredicate;
  using Values = llvm::SmallVector<Value>;
  /// n / s = n * ceil(2^kShift / s) / 2^kShift for n * s < 2^kShift, so that a
  /// request has 2^15 tiles at most.
  static constexpr int64_t kShift = 31;

  mlir::ImplicitLocOpBuilder &b;

  Value number(int64_t value) {
    return mlir::arith::ConstantIntOp::create(b, value, 32);
  }
  Value add(Value l, Value r) { return mlir::arith::AddIOp::create(b, l, r); }
  Value add(Value l, int64_t r) { return add(l, number(r)); }
  Value sub(Value l, Value r) { return mlir::arith::SubIOp::create(b, l, r); }
  Value mul(Value l, Value r) { return mlir::arith::MulIOp::create(b, l, r); }
  Value mul(Value l, int64_t r) { return mul(l, number(r)); }
  Value div(Value l, Value r) { return mlir::arith::DivUIOp::create(b, l, r); }
  Value rem(Value l, Value r) { return mlir::arith::RemUIOp::create(b, l, r); }
  Value divUp(Value l, Value r) { return div(add(add(l, r), -1), r); }
  Value shiftRight(Value l, int64_t r) {
    return mlir::arith::ShRUIOp::create(b, l, number(r));
  }
  Value bits(Value l, int64_t mask) {
    return mlir::arith::AndIOp::create(b, l, number(mask));
  }
  Value smaller(Value l, Value r) {
    return mlir::arith::MinSIOp::create(b, l, r);
  }
  Value larger(Value l, Value r) {
    return mlir::arith::MaxSIOp::create(b, l, r);
  }
  Value is(Predicate predicate, Value l, Value r) {
    return mlir::arith::CmpIOp::create(b, predicate, l, r);
  }
  Value both(Value l, Value r) { return mlir::arith::AndIOp::create(b, l, r); }
  Value select(Value condition, Value yes, Value no) {
    return mlir::arith::SelectOp::create(b, condition, yes, no);
  }
  /// 1 or 0.
  Value count(Value condition) {
    return select(condition, number(1), number(0));
  }
  Value ifThen(Value condition, Value value) {
    return select(condition, value, number(0));
  }

  Values loop(Value end, int64_t step, mlir::ValueRange init,
              llvm::function_ref<Values(Value, mlir::ValueRange)> body) {
    auto loop = mlir::scf::ForOp::create(b, number(0), end, number(step), init);
    mlir::OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    mlir::scf::YieldOp::create(
        b, body(loop.getInductionVar(), loop.getRegionIterArgs()));
    return loop.getResults();
  }

  Values choose(Value condition, llvm::function_ref<Values()> yes,
                llvm::function_ref<Values()> no, mlir::TypeRange types) {
    auto branch =
        mlir::scf::IfOp::create(b, types, condition, /*addThenBlock=*/true,
                                /*addElseBlock=*/true);
    mlir::OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(branch.thenBlock());
    mlir::scf::YieldOp::create(b, yes());
    b.setInsertionPointToEnd(branch.elseBlock());
    mlir::scf::YieldOp::create(b, no());
    return branch.getResults();
  }

  /// One less than the factor that divides by `divisor`, so that it is positive
  /// for 1 too: lanes pass it on as the largest of theirs.
  Value reciprocal(Value divisor) {
    return div(number((int64_t(1) << kShift) - 1), divisor);
  }
  /// `value` over what `reciprocal` is of, or one more if their product is
  /// 2^kShift or more.
  Value quotient(Value value, Value reciprocal) {
    mlir::Type i64 = b.getI64Type();
    Value factor = mlir::arith::ExtUIOp::create(b, i64, add(reciprocal, 1));
    Value wide = mlir::arith::ExtUIOp::create(b, i64, value);
    Value product = mlir::arith::MulIOp::create(b, wide, factor);
    Value shift = mlir::arith::ConstantIntOp::create(b, kShift, 64);
    return mlir::arith::TruncIOp::create(
        b, b.getI32Type(), mlir::arith::ShRUIOp::create(b, product, shift));
  }
  /// Likewise, rounded up. So many parts of at most `divisor` tiles do `value`
  /// tiles make; none make none.
  Value ceilQuotient(Value value, Value divisor, Value reciprocal) {
    return quotient(add(add(value, divisor), -1), reciprocal);
  }
};

} // namespace tokentile

#endif // TOKENTILE_CODEGEN_SCALARS_H
