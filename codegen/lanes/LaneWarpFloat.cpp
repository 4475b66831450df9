//===- LaneWarpFloat.cpp - Float arithmetic and conversions of a warp -----===//
//
// Small floats compute in fp32 and round once, to nearest even. As for
// integers, all 32 lanes compute.
//
//===----------------------------------------------------------------------===//

#include "codegen/lanes/LaneFloat.h"
#include "codegen/lanes/LaneWarp.h"

#include <cmath>
#include <limits>

using namespace tokentile;
using namespace tokentile::lanes;

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

static float maxNum(float a, float b) {
  return std::isnan(a) ? b : std::isnan(b) ? a : (a > b ? a : b);
}
static float minNum(float a, float b) {
  return std::isnan(a) ? b : std::isnan(b) ? a : (a < b ? a : b);
}
static float maximum(float a, float b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : (a > b ? a : b);
}
static float minimum(float a, float b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : (a < b ? a : b);
}

static float flush(float value) {
  return std::fabs(value) < std::numeric_limits<float>::min()
             ? std::copysign(0.0f, value)
             : value;
}

static bool compareFloats(float a, float b, int64_t predicate) {
  // Bits 0 to 3: whether the result is true for equal, greater, less and
  // unordered.
  unsigned relation = std::isnan(a) || std::isnan(b) ? 3
                      : a == b                       ? 0
                      : a > b                        ? 1
                                                     : 2;
  return predicate >> relation & 1;
}

/// Applies `f` to up to three operands of a float kind.
template <typename F>
static void eachFloat(FloatKind kind, uint32_t *d, const uint32_t *a,
                      const uint32_t *b, const uint32_t *c, F f) {
  if (kind == FloatKind::F32) {
    for (unsigned lane = 0; lane < kLanes; ++lane)
      d[lane] = asBits(f(asFloat(a[lane]), asFloat(b[lane]), asFloat(c[lane])));
    return;
  }
  for (unsigned lane = 0; lane < kLanes; ++lane)
    d[lane] = toBits(kind, f(toFloat(kind, a[lane]), toFloat(kind, b[lane]),
                             toFloat(kind, c[lane])));
}

void Warp::floating(const Instr &i) {
  auto each = [&](auto f) {
    eachFloat(i.kind, words(i.dst), words(i.a), words(i.b), words(i.c), f);
  };
  switch (i.op) {
  case Opcode::AddF:
    return each([](float a, float b, float) { return a + b; });
  case Opcode::SubF:
    return each([](float a, float b, float) { return a - b; });
  case Opcode::MulF:
    return each([](float a, float b, float) { return a * b; });
  case Opcode::DivF:
    return each([](float a, float b, float) { return a / b; });
  case Opcode::NegF:
    return each([](float a, float, float) { return -a; });
  case Opcode::AbsF:
    return each([](float a, float, float) { return std::fabs(a); });
  case Opcode::MaximumF:
    return each([](float a, float b, float) { return maximum(a, b); });
  case Opcode::MaxNumF:
    return each([](float a, float b, float) { return maxNum(a, b); });
  case Opcode::MinimumF:
    return each([](float a, float b, float) { return minimum(a, b); });
  case Opcode::MinNumF:
    return each([](float a, float b, float) { return minNum(a, b); });
  case Opcode::FmaF:
    return each([](float a, float b, float c) { return std::fma(a, b, c); });
  case Opcode::Exp2:
    return each([](float a, float, float) { return std::exp2(a); });
  case Opcode::Exp2Ftz:
    return each(
        [](float a, float, float) { return flush(std::exp2(flush(a))); });
  case Opcode::Log2:
    return each([](float a, float, float) { return std::log2(a); });
  case Opcode::Log2Ftz:
    return each([](float a, float, float) { return std::log2(flush(a)); });
  case Opcode::Rcp:
    return each([](float a, float, float) { return 1.0f / a; });
  case Opcode::RcpFtz:
    return each([](float a, float, float) { return flush(1.0f / flush(a)); });
  case Opcode::Sqrt:
    return each([](float a, float, float) { return std::sqrt(a); });
  case Opcode::Tanh:
    return each([](float a, float, float) { return std::tanh(a); });
  case Opcode::CmpF:
    for (unsigned lane = 0; lane < kLanes; ++lane)
      words(i.dst)[lane] =
          compareFloats(toFloat(i.kind, words(i.a)[lane]),
                        toFloat(i.kind, words(i.b)[lane]), i.imm);
    return;
  default:
    return fail(-1, "instruction without an implementation");
  }
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

/// Truncates towards zero, saturating as PTX does; NaN becomes zero.
static int64_t saturate(float value, unsigned width, bool isSigned) {
  if (std::isnan(value))
    return 0;
  double low = isSigned ? -std::ldexp(1.0, width - 1) : 0.0;
  double high = std::ldexp(1.0, isSigned ? width - 1 : width);
  if (value <= low)
    return isSigned ? int64_t(uint64_t(-1) << (width - 1)) : 0;
  if (value >= high)
    return isSigned ? int64_t((uint64_t(1) << (width - 1)) - 1) : -1;
  return isSigned ? int64_t(value) : int64_t(uint64_t(value));
}

void Warp::convert(const Instr &i) {
  uint32_t limit = i.width2 >= 32 ? ~0u : (1u << i.width2) - 1;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    uint32_t word = words(i.a)[lane];
    switch (i.op) {
    case Opcode::ConvertF:
      words(i.dst)[lane] = toBits(i.kind2, toFloat(i.kind, word));
      break;
    case Opcode::SIToFP: {
      int64_t value = i.width > 32
                          ? int64_t(longs(i.a)[lane])
                          : int32_t(word << (32 - i.width)) >> (32 - i.width);
      words(i.dst)[lane] = toBits(i.kind2, float(value));
      break;
    }
    case Opcode::UIToFP: {
      uint64_t value = i.width > 32 ? longs(i.a)[lane] : word;
      words(i.dst)[lane] = toBits(i.kind2, float(value));
      break;
    }
    default: {
      int64_t value =
          saturate(toFloat(i.kind, word), i.width2, i.op == Opcode::FPToSI);
      if (i.width2 > 32)
        longs(i.dst)[lane] = value;
      else
        words(i.dst)[lane] = uint32_t(value) & limit;
    }
    }
  }
}

void Warp::recast(const Instr &i) {
  const Slot *from = &program.lists[i.list];
  const Slot *to = from + i.count;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    uint64_t bits = 0;
    unsigned filled = 0;
    const Slot *next = to;
    for (uint32_t n = 0; n < i.count; ++n) {
      // Either several narrow leaves fill a wide one, or the reverse.
      uint64_t leaf =
          i.width > 32 ? longs(from[n])[lane] : words(from[n])[lane];
      bits |= leaf << filled;
      filled += i.width;
      for (; filled >= i.width2; filled -= i.width2) {
        if (i.width2 > 32)
          longs(*next)[lane] = bits;
        else
          words(*next)[lane] =
              uint32_t(bits) & (i.width2 == 32 ? ~0u : (1u << i.width2) - 1);
        ++next;
        bits = i.width2 >= 64 ? 0 : bits >> i.width2;
      }
    }
  }
}
