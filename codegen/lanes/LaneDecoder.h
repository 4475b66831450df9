//===- LaneDecoder.h - From IR to the decoded form --------------*- C++ -*-===//
//
// One pass over a function. Every value becomes a list of slots, one for each
// leaf; operations that only rearrange leaves share slots and cost nothing.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_CODEGEN_LANES_LANEDECODER_H
#define TOKENTILE_CODEGEN_LANES_LANEDECODER_H

#include "codegen/lanes/LaneProgram.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

#include <memory>

namespace tokentile::lanes {

using Slots = llvm::SmallVector<Slot, 4>;
using Leaves = llvm::SmallVector<mlir::Type, 4>;

/// Bits of a scalar type as a leaf, or 0 if it cannot be one.
unsigned leafWidth(mlir::Type type);
FloatKind floatKind(mlir::Type type);
/// Appends the leaves of `type`; false if it has parts that cannot be one.
bool flatten(mlir::Type type, Leaves &leaves);

class Decoder {
public:
  static llvm::Expected<std::unique_ptr<Program>>
  decode(mlir::LLVM::LLVMFuncOp kernel);

private:
  explicit Decoder(Program &program) : program(program) {}

  /// Each decode function returns whether it knows the operation; a reason
  /// for refusing one that it nearly knows goes to `reason`.
  bool decodeBlock(mlir::Block &block);
  bool decodeOp(mlir::Operation *op);
  bool decodeIf(mlir::Operation *op);
  bool decodeFor(mlir::Operation *op);
  // LaneDecodeArith.cpp
  bool decodeElementwise(mlir::Operation *op);
  bool decodeConstant(mlir::Operation *op);
  bool decodeAggregate(mlir::Operation *op);
  bool recast(mlir::Operation *op, mlir::Value from, mlir::Value to);
  // LaneDecodeMemory.cpp
  bool decodeMemory(mlir::Operation *op);
  bool decodeAddress(mlir::Operation *op);
  bool decodeGep(mlir::LLVM::GEPOp op);
  bool decodeAccess(mlir::Operation *op, Opcode opcode, mlir::Value address,
                    mlir::Value value, uint64_t alignment);
  // LaneDecodeWarp.cpp
  bool decodeWarp(mlir::Operation *op);
  bool decodeSpecial(mlir::Operation *op);
  bool decodeMatrix(mlir::Operation *op);
  bool decodeCopy(mlir::Operation *op);
  bool decodeExchange(mlir::Operation *op);
  bool decodeBarrier(mlir::Operation *op);
  // LaneDecodeIntrinsics.cpp
  bool decodeIntrinsic(mlir::Operation *op);
  bool decodePtx(mlir::Operation *op);
  bool applyNamed(mlir::Operation *op, llvm::StringRef name,
                  mlir::ValueRange operands);

  bool refuse(const llvm::Twine &why) {
    reason = why.str();
    return false;
  }

  Instr &emit(Opcode opcode, mlir::Operation *source);
  Slot newSlot(unsigned width);
  /// The leaves of a value that has been defined.
  llvm::ArrayRef<Slot> slots(mlir::Value value) const;
  Slot slot(mlir::Value value) const { return slots(value).front(); }
  /// Gives a result fresh slots; empty if its type has no leaves.
  Slots define(mlir::Value value);
  void alias(mlir::Value value, llvm::ArrayRef<Slot> leaves);
  Slot constant(unsigned width, uint64_t bits);
  /// Makes `to` hold `from` when the instruction runs, all at once.
  void copies(mlir::Operation *source, llvm::ArrayRef<Slot> to,
              llvm::ArrayRef<Slot> from, mlir::TypeRange types);
  uint32_t list(llvm::ArrayRef<Slot> entries);
  /// The slot of one 32-bit register that holds `value`, packed if need be.
  Slot packed(mlir::Operation *op, mlir::Value value);

  Program &program;
  llvm::DenseMap<mlir::Value, Slots> values;
  std::string reason;
  mlir::Operation *refused = nullptr;
};

} // namespace tokentile::lanes

#endif // TOKENTILE_CODEGEN_LANES_LANEDECODER_H
