//===- ReferenceElements.cpp - Stored numbers as doubles ------------------===//

#include "dialect/ReferenceElements.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace tokentile::attn {

namespace {

/// A binary format with `precision` significant bits, whose smallest positive
/// number is 2^lowest and whose largest is `largest`.
struct Format {
  int precision;
  int lowest;
  double largest;
};

Format formatOf(ElementKind kind) {
  if (kind == ElementKind::BF16)
    return {8, -133, std::ldexp(255.0, 120)};
  return {11, -24, 65504.0};
}

uint64_t bitsOf(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

double numberOf(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

} // namespace

bool isHalfWidth(ElementKind kind) {
  return kind == ElementKind::BF16 || kind == ElementKind::FP16;
}

double roundingUnit(ElementKind kind) {
  return std::ldexp(1.0, -formatOf(kind).precision);
}

double roundTo(double value, ElementKind kind) {
  if (!std::isfinite(value) || value == 0.0)
    return value;
  Format format = formatOf(kind);
  int exponent = int(bitsOf(value) >> 52 & 2047) - 1022;
  // The last place: numbers below the normal range share one.
  int last = std::max(exponent - format.precision, format.lowest);
  double place = numberOf(uint64_t(last + 1023) << 52);
  // Adding 1.5 * 2^52 places leaves the adder no bits below the last place; it
  // rounds to nearest, ties to even.
  double shift = place * 0x1.8p52;
  double rounded = std::copysign(value + shift - shift, value);
  if (std::fabs(rounded) > format.largest)
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  return rounded;
}

uint16_t encodeHalf(double value, ElementKind kind) {
  if (std::isnan(value))
    return 0xffff;
  double rounded = roundTo(value, kind);
  uint16_t sign = std::signbit(rounded) ? 0x8000 : 0;
  if (kind == ElementKind::BF16) {
    float single = float(rounded);
    uint32_t bits;
    std::memcpy(&bits, &single, sizeof(bits));
    return uint16_t(bits >> 16);
  }
  double size = std::fabs(rounded);
  if (std::isinf(size))
    return sign | 0x7c00;
  if (size < 0x1p-14)
    return sign | uint16_t(size * 0x1p24);
  // Rebias the exponent from 1023 to 15 and keep ten bits of fraction.
  return sign | uint16_t((bitsOf(size) >> 42) - (uint64_t(1023 - 15) << 10));
}

double decodeHalf(uint16_t bits, ElementKind kind) {
  if (kind == ElementKind::BF16) {
    uint32_t wide = uint32_t(bits) << 16;
    float single;
    std::memcpy(&single, &wide, sizeof(single));
    return single;
  }
  uint64_t exponent = bits >> 10 & 31;
  uint64_t fraction = bits & 1023;
  double size;
  if (exponent == 31)
    size = fraction ? std::numeric_limits<double>::quiet_NaN()
                    : std::numeric_limits<double>::infinity();
  else if (exponent == 0)
    size = double(fraction) * 0x1p-24;
  else
    size = numberOf((exponent + 1023 - 15) << 52 | fraction << 42);
  return bits & 0x8000 ? -size : size;
}

double decodeE4M3(uint8_t bits) {
  int exponent = bits >> 3 & 15;
  int fraction = bits & 7;
  double size;
  if (exponent == 15 && fraction == 7)
    size = std::numeric_limits<double>::quiet_NaN();
  else if (exponent == 0)
    size = std::ldexp(fraction, -9);
  else
    size = std::ldexp(8 + fraction, exponent - 10);
  return bits & 0x80 ? -size : size;
}

namespace {

/// The eight magnitudes of e2m1, the element of nvfp4; bit 3 is the sign.
double decodeE2M1(unsigned bits) {
  static const double magnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  double size = magnitudes[bits & 7];
  return bits & 8 ? -size : size;
}

/// The Walsh-Hadamard transform divided by sqrt(dim), its own inverse.
void rotate(double *row, int64_t dim) {
  for (int64_t half = 1; half < dim; half *= 2)
    for (int64_t base = 0; base < dim; base += 2 * half)
      for (int64_t i = base; i < base + half; ++i) {
        double low = row[i];
        double high = row[i + half];
        row[i] = low + high;
        row[i + half] = low - high;
      }
  double norm = 1.0 / std::sqrt(double(dim));
  for (int64_t i = 0; i < dim; ++i)
    row[i] *= norm;
}

double scaleOf(StorageAttr storage, const void *scales, int64_t index) {
  if (storage.getElement() == ElementKind::NVFP4)
    return decodeE4M3(static_cast<const uint8_t *>(scales)[index / 16]);
  int64_t group =
      storage.getScale() == ScaleKind::Group ? index / storage.getGroup() : 0;
  return static_cast<const float *>(scales)[group];
}

} // namespace

void decodeRow(StorageAttr storage, const void *row, const void *scales,
               double factor, int64_t dim, double *out) {
  ElementKind kind = storage.getElement();
  auto *bytes = static_cast<const uint8_t *>(row);
  for (int64_t i = 0; i < dim; ++i) {
    if (isHalfWidth(kind)) {
      uint16_t bits;
      std::memcpy(&bits, bytes + 2 * i, sizeof(bits));
      out[i] = decodeHalf(bits, kind);
      continue;
    }
    double stored = kind == ElementKind::E4M3 ? decodeE4M3(bytes[i])
                    : kind == ElementKind::Int8
                        ? double(int8_t(bytes[i]))
                        : decodeE2M1(bytes[i / 2] >> (i % 2 * 4) & 15);
    out[i] = stored * factor * (scales ? scaleOf(storage, scales, i) : 1.0);
  }
  if (storage.getRotation() == Rotation::Hadamard)
    rotate(out, dim);
}

} // namespace tokentile::attn
