//===- LaneDecodeArith.cpp - Arithmetic, constants and aggregates ---------===//
//
// Elementwise operations are found by name, since arith, llvm and the llvm
// intrinsics spell the same operation in three ways.
//
//===----------------------------------------------------------------------===//

#include "codegen/lanes/LaneDecoder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace tokentile::lanes;

/// Integer operations of two operands of one type.
static const llvm::StringMap<Opcode> &integerArithmetic() {
  static const llvm::StringMap<Opcode> table = {
      {"arith.addi", Opcode::AddI},
      {"llvm.add", Opcode::AddI},
      {"arith.subi", Opcode::SubI},
      {"llvm.sub", Opcode::SubI},
      {"arith.muli", Opcode::MulI},
      {"llvm.mul", Opcode::MulI},
      {"arith.divsi", Opcode::DivS},
      {"llvm.sdiv", Opcode::DivS},
      {"arith.divui", Opcode::DivU},
      {"llvm.udiv", Opcode::DivU},
      {"arith.remsi", Opcode::RemS},
      {"llvm.srem", Opcode::RemS},
      {"arith.remui", Opcode::RemU},
      {"llvm.urem", Opcode::RemU},
      {"arith.ceildivsi", Opcode::CeilDivS},
      {"arith.ceildivui", Opcode::CeilDivU},
      {"arith.floordivsi", Opcode::FloorDivS},
      {"arith.andi", Opcode::And},
      {"llvm.and", Opcode::And},
      {"arith.ori", Opcode::Or},
      {"llvm.or", Opcode::Or},
      {"arith.xori", Opcode::Xor},
      {"llvm.xor", Opcode::Xor},
      {"arith.shli", Opcode::Shl},
      {"llvm.shl", Opcode::Shl},
      {"arith.shrui", Opcode::ShrU},
      {"llvm.lshr", Opcode::ShrU},
      {"arith.shrsi", Opcode::ShrS},
      {"llvm.ashr", Opcode::ShrS},
      {"arith.minsi", Opcode::MinS},
      {"llvm.intr.smin", Opcode::MinS},
      {"arith.maxsi", Opcode::MaxS},
      {"llvm.intr.smax", Opcode::MaxS},
      {"arith.minui", Opcode::MinU},
      {"llvm.intr.umin", Opcode::MinU},
      {"arith.maxui", Opcode::MaxU},
      {"llvm.intr.umax", Opcode::MaxU},
  };
  return table;
}

/// Integer comparisons, choices and conversions.
static const llvm::StringMap<Opcode> &otherIntegers() {
  static const llvm::StringMap<Opcode> table = {
      {"arith.cmpi", Opcode::CmpI},       {"llvm.icmp", Opcode::CmpI},
      {"arith.select", Opcode::Select},   {"llvm.select", Opcode::Select},
      {"arith.extsi", Opcode::ExtS},      {"llvm.sext", Opcode::ExtS},
      {"arith.extui", Opcode::ExtU},      {"llvm.zext", Opcode::ExtU},
      {"arith.trunci", Opcode::Trunc},    {"llvm.trunc", Opcode::Trunc},
      {"arith.index_cast", Opcode::ExtS}, {"arith.index_castui", Opcode::ExtU},
      {"llvm.intr.ctpop", Opcode::CtPop},
  };
  return table;
}

