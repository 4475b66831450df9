//===- LaneDecodeMemory.cpp - Addresses, loads and stores -----------------===//

#include "codegen/lanes/LaneDecoder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tokentile::lanes;

constexpr unsigned kGlobalSpace = 1;
constexpr unsigned kSharedSpace = 3;

static unsigned spaceOf(Value pointer) {
  return cast<LLVM::LLVMPointerType>(pointer.getType()).getAddressSpace();
}

static bool knownSpace(unsigned space) {
  return space == 0 || space == kGlobalSpace || space == kSharedSpace;
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

/// Offset of member `index` of a struct.
static uint64_t memberOffset(const DataLayout &layout,
                             LLVM::LLVMStructType structure, unsigned index) {
  uint64_t offset = 0;
  for (auto [i, part] : llvm::enumerate(structure.getBody())) {
    if (!structure.isPacked())
      offset = llvm::alignTo(offset, layout.getTypeABIAlignment(part));
    if (i == index)
      break;
    offset += layout.getTypeSize(part);
  }
  return offset;
}

bool Decoder::decodeGep(LLVM::GEPOp op) {
  if (op.getBase().getType() != op.getType())
    return refuse("expected one pointer, got a vector");
  DataLayout layout = DataLayout::closest(op);
  Type type = op.getElemType();
  int64_t offset = 0;
  Slot address = slot(op.getBase());
  for (auto [i, index] : llvm::enumerate(op.getIndices())) {
    auto constant = dyn_cast<IntegerAttr>(index);
    auto structure = dyn_cast<LLVM::LLVMStructType>(type);
    if (i > 0 && structure) {
      if (!constant)
        return refuse("expected a constant member index");
      offset += memberOffset(layout, structure, constant.getInt());
      type = structure.getBody()[constant.getInt()];
      continue;
    }
    if (i > 0) {
      if (auto array = dyn_cast<LLVM::LLVMArrayType>(type))
        type = array.getElementType();
      else if (auto vector = dyn_cast<VectorType>(type))
        type = vector.getElementType();
      else
        return refuse("index into a scalar");
    }
    int64_t size = layout.getTypeSize(type);
    if (constant) {
      offset += constant.getValue().getSExtValue() * size;
      continue;
    }
    Value value = cast<Value>(index);
    Slot next = newSlot(64);
    Slot operand = slot(value);
    Instr &instr = emit(Opcode::AddScaled, op);
    instr.dst = next;
    instr.a = address;
    instr.b = operand;
    instr.width = leafWidth(value.getType());
    instr.imm = size;
    address = next;
  }
  if (offset) {
    Slot next = newSlot(64);
    Instr &instr = emit(Opcode::AddImm, op);
    instr.dst = next;
    instr.a = address;
    instr.imm = offset;
    address = next;
  }
  alias(op, {address});
  return true;
}

bool Decoder::decodeAddress(Operation *op) {
  if (auto gep = dyn_cast<LLVM::GEPOp>(op))
    return decodeGep(gep);
  if (auto cast = dyn_cast<LLVM::AddrSpaceCastOp>(op)) {
    unsigned from = spaceOf(cast.getArg()), to = spaceOf(cast.getRes());
    if (!knownSpace(from) || !knownSpace(to))
      return refuse("address space other than 0, 1 and 3");
    int64_t shift = (from == kSharedSpace) - (to == kSharedSpace);
    if (!shift) {
      alias(cast, slots(cast.getArg()));
      return true;
    }
    Slot result = define(cast).front();
    Instr &instr = emit(Opcode::AddImm, op);
    instr.dst = result;
    instr.a = slot(cast.getArg());
    instr.imm = shift * int64_t(kSharedWindow);
    return true;
  }
  if (isa<LLVM::IntToPtrOp, LLVM::PtrToIntOp>(op)) {
    unsigned from = leafWidth(op->getOperand(0).getType());
    unsigned to = leafWidth(op->getResult(0).getType());
    Slot result = define(op->getResult(0)).front();
    Instr &instr = emit(to > from ? Opcode::ExtU : Opcode::Trunc, op);
    instr.dst = result;
    instr.a = slot(op->getOperand(0));
    instr.width = from;
    instr.width2 = to;
    return true;
  }
  if (auto addressOf = dyn_cast<LLVM::AddressOfOp>(op)) {
    auto global = SymbolTable::lookupNearestSymbolFrom<LLVM::GlobalOp>(
        op, addressOf.getGlobalNameAttr());
    if (!global || global.getAddrSpace() != kSharedSpace ||
        global.getLinkage() != LLVM::Linkage::External)
      return refuse("expected the external dynamic shared memory");
    alias(addressOf, {constant(64, 0)});
    return true;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

bool Decoder::decodeAccess(Operation *op, Opcode opcode, Value address,
                           Value value, uint64_t alignment) {
  if (!knownSpace(spaceOf(address)))
    return refuse("address space other than 0, 1 and 3");
  Leaves leaves;
  if (!flatten(value.getType(), leaves) ||
      !(leaves.size() == 1 || isa<VectorType>(value.getType())))
    return refuse("expected a scalar or a vector");
  unsigned width = leafWidth(leaves.front());
  unsigned size = llvm::divideCeil(width, 8) * leaves.size();
  if (width == 1 || size > 16 || !llvm::isPowerOf2_32(size))
    return refuse("expected 1, 2, 4, 8 or 16 bytes");
  Slots entries = opcode == Opcode::Load ? define(value) : Slots(slots(value));
  Instr &instr = emit(opcode, op);
  instr.a = slot(address);
  instr.width = width;
  instr.list = list(entries);
  instr.count = entries.size();
  instr.imm = alignment ? alignment : size;
  instr.space = spaceOf(address) == kSharedSpace   ? Space::Shared
                : spaceOf(address) == kGlobalSpace ? Space::Global
                                                   : Space::Generic;
  return true;
}

bool Decoder::decodeMemory(Operation *op) {
  if (auto load = dyn_cast<LLVM::LoadOp>(op))
    return decodeAccess(op, Opcode::Load, load.getAddr(), load.getRes(),
                        load.getAlignment().value_or(0));
  if (auto store = dyn_cast<LLVM::StoreOp>(op))
    return decodeAccess(op, Opcode::Store, store.getAddr(), store.getValue(),
                        store.getAlignment().value_or(0));
  return decodeAddress(op);
}
