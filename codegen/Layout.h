//===- Layout.h - Where lanes, registers and banks hold a tile --*- C++ -*-===//
//
// The layouts of the GPU lowerings as pure functions from (lane, register) to
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

/// Columns of a partial output that the lanes of a quad store side by side, if
/// a warp has so many.
constexpr int64_t kPartialBlock = 32;

/// Where column `column` of a block of `block` stands: a lane's pairs of
/// columns follow one another, so that it stores them at one time.
constexpr int64_t partialPlace(int64_t column, int64_t block) {
  return column % 8 / 2 * (block / 4) + column / 8 * 2 + column % 2;
}

/// Byte of chunk `chunk` of row `row` in a shared tile of `rowBytes` per row.
constexpr int64_t sharedByte(int64_t row, int64_t chunk, int64_t rowBytes,
                             int64_t swizzle) {
  return row * rowBytes + (chunk ^ (row % swizzle)) * kChunk;
}

//===----------------------------------------------------------------------===//
// Tiles for wgmma
//===----------------------------------------------------------------------===//
//
// A tile is cut into panels of 64 columns, 128 bytes. Eight rows of a panel are
// one swizzle atom of 1,024 bytes; a group of eight rows has its panels side by
// side, so that a box of eight rows from any page is written whole.
//
// Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout"
// and "Matrix Descriptor".

/// Columns of a panel, rows of an atom, places a chunk can swap to.
constexpr int64_t kPanel = 64, kGroup = 8, kSwizzle = 8;
constexpr int64_t kAtomBytes = kGroup * kPanel * 2;
/// Threads that execute one wgmma, and their rows.
constexpr int64_t kWarpgroup = 128, kWgmmaRows = 64;
/// Bytes of a slot's two barriers in a ring: full, then empty.
constexpr int64_t kRingSlot = 16;

/// Byte of 16-byte chunk `chunk` of row `row` in a tile of `columns` columns.
constexpr int64_t panelByte(int64_t row, int64_t chunk, int64_t columns) {
  int64_t atom = row / kGroup * (columns / kPanel) + chunk / kSwizzle;
  return atom * kAtomBytes + row % kGroup * 128 +
         (chunk % kSwizzle ^ row % kGroup) * kChunk;
}

/// Where row `row` of a block stands among the rows of its products, 64 each:
/// warp w holds rows 16 * rowTiles * w and on, sixteen in each of rowTiles
/// products of its warpgroup.
constexpr int64_t productRow(int64_t row, int64_t rowTiles) {
  int64_t tile = row / kRows, warp = tile / rowTiles;
  int64_t product = warp / 4 * rowTiles + tile % rowTiles;
  return product * kWgmmaRows + warp % 4 * kRows + row % kRows;
}

/// The matrix descriptor of a tile of `columns` columns whose address is zero:
/// 128-byte swizzle. Rows are the outer dimension of keys and queries and the
/// depth of values. Groups of eight rows are the stride; panels the leading
/// offset, which only values use.
constexpr uint64_t matrixDescriptor(int64_t columns) {
  uint64_t leading = kAtomBytes / 16;
  uint64_t stride = columns / kPanel * kAtomBytes / 16;
  return leading << 16 | stride << 32 | uint64_t(1) << 62;
}

/// Bytes to the operand of the next sixteen columns, `step` of them on: keys
/// and queries.
constexpr int64_t columnStep(int64_t step) {
  return step / 4 * kAtomBytes + step % 4 * 2 * kChunk;
}

/// Bytes to sixteen rows, `step` of them on, in a tile of `columns` columns:
/// values.
constexpr int64_t rowStep(int64_t step, int64_t columns) {
  return step * 2 * (columns / kPanel) * kAtomBytes;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

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
