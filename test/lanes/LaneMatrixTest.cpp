//===- LaneMatrixTest.cpp - ldmatrix, mma.sync and banks ------------------===//

#include "test/lanes/LaneTest.h"

#include <cstring>

using namespace tokentile;

static uint16_t toBF16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits >> 16; // exact for the small integers used here
}

static uint16_t toF16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if (value == 0)
    return 0;
  return (bits >> 16 & 0x8000) | (((bits >> 23 & 0xff) - 112) << 10) |
         (bits >> 13 & 0x3ff);
}

static float small(unsigned i, unsigned j) {
  return int((i * 7 + j * 13 + i * j) % 17) - 8;
}

namespace {
class LaneMatrixTest : public LaneTest {
protected:
  /// A [16][16] at 0, then B at 512: as [8][16] (n by k), or as [16][8] (k by
  /// n) when it is to be loaded transposed.
  void fill(uint16_t (*convert)(float), bool transposed) {
    auto *halves = reinterpret_cast<uint16_t *>(in.data());
    for (unsigned m = 0; m < 16; ++m)
      for (unsigned k = 0; k < 16; ++k)
        halves[m * 16 + k] = convert(small(m, k));
    for (unsigned n = 0; n < 8; ++n)
      for (unsigned k = 0; k < 16; ++k)
        halves[256 + (transposed ? k * 8 + n : n * 16 + k)] =
            convert(small(k + 3, n + 5));
  }

  void expectProduct() {
    for (unsigned m = 0; m < 16; ++m)
      for (unsigned n = 0; n < 8; ++n) {
        float expected = 1;
        for (unsigned k = 0; k < 16; ++k)
          expected += small(m, k) * small(k + 3, n + 5);
        float actual;
        std::memcpy(&actual, &out[m * 8 + n], sizeof(actual));
        EXPECT_EQ(actual, expected) << m << ", " << n;
      }
  }

  /// Copies 768 bytes to shared memory, loads fragments and multiplies.
  std::string product(const std::string &offsetB, const std::string &layoutB,
                      const std::string &mma) {
    return run(R"(
      %line = arith.muli %lane, %c16 : i32
      %c512 = arith.constant 512 : i32
      %src = llvm.getelementptr %in[%line] : (!llvm.ptr, i32) -> !llvm.ptr, i8
      %dst = llvm.getelementptr %shared[%line]
          : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %data = llvm.load %src : !llvm.ptr -> vector<4xi32>
      llvm.store %data, %dst : vector<4xi32>, !llvm.ptr<3>
      %low = arith.cmpi ult, %lane, %c16 : i32
      scf.if %low {
        %srcB = llvm.getelementptr %src[512] : (!llvm.ptr) -> !llvm.ptr, i8
        %dstB = llvm.getelementptr %dst[512]
            : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
        %dataB = llvm.load %srcB : !llvm.ptr -> vector<4xi32>
        llvm.store %dataB, %dstB : vector<4xi32>, !llvm.ptr<3>
      }
      // A: lanes 0-15 address rows, lanes 16-31 the same rows, right half.
      %row = arith.andi %lane, %c15 : i32
      %c32 = arith.constant 32 : i32
      %rowAt = arith.muli %row, %c32 : i32
      %right = arith.andi %lane, %c16 : i32
      %offsetA = arith.addi %rowAt, %right : i32
      %atA = llvm.getelementptr %shared[%offsetA]
          : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %a = nvvm.ldmatrix %atA {num = 4 : i32, layout = #nvvm.mma_layout<row>,
          shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>,
          eltType = #nvvm.ld_st_matrix_elt_type<b16>}
          : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
      )" + offsetB +
               R"(
      %inB = arith.addi %offsetB, %c512 : i32
      %atB = llvm.getelementptr %shared[%inB]
          : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %b = nvvm.ldmatrix %atB {num = 2 : i32, layout = #nvvm.mma_layout<)" +
               layoutB + R"(>,
          shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>,
          eltType = #nvvm.ld_st_matrix_elt_type<b16>}
          : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32)>
      %a0 = llvm.extractvalue %a[0] : !llvm.struct<(i32, i32, i32, i32)>
      %a1 = llvm.extractvalue %a[1] : !llvm.struct<(i32, i32, i32, i32)>
      %a2 = llvm.extractvalue %a[2] : !llvm.struct<(i32, i32, i32, i32)>
      %a3 = llvm.extractvalue %a[3] : !llvm.struct<(i32, i32, i32, i32)>
      %b0 = llvm.extractvalue %b[0] : !llvm.struct<(i32, i32)>
      %b1 = llvm.extractvalue %b[1] : !llvm.struct<(i32, i32)>
      %one = arith.constant 1.0 : f32
      )" + mma +
               R"(
      // D: row lane / 4, columns 2 * (lane % 4) and next; then row + 8.
      %d0 = llvm.extractvalue %d[0] : !llvm.struct<(f32, f32, f32, f32)>
      %d1 = llvm.extractvalue %d[1] : !llvm.struct<(f32, f32, f32, f32)>
      %d2 = llvm.extractvalue %d[2] : !llvm.struct<(f32, f32, f32, f32)>
      %d3 = llvm.extractvalue %d[3] : !llvm.struct<(f32, f32, f32, f32)>
      %at = arith.muli %lane, %c2 : i32
      %p = llvm.getelementptr %out[%at] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      %p1 = llvm.getelementptr %p[1] : (!llvm.ptr) -> !llvm.ptr, f32
      %p2 = llvm.getelementptr %p[64] : (!llvm.ptr) -> !llvm.ptr, f32
      %p3 = llvm.getelementptr %p[65] : (!llvm.ptr) -> !llvm.ptr, f32
      llvm.store %d0, %p : f32, !llvm.ptr
      llvm.store %d1, %p1 : f32, !llvm.ptr
      llvm.store %d2, %p2 : f32, !llvm.ptr
      llvm.store %d3, %p3 : f32, !llvm.ptr)");
  }

