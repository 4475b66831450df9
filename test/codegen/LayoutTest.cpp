//===- LayoutTest.cpp - Layouts, exhaustively -----------------------------===//
//
// Every lane, register, chunk and row: fragments are bijections that agree with
// one another, shared memory has no bank conflicts, copies cover each chunk.
//
//===----------------------------------------------------------------------===//

#include "codegen/Layout.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

using namespace tokentile::layout;

using Place = std::pair<int64_t, int64_t>;

static Place placeOf(Coordinate c) { return {c.row, c.column}; }

static const int64_t kDims[] = {64, 128, 256};

/// Elements (row, column) of 8x8 matrix `matrix` of a 16-bit ldmatrix that lane
/// `lane` receives in its register: PTX ISA, "ldmatrix". `address` maps a lane
/// to the row and 16-byte chunk that it points to.
template <typename Address>
static std::pair<Place, Place> received(Address address, int64_t lane,
                                        int64_t matrix, bool transposed) {
  auto element = [&](int64_t row, int64_t column) -> Place {
    Coordinate start = address(matrix * 8 + row);
    return {start.row, start.column * 8 + column};
  };
  int64_t major = lane / 4, minor = lane % 4 * 2;
  if (transposed)
    return {element(minor, major), element(minor + 1, major)};
  return {element(major, minor), element(major, minor + 1)};
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

TEST(FragmentTest, AccumulatorIsABijection) {
  for (int64_t columns : {8, 16, 64, 256}) {
    std::set<Place> seen;
    for (int64_t lane = 0; lane < kWarp; ++lane)
      for (int64_t reg = 0; reg < columns / 2; ++reg)
        seen.insert(placeOf(accumulator(lane, reg)));
    EXPECT_EQ(seen.size(), size_t(kRows * columns));
    EXPECT_EQ(*seen.begin(), Place(0, 0));
    EXPECT_EQ(*seen.rbegin(), Place(kRows - 1, columns - 1));
  }
}

TEST(FragmentTest, APartialRowHoldsTheRegistersOfALaneSideBySide) {
  for (int64_t block : {16, 32}) {
    std::set<int64_t> seen;
    for (int64_t lane = 0; lane < 4; ++lane)
      for (int64_t reg = 0, next = lane * block / 4; reg < block / 2; ++reg) {
        Coordinate at = accumulator(lane, reg);
        if (at.row != 0)
          continue;
        int64_t place = partialPlace(at.column, block);
        EXPECT_EQ(place, next++);
        seen.insert(place);
      }
    EXPECT_EQ(seen.size(), size_t(block));
  }
}

TEST(FragmentTest, LeftOperandIsABijection) {
  std::set<Place> seen;
  for (int64_t lane = 0; lane < kWarp; ++lane)
    for (int64_t reg = 0; reg < 4; ++reg)
      for (int64_t half : {0, 1})
        seen.insert(placeOf(leftOperand(lane, reg, half)));
  EXPECT_EQ(seen.size(), size_t(kRows * kDepth));
  EXPECT_EQ(*seen.rbegin(), Place(kRows - 1, kDepth - 1));
}

TEST(FragmentTest, RightOperandIsABijection) {
  std::set<Place> seen;
  for (int64_t lane = 0; lane < kWarp; ++lane)
    for (int64_t reg = 0; reg < 2; ++reg)
      for (int64_t half : {0, 1})
        seen.insert(placeOf(rightOperand(lane, reg, half)));
  EXPECT_EQ(seen.size(), size_t(kDepth * kColumns));
  EXPECT_EQ(*seen.rbegin(), Place(kDepth - 1, kColumns - 1));
}

TEST(FragmentTest, ScoresAreTheLeftOperandOfTheNextProduct) {
  // Sixteen keys of scores are eight accumulators; packed in pairs, in order,
  // they are the four left-operand registers of a step of sixteen keys.
  for (int64_t lane = 0; lane < kWarp; ++lane)
    for (int64_t step : {0, 1, 2, 3})
      for (int64_t reg = 0; reg < 4; ++reg)
        for (int64_t half : {0, 1}) {
          Coordinate score = accumulator(lane, step * 8 + reg * 2 + half);
          Coordinate left = leftOperand(lane, reg, half);
          EXPECT_EQ(score.row, left.row);
          EXPECT_EQ(score.column, step * kDepth + left.column);
        }
}

TEST(FragmentTest, ALaneHasTwoRowsInEveryAccumulator) {
  for (int64_t lane = 0; lane < kWarp; ++lane)
    for (int64_t reg = 0; reg < 128; ++reg)
      EXPECT_EQ(accumulator(lane, reg).row, lane / 4 + (reg % 4 / 2) * 8);
}

//===----------------------------------------------------------------------===//
// ldmatrix
//===----------------------------------------------------------------------===//

TEST(LdmatrixTest, QueryArrivesAsTheLeftOperand) {
  for (int64_t lane = 0; lane < kWarp; ++lane)
    for (int64_t reg = 0; reg < 4; ++reg) {
      auto [low, high] = received(ldmatrixLeft, lane, reg, false);
      EXPECT_EQ(low, placeOf(leftOperand(lane, reg, 0)));
      EXPECT_EQ(high, placeOf(leftOperand(lane, reg, 1)));
    }
}

TEST(LdmatrixTest, KeysArriveAsTheRightOperand) {
  // Keys are rows in memory and columns of the product.
  for (int64_t lane = 0; lane < kWarp; ++lane)
    for (int64_t reg = 0; reg < 4; ++reg)
      for (int64_t half : {0, 1}) {
        auto pair = received(ldmatrixKeys, lane, reg, false);
        Place key = half ? pair.second : pair.first;
        Coordinate right = rightOperand(lane, reg % 2, half);
        EXPECT_EQ(key.first, reg / 2 * 8 + right.column);
        EXPECT_EQ(key.second, right.row);
      }
}

TEST(LdmatrixTest, ValuesArriveTransposedAsTheRightOperand) {
  // Values have keys as rows in memory, and those are the depth.
  for (int64_t lane = 0; lane < kWarp; ++lane)
    for (int64_t reg = 0; reg < 4; ++reg)
      for (int64_t half : {0, 1}) {
        auto pair = received(ldmatrixLeft, lane, reg, true);
        Place value = half ? pair.second : pair.first;
        Coordinate right = rightOperand(lane, reg % 2, half);
        EXPECT_EQ(value.first, right.row);
        EXPECT_EQ(value.second, reg / 2 * 8 + right.column);
      }
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

TEST(SharedTest, BytesAreABijection) {
  for (int64_t dim : kDims)
    for (int64_t swizzle : {1, 2, 4, 8}) {
      int64_t rowBytes = dim * 2, chunks = rowBytes / kChunk, rows = 64;
      std::set<int64_t> seen;
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t chunk = 0; chunk < chunks; ++chunk) {
          int64_t byte = sharedByte(row, chunk, rowBytes, swizzle);
          EXPECT_EQ(byte % kChunk, 0);
          EXPECT_EQ(byte / rowBytes, row);
          seen.insert(byte);
        }
      EXPECT_EQ(seen.size(), size_t(rows * chunks));
    }
}

/// Chunks that eight lanes touch at once; each has its own of the eight groups
/// of four banks if there is no conflict.
static size_t bankGroups(const std::vector<int64_t> &bytes) {
  std::set<int64_t> groups;
  for (int64_t byte : bytes)
    groups.insert(byte / kChunk % 8);
  return groups.size();
}

TEST(SharedTest, EveryPhaseOfLdmatrixIsFreeOfConflicts) {
  for (int64_t dim : kDims)
    for (auto address : {ldmatrixLeft, ldmatrixKeys})
      for (int64_t step = 0; step < dim / kDepth; ++step)
        for (int64_t matrix = 0; matrix < 4; ++matrix) {
          std::vector<int64_t> bytes;
          for (int64_t row = 0; row < 8; ++row) {
            Coordinate at = address(matrix * 8 + row);
            bytes.push_back(
                sharedByte(at.row, at.column + 2 * step, dim * 2, 8));
          }
          EXPECT_EQ(bankGroups(bytes), 8u);
        }
}

TEST(SharedTest, StepsOfAnOperandAreFourPlacesAndAnOffset) {
  // operandAddress finds step s in place s % 4 and adds the rest.
  for (int64_t dim : kDims)
    for (int64_t lane = 0; lane < kWarp; ++lane)
      for (auto address : {ldmatrixLeft, ldmatrixKeys})
        for (int64_t step = 0; step < dim / kDepth; ++step) {
          Coordinate at = address(lane);
          int64_t place = at.row * dim * 2 +
                          ((at.column ^ at.row % 8) ^ 2 * (step % 4)) * kChunk;
          EXPECT_EQ(place + step / 4 * 8 * kChunk,
                    sharedByte(at.row, at.column + 2 * step, dim * 2, 8));
        }
}

TEST(SharedTest, SlicesOfValuesBeginInsideASwizzle) {
  // A key warp's dimensions begin at a multiple of 16: operand() swaps the
  // chunk by the rest of 64 and adds the multiple of 64.
  for (int64_t dim : kDims)
    for (int64_t warps : {2, 4})
      for (int64_t warp = 0; warp < warps; ++warp)
        for (int64_t lane = 0; lane < kWarp; ++lane)
          for (int64_t pair = 0; pair < dim / warps / kDepth; ++pair) {
            int64_t first = warp * dim / warps / 8;
            Coordinate at = ldmatrixLeft(lane);
            int64_t swapped = (at.column ^ at.row % 8) ^ first % 8;
            int64_t byte = at.row * dim * 2 + first / 8 * 8 * kChunk +
                           (swapped ^ 2 * (pair % 4)) * kChunk +
                           pair / 4 * 8 * kChunk;
            EXPECT_EQ(byte, sharedByte(at.row, first + 2 * pair + at.column,
                                       dim * 2, 8));
          }
}

//===----------------------------------------------------------------------===//
// Tiles for wgmma
//===----------------------------------------------------------------------===//

TEST(PanelTest, BytesAreABijection) {
  for (int64_t dim : kDims)
    for (int64_t rows : {16, 64, 128}) {
      std::set<int64_t> seen;
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t chunk = 0; chunk < dim / 8; ++chunk)
          seen.insert(panelByte(row, chunk, dim));
      EXPECT_EQ(seen.size(), size_t(rows * dim / 8));
      EXPECT_EQ(*seen.begin(), 0);
      EXPECT_EQ(*seen.rbegin(), rows * dim * 2 - kChunk);
    }
}

