//===- LaneWarpInteger.cpp - Integer arithmetic of a warp -----------------===//
//
// All 32 lanes compute, active or not: what an inactive lane holds is never
// observed, and loops without a mask vectorize.
//
//===----------------------------------------------------------------------===//

#include "codegen/lanes/LaneWarp.h"

#include "llvm/ADT/bit.h"

#include <type_traits>

using namespace tokentile;
using namespace tokentile::lanes;

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
      d32[lane] = uint32_t(f(extend(a32[lane]), extend(b32[lane]))) & mask();
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
      d32[lane] = width > 32 ? f(int64_t(a64[lane]), int64_t(b64[lane]))
                             : f(int64_t(extend(a32[lane])),
                                 int64_t(extend(b32[lane])));
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

/// Division rounded down (`up` = 0) or up (1).
template <typename T>
static T divideTowards(T a, T b, bool up) {
  T quotient = divide(a, b);
  if (b == 0 || remainder(a, b) == 0)
    return quotient;
  bool negative = (a < 0) != (b < 0);
  if (up)
    return negative ? quotient : quotient + 1;
  return negative ? quotient - 1 : quotient;
}

/// Sums, products, quotients and extremes; false if `op` is none of them.
static bool arithmetic(Opcode op, const Integers &x) {
  switch (op) {
  case Opcode::AddI:
    x.unsignedOp([](auto a, auto b) { return a + b; });
    return true;
  case Opcode::SubI:
    x.unsignedOp([](auto a, auto b) { return a - b; });
    return true;
  case Opcode::MulI:
    x.unsignedOp([](auto a, auto b) { return a * b; });
    return true;
  case Opcode::DivS:
    x.signedOp([](auto a, auto b) { return divide(a, b); });
    return true;
  case Opcode::DivU:
    x.unsignedOp([](auto a, auto b) { return divide(a, b); });
    return true;
  case Opcode::RemS:
    x.signedOp([](auto a, auto b) { return remainder(a, b); });
    return true;
  case Opcode::RemU:
    x.unsignedOp([](auto a, auto b) { return remainder(a, b); });
    return true;
  case Opcode::CeilDivS:
    x.signedOp([](auto a, auto b) { return divideTowards(a, b, true); });
    return true;
  case Opcode::CeilDivU:
    x.unsignedOp([](auto a, auto b) { return divideTowards(a, b, true); });
    return true;
  case Opcode::FloorDivS:
    x.signedOp([](auto a, auto b) { return divideTowards(a, b, false); });
    return true;
  case Opcode::MinS:
    x.signedOp([](auto a, auto b) { return a < b ? a : b; });
    return true;
  case Opcode::MaxS:
    x.signedOp([](auto a, auto b) { return a > b ? a : b; });
    return true;
  case Opcode::MinU:
    x.unsignedOp([](auto a, auto b) { return a < b ? a : b; });
    return true;
  case Opcode::MaxU:
    x.unsignedOp([](auto a, auto b) { return a > b ? a : b; });
    return true;
  default:
    return false;
  }
}

/// Operations on bits; false if `op` is none of them.
static bool bitwise(Opcode op, const Integers &x) {
  switch (op) {
  case Opcode::And:
    x.unsignedOp([](auto a, auto b) { return a & b; });
    return true;
  case Opcode::Or:
    x.unsignedOp([](auto a, auto b) { return a | b; });
    return true;
  case Opcode::Xor:
    x.unsignedOp([](auto a, auto b) { return a ^ b; });
    return true;
  case Opcode::Shl:
    x.unsignedOp([w = x.width](auto a, auto b) {
      return b < w ? a << b : decltype(a)(0);
    });
    return true;
  case Opcode::ShrU:
    x.unsignedOp([w = x.width](auto a, auto b) {
      return b < w ? a >> b : decltype(a)(0);
    });
    return true;
  case Opcode::ShrS:
    x.signedOp([w = int(x.width)](auto a, auto b) {
      return a >> (b >= 0 && b < w ? int(b) : w - 1);
    });
    return true;
  case Opcode::CtPop:
    x.unsignedOp([](auto a, auto) { return decltype(a)(llvm::popcount(a)); });
    return true;
  default:
    return false;
  }
}

/// Extensions and truncation to `width2` bits.
static void resize(Opcode op, const Integers &x, unsigned width2) {
  bool isSigned = op == Opcode::ExtS;
  uint32_t mask = width2 >= 32 ? ~0u : (1u << width2) - 1;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    uint64_t value = x.width > 32 ? x.a64[lane]
                     : isSigned   ? uint64_t(int64_t(x.extend(x.a32[lane])))
                                  : x.a32[lane];
    if (width2 > 32)
      x.d64[lane] = value;
    else
      x.d32[lane] = uint32_t(value) & mask;
  }
}

void Warp::integer(const Instr &i) {
  Integers x{words(i.dst), words(i.a), words(i.b), longs(i.dst),
             longs(i.a),   longs(i.b), i.width};
  if (arithmetic(i.op, x) || bitwise(i.op, x))
    return;
  switch (i.op) {
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
  case Opcode::ExtU:
  case Opcode::Trunc:
    return resize(i.op, x, i.width2);
  case Opcode::AddScaled:
    for (unsigned lane = 0; lane < kLanes; ++lane)
      x.d64[lane] =
          x.a64[lane] +
          uint64_t(i.imm) * (i.width > 32
                                 ? x.b64[lane]
                                 : uint64_t(int64_t(x.extend(x.b32[lane]))));
    return;
  case Opcode::AddImm:
    for (unsigned lane = 0; lane < kLanes; ++lane)
      x.d64[lane] = x.a64[lane] + uint64_t(i.imm);
    return;
  default:
    return fail(-1, "instruction without an implementation");
  }
}
