//===- LaneDecoder.cpp - Values, blocks and structured control flow -------===//

#include "codegen/lanes/LaneDecoder.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace tokentile::lanes;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

unsigned tokentile::lanes::leafWidth(Type type) {
  if (isa<IndexType, LLVM::LLVMPointerType>(type))
    return 64;
  if (auto integer = dyn_cast<IntegerType>(type)) {
    unsigned width = integer.getWidth();
    bool known =
        width == 1 || width == 8 || width == 16 || width == 32 || width == 64;
    return known ? width : 0;
  }
  if (type.isF32())
    return 32;
  return type.isF16() || type.isBF16() ? 16 : 0;
}

FloatKind tokentile::lanes::floatKind(Type type) {
  if (type.isF32())
    return FloatKind::F32;
  if (type.isF16())
    return FloatKind::F16;
  return type.isBF16() ? FloatKind::BF16 : FloatKind::None;
}

bool tokentile::lanes::flatten(Type type, Leaves &leaves) {
  if (leafWidth(type)) {
    leaves.push_back(type);
    return true;
  }
  if (auto vector = dyn_cast<VectorType>(type)) {
    if (!leafWidth(vector.getElementType()) || vector.isScalable())
      return false;
    leaves.append(vector.getNumElements(), vector.getElementType());
    return true;
  }
  if (auto structure = dyn_cast<LLVM::LLVMStructType>(type))
    return !structure.isOpaque() &&
           llvm::all_of(structure.getBody(),
                        [&](Type part) { return flatten(part, leaves); });
  if (auto array = dyn_cast<LLVM::LLVMArrayType>(type)) {
    for (unsigned i = 0; i < array.getNumElements(); ++i)
      if (!flatten(array.getElementType(), leaves))
        return false;
    return true;
  }
  return false;
}

