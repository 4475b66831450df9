//===- LaneWarpArith.cpp - Arithmetic of a warp ---------------------------===//
//
// All 32 lanes compute, active or not: what an inactive lane holds is never
// observed, and loops without a mask vectorize.
//
//===----------------------------------------------------------------------===//

#include "codegen/lanes/LaneFloat.h"
#include "codegen/lanes/LaneWarp.h"

#include "llvm/ADT/bit.h"

#include <cmath>
#include <limits>

using namespace tokentile;
using namespace tokentile::lanes;

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

namespace {
/// The operands of an integer instruction, and loops over its lanes.
struct Integers {
  uint32_t *d32, *a32, *b32;
  uint64_t *d64, *a64, *b64;
  unsigned width;

  uint32_t mask() const { return width >= 32 ? ~0u : (1u << width) - 1; }
  int32_t extend(uint32_t value) const {
    return int32_t(value << (32 - width)) >> (32 - width);
  }

  template <typename F>
  void unsignedOp(F f) const {
    if (width > 32) {
      for (unsigned lane = 0; lane < kLanes; ++lane)
        d64[lane] = f(a64[lane], b64[lane]);
      return;
    }
    for (unsigned lane = 0; lane < kLanes; ++lane)
      d32[lane] = f(a32[lane], b32[lane]) & mask();
  }

  template <typename F>
  void signedOp(F f) const {
    if (width > 32) {
      for (unsigned lane = 0; lane < kLanes; ++lane)
        d64[lane] = f(int64_t(a64[lane]), int64_t(b64[lane]));
      return;
    }
    for (unsigned lane = 0; lane < kLanes; ++lane)
      d32[lane] =
          uint32_t(f(extend(a32[lane]), extend(b32[lane]))) & mask();
  }

  template <typename F>
  void compareUnsigned(F f) const {
    for (unsigned lane = 0; lane < kLanes; ++lane)
      d32[lane] = width > 32 ? f(a64[lane], b64[lane])
                             : f(uint64_t(a32[lane]), uint64_t(b32[lane]));
  }

  template <typename F>
  void compareSigned(F f) const {
    for (unsigned lane = 0; lane < kLanes; ++lane)
      d32[lane] =
          width > 32
              ? f(int64_t(a64[lane]), int64_t(b64[lane]))
              : f(int64_t(extend(a32[lane])), int64_t(extend(b32[lane])));
  }
};
} // namespace

static void compareIntegers(const Integers &x, int64_t predicate) {
  // The numbering of arith.cmpi and llvm.icmp.
  switch (predicate) {
  case 0:
    return x.compareUnsigned([](auto a, auto b) { return a == b; });
  case 1:
    return x.compareUnsigned([](auto a, auto b) { return a != b; });
  case 2:
    return x.compareSigned([](auto a, auto b) { return a < b; });
  case 3:
    return x.compareSigned([](auto a, auto b) { return a <= b; });
  case 4:
    return x.compareSigned([](auto a, auto b) { return a > b; });
  case 5:
    return x.compareSigned([](auto a, auto b) { return a >= b; });
  case 6:
    return x.compareUnsigned([](auto a, auto b) { return a < b; });
  case 7:
    return x.compareUnsigned([](auto a, auto b) { return a <= b; });
  case 8:
    return x.compareUnsigned([](auto a, auto b) { return a > b; });
  default:
    return x.compareUnsigned([](auto a, auto b) { return a >= b; });
  }
}

/// Division as on hardware where C++ leaves it undefined: by zero all ones.
template <typename T>
static T divide(T a, T b) {
  if (b == 0)
    return T(-1);
  if (std::is_signed_v<T> && b == T(-1))
    return T(0 - std::make_unsigned_t<T>(a));
  return a / b;
}

template <typename T>
static T remainder(T a, T b) {
  if (b == 0)
    return a;
  if (std::is_signed_v<T> && b == T(-1))
    return 0;
  return a % b;
}