TEST(PanelTest, EightRowsAreWhatABoxWrites) {
  // A box of a tensor map writes panel after panel, each eight rows of 128
  // bytes whose 16-byte chunks are swizzled by the address: bits 4 to 6 by bits
  // 7 to 9.
  for (int64_t dim : kDims)
    for (int64_t row = 0; row < 64; ++row)
      for (int64_t chunk = 0; chunk < dim / 8; ++chunk) {
        int64_t box = row / 8 * 8 * dim * 2;
        int64_t plain = box + chunk / 8 * 1024 + row % 8 * 128 + chunk % 8 * 16;
        int64_t swizzled = plain ^ (plain >> 7 & 7) << 4;
        EXPECT_EQ(panelByte(row, chunk, dim), swizzled);
      }
}

/// Fields of a matrix descriptor: PTX ISA, "Matrix Descriptor Format".
static int64_t leadingOf(uint64_t d) { return (d >> 16 & 0x3fff) * 16; }
static int64_t strideOf(uint64_t d) { return (d >> 32 & 0x3fff) * 16; }

/// What wgmma reads at byte `at` from the start of an operand: the address
/// bits, not the offset, are swizzled.
static int64_t swizzledByte(int64_t start, int64_t offset) {
  int64_t at = start + offset;
  return at ^ (at >> 7 & 7) << 4;
}

