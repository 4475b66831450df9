//===- LaneWarpControl.cpp - Branches and loops of a warp -----------------===//
//
// Lanes that do not take a branch, or have left a loop, are masked until the
// others join them.
//
//===----------------------------------------------------------------------===//

#include "codegen/lanes/LaneWarp.h"

using namespace tokentile;
using namespace tokentile::lanes;

void Warp::branch(const Instr &i) {
  switch (i.op) {
  case Opcode::IfBegin: {
    uint32_t taken = 0;
    for (unsigned lane = 0; lane < kLanes; ++lane)
      taken |= (words(i.a)[lane] & 1) << lane;
    Frame frame;
    frame.outer = mask;
    frame.otherwise = mask & ~taken;
    frames.push_back(frame);
    mask &= taken;
    pc = mask ? pc + 1 : i.target;
    return;
  }
  case Opcode::IfElse:
    mask = frames.back().otherwise;
    pc = mask ? pc + 1 : i.target;
    return;
  case Opcode::IfEnd:
    mask = frames.back().outer;
    frames.pop_back();
    ++pc;
    return;
  case Opcode::ForBegin:
    return beginLoop(i);
  default: // ForNext
    return nextIteration(i);
  }
}

int64_t Warp::counter(const Instr &i, bool isUnsigned, Slot slot,
                      unsigned lane) {
  if (i.width > 32)
    return int64_t(longs(slot)[lane]);
  return isUnsigned ? int64_t(words(slot)[lane])
                    : int64_t(int32_t(words(slot)[lane]));
}

bool Warp::uniform(const Instr &i, Slot slot, int64_t &value) {
  bool first = true;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (!active(lane))
      continue;
    int64_t here = counter(i, i.imm, slot, lane);
    if (!first && here != value) {
      fail(lane, "loop bounds differ between active lanes: " +
                     std::to_string(value) + " and " + std::to_string(here));
      return false;
    }
    value = here;
    first = false;
  }
  return true;
}

uint32_t Warp::count(const Instr &i, const Frame &frame, Slot from,
                     int64_t step) {
  uint32_t inside = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (!active(lane))
      continue;
    int64_t value = counter(i, frame.isUnsigned, from, lane) + step;
    if (i.width > 32)
      longs(i.dst)[lane] = uint64_t(value);
    else
      words(i.dst)[lane] = uint32_t(value);
    bool more = frame.isUnsigned ? uint64_t(value) < uint64_t(frame.bound)
                                 : value < frame.bound;
    inside |= uint32_t(more) << lane;
  }
  return inside;
}

void Warp::beginLoop(const Instr &i) {
  Frame frame;
  frame.isUnsigned = i.imm;
  frame.outer = mask;
  if (!uniform(i, i.b, frame.bound) || !uniform(i, i.c, frame.step))
    return;
  if (frame.step <= 0)
    return fail(-1,
                "expected a positive step, got " + std::to_string(frame.step));
  uint32_t inside = count(i, frame, i.a, 0);
  if (!inside) {
    pc = i.target;
    return;
  }
  mask = inside;
  frames.push_back(frame);
  ++pc;
}

void Warp::nextIteration(const Instr &i) {
  Frame &frame = frames.back();
  uint32_t inside = count(i, frame, i.dst, frame.step);
  if (inside) {
    mask = inside;
    pc = i.target;
    return;
  }
  mask = frame.outer;
  frames.pop_back();
  ++pc;
}