/// Operations on floats, and conversions to and from them.
static const llvm::StringMap<Opcode> &floats() {
  static const llvm::StringMap<Opcode> table = {
      {"arith.addf", Opcode::AddF},
      {"llvm.fadd", Opcode::AddF},
      {"arith.subf", Opcode::SubF},
      {"llvm.fsub", Opcode::SubF},
      {"arith.mulf", Opcode::MulF},
      {"llvm.fmul", Opcode::MulF},
      {"arith.divf", Opcode::DivF},
      {"llvm.fdiv", Opcode::DivF},
      {"arith.negf", Opcode::NegF},
      {"llvm.fneg", Opcode::NegF},
      {"llvm.intr.fabs", Opcode::AbsF},
      {"math.absf", Opcode::AbsF},
      {"arith.maximumf", Opcode::MaximumF},
      {"llvm.intr.maximum", Opcode::MaximumF},
      {"arith.maxnumf", Opcode::MaxNumF},
      {"llvm.intr.maxnum", Opcode::MaxNumF},
      {"arith.minimumf", Opcode::MinimumF},
      {"llvm.intr.minimum", Opcode::MinimumF},
      {"arith.minnumf", Opcode::MinNumF},
      {"llvm.intr.minnum", Opcode::MinNumF},
      {"arith.cmpf", Opcode::CmpF},
      {"llvm.fcmp", Opcode::CmpF},
      {"llvm.intr.fma", Opcode::FmaF},
      {"llvm.intr.fmuladd", Opcode::FmaF},
      {"math.fma", Opcode::FmaF},
      {"llvm.intr.exp2", Opcode::Exp2},
      {"math.exp2", Opcode::Exp2},
      {"llvm.intr.log2", Opcode::Log2},
      {"math.log2", Opcode::Log2},
      {"llvm.intr.sqrt", Opcode::Sqrt},
      {"math.sqrt", Opcode::Sqrt},
      {"llvm.intr.tanh", Opcode::Tanh},
      {"math.tanh", Opcode::Tanh},
      {"nvvm.rcp.approx.ftz.f", Opcode::RcpFtz},
      {"arith.truncf", Opcode::ConvertF},
      {"llvm.fptrunc", Opcode::ConvertF},
      {"arith.extf", Opcode::ConvertF},
      {"llvm.fpext", Opcode::ConvertF},
      {"arith.sitofp", Opcode::SIToFP},
      {"llvm.sitofp", Opcode::SIToFP},
      {"arith.uitofp", Opcode::UIToFP},
      {"llvm.uitofp", Opcode::UIToFP},
      {"arith.fptosi", Opcode::FPToSI},
      {"llvm.fptosi", Opcode::FPToSI},
      {"arith.fptoui", Opcode::FPToUI},
      {"llvm.fptoui", Opcode::FPToUI},
  };
  return table;
}

static std::optional<Opcode> elementwiseOpcode(StringRef name) {
  for (const llvm::StringMap<Opcode> *table :
       {&integerArithmetic(), &otherIntegers(), &floats()})
    if (auto it = table->find(name); it != table->end())
      return it->second;
  return std::nullopt;
}

/// The relations of a float predicate, as bits. Both dialects count the
/// unordered predicates from UEQ = 8 to UNO = 14.
static int64_t relations(int64_t predicate) {
  constexpr int64_t ueq = 8, uno = 14;
  if (predicate == uno)
    return 8;
  return predicate + (predicate >= ueq && predicate < uno);
}

static int64_t predicate(Operation *op) {
  // arith numbers its integer predicates as llvm does.
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return int64_t(compare.getPredicate());
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return relations(int64_t(compare.getPredicate()));
  if (auto compare = dyn_cast<LLVM::ICmpOp>(op))
    return int64_t(compare.getPredicate());
  if (auto compare = dyn_cast<LLVM::FCmpOp>(op))
    return relations(int64_t(compare.getPredicate()));
  return 0;
}