void Warp::integer(const Instr &i) {
  Integers x{words(i.dst), words(i.a), words(i.b), longs(i.dst),
             longs(i.a),   longs(i.b), i.width};
  switch (i.op) {
  case Opcode::AddI:
    return x.unsignedOp([](auto a, auto b) { return a + b; });
  case Opcode::SubI:
    return x.unsignedOp([](auto a, auto b) { return a - b; });
  case Opcode::MulI:
    return x.unsignedOp([](auto a, auto b) { return a * b; });
  case Opcode::DivS:
    return x.signedOp([](auto a, auto b) { return divide(a, b); });
  case Opcode::DivU:
    return x.unsignedOp([](auto a, auto b) { return divide(a, b); });
  case Opcode::RemS:
    return x.signedOp([](auto a, auto b) { return remainder(a, b); });
  case Opcode::RemU:
    return x.unsignedOp([](auto a, auto b) { return remainder(a, b); });
  case Opcode::And:
    return x.unsignedOp([](auto a, auto b) { return a & b; });
  case Opcode::Or:
    return x.unsignedOp([](auto a, auto b) { return a | b; });
  case Opcode::Xor:
    return x.unsignedOp([](auto a, auto b) { return a ^ b; });
  case Opcode::Shl:
    return x.unsignedOp([w = i.width](auto a, auto b) {
      return b < w ? a << b : decltype(a)(0);
    });
  case Opcode::ShrU:
    return x.unsignedOp([w = i.width](auto a, auto b) {
      return b < w ? a >> b : decltype(a)(0);
    });
  case Opcode::ShrS:
    return x.signedOp([w = i.width](auto a, auto b) {
      return a >> (b >= 0 && b < w ? int(b) : w - 1);
    });
  case Opcode::MinS:
    return x.signedOp([](auto a, auto b) { return a < b ? a : b; });
  case Opcode::MaxS:
    return x.signedOp([](auto a, auto b) { return a > b ? a : b; });
  case Opcode::MinU:
    return x.unsignedOp([](auto a, auto b) { return a < b ? a : b; });
  case Opcode::MaxU:
    return x.unsignedOp([](auto a, auto b) { return a > b ? a : b; });
  case Opcode::CtPop:
    return x.unsignedOp([](auto a, auto) {
      return decltype(a)(llvm::popcount(a));
    });
  case Opcode::CmpI:
    return compareIntegers(x, i.imm);
  case Opcode::Select:
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      bool first = words(i.a)[lane] & 1;
      if (i.width > 32)
        longs(i.dst)[lane] = first ? longs(i.b)[lane] : longs(i.c)[lane];
      else
        words(i.dst)[lane] = first ? words(i.b)[lane] : words(i.c)[lane];
    }
    return;
  case Opcode::ExtS:
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      int64_t value = x.extend(x.a32[lane]);
      if (i.width2 > 32)
        x.d64[lane] = value;
      else
        x.d32[lane] =
            uint32_t(value) & (i.width2 == 32 ? ~0u : (1u << i.width2) - 1);
    }
    return;
  case Opcode::ExtU:
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      if (i.width2 > 32)
        x.d64[lane] = x.a32[lane];
      else
        x.d32[lane] = x.a32[lane];
    }
    return;
  case Opcode::Trunc:
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      uint64_t value = i.width > 32 ? x.a64[lane] : x.a32[lane];
      if (i.width2 > 32)
        x.d64[lane] = value;
      else
        x.d32[lane] =
            uint32_t(value) & (i.width2 == 32 ? ~0u : (1u << i.width2) - 1);
    }
    return;
  case Opcode::AddScaled:
    for (unsigned lane = 0; lane < kLanes; ++lane)
      x.d64[lane] =
          x.a64[lane] + uint64_t(i.imm) * (i.width > 32
                                               ? x.b64[lane]
                                               : uint64_t(int64_t(
                                                     x.extend(x.b32[lane]))));
    return;
  case Opcode::AddImm:
    for (unsigned lane = 0; lane < kLanes; ++lane)
      x.d64[lane] = x.a64[lane] + uint64_t(i.imm);
    return;
  default:
    return fail(-1, "instruction without an implementation");
  }
}

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
  // The numbering of arith.cmpf and llvm.fcmp: bits 0 to 3 say whether the
  // result is true for equal, greater, less and unordered.
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
    return each([](float a, float, float) {
      return flush(std::exp2(flush(a)));
    });
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
      int64_t value = i.width > 32 ? int64_t(longs(i.a)[lane])
                                   : int32_t(word << (32 - i.width)) >>
                                         (32 - i.width);
      words(i.dst)[lane] = toBits(i.kind2, float(value));
      break;
    }
    case Opcode::UIToFP: {
      uint64_t value = i.width > 32 ? longs(i.a)[lane] : word;
      words(i.dst)[lane] = toBits(i.kind2, float(value));
      break;
    }
    default: {
      int64_t value = saturate(toFloat(i.kind, word), i.width2,
                               i.op == Opcode::FPToSI);
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
      uint64_t leaf = i.width > 32 ? longs(from[n])[lane] : words(from[n])[lane];
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
