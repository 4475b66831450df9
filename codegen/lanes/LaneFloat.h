//===- LaneFloat.h - Bit-level conversions of small floats ------*- C++ -*-===//
//
// Round-to-nearest-even conversions between fp32 and the two 16-bit types, in
// integer arithmetic, so that results do not depend on the host's libraries.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_CODEGEN_LANES_LANEFLOAT_H
#define TOKENTILE_CODEGEN_LANES_LANEFLOAT_H

#include "codegen/lanes/LaneProgram.h"

#include <cstring>

namespace tokentile::lanes {

inline float asFloat(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

inline uint32_t asBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline float fromBF16(uint32_t bits) { return asFloat(bits << 16); }

inline uint32_t toBF16(float value) {
  uint32_t bits = asBits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return 0x7fff;
  return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

inline float fromF16(uint32_t bits) {
  uint32_t sign = (bits & 0x8000u) << 16;
  uint32_t rest = bits & 0x7fffu;
  if (rest >= 0x7c00u) // infinity and NaN
    return asFloat(sign | 0x7f800000u | ((rest & 0x3ffu) << 13));
  // Shifting the exponent into place is off by a power of two, which a
  // multiplication corrects for normal and subnormal numbers alike.
  float magnitude = asFloat(rest << 13) * asFloat(0x77800000u); // 2^112
  return asFloat(sign | asBits(magnitude));
}

inline uint32_t toF16(float value) {
  uint32_t bits = asBits(value);
  uint32_t sign = (bits >> 16) & 0x8000u;
  uint32_t rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u)
    return 0x7fff;
  if (rest >= 0x477ff000u) // rounds to 65536 or more
    return sign | 0x7c00u;
  if (rest < 0x38800000u) { // subnormal: let an addition do the rounding
    float shifted = asFloat(rest) + asFloat(0x3f000000u); // + 0.5
    return sign | (asBits(shifted) - 0x3f000000u);
  }
  uint32_t rounded = rest - 0x38000000u + 0xfffu + ((rest >> 13) & 1);
  return sign | (rounded >> 13);
}

inline float toFloat(FloatKind kind, uint32_t bits) {
  switch (kind) {
  case FloatKind::F16:
    return fromF16(bits);
  case FloatKind::BF16:
    return fromBF16(bits);
  default:
    return asFloat(bits);
  }
}

inline uint32_t toBits(FloatKind kind, float value) {
  switch (kind) {
  case FloatKind::F16:
    return toF16(value);
  case FloatKind::BF16:
    return toBF16(value);
  default:
    return asBits(value);
  }
}

} // namespace tokentile::lanes

#endif // TOKENTILE_CODEGEN_LANES_LANEFLOAT_H
