//===- ServiceTest.cpp - What service kernels are made of -----------------===//

#include "TestKernel.h"
#include "runtime/Nvrtc.h"
#include "runtime/ServiceKernel.h"
#include "runtime/services/Numbers.h"
#include "runtime/services/Philox.h"

#include <cmath>

using namespace tokentile;
using namespace tokentile::services;
using namespace tokentile::test;

namespace tokentile {
/// FakeModelKernels.h as text: the GPU tests' model.
extern const char *const fakeModelSource;
} // namespace tokentile

TEST(Services, CompileForOldAndNewChips) {
  for (const char *chip : {"sm_80", "sm_90a", "sm_121a"}) {
    StatusOr<std::string> cubin =
        compileCuda(std::string(serviceSource) + fakeModelSource, "services",
                    chip, {"--std=c++17"});
    if (cubin.status().code() == StatusCode::Unavailable)
      GTEST_SKIP() << cubin.status().toString();
    EXPECT_TRUE(cubin.ok()) << chip << ": " << cubin.status().toString();
  }
}

TEST(Services, HalfRoundsToNearestEven) {
  // Every half, and the floats half way to the next and just beside it.
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    float value = fromFloat16(uint16_t(bits));
    EXPECT_EQ(value,
              std::ldexp(float(bits < 0x400 ? bits : bits % 0x400 + 0x400),
                         std::max(int(bits >> 10), 1) - 25));
    ASSERT_EQ(toFloat16(value), bits);
    ASSERT_EQ(toFloat16(-value), bits | 0x8000);
    float next = bits == 0x7bff ? 65536.0f : fromFloat16(uint16_t(bits + 1));
    float middle = (value + next) / 2;
    ASSERT_EQ(toFloat16(middle), bits + bits % 2) << value;
    ASSERT_EQ(toFloat16(std::nextafter(middle, 0.0f)), bits) << value;
    ASSERT_EQ(toFloat16(std::nextafter(middle, 1e9f)), bits + 1) << value;
  }
  EXPECT_TRUE(std::isnan(fromFloat16(toFloat16(NAN))));
  EXPECT_EQ(toFloat16(INFINITY), 0x7c00);
}

TEST(Services, BFloat16RoundsToNearestEven) {
  EXPECT_EQ(toBFloat16(1.0f), 0x3f80);
  EXPECT_EQ(toBFloat16(floatOf(0x3f808000)), 0x3f80);
  EXPECT_EQ(toBFloat16(floatOf(0x3f818000)), 0x3f82);
  EXPECT_EQ(toBFloat16(floatOf(0x3f808001)), 0x3f81);
  EXPECT_EQ(toBFloat16(floatOf(0x7f7fffff)), 0x7f80);
  EXPECT_TRUE(std::isnan(fromBFloat16(toBFloat16(floatOf(0x7f800001)))));
}

TEST(Services, PhiloxMatchesThePublishedVectors) {
  // Known answers of Random123 for philox4x32-10.
  Random4 zero = philox(0, {{0, 0, 0, 0}});
  EXPECT_EQ(zero.words[0], 0x6627e8d5u);
  EXPECT_EQ(zero.words[1], 0xe169c58du);
  EXPECT_EQ(zero.words[2], 0xbc57ac4cu);
  EXPECT_EQ(zero.words[3], 0x9b00dbd8u);
  Random4 ones = philox(~0ull, {{~0u, ~0u, ~0u, ~0u}});
  EXPECT_EQ(ones.words[0], 0x408f276du);
  EXPECT_EQ(ones.words[1], 0x41c83b0eu);
  EXPECT_EQ(ones.words[2], 0xa20bc7c6u);
  EXPECT_EQ(ones.words[3], 0x6d5451fdu);
}

TEST(Services, UniformStaysInsideTheUnitInterval) {
  double sum = 0;
  constexpr int32_t count = 200'000;
  for (int32_t i = 0; i < count; ++i) {
    float value = uniform(random4(5, i, Purpose::Accept, 0).words[0]);
    ASSERT_GT(value, 0.0f);
    ASSERT_LT(value, 1.0f);
    ASSERT_TRUE(
        std::isfinite(gumbel(random4(5, 0, Purpose::Emit, i).words[i % 4])));
    sum += value;
  }
  EXPECT_NEAR(sum / count, 0.5, 0.003);
  for (uint32_t word : {0u, ~0u}) {
    EXPECT_GT(uniform(word), 0.0f);
    EXPECT_LT(uniform(word), 1.0f);
    EXPECT_TRUE(std::isfinite(gumbel(word)));
  }
}