TEST(DescriptorTest, SaysTheSwizzleAndStaysWithinItsFields) {
  for (int64_t dim : kDims) {
    uint64_t d = matrixDescriptor(dim);
    EXPECT_EQ(d >> 62, 1u) << "128-byte swizzle";
    EXPECT_EQ(d & 0xffff, 0u) << "the address is added";
    EXPECT_EQ(d >> 46 & 0xffff, 0u) << "no base offset";
    EXPECT_EQ(strideOf(d), dim * 16) << "eight rows";
    EXPECT_EQ(leadingOf(d), 1024) << "a panel";
  }
}

TEST(DescriptorTest, FindsKeysAndQueries) {
  // Depth is contiguous: row r, element k of a step lies at
  // (r / 8) * stride + (r % 8) * 128 + k * 2 from its start.
  for (int64_t dim : kDims)
    for (int64_t step = 0; step < dim / kDepth; ++step)
      for (int64_t row = 0; row < 128; ++row)
        for (int64_t half : {0, 1}) {
          int64_t offset =
              row / 8 * strideOf(matrixDescriptor(dim)) + row % 8 * 128;
          EXPECT_EQ(swizzledByte(columnStep(step), offset + half * kChunk),
                    panelByte(row, 2 * step + half, dim));
        }
}

