//===- TilesToHostBuilder.cpp - Loops and vectors over host tiles ---------===//

#include "codegen/TilesToHostBuilder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace tokentile;
using namespace tokentile::host;

using attn::ElementKind;

HostBuilder::HostBuilder(Location loc, Block *entry)
    : ImplicitLocOpBuilder(ImplicitLocOpBuilder::atBlockEnd(loc, entry)),
      entry(entry) {}

int64_t HostBuilder::lanes(int64_t columns) {
  return std::gcd<int64_t>(columns, 16);
}

//===----------------------------------------------------------------------===//
// Scalars and vectors
//===----------------------------------------------------------------------===//

Value HostBuilder::i64(int64_t value) {
  return arith::ConstantIntOp::create(*this, value, 64);
}

Value HostBuilder::i32(int64_t value) {
  return arith::ConstantIntOp::create(*this, value, 32);
}

Value HostBuilder::f32(double value) {
  return arith::ConstantOp::create(*this, getF32FloatAttr(float(value)));
}

Type HostBuilder::typeLike(Type element, Value like) {
  if (auto vector = dyn_cast<VectorType>(like.getType()))
    return vector.clone(element);
  return element;
}

Value HostBuilder::integerLike(int64_t value, Type type) {
  TypedAttr attr = getIntegerAttr(getElementTypeOrSelf(type), value);
  if (auto vector = dyn_cast<VectorType>(type))
    attr = DenseElementsAttr::get(vector, Attribute(attr));
  return arith::ConstantOp::create(*this, attr);
}

Value HostBuilder::f32Like(double value, Value like) {
  if (auto vector = dyn_cast<VectorType>(like.getType()))
    return arith::ConstantOp::create(
        *this, DenseElementsAttr::get(vector, float(value)));
  return f32(value);
}

Value HostBuilder::toI32(Value index) {
  return arith::TruncIOp::create(*this, getI32Type(), index);
}

Value HostBuilder::toI64(Value value) {
  return arith::ExtSIOp::create(*this, getI64Type(), value);
}

Type HostBuilder::floats(int64_t lanes) {
  return lanes == 1 ? Type(getF32Type()) : VectorType::get(lanes, getF32Type());
}

Value HostBuilder::broadcast(Value scalar, int64_t lanes) {
  if (lanes == 1)
    return scalar;
  auto type = VectorType::get(lanes, scalar.getType());
  return vector::BroadcastOp::create(*this, type, scalar);
}

Value HostBuilder::compare(arith::CmpIPredicate predicate, Value left,
                           Value right) {
  return arith::CmpIOp::create(*this, predicate, left, right);
}

Value HostBuilder::compare(arith::CmpFPredicate predicate, Value left,
                           Value right) {
  return arith::CmpFOp::create(*this, predicate, left, right);
}

Value HostBuilder::select(Value condition, Value yes, Value no) {
  return arith::SelectOp::create(*this, condition, yes, no);
}

Value HostBuilder::multiplyAdd(Value a, Value b, Value c) {
  return LLVM::FMulAddOp::create(*this, a, b, c);
}

Value HostBuilder::exp2(Value x) {
  // x = n + f with |f| <= 1/2. Adding 1.5 * 2^23 rounds to an integer and
  // leaves n in the low bits; shifted by 23 it adds n to the exponent of 2^f,
  // whose Taylor series to f^7 errs by less than 2^-27. For a NaN the shifted
  // bits are zero, so the NaN of the series survives.
  Value least = f32Like(-125, x), magic = f32Like(12582912.0, x);
  Value tiny = compare(arith::CmpFPredicate::OLT, x, least);
  Value clamped = select(tiny, least, x);
  Value shifted = arith::AddFOp::create(*this, clamped, magic);
  Value whole = arith::SubFOp::create(*this, shifted, magic);
  Value f = arith::SubFOp::create(*this, clamped, whole);
  double coefficient = 1;
  SmallVector<double> series;
  for (int k = 0; k <= 7; ++k) {
    series.push_back(coefficient);
    coefficient *= M_LN2 / (k + 1);
  }
  Value power = f32Like(series.back(), x);
  for (double c : llvm::reverse(llvm::drop_end(series)))
    power = multiplyAdd(power, f, f32Like(c, x));
  Type bits = typeLike(getI32Type(), x);
  Value exponent = arith::ShLIOp::create(
      *this, arith::BitcastOp::create(*this, bits, shifted),
      integerLike(23, bits));
  Value sum = arith::AddIOp::create(
      *this, arith::BitcastOp::create(*this, bits, power), exponent);
  Value result = arith::BitcastOp::create(*this, x.getType(), sum);
  return select(tiny, f32Like(0, x), result);
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

void HostBuilder::loop(int64_t upper, int64_t step, Body body) {
  loop(i64(upper), step, body);
}

void HostBuilder::loop(Value upper, int64_t step, Body body) {
  fold(upper, step, {}, [&](Value index, ValueRange) {
    body(index);
    return SmallVector<Value>();
  });
}

SmallVector<Value> HostBuilder::fold(Value upper, int64_t step, ValueRange init,
                                     Fold body) {
  auto loop = scf::ForOp::create(*this, i64(0), upper, i64(step), init);
  InsertionGuard guard(*this);
  if (init.empty())
    setInsertionPoint(loop.getBody()->getTerminator());
  else
    setInsertionPointToEnd(loop.getBody());
  SmallVector<Value> next =
      body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!init.empty())
    scf::YieldOp::create(*this, next);
  return llvm::to_vector_of<Value>(loop.getResults());
}

