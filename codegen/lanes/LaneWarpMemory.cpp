//===- LaneWarpMemory.cpp - Loads, stores and asynchronous copies ---------===//

#include "codegen/lanes/LaneWarp.h"

#include <algorithm>
#include <cstring>

using namespace tokentile;
using namespace tokentile::lanes;

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

/// Whether `address` is shared memory; if so it becomes an offset.
bool Warp::resolve(const Instr &i, uint64_t &address) const {
  if (i.space == Space::Shared)
    return true;
  if (i.space == Space::Global)
    return false;
  bool shared = address - kSharedWindow < kSharedWindowSize;
  if (shared)
    address -= kSharedWindow;
  return shared;
}

/// Counts the conflicts of an access of shared memory: the warp goes in phases
/// of as many lanes as move 128 bytes.
void Warp::countBanks(const Instr &i, unsigned size) {
  bool copies = i.op == Opcode::CopyAsync;
  const uint64_t *addresses = longs(copies ? i.dst : i.a);
  unsigned phase = std::min(kLanes, 128 / size);
  for (unsigned first = 0; first < kLanes; first += phase) {
    uint64_t phaseAddresses[kLanes];
    unsigned count = 0;
    for (unsigned lane = first; lane < first + phase; ++lane) {
      uint64_t address = addresses[lane];
      if (active(lane) && (copies || resolve(i, address)))
        phaseAddresses[count++] = address;
    }
    if (!count)
      continue;
    int64_t degree = bankDegree({phaseAddresses, count}, size);
    LaneReport &report = block.report;
    int64_t &conflicts = copies ? report.copyConflicts : report.sharedConflicts;
    int64_t &max = copies ? report.maxCopyDegree : report.maxSharedDegree;
    conflicts += degree - 1;
    max = std::max(max, degree);
  }
}

void Warp::load(const Instr &i) {
  const Slot *leaves = &program.lists[i.list];
  unsigned bytes = i.width / 8, size = bytes * i.count;
  bool anyShared = false;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (!active(lane))
      continue;
    uint8_t data[16];
    uint64_t address = longs(i.a)[lane];
    if (resolve(i, address)) {
      anyShared = true;
      bool poisoned = false;
      if (!check(lane, block.shared.read(self(lane), address, size, i.imm, data,
                                         poisoned)))
        return;
      block.report.poisonReads += poisoned;
      if (poisoned && block.options.poisonIsError)
        return fail(lane, "read of shared memory that nothing has written");
    } else {
      if (!check(lane, block.global.read(address, size, i.imm, data)))
        return;
      // Reads of the parameter block are not traffic.
      if (address - block.arguments >= sizeof(KernelArgs))
        block.report.globalBytesRead += size;
    }
    for (uint32_t n = 0; n < i.count; ++n) {
      uint64_t value = 0;
      std::memcpy(&value, data + n * bytes, bytes);
      if (i.width > 32)
        longs(leaves[n])[lane] = value;
      else
        words(leaves[n])[lane] = uint32_t(value);
    }
  }
  if (anyShared)
    countBanks(i, size);
}

void Warp::store(const Instr &i) {
  const Slot *leaves = &program.lists[i.list];
  unsigned bytes = i.width / 8, size = bytes * i.count;
  bool anyShared = false;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (!active(lane))
      continue;
    uint8_t data[16];
    for (uint32_t n = 0; n < i.count; ++n) {
      uint64_t value =
          i.width > 32 ? longs(leaves[n])[lane] : words(leaves[n])[lane];
      std::memcpy(data + n * bytes, &value, bytes);
    }
    uint64_t address = longs(i.a)[lane];
    if (resolve(i, address)) {
      anyShared = true;
      if (!check(lane,
                 block.shared.write(self(lane), address, size, i.imm, data)))
        return;
    } else {
      if (!check(lane, block.global.write(address, size, i.imm, data)))
        return;
      block.report.globalBytesWritten += size;
    }
  }
  if (anyShared)
    countBanks(i, size);
}

//===----------------------------------------------------------------------===//
// Asynchronous copies, PTX ISA "cp.async"
//===----------------------------------------------------------------------===//

void Warp::copyAsync(const Instr &i) {
  unsigned size = i.imm;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (!active(lane))
      continue;
    uint32_t bytes = words(i.b)[lane];
    if (bytes > size)
      return fail(lane, "expected at most " + std::to_string(size) +
                            " source bytes, got " + std::to_string(bytes));
    Copy copy;
    copy.destination = longs(i.dst)[lane];
    copy.group = committed[lane];
    copy.instr = pc;
    copy.lane = lane;
    copy.size = size;
    copy.data.fill(0);
    uint64_t source = longs(i.a)[lane];
    if (source % size)
      return fail(lane, "source of the copy is not aligned to its size");
    if (bytes &&
        !check(lane, block.global.read(source, bytes, 1, copy.data.data())))
      return;
    if (!check(lane,
               block.shared.beginCopy(self(lane), copy.destination, size)))
      return;
    block.report.globalBytesRead += bytes;
    ++block.report.asyncCopies;
    copies.push_back(copy);
  }
  countBanks(i, size);
}

void Warp::commitGroup() {
  for (unsigned lane = 0; lane < kLanes; ++lane)
    committed[lane] += active(lane);
}

void Warp::waitGroup(const Instr &i) {
  auto covered = [&](const Copy &copy) {
    if (!active(copy.lane))
      return false;
    if (i.imm < 0)
      return true;
    return int64_t(copy.group) < int64_t(committed[copy.lane]) - i.imm;
  };
  size_t kept = 0;
  for (const Copy &copy : copies) {
    if (!covered(copy)) {
      copies[kept++] = copy;
      continue;
    }
    if (!check(copy.lane,
               block.shared.write(self(copy.lane), copy.destination, copy.size,
                                  copy.size, copy.data.data())))
      return;
  }
  copies.resize(kept);
}