TEST(DescriptorTest, FindsValuesByRowsOfDepth) {
  // Columns are contiguous: column n of row k of a step lies at
  // (n / 64) * leading + (k / 8) * stride + (k % 8) * 128 + n % 64 * 2.
  for (int64_t dim : kDims)
    for (int64_t step = 0; step < 8; ++step)
      for (int64_t depth = 0; depth < kDepth; ++depth)
        for (int64_t chunk = 0; chunk < dim / 8; ++chunk) {
          uint64_t d = matrixDescriptor(dim);
          int64_t offset = chunk / 8 * leadingOf(d) + depth / 8 * strideOf(d) +
                           depth % 8 * 128 + chunk % 8 * kChunk;
          EXPECT_EQ(swizzledByte(rowStep(step, dim), offset),
                    panelByte(step * kDepth + depth, chunk, dim));
        }
}

TEST(WarpgroupTest, RowsOfAWarpAreSpreadOverItsProducts) {
  for (int64_t rowTiles : {1, 2})
    for (int64_t row = 0; row < 256; ++row) {
      int64_t place = productRow(row, rowTiles);
      int64_t warp = row / (kRows * rowTiles);
      EXPECT_EQ(place / (kWgmmaRows * rowTiles), warp / 4) << "its warpgroup";
      EXPECT_EQ(place % kWgmmaRows / kRows, warp % 4)
          << "its part of a product";
      EXPECT_EQ(place % kRows, row % kRows);
      EXPECT_EQ(place / kWgmmaRows % rowTiles, row / kRows % rowTiles);
    }
}