void HostBuilder::branch(Value condition, function_ref<void()> yes,
                         function_ref<void()> no) {
  auto branch = scf::IfOp::create(*this, condition, /*withElse=*/bool(no));
  InsertionGuard guard(*this);
  setInsertionPointToStart(&branch.getThenRegion().front());
  yes();
  if (!no)
    return;
  setInsertionPointToStart(&branch.getElseRegion().front());
  no();
}

Value HostBuilder::chooseI64(Value condition, function_ref<Value()> yes,
                             function_ref<Value()> no) {
  auto branch = scf::IfOp::create(*this, TypeRange{getI64Type()}, condition,
                                  /*withElseRegion=*/true);
  InsertionGuard guard(*this);
  setInsertionPointToStart(&branch.getThenRegion().front());
  scf::YieldOp::create(*this, yes());
  setInsertionPointToStart(&branch.getElseRegion().front());
  scf::YieldOp::create(*this, no());
  return branch.getResult(0);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

TileBuffer HostBuilder::allocate(int64_t rows, int64_t columns, Type element) {
  InsertionGuard guard(*this);
  setInsertionPointToStart(entry);
  auto pointer = LLVM::LLVMPointerType::get(getContext());
  Value count = i64(rows * columns);
  Value base =
      LLVM::AllocaOp::create(*this, pointer, element, count, /*alignment=*/64);
  return {base, element, rows, columns};
}

TileBuffer HostBuilder::allocate(int64_t rows, int64_t columns) {
  return allocate(rows, columns, getF32Type());
}

Value HostBuilder::address(Value base, Type element, Value index) {
  return LLVM::GEPOp::create(*this, base.getType(), element, base,
                             ArrayRef<LLVM::GEPArg>{index});
}

Value HostBuilder::address(TileBuffer tile, Value row, Value column) {
  Value first = arith::MulIOp::create(*this, row, i64(tile.columns));
  return address(tile.base, tile.element,
                 arith::AddIOp::create(*this, first, column));
}

Value HostBuilder::load(TileBuffer tile, Value row, Value column,
                        int64_t lanes) {
  Type type = lanes == 1 ? tile.element : VectorType::get(lanes, tile.element);
  return LLVM::LoadOp::create(*this, type, address(tile, row, column));
}

void HostBuilder::store(Value value, TileBuffer tile, Value row, Value column) {
  LLVM::StoreOp::create(*this, value, address(tile, row, column));
}

void HostBuilder::fill(TileBuffer tile, Value scalar) {
  int64_t count = tile.rows * tile.columns, step = lanes(count);
  Value zero = i64(0), vector = broadcast(scalar, step);
  loop(count, step, [&](Value i) { store(vector, tile, zero, i); });
}

void HostBuilder::copy(TileBuffer from, TileBuffer to) {
  int64_t count = to.rows * to.columns, step = lanes(count);
  Value zero = i64(0);
  loop(count, step,
       [&](Value i) { store(load(from, zero, i, step), to, zero, i); });
}

Value HostBuilder::loadRow(Value pointer, Value column, int64_t lanes,
                           ElementKind kind) {
  Type element = getI16Type();
  Type type = lanes == 1 ? element : VectorType::get(lanes, element);
  Value at = address(pointer, element, column);
  return widen(LLVM::LoadOp::create(*this, type, at, /*alignment=*/2), kind);
}

void HostBuilder::storeRow(Value values, Value pointer, Value column,
                           ElementKind kind) {
  Value at = address(pointer, getI16Type(), column);
  LLVM::StoreOp::create(*this, narrow(values, kind), at, /*alignment=*/2);
}

Value HostBuilder::loadFloats(Value pointer, Value column, int64_t lanes) {
  Value at = address(pointer, getF32Type(), column);
  return LLVM::LoadOp::create(*this, floats(lanes), at, /*alignment=*/4);
}

void HostBuilder::storeFloats(Value values, Value pointer, Value column) {
  Value at = address(pointer, getF32Type(), column);
  LLVM::StoreOp::create(*this, values, at, /*alignment=*/4);
}

Value HostBuilder::round(Value values, ElementKind kind) {
  return widen(narrow(values, kind), kind);
}

Value HostBuilder::widen(Value bits, ElementKind kind) {
  Type result = typeLike(getF32Type(), bits);
  if (kind == ElementKind::FP16) {
    Value half =
        arith::BitcastOp::create(*this, typeLike(getF16Type(), bits), bits);
    return arith::ExtFOp::create(*this, result, half);
  }
  Type wide = typeLike(getI32Type(), bits);
  Value high = arith::ShLIOp::create(
      *this, arith::ExtUIOp::create(*this, wide, bits), integerLike(16, wide));
  return arith::BitcastOp::create(*this, result, high);
}

Value HostBuilder::narrow(Value values, ElementKind kind) {
  Type result = typeLike(getI16Type(), values);
  if (kind == ElementKind::FP16) {
    Value half =
        arith::TruncFOp::create(*this, typeLike(getF16Type(), values), values);
    return arith::BitcastOp::create(*this, result, half);
  }
  // Not by fptrunc: many processors lack it for bf16, and so do libraries.
  Type wide = typeLike(getI32Type(), values);
  Value bits = arith::BitcastOp::create(*this, wide, values);
  Value sixteen = integerLike(16, wide);
  Value odd =
      arith::AndIOp::create(*this, arith::ShRUIOp::create(*this, bits, sixteen),
                            integerLike(1, wide));
  Value rounded = arith::AddIOp::create(
      *this, bits,
      arith::AddIOp::create(*this, odd, integerLike(0x7fff, wide)));
  Value quiet = arith::OrIOp::create(*this, bits, integerLike(0x400000, wide));
  Value nan = compare(arith::CmpFPredicate::UNO, values, values);
  Value high =
      arith::ShRUIOp::create(*this, select(nan, quiet, rounded), sixteen);
  return arith::TruncIOp::create(*this, result, high);
}
