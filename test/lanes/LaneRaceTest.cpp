//===- LaneRaceTest.cpp - Shared memory, barriers and races ---------------===//

#include "test/lanes/LaneTest.h"

using namespace tokentile;

namespace {
class LaneRaceTest : public LaneTest {
protected:
  LaneRaceTest() { options.threads = 64; }

  /// Every thread stores its id, `middle` runs, and it reads its mirror's.
  std::string mirror(const std::string &middle) {
    return run(R"(
      %c63 = arith.constant 63 : i32
      %to = llvm.getelementptr %shared[%tid]
          : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      llvm.store %tid, %to : i32, !llvm.ptr<3>
      )" + middle +
               R"(
      %other = arith.subi %c63, %tid : i32
      %from = llvm.getelementptr %shared[%other]
          : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %v = llvm.load %from : !llvm.ptr<3> -> i32
      llvm.store %v, %mine : i32, !llvm.ptr)");
  }
};
} // namespace

TEST_F(LaneRaceTest, BarrierOrdersWarps) {
  for (bool descending : {false, true}) {
    options.descendingWarps = descending;
    ASSERT_EQ(mirror("nvvm.barrier"), "");
    for (unsigned t = 0; t < 64; ++t)
      EXPECT_EQ(out[t], 63 - t);
  }
}

TEST_F(LaneRaceTest, MissingBarrierIsAnError) {
  for (bool descending : {false, true}) {
    options.descendingWarps = descending;
    EXPECT_TRUE(has(mirror(""), {"race on shared byte", "'llvm.load'",
                                 "'llvm.store'", "write after a read"}));
  }
}

TEST_F(LaneRaceTest, TwoWritersAreARace) {
  EXPECT_TRUE(has(run("llvm.store %tid, %shared : i32, !llvm.ptr<3>"),
                  {"warp 1 lane 0", "write after a write"}));
}

TEST_F(LaneRaceTest, ReadAfterAnotherWarpsWriteIsARace) {
  EXPECT_TRUE(has(run(R"(
    %c32 = arith.constant 32 : i32
    %first = arith.cmpi ult, %tid, %c32 : i32
    scf.if %first {
      llvm.store %tid, %shared : i32, !llvm.ptr<3>
    } else {
      %v = llvm.load %shared : !llvm.ptr<3> -> i32
    })"),
                  {"warp 1 lane 0", "read after a write"}));
}

TEST_F(LaneRaceTest, AdjacentBytesAreNoRace) {
  EXPECT_EQ(run(R"(
    %byte = arith.trunci %tid : i32 to i8
    %at = llvm.getelementptr %shared[%tid]
        : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    llvm.store %byte, %at : i8, !llvm.ptr<3>)"),
            "");
}

TEST_F(LaneRaceTest, GenericPointersReachSharedMemory) {
  ASSERT_EQ(run(R"(
    %generic = llvm.addrspacecast %shared : !llvm.ptr<3> to !llvm.ptr
    %at = llvm.getelementptr %generic[%tid]
        : (!llvm.ptr, i32) -> !llvm.ptr, i32
    llvm.store %tid, %at : i32, !llvm.ptr
    %back = llvm.addrspacecast %at : !llvm.ptr to !llvm.ptr<3>
    %word = llvm.ptrtoint %back : !llvm.ptr<3> to i32
    %again = llvm.inttoptr %word : i32 to !llvm.ptr<3>
    %v = llvm.load %again : !llvm.ptr<3> -> i32
    llvm.store %v, %mine : i32, !llvm.ptr)"),
            "");
  for (unsigned t = 0; t < 64; ++t)
    EXPECT_EQ(out[t], t);
}

TEST_F(LaneRaceTest, SharedBoundsAndAlignment) {
  EXPECT_TRUE(has(run(R"(
    %at = llvm.getelementptr %shared[4096] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %v = llvm.load %at : !llvm.ptr<3> -> i32)"),
                  {"0x1000 is outside the block's 4096 bytes"}));
  EXPECT_TRUE(has(run(R"(
    %at = llvm.getelementptr %shared[-4] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %v = llvm.load %at : !llvm.ptr<3> -> i32)"),
                  {"is outside the block's 4096 bytes"}));
  EXPECT_TRUE(has(run(R"(
    %at = llvm.getelementptr %shared[2] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %v = llvm.load %at : !llvm.ptr<3> -> i32)"),
                  {"is not aligned to 4 bytes"}));
}

TEST_F(LaneRaceTest, AWarpThatEndsWhileAnotherWaits) {
  EXPECT_TRUE(has(run(R"(
    %c32 = arith.constant 32 : i32
    %first = arith.cmpi ult, %tid, %c32 : i32
    scf.if %first {
      nvvm.barrier
    })"),
                  {"warp 0 waits at 'nvvm.barrier'", "warp 1 has ended"}));
}

TEST_F(LaneRaceTest, WarpsAtDifferentBarriers) {
  EXPECT_TRUE(has(
      run(R"(
    %c32 = arith.constant 32 : i32
    %first = arith.cmpi ult, %tid, %c32 : i32
    scf.if %first {
      nvvm.barrier
    } else {
      nvvm.barrier0
    })"),
      {"warp 0 waits at 'nvvm.barrier'", "warp 1 waits at 'nvvm.barrier0'"}));
}

TEST_F(LaneRaceTest, BarrierInADivergentBranch) {
  EXPECT_TRUE(has(run(R"(
    %low = arith.cmpi ult, %lane, %c16 : i32
    scf.if %low {
      nvvm.barrier
    })"),
                  {"'nvvm.barrier'", "not all lanes take"}));
}

TEST_F(LaneRaceTest, LanesOfAWarpSynchronizeWhenAsked) {
  options.threads = 32;
  const std::string store = R"(
    %to = llvm.getelementptr %shared[%tid]
        : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %tid, %to : i32, !llvm.ptr<3>)";
  const std::string load = R"(
    %other = arith.subi %c31, %tid : i32
    %from = llvm.getelementptr %shared[%other]
        : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %v = llvm.load %from : !llvm.ptr<3> -> i32)";
  EXPECT_EQ(run(store + load), "");
  options.lanesRace = true;
  EXPECT_TRUE(has(run(store + load), {"lane 0", "write by another lane"}));
  EXPECT_EQ(run(store + "\nnvvm.bar.warp.sync %all : i32" + load), "");
  EXPECT_EQ(run(store + "\nnvvm.barrier" + load), "");
}

TEST_F(LaneRaceTest, WarpSyncIsNoBarrierOfTheBlock) {
  EXPECT_TRUE(has(mirror("nvvm.bar.warp.sync %all : i32"), {"race"}));
}
