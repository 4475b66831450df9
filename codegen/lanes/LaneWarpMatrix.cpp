//===- LaneWarpMatrix.cpp - Matrices and exchanges between lanes ----------===//
//
// Layouts follow the PTX ISA, "ldmatrix" and "Matrix Fragments for
// mma.m16n8k16 with floating point type". In both, lane l stands at row l / 4
// and columns 2 * (l % 4) and the next of an 8x8 matrix.
//
//===----------------------------------------------------------------------===//

#include "codegen/lanes/LaneFloat.h"
#include "codegen/lanes/LaneWarp.h"

#include <algorithm>
#include <cstring>

using namespace tokentile;
using namespace tokentile::lanes;

//===----------------------------------------------------------------------===//
// ldmatrix
//===----------------------------------------------------------------------===//

void Warp::loadMatrix(const Instr &i) {
  constexpr unsigned kRows = 8, kRowBytes = 16;
  if (!needAllLanes())
    return;
  const Slot *results = &program.lists[i.list];
  LaneReport &report = block.report;
  ++report.ldmatrices;
  // All addresses are read before a result may replace them.
  uint64_t addresses[kLanes];
  std::copy_n(longs(i.a), kLanes, addresses);
  for (uint32_t matrix = 0; matrix < i.count; ++matrix) {
    const uint64_t *phase = addresses + matrix * kRows;
    uint16_t rows[kRows][8];
    for (unsigned row = 0; row < kRows; ++row) {
      unsigned lane = matrix * kRows + row;
      bool poisoned = false;
      if (!check(lane,
                 block.shared.read(self(kWholeWarp), phase[row], kRowBytes,
                                   kRowBytes, rows[row], poisoned)))
        return;
      report.poisonReads += poisoned;
      if (poisoned && block.options.poisonIsError)
        return fail(lane, "read of shared memory that nothing has written");
    }
    int64_t degree = bankDegree({phase, kRows}, kRowBytes);
    report.ldmatrixConflicts += degree - 1;
    report.maxLdmatrixDegree = std::max(report.maxLdmatrixDegree, degree);
    uint32_t *to = words(results[matrix]);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      unsigned row = lane / 4, column = lane % 4 * 2;
      uint32_t low = i.imm ? rows[column][row] : rows[row][column];
      uint32_t high = i.imm ? rows[column + 1][row] : rows[row][column + 1];
      to[lane] = low | high << 16;
    }
  }
}

//===----------------------------------------------------------------------===//
// mma.sync.m16n8k16
//===----------------------------------------------------------------------===//

void Warp::multiply(const Instr &i) {
  if (!needAllLanes())
    return;
  ++block.report.mmas;
  const Slot *list = &program.lists[i.list];
  float a[16][16], b[16][8], d[16][8];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    unsigned group = lane / 4, pair = lane % 4 * 2;
    // Register r of A: rows +8 for odd r, columns +8 for r >= 2.
    for (unsigned r = 0; r < 4; ++r) {
      uint32_t both = words(list[r])[lane];
      float *to = &a[group + 8 * (r & 1)][pair + 8 * (r >> 1)];
      to[0] = toFloat(i.kind, both & 0xffff);
      to[1] = toFloat(i.kind, both >> 16);
    }
    // Register r of B: row k = pair + 8 r, column n = group.
    for (unsigned r = 0; r < 2; ++r) {
      uint32_t both = words(list[4 + r])[lane];
      b[pair + 8 * r][group] = toFloat(i.kind, both & 0xffff);
      b[pair + 8 * r + 1][group] = toFloat(i.kind, both >> 16);
    }
  }
  for (unsigned m = 0; m < 16; ++m) {
    float sum[8] = {};
    for (unsigned k = 0; k < 16; ++k)
      for (unsigned n = 0; n < 8; ++n)
        sum[n] += a[m][k] * b[k][n];
    std::copy_n(sum, 8, d[m]);
  }
  // Accumulator r: rows +8 for r >= 2, columns pair + r % 2.
  for (unsigned r = 0; r < 4; ++r) {
    const uint32_t *from = words(list[6 + r]);
    uint32_t *to = words(list[10 + r]);
    for (unsigned lane = 0; lane < kLanes; ++lane)
      to[lane] = asBits(asFloat(from[lane]) +
                        d[lane / 4 + 8 * (r >> 1)][lane % 4 * 2 + (r & 1)]);
  }
}

