//===- ReferenceElements.cpp - Stored numbers as doubles ------------------===//

#include "dialect/ReferenceElements.h"

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
  int exponent;
  std::frexp(value, &exponent);
  // Exponent of the last place: numbers below the normal range share one.
  int last = std::max(exponent - format.precision, format.lowest);
  double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -last)), last);
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
  if (size < std::ldexp(1.0, -14))
    return sign | uint16_t(std::ldexp(size, 24));
  int exponent = std::ilogb(size);
  int fraction = int(std::ldexp(size, 10 - exponent)) - 1024;
  return sign | uint16_t((exponent + 15) << 10 | fraction);
}

double decodeHalf(uint16_t bits, ElementKind kind) {
  if (kind == ElementKind::BF16) {
    uint32_t wide = uint32_t(bits) << 16;
    float single;
    std::memcpy(&single, &wide, sizeof(single));
    return single;
  }
  int exponent = bits >> 10 & 31;
  int fraction = bits & 1023;
  double size;
  if (exponent == 31)
    size = fraction ? std::numeric_limits<double>::quiet_NaN()
                    : std::numeric_limits<double>::infinity();
  else if (exponent == 0)
    size = std::ldexp(fraction, -24);
  else
    size = std::ldexp(1024 + fraction, exponent - 25);
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

/// The walsh-Hadamard transform divided by sqrt(dim), its own inverse.
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
