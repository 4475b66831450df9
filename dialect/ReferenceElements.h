//===- ReferenceElements.h - Stored numbers as doubles ----------*- C++ -*-===//
//
// Decodes the elements that a spec can store, rounds to the 16-bit types as a
// conversion instruction does (to nearest, ties to even), and encodes them.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_DIALECT_REFERENCEELEMENTS_H
#define TOKENTILE_DIALECT_REFERENCEELEMENTS_H

#include "dialect/AttnReference.h"

namespace tokentile::attn {

/// Whether elements of `kind` are 16-bit floating-point numbers.
bool isHalfWidth(ElementKind kind);

/// Half the distance from 1 to the next number of a 16-bit type.
double roundingUnit(ElementKind kind);

/// `value` rounded to a 16-bit type; infinite if it is out of range.
double roundTo(double value, ElementKind kind);

/// Bits of roundTo(value, kind); NaN is quiet and negative.
uint16_t encodeHalf(double value, ElementKind kind);

/// The number that the bits of a 16-bit type stand for.
double decodeHalf(uint16_t bits, ElementKind kind);

/// The number that the bits of an fp8 e4m3 stand for (no infinities; all ones
/// is NaN).
double decodeE4M3(uint8_t bits);

/// Decodes the `dim` elements at `row` into `out`. `scales` points at the
/// row's first scale and is not read for 16-bit types. Undoes the rotation.
void decodeRow(StorageAttr storage, const void *row, const void *scales,
               double factor, int64_t dim, double *out);

} // namespace tokentile::attn

#endif // TOKENTILE_DIALECT_REFERENCEELEMENTS_H
