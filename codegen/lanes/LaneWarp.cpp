//===- LaneWarp.cpp - Copies, registers and dispatch of a warp ------------===//

#include "codegen/lanes/LaneWarp.h"

#include "llvm/ADT/bit.h"

#include <algorithm>
#include <cstring>

using namespace tokentile;
using namespace tokentile::lanes;

Warp::Warp(Block &block, unsigned index)
    : block(block), program(block.program), index(index) {
  int lanes = std::min<int>(kLanes, block.options.threads - index * kLanes);
  full = lanes == kLanes ? kAllLanes : (1u << lanes) - 1;
  mask = full;
  // A value that was never defined is a NaN.
  registers.assign((program.words + kLanes) * sizeof(uint32_t), 0xff);
  for (const Constant &constant : program.constants) {
    if (constant.width > 32)
      std::fill_n(longs(constant.slot), kLanes, constant.bits);
    else
      std::fill_n(words(constant.slot), kLanes, uint32_t(constant.bits));
  }
  if (program.hasArgument)
    std::fill_n(longs(program.argument), kLanes, block.arguments);
}

void Warp::fail(int lane, const std::string &why) {
  if (!message.empty())
    return;
  message = "warp " + std::to_string(index);
  if (lane >= 0)
    message += " lane " + std::to_string(lane);
  message += ", " + describe(at().source) + ": " + why;
}

bool Warp::needAllLanes() {
  if (mask == kAllLanes)
    return true;
  fail(-1, "expected all 32 lanes to be active");
  return false;
}

void Warp::copyRegisters(const Instr &i) {
  const Slot *pairs = &program.lists[i.list];
  uint32_t narrow = i.count, all = i.count + i.imm;
  // Everything is read before anything is written: a loop may rotate values.
  scratch.resize(size_t(all) * 2 * kLanes);
  for (uint32_t n = 0; n < all; ++n)
    std::memcpy(&scratch[n * 2 * kLanes], words(pairs[2 * n + 1]),
                kLanes * (n < narrow ? sizeof(uint32_t) : sizeof(uint64_t)));
  for (uint32_t n = 0; n < all; ++n) {
    Slot to = pairs[2 * n];
    const uint32_t *from = &scratch[n * 2 * kLanes];
    unsigned size = n < narrow ? sizeof(uint32_t) : sizeof(uint64_t);
    if (mask == kAllLanes) {
      std::memcpy(words(to), from, kLanes * size);
      continue;
    }
    auto *bytes = reinterpret_cast<char *>(words(to));
    for (unsigned lane = 0; lane < kLanes; ++lane)
      if (active(lane))
        std::memcpy(bytes + lane * size,
                    reinterpret_cast<const char *>(from) + lane * size, size);
  }
}

void Warp::special(const Instr &i) {
  const LaneOptions &options = block.options;
  auto value = [&](unsigned lane) -> uint32_t {
    switch (SpecialRegister(i.imm)) {
    case SpecialRegister::TidX:
      return index * kLanes + lane;
    case SpecialRegister::TidY:
      return 0;
    case SpecialRegister::BlockX:
      return block.coordinates[0];
    case SpecialRegister::BlockY:
      return block.coordinates[1];
    case SpecialRegister::BlockZ:
      return block.coordinates[2];
    case SpecialRegister::ThreadsX:
      return options.threads;
    case SpecialRegister::ThreadsY:
      return 1;
    case SpecialRegister::GridX:
      return options.grid[0];
    case SpecialRegister::GridY:
      return options.grid[1];
    case SpecialRegister::GridZ:
      return options.grid[2];
    case SpecialRegister::Lane:
      return lane;
    case SpecialRegister::WarpId:
      return index;
    case SpecialRegister::WarpSize:
      return kLanes;
    }
    return 0;
  };
  for (unsigned lane = 0; lane < kLanes; ++lane)
    words(i.dst)[lane] = value(lane);
}

//===----------------------------------------------------------------------===//
// Dispatch
//===----------------------------------------------------------------------===//

void Warp::step(const Instr &i) {
  switch (i.op) {
  case Opcode::Copies:
    return copyRegisters(i);
  case Opcode::Special:
    return special(i);
  case Opcode::WarpSync:
    for (unsigned lane = 0; lane < kLanes; ++lane)
      if (active(lane) && !checkMembers(i, lane))
        return;
    ++syncs;
    return;
  case Opcode::GridWait:
    if (block.options.atGridWait)
      block.options.atGridWait();
    return;
  case Opcode::ConvertF:
  case Opcode::SIToFP:
  case Opcode::UIToFP:
  case Opcode::FPToSI:
  case Opcode::FPToUI:
    return convert(i);
  case Opcode::Recast:
    return recast(i);
  case Opcode::Load:
    return load(i);
  case Opcode::Store:
    return store(i);
  case Opcode::LdMatrix:
    return loadMatrix(i);
  case Opcode::Mma:
    return multiply(i);
  case Opcode::CopyAsync:
    return copyAsync(i);
  case Opcode::CommitGroup:
    return commitGroup();
  case Opcode::WaitGroup:
    return waitGroup(i);
  case Opcode::Shuffle:
    return shuffle(i);
  case Opcode::Vote:
    return vote(i);
  case Opcode::Redux:
    return reduce(i);
  default:
    return i.op >= Opcode::AddF ? floating(i) : integer(i);
  }
}

Warp::Stop Warp::run() {
  while (message.empty()) {
    const Instr &i = program.code[pc];
    block.report.reached[pc] = true;
    ++block.report.instructions;
    block.report.laneOps += llvm::popcount(mask);
    switch (i.op) {
    case Opcode::Return:
      return Stop::Done;
    case Opcode::Barrier:
      if (mask == full)
        return Stop::Barrier;
      fail(-1, "barrier in a branch that not all lanes take");
      break;
    case Opcode::IfBegin:
    case Opcode::IfElse:
    case Opcode::IfEnd:
    case Opcode::ForBegin:
    case Opcode::ForNext:
      branch(i);
      break;
    default:
      step(i);
      if (message.empty())
        ++pc;
    }
  }
  return Stop::Error;
}
