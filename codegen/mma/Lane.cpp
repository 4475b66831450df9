//===- Lane.cpp - Operations of one lane ----------------------------------===//

#include "codegen/mma/Lane.h"

using namespace mlir;
using namespace tokentile;

static constexpr int64_t kAllLanes = -1;

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

Value Lane::i32(int64_t value) {
  return arith::ConstantIntOp::create(*this, value, 32);
}
Value Lane::i64(int64_t value) {
  return arith::ConstantIntOp::create(*this, value, 64);
}
Value Lane::add(Value l, Value r) { return arith::AddIOp::create(*this, l, r); }
Value Lane::add(Value l, int64_t r) {
  return r ? add(l, l.getType().isInteger(64) ? i64(r) : i32(r)) : l;
}
Value Lane::mul(Value l, int64_t r) {
  return arith::MulIOp::create(*this, l,
                               l.getType().isInteger(64) ? i64(r) : i32(r));
}
Value Lane::div(Value l, int64_t r) {
  return arith::DivUIOp::create(*this, l, i32(r));
}
Value Lane::rem(Value l, int64_t r) {
  return arith::RemUIOp::create(*this, l, i32(r));
}
Value Lane::xorBits(Value l, Value r) {
  return arith::XOrIOp::create(*this, l, r);
}
Value Lane::xorBits(Value l, int64_t r) { return r ? xorBits(l, i32(r)) : l; }
Value Lane::shiftLeft(Value l, int64_t r) {
  return arith::ShLIOp::create(*this, l, i32(r));
}
Value Lane::smaller(Value l, Value r) {
  return arith::MinSIOp::create(*this, l, r);
}
Value Lane::larger(Value l, Value r) {
  return arith::MaxSIOp::create(*this, l, r);
}
Value Lane::is(Predicate predicate, Value l, Value r) {
  return arith::CmpIOp::create(*this, predicate, l, r);
}
Value Lane::lessThan(Value l, int64_t r) {
  return is(Predicate::slt, l, i32(r));
}
Value Lane::both(Value l, Value r) {
  return arith::AndIOp::create(*this, l, r);
}
Value Lane::select(Value condition, Value yes, Value no) {
  return arith::SelectOp::create(*this, condition, yes, no);
}
Value Lane::extend(Value value) {
  return arith::ExtSIOp::create(*this, getI64Type(), value);
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

Value Lane::f32(float value) {
  return arith::ConstantOp::create(*this, getF32FloatAttr(value));
}
Value Lane::addf(Value l, Value r) {
  return arith::AddFOp::create(*this, l, r);
}
Value Lane::subf(Value l, Value r) {
  return arith::SubFOp::create(*this, l, r);
}
Value Lane::mulf(Value l, Value r) {
  return arith::MulFOp::create(*this, l, r);
}
Value Lane::largerf(Value l, Value r) {
  return arith::MaxNumFOp::create(*this, l, r);
}
Value Lane::magnitude(Value value) {
  return LLVM::FAbsOp::create(*this, value);
}
Value Lane::fma(Value a, Value b, Value c) {
  return LLVM::FMAOp::create(*this, a, b, c);
}

Value Lane::intrinsic(StringRef name, Type type, ArrayRef<Value> operands) {
  return LLVM::CallIntrinsicOp::create(*this, type, getStringAttr(name),
                                       operands)
      .getResult(0);
}
Value Lane::exp2(Value value) {
  return intrinsic("llvm.nvvm.ex2.approx.ftz.f32", getF32Type(), value);
}
Value Lane::log2(Value value) {
  return intrinsic("llvm.nvvm.lg2.approx.ftz.f", getF32Type(), value);
}
Value Lane::isPositive(Value value) {
  return arith::CmpFOp::create(*this, arith::CmpFPredicate::OGT, value, f32(0));
}
Value Lane::pack(Value low, Value high, Type element) {
  StringRef name =
      element.isBF16() ? "llvm.nvvm.ff2bf16x2.rn" : "llvm.nvvm.ff2f16x2.rn";
  Value pair = intrinsic(name, vector(2, element), {high, low});
  return LLVM::BitcastOp::create(*this, getI32Type(), pair);
}

Registers Lane::unpack(Value word) {
  Value pair = LLVM::BitcastOp::create(*this, vector(2, getF16Type()), word);
  Registers elements;
  for (int64_t i : {0, 1})
    elements.push_back(
        arith::ExtFOp::create(*this, getF32Type(), element(pair, i)));
  return elements;
}

//===----------------------------------------------------------------------===//
// Warps and blocks
//===----------------------------------------------------------------------===//

Value Lane::butterfly(Value value, int64_t mask) {
  return NVVM::ShflOp::create(*this, value.getType(), i32(kAllLanes), value,
                              i32(mask), i32(31), NVVM::ShflKind::bfly,
                              UnitAttr());
}
Value Lane::maxOver(Value value, ArrayRef<int64_t> masks) {
  for (int64_t mask : masks)
    value = largerf(value, butterfly(value, mask));
  return value;
}
Value Lane::sumOver(Value value, ArrayRef<int64_t> masks) {
  for (int64_t mask : masks)
    value = addf(value, butterfly(value, mask));
  return value;
}
Value Lane::any(Value condition) {
  return NVVM::VoteSyncOp::create(*this, getI1Type(), i32(kAllLanes), condition,
                                  NVVM::VoteSyncKind::any);
}
void Lane::waitForGrid() {
  NVVM::GriddepcontrolOp::create(*this, NVVM::GridDepActionKind::wait);
  // LLVM takes the wait for an operation that has nothing to do with memory.
  LLVM::InlineAsmOp::create(*this, TypeRange(), ValueRange(), "", "~{memory}",
                            /*has_side_effects=*/true,
                            /*is_align_stack=*/false,
                            LLVM::tailcallkind::TailCallKind::None,
                            LLVM::AsmDialectAttr(), ArrayAttr());
}

void Lane::barrier() { NVVM::BarrierOp::create(*this); }

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value Lane::offset(Value base, Value bytes) {
  return LLVM::GEPOp::create(*this, base.getType(), getI8Type(), base,
                             LLVM::GEPArg(bytes));
}
Value Lane::offset(Value base, int64_t bytes) {
  if (!bytes)
    return base;
  return LLVM::GEPOp::create(*this, base.getType(), getI8Type(), base,
                             LLVM::GEPArg(int32_t(bytes)));
}
Value Lane::global(Value address) {
  return LLVM::IntToPtrOp::create(
      *this, LLVM::LLVMPointerType::get(getContext(), 1), address);
}
/// Vectors are read and written whole, as their size aligns them.
static unsigned alignmentOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  unsigned bits =
      vector ? vector.getNumElements() * vector.getElementTypeBitWidth()
             : type.getIntOrFloatBitWidth();
  return bits / 8;
}

