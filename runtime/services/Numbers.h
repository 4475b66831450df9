//===- Numbers.h - Elements of memory as floats -----------------*- C++ -*-===//

#ifndef TOKENTILE_RUNTIME_SERVICES_NUMBERS_H
#define TOKENTILE_RUNTIME_SERVICES_NUMBERS_H

#ifndef __CUDACC_RTC__
#include "runtime/services/Team.h"
#include <cstring>
#endif

namespace tokentile::services {

/// Types of tensors that services read and write.
enum class Scalar : int32_t { Float32, BFloat16, Float16 };

TOKENTILE_SERVICE int32_t bytesOf(Scalar type) {
  return type == Scalar::Float32 ? 4 : 2;
}

TOKENTILE_SERVICE uint32_t bitsOf(float value) {
#ifdef __CUDACC_RTC__
  return __float_as_uint(value);
#else
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
#endif
}

TOKENTILE_SERVICE float floatOf(uint32_t bits) {
#ifdef __CUDACC_RTC__
  return __uint_as_float(bits);
#else
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
#endif
}

TOKENTILE_SERVICE bool isNan(float value) {
  return (bitsOf(value) & 0x7fffffffu) > 0x7f800000u;
}

/// Shifts right by `bits`, to the nearest, ties to even.
TOKENTILE_SERVICE uint32_t roundedShift(uint32_t value, int32_t bits) {
  uint32_t half = (1u << (bits - 1)) - 1;
  return (value + half + ((value >> bits) & 1)) >> bits;
}

TOKENTILE_SERVICE uint16_t toBFloat16(float value) {
  uint32_t bits = bitsOf(value);
  if (isNan(value))
    return uint16_t((bits >> 16) | 0x40); // a NaN stays one
  return uint16_t(roundedShift(bits, 16));
}

TOKENTILE_SERVICE float fromBFloat16(uint16_t value) {
  return floatOf(uint32_t(value) << 16);
}

TOKENTILE_SERVICE uint16_t toFloat16(float value) {
  uint32_t bits = bitsOf(value);
  uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return uint16_t(sign | 0x7e00u);
  if (magnitude >= 0x47800000u) // 65536
    return uint16_t(sign | 0x7c00u);
  if (magnitude >= 0x38800000u) // 2^-14, the least normal number
    return uint16_t(sign | roundedShift(magnitude - 0x38000000u, 13));
  int32_t shift = 126 - int32_t(magnitude >> 23); // to units of 2^-24
  if (shift > 24)
    return uint16_t(sign);
  return uint16_t(sign |
                  roundedShift((magnitude & 0x7fffffu) | 0x800000u, shift));
}

TOKENTILE_SERVICE float fromFloat16(uint16_t value) {
  uint32_t sign = uint32_t(value & 0x8000u) << 16, magnitude = value & 0x7fffu;
  if (magnitude >= 0x7c00u)
    return floatOf(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  if (magnitude >= 0x400u)
    return floatOf(sign | ((magnitude << 13) + 0x38000000u));
  float small = float(magnitude) * 5.9604644775390625e-8f; // 2^-24
  return sign ? -small : small;
}

TOKENTILE_SERVICE float load(Scalar type, const void *from, int64_t index) {
  if (type == Scalar::Float32)
    return static_cast<const float *>(from)[index];
  uint16_t bits = static_cast<const uint16_t *>(from)[index];
  return type == Scalar::BFloat16 ? fromBFloat16(bits) : fromFloat16(bits);
}

TOKENTILE_SERVICE void store(Scalar type, void *to, int64_t index,
                             float value) {
  if (type == Scalar::Float32)
    static_cast<float *>(to)[index] = value;
  else
    static_cast<uint16_t *>(to)[index] =
        type == Scalar::BFloat16 ? toBFloat16(value) : toFloat16(value);
}

} // namespace tokentile::services

#endif // TOKENTILE_RUNTIME_SERVICES_NUMBERS_H