  // Rows of B are keys: lanes 0-7 the left half, lanes 8-15 the right.
  const std::string rowsOfB = R"(
    %c7 = arith.constant 7 : i32
    %n = arith.andi %lane, %c7 : i32
    %nAt = arith.muli %n, %c32 : i32
    %eight = arith.andi %lane, %c8 : i32
    %half = arith.muli %eight, %c2 : i32
    %offsetB = arith.addi %nAt, %half : i32)";
  // Rows of B are k.
  const std::string columnsOfB = R"(
    %k = arith.andi %lane, %c15 : i32
    %offsetB = arith.muli %k, %c16 : i32)";
  const std::string brainMma = R"(
    %d = nvvm.mma.sync A[%a0, %a1, %a2, %a3] B[%b0, %b1]
        C[%one, %one, %one, %one]
        {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>,
         multiplicandAPtxType = #nvvm.mma_type<bf16>,
         multiplicandBPtxType = #nvvm.mma_type<bf16>,
         shape = #nvvm.shape<m = 16, n = 8, k = 16>}
        : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>)";
  const std::string halfMma = R"(
    %h0 = llvm.bitcast %a0 : i32 to vector<2xf16>
    %h1 = llvm.bitcast %a1 : i32 to vector<2xf16>
    %h2 = llvm.bitcast %a2 : i32 to vector<2xf16>
    %h3 = llvm.bitcast %a3 : i32 to vector<2xf16>
    %g0 = llvm.bitcast %b0 : i32 to vector<2xf16>
    %g1 = llvm.bitcast %b1 : i32 to vector<2xf16>
    %d = nvvm.mma.sync A[%h0, %h1, %h2, %h3] B[%g0, %g1]
        C[%one, %one, %one, %one]
        {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>,
         shape = #nvvm.shape<m = 16, n = 8, k = 16>}
        : (vector<2xf16>, vector<2xf16>, f32)
        -> !llvm.struct<(f32, f32, f32, f32)>)";
};
} // namespace

TEST_F(LaneMatrixTest, BrainFloatProduct) {
  fill(toBF16, false);
  ASSERT_EQ(product(rowsOfB, "row", brainMma), "");
  expectProduct();
  EXPECT_EQ(report.mmas, 1);
  EXPECT_EQ(report.ldmatrices, 2);
}