std::string tokentile::lanes::describe(Operation *op) {
  if (!op)
    return "an unknown operation";
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "'" << op->getName() << "' at " << op->getLoc();
  return text;
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

Instr &Decoder::emit(Opcode opcode, Operation *source) {
  program.code.push_back(Instr{opcode});
  program.code.back().source = source;
  return program.code.back();
}

Slot Decoder::newSlot(unsigned width) {
  Slot slot = program.words;
  program.words += width > 32 ? 2 * kLanes : kLanes;
  return slot;
}

ArrayRef<Slot> Decoder::slots(Value value) const {
  return values.find(value)->second;
}

Slots Decoder::define(Value value) {
  Leaves leaves;
  Slots result;
  if (flatten(value.getType(), leaves))
    for (Type leaf : leaves)
      result.push_back(newSlot(leafWidth(leaf)));
  values[value] = result;
  return result;
}

void Decoder::alias(Value value, ArrayRef<Slot> leaves) {
  values[value] = Slots(leaves);
}

Slot Decoder::constant(unsigned width, uint64_t bits) {
  Slot slot = newSlot(width);
  if (width < 64)
    bits &= (uint64_t(1) << width) - 1;
  program.constants.push_back({slot, uint8_t(width), bits});
  return slot;
}

uint32_t Decoder::list(ArrayRef<Slot> entries) {
  uint32_t start = program.lists.size();
  program.lists.insert(program.lists.end(), entries.begin(), entries.end());
  return start;
}

void Decoder::copies(Operation *source, ArrayRef<Slot> to, ArrayRef<Slot> from,
                     TypeRange types) {
  Leaves leaves;
  for (Type type : types)
    flatten(type, leaves);
  Slots narrow, wide;
  for (auto [target, origin, leaf] : llvm::zip_equal(to, from, leaves))
    if (target != origin)
      (leafWidth(leaf) > 32 ? wide : narrow).append({target, origin});
  if (narrow.empty() && wide.empty())
    return;
  Instr &instr = emit(Opcode::Copies, source);
  instr.count = narrow.size() / 2;
  instr.imm = wide.size() / 2;
  narrow.append(wide);
  instr.list = list(narrow);
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

static Slots gather(const DenseMap<Value, Slots> &values, ValueRange range) {
  Slots result;
  for (Value value : range)
    result.append(values.find(value)->second);
  return result;
}

bool Decoder::decodeIf(Operation *op) {
  auto branch = cast<scf::IfOp>(op);
  Slots results;
  for (Value result : branch.getResults())
    results.append(define(result));

  size_t begin = program.code.size();
  emit(Opcode::IfBegin, op).a = slot(branch.getCondition());
  auto decodeArm = [&](Region &region) {
    if (region.empty())
      return true;
    if (!decodeBlock(region.front()))
      return false;
    Operation *yield = region.front().getTerminator();
    copies(yield, results, gather(values, yield->getOperands()),
           branch.getResultTypes());
    return true;
  };
  if (!decodeArm(branch.getThenRegion()))
    return false;
  size_t middle = program.code.size();
  emit(Opcode::IfElse, op);
  if (!decodeArm(branch.getElseRegion()))
    return false;
  program.code[begin].target = middle;
  program.code[middle].target = program.code.size();
  emit(Opcode::IfEnd, op);
  return true;
}

bool Decoder::decodeFor(Operation *op) {
  auto loop = cast<scf::ForOp>(op);
  unsigned width = leafWidth(loop.getInductionVar().getType());
  if (width != 32 && width != 64)
    return refuse("expected i32, i64 or index bounds");

  // A loop's results live where its iteration arguments did.
  Slots inits = gather(values, loop.getInitArgs());
  Slots args;
  for (auto [arg, result] :
       llvm::zip_equal(loop.getRegionIterArgs(), loop.getResults())) {
    Slots leaves = define(arg);
    alias(result, leaves);
    args.append(leaves);
  }
  copies(op, args, inits, loop.getResultTypes());

  size_t begin = program.code.size();
  Instr &head = emit(Opcode::ForBegin, op);
  head.width = width;
  head.a = slot(loop.getLowerBound());
  head.b = slot(loop.getUpperBound());
  head.c = slot(loop.getStep());
  head.imm = loop.getUnsignedCmp();
  Slot iv = define(loop.getInductionVar()).front();
  program.code[begin].dst = iv;
  if (!decodeBlock(*loop.getBody()))
    return false;
  Operation *yield = loop.getBody()->getTerminator();
  copies(yield, args, gather(values, yield->getOperands()),
         loop.getResultTypes());
  Instr &next = emit(Opcode::ForNext, op);
  next.width = width;
  next.dst = iv;
  next.target = begin + 1;
  program.code[begin].target = program.code.size();
  return true;
}

bool Decoder::decodeOp(Operation *op) {
  if (isa<scf::IfOp>(op))
    return decodeIf(op);
  if (isa<scf::ForOp>(op))
    return decodeFor(op);
  if (isa<scf::YieldOp>(op))
    return true;
  if (isa<LLVM::ReturnOp>(op)) {
    emit(Opcode::Return, op);
    return true;
  }
  // Each returns false without a reason for an operation of another kind.
  return decodeElementwise(op) || (reason.empty() && decodeConstant(op)) ||
         (reason.empty() && decodeAggregate(op)) ||
         (reason.empty() && decodeMemory(op)) ||
         (reason.empty() && decodeWarp(op)) ||
         (reason.empty() && decodeIntrinsic(op));
}

bool Decoder::decodeBlock(Block &block) {
  for (Operation &op : block) {
    Leaves leaves;
    bool known = llvm::all_of(op.getResultTypes(), [&](Type type) {
      return flatten(type, leaves) || refuse("type without a lane form");
    });
    if (known && decodeOp(&op))
      continue;
    if (!refused)
      refused = &op;
    return false;
  }
  return true;
}

llvm::Expected<std::unique_ptr<Program>>
Decoder::decode(LLVM::LLVMFuncOp kernel) {
  auto program = std::make_unique<Program>();
  auto fail = [&](const llvm::Twine &why) {
    return llvm::createStringError("cannot run '" + kernel.getName() +
                                   "': " + why);
  };
  if (!llvm::hasSingleElement(kernel.getBody()))
    return fail("expected a body of one block");
  if (kernel.getNumArguments() > 1 ||
      (kernel.getNumArguments() == 1 &&
       !isa<LLVM::LLVMPointerType>(kernel.getArgument(0).getType())))
    return fail("expected at most one argument, the parameter block");

  Decoder decoder(*program);
  if (kernel.getNumArguments() == 1) {
    program->hasArgument = true;
    program->argument = decoder.define(kernel.getArgument(0)).front();
  }
  if (!decoder.decodeBlock(kernel.getBody().front())) {
    std::string what = describe(decoder.refused);
    if (decoder.reason.empty())
      return fail("unknown operation " + llvm::Twine(what));
    return fail(llvm::Twine(what) + ": " + decoder.reason);
  }
  return program;
}
