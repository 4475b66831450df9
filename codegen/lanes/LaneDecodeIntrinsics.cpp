//===- LaneDecodeIntrinsics.cpp - Intrinsics and PTX by name --------------===//
//
// The few instructions that a lowering reaches through llvm.call_intrinsic,
// nvvm.inline_ptx or a conversion of two floats. Approximate instructions run
// as the host's functions, rounded to fp32: closer than hardware.
//
//===----------------------------------------------------------------------===//

#include "codegen/lanes/LaneDecoder.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace tokentile::lanes;

namespace {
struct Named {
  Opcode opcode;
  unsigned operands;
};
} // namespace

static const Named *findNamed(StringRef name) {
  static const llvm::StringMap<Named> table = {
      {"llvm.nvvm.ex2.approx.f", {Opcode::Exp2, 1}},
      {"llvm.nvvm.ex2.approx.f32", {Opcode::Exp2, 1}},
      {"llvm.nvvm.ex2.approx.ftz.f", {Opcode::Exp2Ftz, 1}},
      {"llvm.nvvm.ex2.approx.ftz", {Opcode::Exp2Ftz, 1}},
      {"llvm.nvvm.ex2.approx.ftz.f32", {Opcode::Exp2Ftz, 1}},
      {"llvm.nvvm.ex2.approx", {Opcode::Exp2, 1}},
      {"llvm.nvvm.lg2.approx.f", {Opcode::Log2, 1}},
      {"llvm.nvvm.lg2.approx.ftz.f", {Opcode::Log2Ftz, 1}},
      {"llvm.nvvm.rcp.approx.ftz.f", {Opcode::RcpFtz, 1}},
      {"llvm.nvvm.rcp.rn.f", {Opcode::Rcp, 1}},
      {"llvm.nvvm.tanh.approx.f", {Opcode::Tanh, 1}},
      {"llvm.nvvm.tanh.approx", {Opcode::Tanh, 1}},
      {"llvm.nvvm.fma.rn.f", {Opcode::FmaF, 3}},
      {"llvm.nvvm.fmax.f", {Opcode::MaxNumF, 2}},
      {"llvm.nvvm.fmin.f", {Opcode::MinNumF, 2}},
      {"llvm.fma.f32", {Opcode::FmaF, 3}},
      {"llvm.exp2.f32", {Opcode::Exp2, 1}},
      {"llvm.maxnum.f32", {Opcode::MaxNumF, 2}},
      {"llvm.minnum.f32", {Opcode::MinNumF, 2}},
      {"ex2.approx.f32", {Opcode::Exp2, 1}},
      {"ex2.approx.ftz.f32", {Opcode::Exp2Ftz, 1}},
      {"lg2.approx.f32", {Opcode::Log2, 1}},
      {"lg2.approx.ftz.f32", {Opcode::Log2Ftz, 1}},
      {"rcp.approx.f32", {Opcode::Rcp, 1}},
      {"rcp.approx.ftz.f32", {Opcode::RcpFtz, 1}},
      {"tanh.approx.f32", {Opcode::Tanh, 1}},
      {"max.f32", {Opcode::MaxNumF, 2}},
      {"min.f32", {Opcode::MinNumF, 2}},
      {"fma.rn.f32", {Opcode::FmaF, 3}},
  };
  auto it = table.find(name);
  return it == table.end() ? nullptr : &it->second;
}

static FloatKind pairKind(StringRef name) {
  if (name == "llvm.nvvm.ff2bf16x2.rn" || name == "cvt.rn.bf16x2.f32")
    return FloatKind::BF16;
  if (name == "llvm.nvvm.ff2f16x2.rn" || name == "cvt.rn.f16x2.f32")
    return FloatKind::F16;
  return FloatKind::None;
}

