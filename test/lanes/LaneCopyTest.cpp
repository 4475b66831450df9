//===- LaneCopyTest.cpp - Asynchronous copies -----------------------------===//

#include "test/lanes/LaneTest.h"

#include "llvm/ADT/STLExtras.h"

using namespace tokentile;

namespace {
/// Two warps; each thread copies sixteen bytes and reads a word that its
/// neighbour's warp copied.
class LaneCopyTest : public LaneTest {
protected:
  LaneCopyTest() {
    options.threads = 64;
    for (unsigned i = 0; i < in.size(); ++i)
      in[i] = i + 1;
  }

  std::string copyThen(const std::string &middle,
                       const std::string &size = "16") {
    return run(R"(
      %c63 = arith.constant 63 : i32
      %dst = llvm.getelementptr %shared[%tid, 0]
          : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<4 x i32>
      %src = llvm.getelementptr %global[%tid, 0]
          : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<4 x i32>
      %bytes = arith.constant )" +
               size + R"( : i32
      nvvm.cp.async.shared.global %dst, %src, 16, cache = cg, %bytes
          : !llvm.ptr<3>, !llvm.ptr<1>, i32
      )" + middle +
               R"(
      %other = arith.subi %c63, %tid : i32
      %at = llvm.getelementptr %shared[%other, 1]
          : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<4 x i32>
      %v = llvm.load %at : !llvm.ptr<3> -> i32
      llvm.store %v, %mine : i32, !llvm.ptr)");
  }
};
} // namespace

TEST_F(LaneCopyTest, ArrivesAfterWaitAndBarrier) {
  for (bool descending : {false, true}) {
    options.descendingWarps = descending;
    ASSERT_EQ(copyThen(R"(
      nvvm.cp.async.commit.group
      nvvm.cp.async.wait.group 0
      nvvm.barrier)"),
              "");
    for (unsigned t = 0; t < 64; ++t)
      EXPECT_EQ(out[t], (63 - t) * 4 + 2);
  }
  EXPECT_EQ(report.asyncCopies, 64);
  EXPECT_EQ(report.barriers, 1);
  EXPECT_EQ(report.globalBytesRead, 1024);
  EXPECT_EQ(report.poisonReads, 0);
  EXPECT_EQ(report.maxCopyDegree, 1);
}

TEST_F(LaneCopyTest, ZeroFillsPastTheSourceBytes) {
  ASSERT_EQ(copyThen(R"(
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    nvvm.barrier0)",
                     "4"),
            "");
  EXPECT_TRUE(llvm::all_of(llvm::ArrayRef(out).take_front(64),
                           [](uint32_t v) { return v == 0; }));
  EXPECT_EQ(report.globalBytesRead, 256);
}

TEST_F(LaneCopyTest, ReadsPoisonWithoutWait) {
  ASSERT_EQ(copyThen(R"(
    nvvm.cp.async.commit.group
    nvvm.barrier)"),
            "");
  EXPECT_EQ(out[0], 0xffffffffu);
  EXPECT_EQ(report.poisonReads, 64);
  EXPECT_EQ(report.unlandedCopies, 64);

  options.poisonIsError = true;
  EXPECT_TRUE(
      has(copyThen("nvvm.barrier"), {"'llvm.load'", "nothing has written"}));
}

TEST_F(LaneCopyTest, ReadsPoisonWhenTheWaitDoesNotCoverTheGroup) {
  ASSERT_EQ(copyThen(R"(
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 1
    nvvm.barrier)"),
            "");
  EXPECT_EQ(report.poisonReads, 64);
  // A wait does not cover a group that was never committed.
  ASSERT_EQ(copyThen(R"(
    nvvm.cp.async.wait.group 0
    nvvm.barrier)"),
            "");
  EXPECT_EQ(report.poisonReads, 64);
}

TEST_F(LaneCopyTest, AnEmptyGroupLeavesTheOlderCovered) {
  ASSERT_EQ(copyThen(R"(
    nvvm.cp.async.commit.group
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 1
    nvvm.barrier)"),
            "");
  EXPECT_EQ(report.poisonReads, 0);
}