TEST_F(LaneMatrixTest, HalfProduct) {
  fill(toF16, false);
  ASSERT_EQ(product(rowsOfB, "row", halfMma), "");
  expectProduct();
}

TEST_F(LaneMatrixTest, TransposedSecondOperand) {
  fill(toBF16, true);
  ASSERT_EQ(product(columnsOfB, "col", brainMma), "");
  expectProduct();
  fill(toF16, true);
  ASSERT_EQ(product(columnsOfB, "col", halfMma), "");
  expectProduct();
}

/// Element (row, column) of an 8x8 matrix in shared memory is row * 8 + column;
/// lane l stores what one ldmatrix gives it.
static std::string identity(const std::string &layout) {
  return R"(
    %c7 = arith.constant 7 : i32
    %low = arith.muli %lane, %c2 : i32
    %high = arith.addi %low, %c1 : i32
    %shifted = arith.shli %high, %c16 : i32
    %pair = arith.ori %shifted, %low : i32
    %to = llvm.getelementptr %shared[%lane]
        : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %pair, %to : i32, !llvm.ptr<3>
    %row = arith.andi %lane, %c7 : i32
    %offset = arith.muli %row, %c16 : i32
    %at = llvm.getelementptr %shared[%offset]
        : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    %m = nvvm.ldmatrix %at {num = 1 : i32, layout = #nvvm.mma_layout<)" +
         layout + R"(>,
        shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>,
        eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> i32
    llvm.store %m, %mine : i32, !llvm.ptr)";
}

TEST_F(LaneMatrixTest, OneMatrixByRows) {
  ASSERT_EQ(run(identity("row")), "");
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(out[l], (2 * l + 1) << 16 | 2 * l);
}

TEST_F(LaneMatrixTest, OneMatrixTransposed) {
  ASSERT_EQ(run(identity("col")), "");
  for (unsigned l = 0; l < 32; ++l) {
    unsigned first = l % 4 * 2 * 8 + l / 4;
    EXPECT_EQ(out[l], (first + 8) << 16 | first);
  }
}

/// One ldmatrix of eight rows of 128 bytes, with the address of chunk `chunk`.
static std::string readRows(const std::string &chunk) {
  return R"(
    %c7 = arith.constant 7 : i32
    %c128 = arith.constant 128 : i32
    %row = arith.andi %lane, %c7 : i32
    %base = arith.muli %row, %c128 : i32
    %group = arith.divui %lane, %c8 : i32
    )" + chunk +
         R"(
    %byte = arith.muli %chunk, %c16 : i32
    %offset = arith.addi %base, %byte : i32
    %at = llvm.getelementptr %shared[%offset]
        : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    %m = nvvm.ldmatrix %at {num = 4 : i32, layout = #nvvm.mma_layout<row>,
        shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>,
        eltType = #nvvm.ld_st_matrix_elt_type<b16>}
        : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>)";
}

TEST_F(LaneMatrixTest, SwizzledRowsAreFreeOfConflicts) {
  ASSERT_EQ(run(readRows("%chunk = arith.xori %row, %group : i32")), "");
  EXPECT_EQ(report.ldmatrixConflicts, 0);
  EXPECT_EQ(report.maxLdmatrixDegree, 1);
}

TEST_F(LaneMatrixTest, PlainRowsConflictEightfold) {
  ASSERT_EQ(run(readRows("%chunk = arith.addi %group, %c0 : i32")), "");
  EXPECT_EQ(report.ldmatrixConflicts, 4 * 7);
  EXPECT_EQ(report.maxLdmatrixDegree, 8);
}

TEST_F(LaneMatrixTest, RefusesMatricesInADivergentBranch) {
  EXPECT_TRUE(has(run(R"(
    %low = arith.cmpi ult, %lane, %c16 : i32
    scf.if %low {
      )" + readRows("%chunk = arith.addi %group, %c0 : i32") +
                      "}"),
                  {"'nvvm.ldmatrix'", "expected all 32 lanes to be active"}));
}
