//===- Lane.h - Operations of one lane --------------------------*- C++ -*-===//
//
// A builder for code of a single lane: shorthand for arith, llvm and nvvm
// operations, so that the lowerings read like the arithmetic they emit.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_CODEGEN_MMA_LANE_H
#define TOKENTILE_CODEGEN_MMA_LANE_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <functional>

namespace tokentile {

/// A row of registers: what one lane holds of a distributed tensor.
using Registers = llvm::SmallVector<mlir::Value>;

class Lane : public mlir::ImplicitLocOpBuilder {
public:
  using Value = mlir::Value;
  using Predicate = mlir::arith::CmpIPredicate;

  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  //===--- Integers
  //--------------------------------------------------------===//

  Value i32(int64_t value);
  Value i64(int64_t value);
  Value add(Value l, Value r);
  Value add(Value l, int64_t r);
  Value mul(Value l, int64_t r);
  Value div(Value l, int64_t r);
  Value rem(Value l, int64_t r);
  Value xorBits(Value l, Value r);
  Value xorBits(Value l, int64_t r);
  Value shiftLeft(Value l, int64_t r);
  Value smaller(Value l, Value r);
  Value larger(Value l, Value r);
  Value is(Predicate predicate, Value l, Value r);
  Value lessThan(Value l, int64_t r);
  Value both(Value l, Value r);
  Value select(Value condition, Value yes, Value no);
  Value extend(Value value);

  //===--- Floats
  //----------------------------------------------------------===//

  Value f32(float value);
  Value addf(Value l, Value r);
  Value subf(Value l, Value r);
  Value mulf(Value l, Value r);
  Value largerf(Value l, Value r);
  Value magnitude(Value value);
  Value fma(Value a, Value b, Value c);
  /// 2^x and log2(x) by the hardware's approximations.
  Value exp2(Value value);
  Value log2(Value value);
  Value isPositive(Value value);
  /// Two floats rounded to 16-bit elements, `low` in the low half.
  Value pack(Value low, Value high, mlir::Type element);
  /// The two fp16 elements of a word.
  Registers unpack(Value word);

  //===--- Warps and blocks
  //------------------------------------------------===//

  /// The value that lane `lane xor mask` holds.
  Value butterfly(Value value, int64_t mask);
  Value maxOver(Value value, llvm::ArrayRef<int64_t> masks);
  Value sumOver(Value value, llvm::ArrayRef<int64_t> masks);
  /// i1: true in some lane of the warp.
  Value any(Value condition);
  void barrier();
  /// Waits for the launch that this one depends on.
  void waitForGrid();

  //===--- Memory
  //----------------------------------------------------------===//

  /// Pointer `bytes` behind `base`, in its address space.
  Value offset(Value base, Value bytes);
  Value offset(Value base, int64_t bytes);
  /// Pointer to global memory.
  Value global(Value address);
  Value load(mlir::Type type, Value pointer);
  void store(Value value, Value pointer);
  /// Four 8x8 matrices of 16-bit elements.
  Registers ldmatrix(Value pointer, bool transposed);
  /// Copies 16 bytes from global to shared memory; with `live`, zeros instead
  /// where it is false.
  void copyAsync(Value shared, Value global, Value live = {});
  mlir::VectorType vector(int64_t count, mlir::Type element);
  /// A vector of the given scalars.
  Value gather(llvm::ArrayRef<Value> scalars);
  Value element(Value vector, int64_t index);

  //===--- Products
  //--------------------------------------------------------===//

  /// acc[0..3] += a (16x16) * b (16x8); `element` is bf16 or f16.
  void mma(llvm::MutableArrayRef<Value> acc, llvm::ArrayRef<Value> a,
           llvm::ArrayRef<Value> b, mlir::Type element);

  //===--- Control
  //---------------------------------------------------------===//

  void when(Value condition, llvm::function_ref<void()> then);
  Registers choose(Value condition, llvm::function_ref<Registers()> then,
                   llvm::function_ref<Registers()> otherwise);
  /// for i in [begin, end) step `step`, carrying registers.
  Registers loop(Value begin, Value end, Value step, llvm::ArrayRef<Value> init,
                 llvm::function_ref<Registers(Value, mlir::ValueRange)> body);

private:
  Value intrinsic(llvm::StringRef name, mlir::Type type,
                  llvm::ArrayRef<Value> operands);
};

} // namespace tokentile

#endif // TOKENTILE_CODEGEN_MMA_LANE_H