//===----------------------------------------------------------------------===//
// shfl, vote, redux
//===----------------------------------------------------------------------===//

/// A lane must name itself, and every lane that it names must be here.
bool Warp::checkMembers(const Instr &i, unsigned lane) {
  uint32_t members = words(i.c)[lane] & full;
  if (!(members >> lane & 1)) {
    fail(lane, "lane is not in its own member mask");
    return false;
  }
  if (members & ~mask) {
    fail(lane, "member mask names lanes that are not active");
    return false;
  }
  return true;
}

void Warp::shuffle(const Instr &i) {
  uint32_t values[kLanes];
  std::copy_n(words(i.a), kLanes, values);
  uint32_t results[kLanes], valid[kLanes] = {};
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    results[lane] = 0;
    if (!active(lane))
      continue;
    if (!checkMembers(i, lane))
      return;
    int offset = words(i.b)[lane] & 31;
    int clamp = words(i.d)[lane] & 31;
    int segment = words(i.d)[lane] >> 8 & 31;
    int last = (int(lane) & segment) | (clamp & ~segment);
    int from = lane;
    bool inside = false;
    switch (ShuffleKind(i.imm)) {
    case ShuffleKind::Up:
      from = int(lane) - offset;
      inside = from >= last;
      break;
    case ShuffleKind::Down:
      from = int(lane) + offset;
      inside = from <= last;
      break;
    case ShuffleKind::Butterfly:
      from = int(lane) ^ offset;
      inside = from <= last;
      break;
    case ShuffleKind::Index:
      from = (int(lane) & segment) | (offset & ~segment);
      inside = from <= last;
      break;
    }
    if (!inside)
      from = lane;
    if (!(words(i.c)[lane] >> from & 1) || !active(from))
      return fail(lane, "reads lane " + std::to_string(from) +
                            ", which does not take part");
    results[lane] = values[from];
    valid[lane] = inside;
  }
  std::copy_n(results, kLanes, words(i.dst));
  if (i.count)
    std::copy_n(valid, kLanes, words(program.lists[i.list]));
}

void Warp::vote(const Instr &i) {
  uint32_t results[kLanes] = {};
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (!active(lane))
      continue;
    if (!checkMembers(i, lane))
      return;
    uint32_t members = words(i.c)[lane] & full, ballot = 0;
    for (unsigned other = 0; other < kLanes; ++other)
      ballot |= (words(i.a)[other] & 1) << other;
    ballot &= members;
    switch (VoteKind(i.imm)) {
    case VoteKind::Any:
      results[lane] = ballot != 0;
      break;
    case VoteKind::All:
      results[lane] = ballot == members;
      break;
    case VoteKind::Ballot:
      results[lane] = ballot;
      break;
    case VoteKind::Uniform:
      results[lane] = ballot == 0 || ballot == members;
      break;
    }
  }
  std::copy_n(results, kLanes, words(i.dst));
}

static uint32_t combine(Opcode op, uint32_t a, uint32_t b) {
  switch (op) {
  case Opcode::AddI:
    return a + b;
  case Opcode::And:
    return a & b;
  case Opcode::Or:
    return a | b;
  case Opcode::Xor:
    return a ^ b;
  case Opcode::MaxS:
    return std::max(int32_t(a), int32_t(b));
  case Opcode::MinS:
    return std::min(int32_t(a), int32_t(b));
  case Opcode::MaxU:
    return std::max(a, b);
  default:
    return std::min(a, b);
  }
}

void Warp::reduce(const Instr &i) {
  uint32_t results[kLanes] = {};
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (!active(lane))
      continue;
    if (!checkMembers(i, lane))
      return;
    uint32_t members = words(i.c)[lane] & full;
    bool first = true;
    for (unsigned other = 0; other < kLanes; ++other) {
      if (!(members >> other & 1))
        continue;
      uint32_t value = words(i.a)[other];
      results[lane] =
          first ? value : combine(Opcode(i.imm), results[lane], value);
      first = false;
    }
  }
  std::copy_n(results, kLanes, words(i.dst));
}
