//===- LaneExecutorTest.cpp - Lanes, masks, loops and exchanges -----------===//

#include "test/lanes/LaneTest.h"

#include <cmath>
#include <cstring>

using namespace tokentile;

static float asFloat(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

TEST_F(LaneTest, SpecialRegisters) {
  options.threads = 64;
  ASSERT_EQ(run(R"(
    %x = nvvm.read.ptx.sreg.ctaid.x : i32
    %y = nvvm.read.ptx.sreg.ctaid.y : i32
    %z = nvvm.read.ptx.sreg.ctaid.z : i32
    %n = nvvm.read.ptx.sreg.ntid.x : i32
    %c1000 = arith.constant 1000 : i32
    %a = arith.muli %lane, %c1000 : i32
    %b = arith.addi %a, %tid : i32
    %c = arith.addi %b, %x : i32
    %d = arith.addi %c, %y : i32
    %e = arith.addi %d, %z : i32
    %f = arith.addi %e, %n : i32
    llvm.store %f, %mine : i32, !llvm.ptr)"),
            "");
  for (unsigned t = 0; t < 64; ++t)
    EXPECT_EQ(out[t], t % 32 * 1000 + t + 3 + 4 + 5 + 64);
  EXPECT_EQ(report.globalBytesWritten, 256);
  EXPECT_EQ(report.globalBytesRead, 0);
}

TEST_F(LaneTest, DivergentBranchesMergeTheirResults) {
  ASSERT_EQ(run(R"(
    %odd = arith.andi %lane, %c1 : i32
    %isOdd = arith.cmpi eq, %odd, %c1 : i32
    %wide = arith.extsi %lane : i32 to i64
    %r, %w = scf.if %isOdd -> (i32, i64) {
      %low = arith.cmpi ult, %lane, %c16 : i32
      %s = scf.if %low -> (i32) {
        scf.yield %c1 : i32
      } else {
        scf.yield %c2 : i32
      }
      %double = arith.addi %wide, %wide : i64
      scf.yield %s, %double : i32, i64
    } else {
      scf.yield %c8, %wide : i32, i64
    }
    %narrow = arith.trunci %w : i64 to i32
    %scaled = arith.muli %narrow, %c16 : i32
    %sum = arith.addi %scaled, %r : i32
    llvm.store %sum, %mine : i32, !llvm.ptr)"),
            "");
  for (unsigned t = 0; t < 32; ++t)
    EXPECT_EQ(out[t], t % 2 ? 2 * t * 16 + (t < 16 ? 1 : 2) : t * 16 + 8);
}

TEST_F(LaneTest, LoopRotatesItsArguments) {
  ASSERT_EQ(run(R"(
    %f:2 = scf.for %i = %c0 to %c8 step %c1
        iter_args(%a = %c0, %b = %c1) -> (i32, i32) : i32 {
      %s = arith.addi %a, %b : i32
      scf.yield %b, %s : i32, i32
    }
    %none = scf.for %i = %c8 to %c8 step %c1
        iter_args(%a = %f#0) -> (i32) : i32 {
      scf.yield %c0 : i32
    }
    llvm.store %none, %mine : i32, !llvm.ptr)"),
            "");
  EXPECT_EQ(out[0], 21u);
}

TEST_F(LaneTest, LanesLeaveALoopOneByOne) {
  // Lane n counts n, n + 8, n + 16 below 24; lanes past it not at all.
  ASSERT_EQ(run(R"(
    %c24 = arith.constant 24 : i32
    %f = scf.for %i = %lane to %c24 step %c8 iter_args(%a = %c0) -> (i32) : i32 {
      %s = arith.addi %a, %i : i32
      %t = arith.addi %s, %c1 : i32
      scf.yield %t : i32
    }
    %sum = nvvm.redux.sync add %f, %all : i32 -> i32
    %d = arith.muli %f, %c2 : i32
    %e = arith.addi %d, %sum : i32
    llvm.store %e, %mine : i32, !llvm.ptr)"),
            "");
  unsigned counted[32] = {}, sum = 0;
  for (unsigned t = 0; t < 32; ++t)
    for (unsigned i = t; i < 24; i += 8)
      counted[t] += i + 1;
  for (unsigned value : counted)
    sum += value;
  for (unsigned t = 0; t < 32; ++t)
    EXPECT_EQ(out[t], 2 * counted[t] + sum);
}

TEST_F(LaneTest, ListsOperationsThatNoWarpReached) {
  ASSERT_EQ(run(R"(
    %never = arith.cmpi slt, %lane, %c0 : i32
    %v = scf.if %never -> (i32) {
      %s = arith.shli %lane, %c1 : i32
      scf.yield %s : i32
    } else {
      scf.yield %c1 : i32
    }
    llvm.store %v, %mine : i32, !llvm.ptr)"),
            "");
  EXPECT_EQ(unreached, (std::vector<std::string>{"arith.shli", "scf.yield"}));
}

TEST_F(LaneTest, RefusesDivergentLoopBounds) {
  EXPECT_TRUE(has(run(R"(
    scf.for %i = %c0 to %lane step %c1 : i32 {
      llvm.store %i, %mine : i32, !llvm.ptr
    })"),
                  {"lane 1", "'scf.for'", "kernel.mlir",
                   "loop bounds differ between active lanes: 0 and 1"}));
}

TEST_F(LaneTest, ButterflyShufflesSumALine) {
  ASSERT_EQ(run(R"(
    %v = arith.sitofp %lane : i32 to f32
    %s1 = nvvm.shfl.sync bfly %all, %v, %c1, %c31 : f32 -> f32
    %v1 = arith.addf %v, %s1 : f32
    %s2 = nvvm.shfl.sync bfly %all, %v1, %c2, %c31 : f32 -> f32
    %v2 = arith.addf %v1, %s2 : f32
    llvm.store %v2, %mine : f32, !llvm.ptr)"),
            "");
  for (unsigned t = 0; t < 32; ++t)
    EXPECT_EQ(asFloat(out[t]), 4 * (t / 4 * 4) + 6);
}

TEST_F(LaneTest, ShufflesUpDownIndexAndClamp) {
  ASSERT_EQ(run(R"(
    %up = nvvm.shfl.sync up %all, %lane, %c2, %c0 : i32 -> i32
    %down = nvvm.shfl.sync down %all, %lane, %c2, %c31 : i32 -> i32
    %idx = nvvm.shfl.sync idx %all, %lane, %c4, %c31 : i32 -> i32
    %c100 = arith.constant 100 : i32
    %a = arith.muli %up, %c100 : i32
    %b = arith.addi %a, %down : i32
    %c = arith.muli %b, %c100 : i32
    %d = arith.addi %c, %idx : i32
    llvm.store %d, %mine : i32, !llvm.ptr)"),
            "");
  for (unsigned t = 0; t < 32; ++t)
    EXPECT_EQ(out[t],
              (t < 2 ? t : t - 2) * 10000 + (t > 29 ? t : t + 2) * 100 + 4);
}

TEST_F(LaneTest, RefusesAShuffleThatNamesInactiveLanes) {
  EXPECT_TRUE(has(run(R"(
    %low = arith.cmpi ult, %lane, %c16 : i32
    scf.if %low {
      %s = nvvm.shfl.sync bfly %all, %lane, %c16, %c31 : i32 -> i32
    })"),
                  {"'nvvm.shfl.sync'", "names lanes that are not active"}));
}

TEST_F(LaneTest, VotesAndReductions) {
  ASSERT_EQ(run(R"(
    %low = arith.cmpi ult, %lane, %c8 : i32
    %ballot = nvvm.vote.sync ballot %all, %low -> i32
    %any = nvvm.vote.sync any %all, %low -> i1
    %every = nvvm.vote.sync all %all, %low -> i1
    %sum = nvvm.redux.sync add %lane, %all : i32 -> i32
    %anyWord = arith.extui %any : i1 to i32
    %everyWord = arith.extui %every : i1 to i32
    %a = arith.muli %sum, %c4 : i32
    %b = arith.muli %anyWord, %c2 : i32
    %c = arith.addi %a, %b : i32
    %d = arith.addi %c, %everyWord : i32
    %c10000 = arith.constant 10000 : i32
    %e = arith.muli %ballot, %c10000 : i32
    %f = arith.addi %d, %e : i32
    llvm.store %f, %mine : i32, !llvm.ptr)"),
            "");
  EXPECT_EQ(out[31], 496u * 4 + 2 + 255 * 10000);
}

TEST_F(LaneTest, ApproximateInstructionsByName) {
  ASSERT_EQ(run(R"(
    %v = arith.sitofp %lane : i32 to f32
    %a = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"(%v) : (f32) -> f32
    %b = llvm.call_intrinsic "llvm.nvvm.lg2.approx.f"(%a) : (f32) -> f32
    %c = nvvm.inline_ptx "ex2.approx.ftz.f32 $0, $1;" ro(%b : f32) -> f32
    %d = llvm.intr.exp2(%v) : (f32) -> f32
    %e = llvm.intr.fma(%c, %v, %d) : (f32, f32, f32) -> f32
    llvm.store %e, %mine : f32, !llvm.ptr)"),
            "");
  for (unsigned t = 0; t < 32; ++t)
    EXPECT_EQ(asFloat(out[t]), std::exp2(float(t)) * (t + 1));
}

TEST_F(LaneTest, DivisionsRoundTheirWay) {
  ASSERT_EQ(run(R"(
    %three = arith.constant 3 : i32
    %ten = arith.constant 10 : i32
    %a = arith.subi %lane, %c16 : i32
    %trunc = arith.divsi %a, %three : i32
    %floor = arith.floordivsi %a, %three : i32
    %ceil = arith.ceildivsi %a, %three : i32
    %rem = arith.remsi %a, %three : i32
    %x = arith.muli %trunc, %ten : i32
    %y = arith.addi %x, %floor : i32
    %z = arith.muli %y, %ten : i32
    %w = arith.addi %z, %ceil : i32
    %v = arith.muli %w, %ten : i32
    %u = arith.addi %v, %rem : i32
    llvm.store %u, %mine : i32, !llvm.ptr)"),
            "");
  for (int t = 0; t < 32; ++t) {
    int a = t - 16;
    int floor = std::floor(a / 3.0), ceil = std::ceil(a / 3.0);
    EXPECT_EQ(int(out[t]), ((a / 3 * 10 + floor) * 10 + ceil) * 10 + a % 3);
  }
}

TEST_F(LaneTest, NarrowIntegersAndFloats) {
  ASSERT_EQ(run(R"(
    %byte = arith.trunci %all : i32 to i8
    %signed = arith.extsi %byte : i8 to i32
    %unsigned = arith.extui %byte : i8 to i32
    %third = arith.constant 0.333333343 : f32
    %half = arith.truncf %third : f32 to f16
    %brain = arith.truncf %third : f32 to bf16
    %halfBits = arith.bitcast %half : f16 to i16
    %brainBits = arith.bitcast %brain : bf16 to i16
    %a = arith.extui %halfBits : i16 to i32
    %b = arith.extui %brainBits : i16 to i32
    %s = arith.shli %b, %c16 : i32
    %o = arith.ori %s, %a : i32
    %sum = arith.addi %signed, %unsigned : i32
    %odd = arith.remsi %lane, %c2 : i32
    %isOdd = arith.cmpi ne, %odd, %c0 : i32
    %pick = arith.select %isOdd, %o, %sum : i32
    llvm.store %pick, %mine : i32, !llvm.ptr)"),
            "");
  EXPECT_EQ(out[0], 254u);
  EXPECT_EQ(out[1], 0x3eab3555u);
}

TEST_F(LaneTest, ComparesFloatsByEveryPredicate) {
  // Bit n of the result: predicate n of (less, equal, greater, unordered).
  const char *names[] = {"oeq", "ogt", "oge", "olt", "ole", "one", "ord",
                         "ueq", "ugt", "uge", "ult", "ule", "une", "uno"};
  const unsigned holds[] = {0b0010, 0b0100, 0b0110, 0b0001, 0b0011,
                            0b0101, 0b0111, 0b1010, 0b1100, 0b1110,
                            0b1001, 0b1011, 0b1101, 0b1000};
  for (size_t i = 0; i < std::size(names); ++i) {
    ASSERT_EQ(run(R"(
      %one = arith.constant 1.0 : f32
      %nan = arith.constant 0x7fc00000 : f32
      %v = arith.sitofp %lane : i32 to f32
      %c3 = arith.constant 3 : i32
      %last = arith.cmpi eq, %lane, %c3 : i32
      %w = arith.select %last, %nan, %v : f32
      %r = arith.cmpf )" +
                  std::string(names[i]) +
                  R"(, %w, %one : f32
      %x = arith.extui %r : i1 to i32
      llvm.store %x, %mine : i32, !llvm.ptr)"),
              "");
    unsigned bits = out[0] | out[1] << 1 | out[2] << 2 | out[3] << 3;
    EXPECT_EQ(bits, holds[i]) << names[i];
  }
}