Value Lane::load(Type type, Value pointer) {
  return LLVM::LoadOp::create(*this, type, pointer, alignmentOf(type));
}
void Lane::store(Value value, Value pointer) {
  LLVM::StoreOp::create(*this, value, pointer, alignmentOf(value.getType()));
}

Registers Lane::ldmatrix(Value pointer, bool transposed) {
  Type word = getI32Type();
  auto type =
      LLVM::LLVMStructType::getLiteral(getContext(), {word, word, word, word});
  Value all = NVVM::LdMatrixOp::create(
      *this, type, pointer, 4,
      transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(getContext(), 8, 8),
      NVVM::LdStMatrixEltType::B16);
  Registers words;
  for (int64_t i : {0, 1, 2, 3})
    words.push_back(LLVM::ExtractValueOp::create(*this, all, i));
  return words;
}

void Lane::copyAsync(Value shared, Value global, Value live) {
  Value bytes = live ? select(live, i32(16), i32(0)) : Value();
  NVVM::CpAsyncOp::create(*this, shared, global, 16,
                          NVVM::LoadCacheModifierKind::CG, bytes);
}

VectorType Lane::vector(int64_t count, Type element) {
  return VectorType::get({count}, element);
}
Value Lane::gather(ArrayRef<Value> scalars) {
  Value all = LLVM::UndefOp::create(
      *this, vector(scalars.size(), scalars[0].getType()));
  for (auto [i, scalar] : llvm::enumerate(scalars))
    all = LLVM::InsertElementOp::create(*this, all, scalar, i32(i));
  return all;
}
Value Lane::element(Value vector, int64_t index) {
  return LLVM::ExtractElementOp::create(*this, vector, i32(index));
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

void Lane::mma(MutableArrayRef<Value> acc, ArrayRef<Value> a, ArrayRef<Value> b,
               Type element) {
  bool half = element.isF16();
  NVVM::MMATypes type = half ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16;
  auto operands = [&](ArrayRef<Value> words) {
    Registers typed;
    for (Value word : words)
      typed.push_back(
          half ? LLVM::BitcastOp::create(*this, vector(2, element), word)
                     .getResult()
               : word);
    return typed;
  };
  Type f32 = getF32Type();
  auto result =
      LLVM::LLVMStructType::getLiteral(getContext(), {f32, f32, f32, f32});
  Value product = NVVM::MmaOp::create(
      *this, result, operands(a), operands(b), acc,
      ArrayRef<int64_t>{16, 8, 16}, std::nullopt, std::nullopt,
      std::array<NVVM::MMATypes, 2>{type, type},
      std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row,
                                     NVVM::MMALayout::col});
  for (int64_t i : {0, 1, 2, 3})
    acc[i] = LLVM::ExtractValueOp::create(*this, product, i);
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

void Lane::when(Value condition, llvm::function_ref<void()> then) {
  auto branch = scf::IfOp::create(*this, TypeRange(), condition,
                                  /*withElseRegion=*/false);
  InsertionGuard guard(*this);
  setInsertionPoint(branch.thenBlock()->getTerminator());
  then();
}

Registers Lane::choose(Value condition, llvm::function_ref<Registers()> then,
                       llvm::function_ref<Registers()> otherwise) {
  // Types are known once the first arm has been built.
  auto probe = scf::IfOp::create(*this, TypeRange(), condition,
                                 /*withElseRegion=*/true);
  InsertionGuard guard(*this);
  SmallVector<Type> types;
  for (Block *block : {probe.thenBlock(), probe.elseBlock()}) {
    setInsertionPoint(block->getTerminator());
    Registers values = block == probe.thenBlock() ? then() : otherwise();
    block->getTerminator()->setOperands(values);
    types = llvm::to_vector(ValueRange(values).getTypes());
  }
  setInsertionPoint(probe);
  auto branch = scf::IfOp::create(*this, types, condition,
                                  /*addThenBlock=*/false,
                                  /*addElseBlock=*/false);
  branch.getThenRegion().takeBody(probe.getThenRegion());
  branch.getElseRegion().takeBody(probe.getElseRegion());
  probe.erase();
  return Registers(branch.getResults());
}

Registers Lane::loop(Value begin, Value end, Value step, ArrayRef<Value> init,
                     llvm::function_ref<Registers(Value, ValueRange)> body) {
  auto loop = scf::ForOp::create(*this, begin, end, step, init);
  InsertionGuard guard(*this);
  if (init.empty())
    setInsertionPoint(loop.getBody()->getTerminator());
  else
    setInsertionPointToEnd(loop.getBody());
  Registers next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!init.empty())
    scf::YieldOp::create(*this, next);
  return Registers(loop.getResults());
}
