//===- LaneDecodeWarp.cpp - Operations of a warp and of a block -----------===//

#include "codegen/lanes/LaneDecoder.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace tokentile::lanes;

//===----------------------------------------------------------------------===//
// Special registers
//===----------------------------------------------------------------------===//

bool Decoder::decodeSpecial(Operation *op) {
  StringRef name = op->getName().getStringRef();
  if (!name.consume_front("nvvm.read.ptx.sreg."))
    return false;
  using R = SpecialRegister;
  auto which = llvm::StringSwitch<std::optional<R>>(name)
                   .Case("tid.x", R::TidX)
                   .Cases({"tid.y", "tid.z"}, R::TidY)
                   .Case("ctaid.x", R::BlockX)
                   .Case("ctaid.y", R::BlockY)
                   .Case("ctaid.z", R::BlockZ)
                   .Case("ntid.x", R::ThreadsX)
                   .Cases({"ntid.y", "ntid.z"}, R::ThreadsY)
                   .Case("nctaid.x", R::GridX)
                   .Case("nctaid.y", R::GridY)
                   .Case("nctaid.z", R::GridZ)
                   .Case("laneid", R::Lane)
                   .Case("warpid", R::WarpId)
                   .Case("warpsize", R::WarpSize)
                   .Default(std::nullopt);
  if (!which)
    return false;
  Slot result = define(op->getResult(0)).front();
  Instr &instr = emit(Opcode::Special, op);
  instr.dst = result;
  instr.imm = int64_t(*which);
  return true;
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

Slot Decoder::packed(Operation *op, Value value) {
  Slots leaves(slots(value));
  if (leaves.size() == 1)
    return leaves.front();
  Slot result = newSlot(32);
  leaves.push_back(result);
  Instr &instr = emit(Opcode::Recast, op);
  instr.width = 16;
  instr.width2 = 32;
  instr.list = list(leaves);
  instr.count = 2;
  instr.imm = 1;
  return result;
}

static bool isHalfPair(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector && vector.getNumElements() == 2 &&
         vector.getElementType().isF16();
}

bool Decoder::decodeMatrix(Operation *op) {
  if (auto load = dyn_cast<NVVM::LdMatrixOp>(op)) {
    if (load.getShape().getM() != 8 || load.getShape().getN() != 8 ||
        load.getEltType() != NVVM::LdStMatrixEltType::B16)
      return refuse("expected 8x8 matrices of b16");
    Slots results = define(load.getRes());
    Instr &instr = emit(Opcode::LdMatrix, op);
    instr.a = slot(load.getPtr());
    instr.list = list(results);
    instr.count = load.getNum();
    instr.imm = load.getLayout() == NVVM::MMALayout::col;
    return true;
  }
  auto mma = dyn_cast<NVVM::MmaOp>(op);
  if (!mma)
    return false;
  auto shape = mma.getShape();
  if (shape.getM() != 16 || shape.getN() != 8 || shape.getK() != 16 ||
      mma.getLayoutA() != NVVM::MMALayout::row ||
      mma.getLayoutB() != NVVM::MMALayout::col)
    return refuse("expected m16n8k16, row by col");
  if (mma.getOperandA().size() != 4 || mma.getOperandB().size() != 2 ||
      mma.getOperandC().size() != 4 ||
      !mma.getOperandC().front().getType().isF32())
    return refuse("expected four, two and four registers, fp32 accumulators");
  bool half = isHalfPair(mma.getOperandA().front().getType());
  if (!half && mma.getMultiplicandAPtxType() != NVVM::MMATypes::bf16)
    return refuse("expected multiplicands of bf16 or f16");

  Slots entries;
  for (Value value : mma.getOperandA())
    entries.push_back(packed(op, value));
  for (Value value : mma.getOperandB())
    entries.push_back(packed(op, value));
  for (Value value : mma.getOperandC())
    entries.push_back(slot(value));
  entries.append(define(mma.getRes()));
  Instr &instr = emit(Opcode::Mma, op);
  instr.kind = half ? FloatKind::F16 : FloatKind::BF16;
  instr.list = list(entries);
  instr.count = entries.size();
  return true;
}

//===----------------------------------------------------------------------===//
// Asynchronous copies and barriers
//===----------------------------------------------------------------------===//

bool Decoder::decodeCopy(Operation *op) {
  if (auto copy = dyn_cast<NVVM::CpAsyncOp>(op)) {
    Slot bytes = copy.getCpSize() ? slot(copy.getCpSize())
                                  : constant(32, copy.getSize());
    Instr &instr = emit(Opcode::CopyAsync, op);
    instr.dst = slot(copy.getDst());
    instr.a = slot(copy.getSrc());
    instr.b = bytes;
    instr.imm = copy.getSize();
    return true;
  }
  if (isa<NVVM::CpAsyncCommitGroupOp>(op)) {
    emit(Opcode::CommitGroup, op);
    return true;
  }
  if (auto wait = dyn_cast<NVVM::CpAsyncWaitGroupOp>(op)) {
    emit(Opcode::WaitGroup, op).imm = wait.getN();
    return true;
  }
  return false;
}

bool Decoder::decodeBarrier(Operation *op) {
  if (auto barrier = dyn_cast<NVVM::BarrierOp>(op)) {
    if (barrier.getNumberOfThreads() || barrier.getReductionOp())
      return refuse("expected a barrier of the whole block without reduction");
    emit(Opcode::Barrier, op);
    return true;
  }
  if (isa<NVVM::Barrier0Op>(op)) {
    emit(Opcode::Barrier, op);
    return true;
  }
  if (auto sync = dyn_cast<NVVM::SyncWarpOp>(op)) {
    emit(Opcode::WarpSync, op).c = slot(sync.getMask());
    return true;
  }
  if (auto control = dyn_cast<NVVM::GriddepcontrolOp>(op)) {
    if (control.getKind() == NVVM::GridDepActionKind::wait)
      emit(Opcode::GridWait, op);
    return true;
  }
  // An empty one keeps the compiler from moving accesses of memory.
  if (auto code = dyn_cast<LLVM::InlineAsmOp>(op))
    return code.getAsmString().empty();
  return isa<NVVM::PrefetchOp>(op);
}

//===----------------------------------------------------------------------===//
// Exchanges between lanes
//===----------------------------------------------------------------------===//

bool Decoder::decodeExchange(Operation *op) {
  if (auto shuffle = dyn_cast<NVVM::ShflOp>(op)) {
    Slots results = define(shuffle.getRes());
    Instr &instr = emit(Opcode::Shuffle, op);
    instr.dst = results.front();
    instr.a = slot(shuffle.getVal());
    instr.b = slot(shuffle.getOffset());
    instr.c = slot(shuffle.getThreadMask());
    instr.d = slot(shuffle.getMaskAndClamp());
    instr.list = list(ArrayRef<Slot>(results).drop_front());
    instr.count = results.size() - 1;
    switch (shuffle.getKind()) {
    case NVVM::ShflKind::up:
      instr.imm = int64_t(ShuffleKind::Up);
      break;
    case NVVM::ShflKind::down:
      instr.imm = int64_t(ShuffleKind::Down);
      break;
    case NVVM::ShflKind::bfly:
      instr.imm = int64_t(ShuffleKind::Butterfly);
      break;
    case NVVM::ShflKind::idx:
      instr.imm = int64_t(ShuffleKind::Index);
      break;
    }
    return true;
  }
  if (auto vote = dyn_cast<NVVM::VoteSyncOp>(op)) {
    Slot result = define(vote.getRes()).front();
    Instr &instr = emit(Opcode::Vote, op);
    instr.dst = result;
    instr.a = slot(vote.getPred());
    instr.c = slot(vote.getMask());
    switch (vote.getKind()) {
    case NVVM::VoteSyncKind::any:
      instr.imm = int64_t(VoteKind::Any);
      break;
    case NVVM::VoteSyncKind::all:
      instr.imm = int64_t(VoteKind::All);
      break;
    case NVVM::VoteSyncKind::ballot:
      instr.imm = int64_t(VoteKind::Ballot);
      break;
    case NVVM::VoteSyncKind::uni:
      instr.imm = int64_t(VoteKind::Uniform);
      break;
    }
    return true;
  }
  auto redux = dyn_cast<NVVM::ReduxOp>(op);
  if (!redux)
    return false;
  auto opcode = llvm::StringSwitch<std::optional<Opcode>>(
                    NVVM::stringifyReduxKind(redux.getKind()))
                    .Case("add", Opcode::AddI)
                    .Case("and", Opcode::And)
                    .Case("or", Opcode::Or)
                    .Case("xor", Opcode::Xor)
                    .Case("max", Opcode::MaxS)
                    .Case("min", Opcode::MinS)
                    .Case("umax", Opcode::MaxU)
                    .Case("umin", Opcode::MinU)
                    .Default(std::nullopt);
  if (!opcode || redux.getAbs() || redux.getNan())
    return refuse("expected an integer reduction");
  Slot result = define(redux.getRes()).front();
  Instr &instr = emit(Opcode::Redux, op);
  instr.dst = result;
  instr.a = slot(redux.getVal());
  instr.c = slot(redux.getMaskAndClamp());
  instr.imm = int64_t(*opcode);
  return true;
}

bool Decoder::decodeWarp(Operation *op) {
  return decodeSpecial(op) || decodeMatrix(op) ||
         (reason.empty() && decodeCopy(op)) ||
         (reason.empty() && decodeExchange(op)) ||
         (reason.empty() && decodeBarrier(op));
}