TEST_F(LaneTest, NamesAnUnknownOperation) {
  EXPECT_TRUE(has(run(R"(
    %p = nvvm.elect.sync -> i1)"),
                  {"unknown operation 'nvvm.elect.sync'", "kernel.mlir"}));
}

TEST_F(LaneTest, VectorsInMemory) {
  for (unsigned i = 0; i < 128; ++i)
    in[i] = i;
  ASSERT_EQ(run(R"(
    %from = llvm.getelementptr %in[%lane, 0]
        : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.array<4 x i32>
    %to = llvm.getelementptr %out[%lane, 0]
        : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.array<4 x i32>
    %v = llvm.load %from : !llvm.ptr -> vector<4xi32>
    %three = llvm.mlir.constant(3 : i32) : i32
    %e = llvm.extractelement %v[%three : i32] : vector<4xi32>
    %zero = llvm.mlir.constant(0 : i32) : i32
    %w = llvm.insertelement %e, %v[%zero : i32] : vector<4xi32>
    llvm.store %w, %to : vector<4xi32>, !llvm.ptr)"),
            "");
  for (unsigned i = 0; i < 128; ++i)
    EXPECT_EQ(out[i], i % 4 ? i : i + 3);
  EXPECT_EQ(report.globalBytesRead, 512);
}

TEST_F(LaneTest, RefusesGlobalAccessOutOfRange) {
  EXPECT_TRUE(has(run(R"(
    %far = arith.constant 2047 : i32
    %index = arith.addi %far, %lane : i32
    %from = llvm.getelementptr %in[%index]
        : (!llvm.ptr, i32) -> !llvm.ptr, i32
    %v = llvm.load %from : !llvm.ptr -> i32)"),
                  {"warp 0 lane 1", "'llvm.load'", "global read of 4 bytes at",
                   "is outside the allowed ranges"}));
  EXPECT_TRUE(has(run("llvm.store %c0, %in : i32, !llvm.ptr"),
                  {"global write", "read-only range"}));
  EXPECT_TRUE(has(run(R"(
    %from = llvm.getelementptr %in[4] : (!llvm.ptr) -> !llvm.ptr, i8
    %v = llvm.load %from : !llvm.ptr -> vector<4xf32>)"),
                  {"'llvm.load'", "is not aligned to 16 bytes"}));
}
