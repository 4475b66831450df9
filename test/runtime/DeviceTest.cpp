//===- DeviceTest.cpp - Opening devices and naming chips ------------------===//

#include "TestKernel.h"

using namespace tokentile;
using namespace tokentile::test;

TEST(OpenDevice, Host) {
  StatusOr<std::unique_ptr<Device>> device = openDevice("host");
  ASSERT_OK(device.status());
  const DeviceFacts &facts = (*device)->facts();
  EXPECT_EQ(facts.kind, DeviceKind::Host);
  EXPECT_EQ(facts.chip, "host");
  EXPECT_GE(facts.multiprocessors, 1);
  EXPECT_GE(facts.l2Bytes, 0);
}

TEST(OpenDevice, UnknownNamesAreRefused) {
  for (const char *name :
       {"", "gpu", "HOST", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cuda0"})
    expectError(openDevice(name).status(), StatusCode::InvalidArgument,
                std::string("unknown device '") + name +
                    "'; use 'host', 'cuda' or 'cuda:N'");
}

TEST(OpenDevice, CudaWithoutAGpuPointsToTheHost) {
  if (openDevice("cuda").ok())
    GTEST_SKIP() << "this machine has a GPU";
  expectError(openDevice("cuda").status(), StatusCode::Unavailable,
              "device 'host' works without one");
}

TEST(OpenDevice, CudaNumberBeyondTheLast) {
  expectError(openDevice("cuda:4096").status(), StatusCode::Unavailable,
              "device 'host' works without one");
}

TEST(Chip, OfCapability) {
  EXPECT_EQ(chipOfCapability(8, 0), "sm_80");
  EXPECT_EQ(chipOfCapability(8, 6), "sm_86");
  EXPECT_EQ(chipOfCapability(8, 9), "sm_89");
  EXPECT_EQ(chipOfCapability(9, 0), "sm_90a");
  EXPECT_EQ(chipOfCapability(10, 0), "sm_100a");
  EXPECT_EQ(chipOfCapability(12, 0), "sm_120a");
  EXPECT_EQ(chipOfCapability(12, 1), "sm_121a");
}

TEST(Chip, Number) {
  EXPECT_EQ(chipNumber("sm_90a"), 90);
  EXPECT_EQ(chipNumber("sm_120"), 120);
  EXPECT_EQ(chipNumber("host"), 0);
  EXPECT_EQ(chipNumber("sm_"), 0);
}

TEST(Chip, Runs) {
  EXPECT_TRUE(chipRuns("host", "host"));
  EXPECT_TRUE(chipRuns("sm_90a", "sm_90a"));
  EXPECT_TRUE(chipRuns("sm_80", "sm_86"));
  EXPECT_TRUE(chipRuns("sm_80", "sm_90a"));
  EXPECT_TRUE(chipRuns("sm_90", "sm_90a"));
  EXPECT_FALSE(chipRuns("sm_90a", "sm_100a"));
  EXPECT_FALSE(chipRuns("sm_89", "sm_86"));
  EXPECT_FALSE(chipRuns("host", "sm_90a"));
  EXPECT_FALSE(chipRuns("sm_80", "host"));
  EXPECT_FALSE(chipRuns("", "host"));
}
