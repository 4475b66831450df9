//===- LaneMemory.cpp - Shared and global memory of one block -------------===//

#include "codegen/lanes/LaneMemory.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <cstring>

using namespace tokentile;
using namespace tokentile::lanes;

static constexpr uint8_t kPoison = 0xff;

static std::string hex(uint64_t value) {
  return "0x" + llvm::utohexstr(value, /*LowerCase=*/true);
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

SharedMemory::SharedMemory(const Program &program, int64_t size, bool lanesRace)
    : program(program), bytes(size, kPoison), shadow(size),
      lanesRace(lanesRace) {}

std::string SharedMemory::check(uint64_t address, unsigned size,
                                unsigned alignment) const {
  if (address > bytes.size() || bytes.size() - address < size)
    return "shared access of " + std::to_string(size) + " bytes at " +
           hex(address) + " is outside the block's " +
           std::to_string(bytes.size()) + " bytes";
  if (address % alignment)
    return "shared access at " + hex(address) + " is not aligned to " +
           std::to_string(alignment) + " bytes";
  return {};
}

std::string SharedMemory::race(const char *what, uint64_t address,
                               uint32_t other) const {
  return std::string("race on shared byte ") + hex(address) + ": " + what +
         " without a barrier between, at " +
         describe(program.code[other].source);
}

std::string SharedMemory::read(Accessor by, uint64_t address, unsigned size,
                               unsigned alignment, void *to, bool &poisoned) {
  std::string error = check(address, size, alignment);
  if (!error.empty())
    return error;
  for (uint64_t i = address; i < address + size; ++i) {
    Shadow &s = shadow[i];
    if (s.writeEpoch == epoch && s.writer != by.warp)
      return race("read after a write by another warp", i, s.writeInstr);
    if (lanesRaceOn(s, by))
      return race("read after a write by another lane", i, s.writeInstr);
    poisoned |= s.state != State::Written;
    if (s.readEpoch != epoch) {
      s.readEpoch = epoch;
      s.readers = 0;
    }
    s.readers |= 1u << by.warp;
    s.readInstr = by.instr;
  }
  std::memcpy(to, &bytes[address], size);
  return {};
}

std::string SharedMemory::markWritten(Accessor by, uint64_t address,
                                      unsigned size, State state) {
  for (uint64_t i = address; i < address + size; ++i) {
    Shadow &s = shadow[i];
    if (s.writeEpoch == epoch && s.writer != by.warp)
      return race("write after a write by another warp", i, s.writeInstr);
    if (lanesRaceOn(s, by))
      return race("write after a write by another lane", i, s.writeInstr);
    if (s.readEpoch == epoch && (s.readers & ~(1u << by.warp)))
      return race("write after a read by another warp", i, s.readInstr);
    s.writeEpoch = epoch;
    s.writer = by.warp;
    s.writerLane = by.lane;
    s.writeSyncs = by.syncs;
    s.writeInstr = by.instr;
    s.state = state;
  }
  return {};
}

std::string SharedMemory::write(Accessor by, uint64_t address, unsigned size,
                                unsigned alignment, const void *from) {
  std::string error = check(address, size, alignment);
  if (error.empty())
    error = markWritten(by, address, size, State::Written);
  if (error.empty())
    std::memcpy(&bytes[address], from, size);
  return error;
}

std::string SharedMemory::beginCopy(Accessor by, uint64_t address,
                                    unsigned size) {
  std::string error = check(address, size, size);
  if (error.empty())
    error = markWritten(by, address, size, State::InFlight);
  if (error.empty())
    std::memset(&bytes[address], kPoison, size);
  return error;
}

//===----------------------------------------------------------------------===//
// Global memory
//===----------------------------------------------------------------------===//

GlobalMemory::GlobalMemory(std::vector<MemoryRange> ranges)
    : ranges(std::move(ranges)) {}

std::string GlobalMemory::check(uint64_t address, unsigned size,
                                unsigned alignment, bool write) const {
  if (address % alignment)
    return "global access at " + hex(address) + " is not aligned to " +
           std::to_string(alignment) + " bytes";
  bool readable = false;
  for (const MemoryRange &range : ranges) {
    uint64_t begin = reinterpret_cast<uintptr_t>(range.begin);
    uint64_t end = reinterpret_cast<uintptr_t>(range.end);
    if (address < begin || address >= end || end - address < size)
      continue;
    if (!write || range.writable)
      return {};
    readable = true;
  }
  return "global " + std::string(write ? "write" : "read") + " of " +
         std::to_string(size) + " bytes at " + hex(address) +
         (readable ? " is in a read-only range"
                   : " is outside the allowed ranges");
}

std::string GlobalMemory::read(uint64_t address, unsigned size,
                               unsigned alignment, void *to) const {
  std::string error = check(address, size, alignment, /*write=*/false);
  if (error.empty())
    std::memcpy(to, reinterpret_cast<const void *>(address), size);
  return error;
}

std::string GlobalMemory::write(uint64_t address, unsigned size,
                                unsigned alignment, const void *from) const {
  std::string error = check(address, size, alignment, /*write=*/true);
  if (error.empty())
    std::memcpy(reinterpret_cast<void *>(address), from, size);
  return error;
}

//===----------------------------------------------------------------------===//
// Banks
//===----------------------------------------------------------------------===//

unsigned tokentile::lanes::bankDegree(llvm::ArrayRef<uint64_t> addresses,
                                      unsigned size) {
  constexpr unsigned kBanks = 32;
  uint64_t words[kBanks][kLanes];
  uint8_t counts[kBanks] = {};
  unsigned degree = 0;
  for (uint64_t address : addresses) {
    for (uint64_t word = address / 4; word <= (address + size - 1) / 4;
         ++word) {
      unsigned bank = word % kBanks;
      uint64_t *end = words[bank] + counts[bank];
      if (counts[bank] == kLanes || std::find(words[bank], end, word) != end)
        continue;
      *end = word;
      degree = std::max<unsigned>(degree, ++counts[bank]);
    }
  }
  return degree;
}
