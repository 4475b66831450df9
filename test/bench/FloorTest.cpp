//===- FloorTest.cpp - The kernels that only load -------------------------===//
//
// NVRTC needs no GPU to compile them. Where it is absent the test says so.
//
//===----------------------------------------------------------------------===//

#include "bench/Bench.h"
#include "bench/FloorKernels.h"
#include "runtime/Nvrtc.h"

#include <gtest/gtest.h>

using namespace tokentile;

static void expectCompiles(const std::string &chip,
                           const std::vector<std::string> &flags) {
  StatusOr<std::string> image =
      compileCuda(floorSource, "floor.cu", chip, flags);
  if (image.status().code() == StatusCode::Unavailable)
    GTEST_SKIP() << image.status().toString();
  EXPECT_TRUE(image.ok()) << image.status().toString();
}

TEST(Floor, CompilesForAmpere) { expectCompiles("sm_80", {"-DSTAGES=3"}); }

TEST(Floor, CompilesForHopper) { expectCompiles("sm_90a", {"-DSTAGES=6"}); }

TEST(Floor, CompilesForConsumerBlackwell) { expectCompiles("sm_120a", {}); }

TEST(Timing, FiguresOfSamples) {
  Timing timing = summarize({5, 1, 2, 4, 3});
  EXPECT_EQ(timing.median, 3);
  EXPECT_EQ(timing.min, 1);
  EXPECT_EQ(timing.p95, 5);
  EXPECT_NEAR(timing.spreadPercent, 100 * 2.0 / 3, 1e-9);
}

TEST(Workload, BytesOfAWindow) {
  KernelInfo info;
  info.kvHeads = 8;
  info.headDim = 128;
  Shape shape{2, 4096, 16, TableKind::Identity};
  EXPECT_EQ(visibleKeys(info, shape), 4112);
  EXPECT_EQ(uniqueBytes(info, shape), 2 * 4112 * 4096);
  info.window = 2048;
  EXPECT_EQ(visibleKeys(info, shape), 2047 + 16);
}