bool Decoder::decodeElementwise(Operation *op) {
  std::optional<Opcode> opcode =
      elementwiseOpcode(op->getName().getStringRef());
  if (!opcode)
    return false;
  bool selects = *opcode == Opcode::Select;
  Leaves from, to;
  flatten(op->getOperand(selects ? 1 : 0).getType(), from);
  flatten(op->getResult(0).getType(), to);
  if (from.size() != to.size())
    return refuse("operand without a lane form");

  Slots results = define(op->getResult(0));
  for (size_t i = 0; i < results.size(); ++i) {
    auto leaf = [&](unsigned operand) {
      if (operand >= op->getNumOperands())
        return Slot(0);
      ArrayRef<Slot> all = slots(op->getOperand(operand));
      return all.size() == 1 ? all.front() : all[i];
    };
    Slot a = leaf(0), b = leaf(1), c = leaf(2);
    Instr &instr = emit(*opcode, op);
    instr.dst = results[i];
    instr.a = a;
    instr.b = b;
    instr.c = c;
    instr.width = leafWidth(from[i]);
    instr.width2 = leafWidth(to[i]);
    instr.kind = floatKind(from[i]);
    instr.kind2 = floatKind(to[i]);
    instr.imm = predicate(op);
    if (instr.op == Opcode::ExtS && instr.width2 <= instr.width)
      instr.op = Opcode::Trunc; // an index cast
    if (instr.op == Opcode::ExtU && instr.width2 <= instr.width)
      instr.op = Opcode::Trunc;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

/// Appends the bits of each leaf of `attribute`.
static bool bitsOf(Attribute attribute, SmallVectorImpl<uint64_t> &bits) {
  if (auto integer = dyn_cast<IntegerAttr>(attribute)) {
    bits.push_back(integer.getValue().getZExtValue());
    return true;
  }
  if (auto number = dyn_cast<FloatAttr>(attribute)) {
    bits.push_back(number.getValue().bitcastToAPInt().getZExtValue());
    return true;
  }
  if (auto dense = dyn_cast<DenseIntElementsAttr>(attribute)) {
    for (const APInt &value : dense.getValues<APInt>())
      bits.push_back(value.getZExtValue());
    return true;
  }
  if (auto dense = dyn_cast<DenseFPElementsAttr>(attribute)) {
    for (const APFloat &value : dense.getValues<APFloat>())
      bits.push_back(value.bitcastToAPInt().getZExtValue());
    return true;
  }
  return false;
}

bool Decoder::decodeConstant(Operation *op) {
  Attribute attribute;
  if (auto value = dyn_cast<arith::ConstantOp>(op))
    attribute = value.getValue();
  else if (auto value = dyn_cast<LLVM::ConstantOp>(op))
    attribute = value.getValue();
  bool undefined = isa<LLVM::UndefOp, LLVM::PoisonOp>(op);
  if (!attribute && !undefined && !isa<LLVM::ZeroOp>(op))
    return false;

  Leaves leaves;
  flatten(op->getResult(0).getType(), leaves);
  SmallVector<uint64_t> bits;
  // What is undefined is a NaN, like shared memory that nobody wrote.
  if (!attribute)
    bits.assign(leaves.size(), undefined ? ~uint64_t(0) : 0);
  else if (!bitsOf(attribute, bits) || bits.size() != leaves.size())
    return refuse("constant without a lane form");
  Slots result;
  for (auto [leaf, value] : llvm::zip_equal(leaves, bits))
    result.push_back(constant(leafWidth(leaf), value));
  alias(op->getResult(0), result);
  return true;
}

//===----------------------------------------------------------------------===//
// Aggregates
//===----------------------------------------------------------------------===//

/// The first leaf and number of leaves of the part of `type` at `position`.
static std::pair<unsigned, unsigned> partOf(Type type,
                                            ArrayRef<int64_t> position) {
  unsigned first = 0;
  auto count = [](Type part) {
    Leaves leaves;
    flatten(part, leaves);
    return unsigned(leaves.size());
  };
  for (int64_t index : position) {
    if (auto structure = dyn_cast<LLVM::LLVMStructType>(type)) {
      for (Type before : structure.getBody().take_front(index))
        first += count(before);
      type = structure.getBody()[index];
    } else {
      type = cast<LLVM::LLVMArrayType>(type).getElementType();
      first += index * count(type);
    }
  }
  return {first, count(type)};
}

bool Decoder::recast(Operation *op, Value from, Value to) {
  Leaves source, target;
  if (!flatten(from.getType(), source) || !flatten(to.getType(), target))
    return refuse("type without a lane form");
  unsigned width = leafWidth(source.front());
  unsigned width2 = leafWidth(target.front());
  if (width == width2) {
    alias(to, slots(from));
    return true;
  }
  Slots entries(slots(from));
  Slots results = define(to);
  entries.append(results);
  Instr &instr = emit(Opcode::Recast, op);
  instr.width = width;
  instr.width2 = width2;
  instr.list = list(entries);
  instr.count = source.size();
  instr.imm = target.size();
  return true;
}

bool Decoder::decodeAggregate(Operation *op) {
  if (auto extract = dyn_cast<LLVM::ExtractValueOp>(op)) {
    auto [first, count] =
        partOf(extract.getContainer().getType(), extract.getPosition());
    alias(extract, Slots(slots(extract.getContainer()).slice(first, count)));
    return true;
  }
  if (auto insert = dyn_cast<LLVM::InsertValueOp>(op)) {
    auto [first, count] =
        partOf(insert.getContainer().getType(), insert.getPosition());
    Slots leaves(slots(insert.getContainer()));
    llvm::copy(slots(insert.getValue()), leaves.begin() + first);
    alias(insert, leaves);
    return true;
  }
  if (auto extract = dyn_cast<LLVM::ExtractElementOp>(op)) {
    APInt index;
    if (!matchPattern(extract.getPosition(), m_ConstantInt(&index)))
      return refuse("expected a constant index");
    alias(extract, {slots(extract.getVector())[index.getZExtValue()]});
    return true;
  }
  if (auto insert = dyn_cast<LLVM::InsertElementOp>(op)) {
    APInt index;
    if (!matchPattern(insert.getPosition(), m_ConstantInt(&index)))
      return refuse("expected a constant index");
    Slots leaves(slots(insert.getVector()));
    leaves[index.getZExtValue()] = slot(insert.getValue());
    alias(insert, leaves);
    return true;
  }
  if (auto freeze = dyn_cast<LLVM::FreezeOp>(op)) {
    alias(freeze.getRes(), Slots(slots(freeze.getVal())));
    return true;
  }
  if (isa<LLVM::BitcastOp, arith::BitcastOp>(op))
    return recast(op, op->getOperand(0), op->getResult(0));
  return false;
}