bool Decoder::applyNamed(Operation *op, StringRef name, ValueRange operands) {
  if (FloatKind kind = pairKind(name); kind != FloatKind::None) {
    if (operands.size() != 2 || op->getNumResults() != 1)
      return refuse("expected two operands and one result");
    // The first operand is the upper half.
    Slots halves;
    for (Value operand : {operands[1], operands[0]}) {
      Slot half = newSlot(16);
      Instr &instr = emit(Opcode::ConvertF, op);
      instr.dst = half;
      instr.a = slot(operand);
      instr.kind = FloatKind::F32;
      instr.kind2 = kind;
      halves.push_back(half);
    }
    Slots results = define(op->getResult(0));
    if (results.size() == 2) {
      alias(op->getResult(0), halves);
      return true;
    }
    halves.append(results);
    Instr &instr = emit(Opcode::Recast, op);
    instr.width = 16;
    instr.list = list(halves);
    instr.count = 2;
    instr.imm = 1;
    return true;
  }

  const Named *named = findNamed(name);
  if (!named)
    return refuse("unknown instruction '" + name + "'");
  if (operands.size() != named->operands || op->getNumResults() != 1 ||
      !op->getResult(0).getType().isF32())
    return refuse("expected " + llvm::Twine(named->operands) +
                  " operands and a result of f32");
  Slot result = define(op->getResult(0)).front();
  Instr &instr = emit(named->opcode, op);
  instr.kind = FloatKind::F32;
  instr.dst = result;
  Slot *fields[] = {&instr.a, &instr.b, &instr.c};
  for (auto [i, operand] : llvm::enumerate(operands))
    *fields[i] = slot(operand);
  return true;
}

/// Splits "ex2.approx.f32 $0, $1;" into its name, if the operands are the
/// results and then the inputs in their order.
static std::optional<std::string> plainInstruction(StringRef text) {
  text = text.trim();
  text.consume_back(";");
  auto [name, rest] = text.split(' ');
  unsigned expected = 0;
  SmallVector<StringRef> parts;
  rest.split(parts, ',', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    part = part.trim();
    if (part.consume_front("%"))
      return std::nullopt;
    unsigned number;
    if (!part.consume_front("$") || part.getAsInteger(10, number) ||
        number != expected++)
      return std::nullopt;
  }
  return name.trim().str();
}

bool Decoder::decodePtx(Operation *op) {
  auto ptx = cast<NVVM::InlinePtxOp>(op);
  std::optional<std::string> name = plainInstruction(ptx.getPtxCode());
  if (!name || ptx.getPredicate() || !ptx.getReadWriteArgs().empty())
    return refuse("expected one plain instruction without predicate");
  return applyNamed(op, *name, ptx.getReadOnlyArgs());
}

bool Decoder::decodeIntrinsic(Operation *op) {
  if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(op)) {
    if (call.getIntrin() == "llvm.nvvm.cp.async.wait.all") {
      emit(Opcode::WaitGroup, op).imm = -1;
      return true;
    }
    return applyNamed(op, call.getIntrin(), call.getArgs());
  }
  if (isa<NVVM::InlinePtxOp>(op))
    return decodePtx(op);
  if (isa<NVVM::ConvertF32x2ToBF16x2Op, NVVM::ConvertF32x2ToF16x2Op>(op)) {
    // Round to nearest even, without the optional modifiers.
    auto mode = op->getAttrOfType<NVVM::FPRoundingModeAttr>("rnd");
    auto relu = op->getAttrOfType<BoolAttr>("relu");
    if (op->getNumOperands() != 2 || !mode ||
        mode.getValue() != NVVM::FPRoundingMode::RN ||
        (relu && relu.getValue()))
      return refuse("expected rounding to nearest even without relu");
    bool brain = isa<NVVM::ConvertF32x2ToBF16x2Op>(op);
    return applyNamed(op, brain ? "cvt.rn.bf16x2.f32" : "cvt.rn.f16x2.f32",
                      op->getOperands());
  }
  return false;
}
