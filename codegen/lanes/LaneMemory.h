//===- LaneMemory.h - Shared and global memory of one block -----*- C++ -*-===//
//
// Shared memory with a shadow that finds races between warps and reads of
// poison, the ranges of global memory, and the cost of an access in banks.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_CODEGEN_LANES_LANEMEMORY_H
#define TOKENTILE_CODEGEN_LANES_LANEMEMORY_H

#include "codegen/lanes/LaneExecutor.h"
#include "codegen/lanes/LaneProgram.h"

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tokentile::lanes {

/// The lane of an access that the whole warp makes together.
constexpr uint8_t kWholeWarp = kLanes;

/// Who accesses memory: an instruction by its index, a warp, the times that
/// warp has synchronized its lanes, and a lane.
struct Accessor {
  uint32_t instr;
  uint32_t syncs;
  uint8_t warp;
  uint8_t lane;
};

/// Addresses are offsets from the start of the block's shared memory. The
/// functions that return a string return an empty one on success.
class SharedMemory {
public:
  /// With `lanesRace`, lanes of one warp must synchronize too.
  SharedMemory(const Program &program, int64_t size, bool lanesRace);

  /// Sets `poisoned` if a byte was never written or waits for a copy.
  std::string read(Accessor by, uint64_t address, unsigned size,
                   unsigned alignment, void *to, bool &poisoned);
  std::string write(Accessor by, uint64_t address, unsigned size,
                    unsigned alignment, const void *from);
  /// Poisons the destination of a copy that will land later.
  std::string beginCopy(Accessor by, uint64_t address, unsigned size);

  /// All warps have met: accesses so far are ordered before later ones.
  void barrier() { ++epoch; }

private:
  enum class State : uint8_t { Unwritten, Written, InFlight };
  struct Shadow {
    uint32_t writeEpoch = 0;
    uint32_t readEpoch = 0;
    /// Warps that read the byte in `readEpoch`.
    uint32_t readers = 0;
    uint32_t writeInstr = 0;
    uint32_t readInstr = 0;
    uint32_t writeSyncs = 0;
    uint8_t writer = 0;
    uint8_t writerLane = 0;
    State state = State::Unwritten;
  };

  std::string check(uint64_t address, unsigned size, unsigned alignment) const;
  std::string markWritten(Accessor by, uint64_t address, unsigned size,
                          State state);
  std::string race(const char *what, uint64_t address, uint32_t other) const;
  /// Whether another lane of the warp wrote the byte since its last sync.
  bool lanesRaceOn(const Shadow &s, Accessor by) const {
    return lanesRace && s.state != State::Unwritten && s.writer == by.warp &&
           s.writeSyncs == by.syncs && s.writerLane != by.lane;
  }

  const Program &program;
  std::vector<uint8_t> bytes;
  std::vector<Shadow> shadow;
  bool lanesRace;
  uint32_t epoch = 1;
};

/// The allowed ranges, sorted, plus the parameter block.
class GlobalMemory {
public:
  GlobalMemory(std::vector<MemoryRange> ranges);

  std::string read(uint64_t address, unsigned size, unsigned alignment,
                   void *to) const;
  std::string write(uint64_t address, unsigned size, unsigned alignment,
                    const void *from) const;

private:
  std::string check(uint64_t address, unsigned size, unsigned alignment,
                    bool write) const;
  std::vector<MemoryRange> ranges;
};

/// The conflict degree of one phase in which each lane accesses `size` bytes
/// at its address: the largest number of distinct words in one of 32 banks.
unsigned bankDegree(llvm::ArrayRef<uint64_t> addresses, unsigned size);

} // namespace tokentile::lanes

#endif // TOKENTILE_CODEGEN_LANES_LANEMEMORY_H
