//===- Layout.h - Where lanes, registers and banks hold a tile --*- C++ -*-===//
//
// The layouts of the mma lowering as pure functions from (lane, register) to
// coordinates and from coordinates to bytes. The lowering emits what these
// functions say; test/codegen/LayoutTest.cpp walks them exhaustively.
//
// Source: PTX ISA, "Matrix Fragments for mma.m16n8k16" and "ldmatrix".
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_CODEGEN_LAYOUT_H
#define TOKENTILE_CODEGEN_LAYOUT_H

#include <cstdint>

namespace tokentile::layout {

constexpr int64_t kWarp = 32;
/// Rows of an accumulator tile, keys or dimensions of one product step.
constexpr int64_t kRows = 16, kColumns = 8, kDepth = 16;
/// Bytes that one asynchronous copy or one row of an 8x8 matrix moves.
constexpr int64_t kChunk = 16;

struct Coordinate {
  int64_t row;
  int64_t column;
};

/// Accumulator register `reg` of lane `lane`; four registers for each eight
/// columns.
constexpr Coordinate accumulator(int64_t lane, int64_t reg) {
  return {lane / 4 + reg % 4 / 2 * 8, reg / 4 * 8 + lane % 4 * 2 + reg % 2};
}

/// Element `half` (0, 1) of left-operand register `reg` (0..3): row, depth.
constexpr Coordinate leftOperand(int64_t lane, int64_t reg, int64_t half) {
  return {lane / 4 + reg % 2 * 8, lane % 4 * 2 + reg / 2 * 8 + half};
}

/// Element `half` of right-operand register `reg` (0, 1): depth, column.
constexpr Coordinate rightOperand(int64_t lane, int64_t reg, int64_t half) {
  return {lane % 4 * 2 + reg * 8 + half, lane / 4};
}

/// The row and 16-byte chunk whose address lane `lane` gives to ldmatrix.x4 so
/// that its four results are the left-operand registers of a 16x16 tile. Also
/// right for values (keys are rows, transposed load): results are registers 0
/// and 1 of eight dimensions, then of the next eight.
constexpr Coordinate ldmatrixLeft(int64_t lane) {
  return {lane / 8 % 2 * 8 + lane % 8, lane / 16};
}

/// Likewise for keys, whose rows are the columns of the product: results are
/// registers 0 and 1 of eight keys, then of the next eight.
constexpr Coordinate ldmatrixKeys(int64_t lane) {
  return {lane / 16 * 8 + lane % 8, lane / 8 % 2};
}

/// Byte of chunk `chunk` of row `row` in a shared tile of `rowBytes` per row.
constexpr int64_t sharedByte(int64_t row, int64_t chunk, int64_t rowBytes,
                             int64_t swizzle) {
  return row * rowBytes + (chunk ^ (row % swizzle)) * kChunk;
}

/// How `threads` threads (a power of two) share the chunks of a tile: thread
/// `t` copies chunk `t % chunksPerRow` of rows `t / chunksPerRow + step * j`.
struct CopyShape {
  int64_t threads;
  int64_t chunksPerRow;
  int64_t rows;
  /// Rows that all threads cover together.
  constexpr int64_t step() const { return threads / chunksPerRow; }
  /// Copies of one thread.
  constexpr int64_t count() const { return rows / step(); }
  constexpr Coordinate at(int64_t thread, int64_t j) const {
    return {thread / chunksPerRow + j * step(), thread % chunksPerRow};
  }
  /// Keys whose page one table lookup of a thread finds.
  constexpr int64_t keysPerLookup(int64_t page) const {
    return page > step() ? page : step();
  }
  /// Table lookups of one thread for one tile of keys.
  constexpr int64_t lookups(int64_t page) const {
    int64_t keys = keysPerLookup(page);
    return rows <= keys ? 1 : rows / keys;
  }
};

/// The largest power of two that is at most `value`.
constexpr int64_t powerOfTwoBelow(int64_t value) {
  int64_t power = 1;
  while (power * 2 <= value)
    power *= 2;
  return power;
}

/// The shape in which at most `threads` threads share a tile of `rows` rows:
/// as many as divide it into whole steps.
constexpr CopyShape shareCopies(int64_t threads, int64_t chunksPerRow,
                                int64_t rows) {
  int64_t count = powerOfTwoBelow(threads);
  while (count > chunksPerRow && rows % (count / chunksPerRow))
    count /= 2;
  return {count, chunksPerRow, rows};
}

} // namespace tokentile::layout

#endif // TOKENTILE_CODEGEN_LAYOUT_H