TEST(WarpgroupTest, AWarpHoldsSixteenRowsAsMmaDoes) {
  // PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16": register d[i]
  // of thread t.
  for (int64_t thread = 0; thread < kWarpgroup; ++thread)
    for (int64_t reg = 0; reg < 128; ++reg) {
      int64_t warp = thread / kWarp, lane = thread % kWarp;
      int64_t row = 16 * warp + lane / 4 + 8 * (reg / 2 % 2);
      int64_t column = 8 * (reg / 4) + 2 * (lane % 4) + reg % 2;
      Coordinate mma = accumulator(lane, reg);
      EXPECT_EQ(warp * kRows + mma.row, row);
      EXPECT_EQ(mma.column, column);
    }
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// Calls `body(shape)` for every tile and count of warps the generator makes:
/// up to sixteen warps.
template <typename Body>
static void forEachShape(Body body) {
  for (int64_t dim : kDims)
    for (int64_t warps = 1; warps <= 16; ++warps)
      for (int64_t rows = 16; rows <= 160; rows += 16)
        body(shareCopies(warps * kWarp, dim / 8, rows), dim);
}

TEST(CopyTest, EachChunkIsCopiedOnce) {
  int64_t shapes = 0;
  forEachShape([&](CopyShape shape, int64_t dim) {
    ++shapes;
    std::map<Place, int64_t> copies;
    for (int64_t thread = 0; thread < shape.threads; ++thread)
      for (int64_t j = 0; j < shape.count(); ++j)
        ++copies[placeOf(shape.at(thread, j))];
    ASSERT_EQ(copies.size(), size_t(shape.rows * shape.chunksPerRow));
    for (auto &[place, count] : copies) {
      ASSERT_EQ(count, 1);
      ASSERT_LT(place.first, shape.rows);
      ASSERT_LT(place.second, shape.chunksPerRow);
    }
  });
  EXPECT_GT(shapes, 150);
}

TEST(CopyTest, EveryTileIsWholeSteps) {
  // A bug, mended: of 48 rows that 256 threads copied in steps of 32, a third
  // never arrived.
  forEachShape([](CopyShape shape, int64_t dim) {
    EXPECT_EQ(shape.count() * shape.step(), shape.rows);
    EXPECT_EQ(shape.threads, powerOfTwoBelow(shape.threads));
  });
  EXPECT_EQ(shareCopies(12 * kWarp, 8, 48).step(), 16);
  EXPECT_EQ(shareCopies(8 * kWarp, 32, 64).threads, 256);
}

TEST(CopyTest, EveryQuarterOfAWarpIsFreeOfConflicts) {
  forEachShape([](CopyShape shape, int64_t dim) {
    for (int64_t first = 0; first < shape.threads; first += 8)
      for (int64_t j = 0; j < shape.count(); ++j) {
        std::vector<int64_t> bytes;
        for (int64_t thread = first; thread < first + 8; ++thread) {
          Coordinate at = shape.at(thread, j);
          bytes.push_back(sharedByte(at.row, at.column, dim * 2, 8));
        }
        ASSERT_EQ(bankGroups(bytes), 8u);
      }
  });
}

TEST(CopyTest, TargetsOfAThreadAreASwapAndAnOffset) {
  // copyTarget swaps the chunk by the thread's first row and by the step.
  forEachShape([](CopyShape shape, int64_t dim) {
    for (int64_t thread = 0; thread < shape.threads; ++thread)
      for (int64_t j = 0; j < shape.count(); ++j) {
        Coordinate first = shape.at(thread, 0), at = shape.at(thread, j);
        int64_t swapped =
            first.column ^ (first.row % 8) ^ (j * shape.step() % 8);
        int64_t byte = (first.row + j * shape.step()) * dim * 2 + swapped * 16;
        ASSERT_EQ(byte, sharedByte(at.row, at.column, dim * 2, 8));
      }
  });
}

TEST(CopyTest, LookupsFindThePageOfEachKey) {
  forEachShape([](CopyShape shape, int64_t dim) {
    for (int64_t page = 16; page <= 256; page *= 2)
      // Tiles start at multiples of their size, so anywhere in a page.
      for (int64_t tile = 0; tile < 256 / shape.rows; ++tile) {
        if (shape.rows & (shape.rows - 1))
          continue; // A tile of keys is a power of two.
        int64_t perLookup = shape.keysPerLookup(page);
        ASSERT_EQ(shape.step() % std::min(shape.step(), page), 0);
        for (int64_t thread = 0; thread < shape.threads; ++thread)
          for (int64_t j = 0; j < shape.count(); ++j) {
            int64_t lookup = j * shape.step() / perLookup;
            ASSERT_LT(lookup, shape.lookups(page));
            int64_t row = thread / shape.chunksPerRow;
            int64_t found = (tile * shape.rows + lookup * perLookup) / page +
                            (shape.step() > page ? row / page : 0);
            int64_t key = tile * shape.rows + shape.at(thread, j).row;
            ASSERT_EQ(found, key / page);
          }
      }
  });
}

TEST(CopyTest, PowerOfTwoBelow) {
  EXPECT_EQ(powerOfTwoBelow(1), 1);
  EXPECT_EQ(powerOfTwoBelow(32), 32);
  EXPECT_EQ(powerOfTwoBelow(96), 64);
  EXPECT_EQ(powerOfTwoBelow(255), 128);
}