TEST_F(LaneCopyTest, MissingBarrierIsARace) {
  for (bool descending : {false, true}) {
    options.descendingWarps = descending;
    EXPECT_TRUE(has(copyThen(R"(
      nvvm.cp.async.commit.group
      nvvm.cp.async.wait.group 0)"),
                    {"race on shared byte", "'nvvm.cp.async.shared.global'",
                     "'llvm.load'", "write after a read"}));
  }
}

TEST_F(LaneCopyTest, MoreSourceBytesThanTheCopyAreAnError) {
  EXPECT_TRUE(has(copyThen("", "17"), {"at most 16 source bytes, got 17"}));
}

TEST_F(LaneCopyTest, SourceOutOfRangeIsAnError) {
  EXPECT_TRUE(has(run(R"(
    %src = llvm.getelementptr %global[1048576]
        : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    nvvm.cp.async.shared.global %shared, %src, 16, cache = cg
        : !llvm.ptr<3>, !llvm.ptr<1>)"),
                  {"lane 0", "outside the allowed ranges"}));
  // A copy without source bytes reads nothing.
  EXPECT_EQ(run(R"(
    %at = llvm.getelementptr %shared[%tid, 0]
        : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<4 x i32>
    %src = llvm.getelementptr %global[1048576]
        : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    nvvm.cp.async.shared.global %at, %src, 16, cache = cg, %c0
        : !llvm.ptr<3>, !llvm.ptr<1>, i32)"),
            "");
}

TEST_F(LaneCopyTest, PipelineOfThreeSlots) {
  options.threads = 32;
  // Sums words of eight tiles of 32 x 16 bytes, two copies ahead.
  ASSERT_EQ(run(R"(
    %c3 = arith.constant 3 : i32
    %c512 = arith.constant 512 : i32
    %tiles = arith.constant 8 : i32
    %line = arith.muli %lane, %c16 : i32
    scf.for %t = %c0 to %c2 step %c1 : i32 {
      %base = arith.muli %t, %c512 : i32
      %at = arith.addi %base, %line : i32
      %d = llvm.getelementptr %shared[%at]
          : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %s = llvm.getelementptr %global[%at]
          : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
      nvvm.cp.async.shared.global %d, %s, 16, cache = cg
          : !llvm.ptr<3>, !llvm.ptr<1>
      nvvm.cp.async.commit.group
    }
    %sum = scf.for %t = %c0 to %tiles step %c1
        iter_args(%acc = %c0) -> (i32) : i32 {
      nvvm.cp.async.wait.group 1
      nvvm.barrier
      %next = arith.addi %t, %c2 : i32
      %more = arith.cmpi slt, %next, %tiles : i32
      scf.if %more {
        %slot = arith.remui %next, %c3 : i32
        %to = arith.muli %slot, %c512 : i32
        %from = arith.muli %next, %c512 : i32
        %toLine = arith.addi %to, %line : i32
        %fromLine = arith.addi %from, %line : i32
        %d = llvm.getelementptr %shared[%toLine]
            : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
        %s = llvm.getelementptr %global[%fromLine]
            : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
        nvvm.cp.async.shared.global %d, %s, 16, cache = cg
            : !llvm.ptr<3>, !llvm.ptr<1>
      }
      nvvm.cp.async.commit.group
      %slot = arith.remui %t, %c3 : i32
      %base = arith.muli %slot, %c512 : i32
      %mirror = arith.subi %c31, %lane : i32
      %mirrorLine = arith.muli %mirror, %c16 : i32
      %at = arith.addi %base, %mirrorLine : i32
      %p = llvm.getelementptr %shared[%at]
          : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %v = llvm.load %p : !llvm.ptr<3> -> i32
      %new = arith.addi %acc, %v : i32
      scf.yield %new : i32
    }
    llvm.store %sum, %mine : i32, !llvm.ptr)"),
            "");
  for (unsigned t = 0; t < 32; ++t)
    EXPECT_EQ(out[t], 8 * ((31 - t) * 4 + 1) + 128 * 28);
  EXPECT_EQ(report.poisonReads, 0);
  EXPECT_EQ(report.unlandedCopies, 0);
}
