//===- OpsFixture.h - Operations on a device, from vectors ------*- C++ -*-===//

#ifndef TOKENTILE_TEST_REFERENCE_OPSFIXTURE_H
#define TOKENTILE_TEST_REFERENCE_OPSFIXTURE_H

#include "tools/reference-model/Ops.h"

#include <gtest/gtest.h>

#include <random>

namespace tokentile::reference {

/// Runs each test on the host and, where there is one, on a GPU.
class OpsTest : public testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    StatusOr<std::unique_ptr<Device>> opened = openDevice(GetParam());
    if (!opened.ok())
      GTEST_SKIP() << opened.status().toString();
    device = *std::move(opened);
    StatusOr<std::unique_ptr<Ops>> made = Ops::create(*device);
    ASSERT_TRUE(made.ok()) << made.status().toString();
    ops = *std::move(made);
    stream = *device->createStream();
  }

  template <typename T>
  T *put(const std::vector<T> &values) {
    buffers.push_back(*device->allocate(values.size() * sizeof(T)));
    EXPECT_TRUE(device
                    ->copyToDevice(buffers.back().data(), values.data(),
                                   values.size() * sizeof(T))
                    .ok());
    return buffers.back().template as<T>();
  }

  template <typename T>
  std::vector<T> get(const T *from, size_t count) {
    std::vector<T> values(count);
    EXPECT_TRUE(stream->synchronize().ok());
    EXPECT_TRUE(
        device->copyToHost(values.data(), from, count * sizeof(T)).ok());
    return values;
  }

  std::vector<Bf16> randomBf16(size_t count, float reach = 1) {
    std::uniform_real_distribution<float> draw(-reach, reach);
    std::vector<Bf16> values(count);
    for (Bf16 &value : values)
      value = toBf16(draw(random));
    return values;
  }
  std::vector<float> randomFloats(size_t count) {
    std::uniform_real_distribution<float> draw(-1, 1);
    std::vector<float> values(count);
    for (float &value : values)
      value = draw(random);
    return values;
  }

  std::mt19937 random{1};
  std::unique_ptr<Device> device;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<Stream> stream;
  std::vector<Buffer> buffers;
};

/// One rounding to bf16 of a value computed in fp32.
inline double bf16Slack(double value) { return 1e-5 + std::abs(value) / 256; }

#define EXPECT_OK(expression)                                                  \
  do {                                                                         \
    Status expectedOk = expression;                                            \
    EXPECT_TRUE(expectedOk.ok()) << expectedOk.toString();                     \
  } while (false)

} // namespace tokentile::reference

#endif // TOKENTILE_TEST_REFERENCE_OPSFIXTURE_H
