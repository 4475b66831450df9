//===- LaneWarp.h - One warp, executing --------------------------*- C++
//-*-===//
//
// A warp is a program counter, an active mask with a stack of saved ones, a
// register file and the copies in flight. It runs until a barrier, its end or
// an error, and can go on from a barrier.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_CODEGEN_LANES_LANEWARP_H
#define TOKENTILE_CODEGEN_LANES_LANEWARP_H

#include "codegen/lanes/LaneMemory.h"
#include "codegen/lanes/LaneProgram.h"

#include <array>
#include <string>
#include <vector>

namespace tokentile::lanes {

/// What the warps of a block share.
struct Block {
  const Program &program;
  const LaneOptions &options;
  SharedMemory &shared;
  const GlobalMemory &global;
  LaneReport &report;
  int coordinates[3];
  /// Address of the parameter block.
  uint64_t arguments;
};

class Warp {
public:
  enum class Stop { Done, Barrier, Error };

  Warp(Block &block, unsigned index);

  /// Runs from where it stopped.
  Stop run();

  /// The instruction at which the warp stopped.
  const Instr &at() const { return program.code[pc]; }
  /// Lets a warp that stopped at a barrier pass it.
  void passBarrier() {
    ++pc;
    ++syncs;
  }
  /// Why it stopped with an error.
  const std::string &error() const { return message; }
  size_t copiesInFlight() const { return copies.size(); }

private:
  struct Frame {
    uint32_t outer = 0;     // the mask to restore
    uint32_t otherwise = 0; // IfBegin: the lanes of the else arm
    int64_t bound = 0;      // ForBegin: the bound and the step
    int64_t step = 0;
    bool isUnsigned = false;
  };
  struct Copy {
    uint64_t destination;
    uint32_t group;
    uint32_t instr;
    uint8_t lane;
    uint8_t size;
    std::array<uint8_t, 16> data;
  };

  // Each slot is only ever accessed as one of the two, or as bytes.
  uint32_t *words(Slot slot) {
    return reinterpret_cast<uint32_t *>(&registers[slot * sizeof(uint32_t)]);
  }
  uint64_t *longs(Slot slot) {
    return reinterpret_cast<uint64_t *>(&registers[slot * sizeof(uint32_t)]);
  }
  bool active(unsigned lane) const { return mask >> lane & 1; }
  Accessor self(unsigned lane) const {
    return {uint32_t(pc), syncs, uint8_t(index), uint8_t(lane)};
  }

  /// Records an error at the current instruction; lane -1 means the warp.
  void fail(int lane, const std::string &why);
  /// Records a non-empty error text.
  bool check(int lane, const std::string &why) {
    if (why.empty())
      return true;
    fail(lane, why);
    return false;
  }
  bool needAllLanes();

  void step(const Instr &i);
  // LaneWarpControl.cpp
  void branch(const Instr &i);
  void beginLoop(const Instr &i);
  void nextIteration(const Instr &i);
  int64_t counter(const Instr &i, bool isUnsigned, Slot slot, unsigned lane);
  bool uniform(const Instr &i, Slot slot, int64_t &value);
  /// Sets the induction variable of active lanes to `from` + `step`; returns
  /// the lanes that stay in the loop.
  uint32_t count(const Instr &i, const Frame &frame, Slot from, int64_t step);
  // LaneWarp.cpp
  void copyRegisters(const Instr &i);
  void special(const Instr &i);
  // LaneWarpInteger.cpp
  void integer(const Instr &i);
  // LaneWarpFloat.cpp
  void floating(const Instr &i);
  void convert(const Instr &i);
  void recast(const Instr &i);
  // LaneWarpMemory.cpp
  void load(const Instr &i);
  void store(const Instr &i);
  bool resolve(const Instr &i, uint64_t &address) const;
  void countBanks(const Instr &i, unsigned size);
  void copyAsync(const Instr &i);
  void commitGroup();
  void waitGroup(const Instr &i);
  // LaneWarpMatrix.cpp
  void loadMatrix(const Instr &i);
  void multiply(const Instr &i);
  bool checkMembers(const Instr &i, unsigned lane);
  void shuffle(const Instr &i);
  void vote(const Instr &i);
  void reduce(const Instr &i);

  Block &block;
  const Program &program;
  unsigned index;
  uint32_t full;
  uint32_t mask;
  size_t pc = 0;
  /// Times that the lanes have synchronized.
  uint32_t syncs = 0;
  std::vector<Frame> frames;
  std::vector<unsigned char> registers;
  std::vector<uint32_t> scratch;
  std::vector<Copy> copies;
  /// Groups that each lane has committed.
  std::array<uint32_t, kLanes> committed{};
  std::string message;
};

} // namespace tokentile::lanes

#endif // TOKENTILE_CODEGEN_LANES_LANEWARP_H
