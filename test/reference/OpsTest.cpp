//===- OpsTest.cpp - Operations of a layer against doubles ----------------===//

#include "runtime/Nvrtc.h"
#include "test/reference/OpsFixture.h"

using namespace tokentile;
using namespace tokentile::reference;

namespace {

TEST_P(OpsTest, LinearIsTheProductAndARowsBitsAreItsOwn) {
  constexpr int32_t most = 70, columns = 37, depth = 352;
  std::vector<Bf16> x = randomBf16(most * depth),
                    w = randomBf16(columns * depth);
  const Bf16 *in = put(x), *weight = put(w);
  std::vector<float> alone;
  for (int32_t rows : {1, 5, 17, 33, most}) {
    float *out = put(std::vector<float>(most * columns, -7));
    EXPECT_OK(ops->linear(
        {in, weight, out, rows, columns, depth, LinearArgs::FloatResult},
        *stream));
    std::vector<float> got = get(out, most * columns);
    for (int32_t r = 0; r < most; ++r)
      for (int32_t n = 0; n < columns; ++n) {
        double sum = 0;
        for (int32_t k = 0; k < depth; ++k)
          sum +=
              double(fromBf16(x[r * depth + k])) * fromBf16(w[n * depth + k]);
        EXPECT_NEAR(got[r * columns + n], r < rows ? sum : -7, 1e-4)
            << rows << " rows: " << r << ", " << n;
      }
    if (rows > 1)
      EXPECT_EQ(std::vector<float>(got.begin(), got.begin() + columns), alone);
    alone.assign(got.begin(), got.begin() + columns);
  }
}

TEST_P(OpsTest, LinearRoundsOrAdds) {
  constexpr int32_t rows = 3, columns = 32, depth = 64;
  std::vector<Bf16> x = randomBf16(rows * depth),
                    w = randomBf16(columns * depth);
  const Bf16 *in = put(x), *weight = put(w);
  float *exact = put(std::vector<float>(rows * columns));
  float *added = put(std::vector<float>(rows * columns, 2));
  Bf16 *rounded = put(std::vector<Bf16>(rows * columns));
  for (auto [out, result] :
       {std::pair<void *, LinearArgs::Result>(exact, LinearArgs::FloatResult),
        {added, LinearArgs::AddToFloat},
        {rounded, LinearArgs::Bf16Result}})
    EXPECT_OK(
        ops->linear({in, weight, out, rows, columns, depth, result}, *stream));
  std::vector<float> value = get(exact, rows * columns);
  std::vector<float> sum = get(added, rows * columns);
  std::vector<Bf16> bits = get(rounded, rows * columns);
  for (size_t i = 0; i < value.size(); ++i) {
    EXPECT_EQ(sum[i], 2 + value[i]);
    EXPECT_EQ(bits[i], toBf16(value[i]));
  }
}

TEST_P(OpsTest, RmsNormOfAllRowsAndOfSome) {
  constexpr int32_t batch = 3, width = 4, dim = 96;
  std::vector<float> x = randomFloats(batch * width * dim);
  std::vector<Bf16> w = randomBf16(dim);
  struct {
    RmsNormArgs args;
    std::vector<int32_t> rows;
  } cases[] = {
      {{nullptr, nullptr, nullptr, dim, 0, 0, 0, 1e-3f},
       {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
      {{nullptr, nullptr, nullptr, dim, 3, width, 1, 1e-3f},
       {1, 2, 3, 5, 6, 7, 9, 10, 11}},
  };
  for (auto &[args, rows] : cases) {
    args.in = put(x);
    args.weight = put(w);
    args.out = put(std::vector<Bf16>(rows.size() * dim));
    EXPECT_OK(ops->rmsNormRow(args, int64_t(rows.size()), *stream));
    std::vector<Bf16> got = get(args.out, rows.size() * dim);
    for (size_t r = 0; r < rows.size(); ++r) {
      const float *row = x.data() + rows[r] * dim;
      double sum = 0;
      for (int32_t i = 0; i < dim; ++i)
        sum += double(row[i]) * row[i];
      for (int32_t i = 0; i < dim; ++i) {
        double want = row[i] / std::sqrt(sum / dim + 1e-3) * fromBf16(w[i]);
        EXPECT_NEAR(fromBf16(got[r * dim + i]), want, bf16Slack(want));
      }
    }
  }
}

TEST_P(OpsTest, HeadsAreNormedThenRotated) {
  constexpr int32_t rows = 3, heads = 2, dim = 64, stride = 200, offset = 8;
  std::vector<Bf16> x = randomBf16(rows * stride), w = randomBf16(dim);
  std::vector<int32_t> positions = {0, 5, 4000};
  std::vector<float> frequencies;
  for (int32_t i = 0; i < dim / 2; ++i)
    frequencies.push_back(float(std::pow(1e4, -2.0 * i / dim)));
  Bf16 *out = put(std::vector<Bf16>(rows * heads * dim));
  EXPECT_OK(ops->headsRow({put(x), put(w), put(frequencies), put(positions),
                           out, heads, dim, stride, offset, 1e-6f},
                          rows * heads, *stream));
  std::vector<Bf16> got = get(out, rows * heads * dim);
  for (int32_t r = 0; r < rows; ++r)
    for (int32_t h = 0; h < heads; ++h) {
      const Bf16 *in = x.data() + r * stride + offset + h * dim;
      double sum = 0;
      for (int32_t i = 0; i < dim; ++i)
        sum += double(fromBf16(in[i])) * fromBf16(in[i]);
      double factor = 1 / std::sqrt(sum / dim + 1e-6);
      for (int32_t i = 0; i < dim / 2; ++i) {
        double a = fromBf16(in[i]) * factor * fromBf16(w[i]);
        double b =
            fromBf16(in[i + dim / 2]) * factor * fromBf16(w[i + dim / 2]);
        double angle = double(positions[r]) * frequencies[i];
        const Bf16 *to = got.data() + (r * heads + h) * dim;
        double first = a * std::cos(angle) - b * std::sin(angle);
        double second = b * std::cos(angle) + a * std::sin(angle);
        // An fp32 angle of some thousand radians is off by some 1e-4.
        EXPECT_NEAR(fromBf16(to[i]), first, bf16Slack(first) + 3e-4);
        EXPECT_NEAR(fromBf16(to[i + dim / 2]), second,
                    bf16Slack(second) + 3e-4);
      }
    }
}

TEST_P(OpsTest, EmbedTapAndSwiGlu) {
  constexpr int32_t vocabulary = 5, dim = 64;
  std::vector<Bf16> table = randomBf16(vocabulary * dim, 3);
  std::vector<int32_t> ids = {4, 0, -1, 5};
  float *embedded = put(std::vector<float>(ids.size() * dim));
  EXPECT_OK(ops->embedRow({put(ids), put(table), embedded, dim, vocabulary},
                          int64_t(ids.size()), *stream));
  Bf16 *taps = put(std::vector<Bf16>(ids.size() * 3 * dim));
  EXPECT_OK(ops->tapRow({embedded, taps, dim, 3 * dim, dim},
                        int64_t(ids.size()), *stream));
  std::vector<Bf16> tapped = get(taps, ids.size() * 3 * dim);
  std::vector<int32_t> rows = {4, 0, 0, 0};
  for (size_t r = 0; r < rows.size(); ++r)
    for (int32_t i = 0; i < 3 * dim; ++i)
      EXPECT_EQ(tapped[r * 3 * dim + i],
                i / dim == 1 ? table[rows[r] * dim + i - dim] : 0);
  Bf16 *glu = put(std::vector<Bf16>(2 * dim));
  EXPECT_OK(ops->swiGluRow({put(table), glu, dim}, 2, *stream));
  std::vector<Bf16> got = get(glu, 2 * dim);
  for (int32_t i = 0; i < 2 * dim; ++i) {
    double gate = fromBf16(table[i / dim * 2 * dim + i % dim]);
    double want = gate / (1 + std::exp(-gate)) *
                  fromBf16(table[i / dim * 2 * dim + dim + i % dim]);
    EXPECT_NEAR(fromBf16(got[i]), want, bf16Slack(want));
  }
}

TEST_P(OpsTest, ArgmaxTakesTheFirstOfEqualValues) {
  constexpr int32_t vocabulary = 1000, drafts = 2;
  std::vector<float> logits = randomFloats(4 * vocabulary);
  logits[700] = logits[701] = logits[999] = 9;
  logits[vocabulary + 999] = 9;
  logits[3 * vocabulary] = logits[3 * vocabulary + 257] = 9;
  logits[2 * vocabulary + 300] = 8;
  int32_t *ids = put(std::vector<int32_t>(6, -1));
  EXPECT_OK(ops->argmaxRow({put(logits), ids, vocabulary, drafts}, 4, *stream));
  EXPECT_EQ(get(ids, 6), (std::vector<int32_t>{-1, 700, 999, -1, 300, 0}));
}

TEST_P(OpsTest, BlocksHoldTheAnchorAndMasks) {
  int32_t *ids = put(std::vector<int32_t>(6));
  EXPECT_OK(ops->blockIdsRow(
      {put(std::vector<int32_t>{5, 1, 2, 6, 3, 4}), ids, 3, 9}, 6, *stream));
  EXPECT_EQ(get(ids, 6), (std::vector<int32_t>{5, 9, 9, 6, 9, 9}));
  int32_t *words = put(std::vector<int32_t>(8, -1));
  EXPECT_OK(ops->spreadSlot({put(std::vector<int32_t>{7, 8}), words, 1, 4}, 2,
                            *stream));
  EXPECT_EQ(get(words, 8),
            (std::vector<int32_t>{7, -1, -1, -1, 8, -1, -1, -1}));
}

TEST_P(OpsTest, ADraftAgreesAsOftenAsItIsTold) {
  constexpr int32_t stride = 5000, drafts = 2000, vocabulary = 10;
  std::vector<int32_t> known(2 * stride);
  for (size_t i = 0; i < known.size(); ++i)
    known[i] = int32_t(i * 7 % vocabulary);
  for (float probability : {0.0f, 0.3f, 1.0f}) {
    int32_t *ids = put(std::vector<int32_t>(drafts + 1, -1));
    EXPECT_OK(ops->agreeRow({put(known), put(std::vector<uint64_t>{1}),
                             put(std::vector<int32_t>{100}), ids, stride, 2,
                             vocabulary, drafts, probability},
                            drafts, *stream));
    std::vector<int32_t> got = get(ids, drafts + 1);
    EXPECT_EQ(got[0], -1);
    int agreed = 0;
    for (int32_t i = 0; i < drafts; ++i) {
      int32_t token = known[stride + 101 + i];
      agreed += got[1 + i] == token;
      EXPECT_TRUE(got[1 + i] == token ||
                  got[1 + i] == (token + 1) % vocabulary);
    }
    EXPECT_NEAR(double(agreed) / drafts, probability, 0.04);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, OpsTest, testing::Values("host", "cuda"),
                         [](const auto &info) { return info.param; });

TEST(OpsSource, CompilesForEveryGpu) {
  for (const char *chip : {"sm_80", "sm_90a"}) {
    StatusOr<std::string> cubin =
        compileCuda(opsSource(), "ops.cu", chip, {"--std=c++17"});
    if (cubin.status().code() == StatusCode::Unavailable)
      GTEST_SKIP() << cubin.status().toString();
    EXPECT_TRUE(cubin.ok()) << cubin.status().toString();
  }
}

} // namespace
