//===- MixerTest.cpp - Recurrent layers and the fallback against doubles --===//

#include "test/reference/OpsFixture.h"

using namespace tokentile;
using namespace tokentile::reference;

namespace {

/// A page of state for each of three entries of two requests, the second of
/// which starts from nothing; the first has a state to continue.
class MixerTest : public OpsTest {
protected:
  static constexpr int32_t batch = 2, width = 3, pageFloats = 4096;

  StateArgs stateArgs(bool snapshots) {
    pool = randomFloats(8 * pageFloats);
    memory = put(pool);
    StateArgs state = {};
    state.pool = reinterpret_cast<char *>(memory);
    state.table = put(std::vector<int32_t>{5, 1, 3, 2, 7, 0});
    state.lengths = put(std::vector<int32_t>{10, 0});
    state.counts = put(std::vector<int32_t>{3, 2});
    state.tableStride = 3;
    state.pageBytes = pageFloats * 4;
    state.offset = 256;
    state.width = width;
    state.snapshots = snapshots;
    return state;
  }
  /// The state that entry `entry` of a request holds now.
  const float *entryState(const std::vector<float> &now, int32_t page) {
    return now.data() + page * pageFloats + 64;
  }

  std::vector<float> pool;
  float *memory = nullptr;
};

TEST_P(MixerTest, ConvolutionSeesThreeRowsBackAndLeavesEachState) {
  constexpr int32_t channels = 40, stride = 48;
  std::vector<Bf16> x = randomBf16(batch * width * stride);
  std::vector<Bf16> w = randomBf16(channels * 4);
  StateArgs state = stateArgs(/*snapshots=*/true);
  Bf16 *out = put(std::vector<Bf16>(batch * width * channels, 1));
  EXPECT_OK(ops->convSlot({state, put(x), put(w), out, channels, stride}, batch,
                          *stream));
  std::vector<Bf16> got = get(out, batch * width * channels);
  std::vector<float> after = get(memory, pool.size());
  const int32_t pages[2][3] = {{5, 1, 3}, {2, 7, 0}}, counts[2] = {3, 2};
  for (int32_t b = 0; b < batch; ++b)
    for (int32_t c = 0; c < channels; ++c) {
      std::vector<double> line(3, 0);
      for (int32_t j = 0; j < 3 && b == 0; ++j)
        line[j] = entryState(pool, 5)[j * channels + c];
      for (int32_t i = 0; i < counts[b]; ++i) {
        line.push_back(fromBf16(x[(b * width + i) * stride + c]));
        double sum = 0;
        for (int32_t j = 0; j < 4; ++j)
          sum += line[i + j] * fromBf16(w[c * 4 + j]);
        double want = sum / (1 + std::exp(-sum));
        EXPECT_NEAR(fromBf16(got[(b * width + i) * channels + c]), want,
                    bf16Slack(want));
        for (int32_t j = 0; j < 3; ++j)
          EXPECT_EQ(entryState(after, pages[b][i])[j * channels + c],
                    float(line[i + 1 + j]));
      }
      if (counts[b] < width)
        EXPECT_EQ(got[(b * width + 2) * channels + c], 1) << "padding";
    }
  EXPECT_EQ(
      std::vector<float>(entryState(after, 0), entryState(after, 0) + 120),
      std::vector<float>(entryState(pool, 0), entryState(pool, 0) + 120))
      << "a row that is not there wrote its state";
}

TEST_P(MixerTest, DeltaRuleIsTheRecurrence) {
  constexpr int32_t heads = 4, keyHeads = 2, keyDim = 16, valueDim = 24;
  constexpr int32_t columns = 2 * keyHeads * keyDim + heads * valueDim;
  std::vector<Bf16> x = randomBf16(batch * width * columns);
  std::vector<Bf16> gates = randomBf16(batch * width * 2 * heads);
  std::vector<Bf16> logDecay = randomBf16(heads), bias = randomBf16(heads);
  StateArgs state = stateArgs(/*snapshots=*/true);
  float *out = put(std::vector<float>(batch * width * heads * valueDim));
  EXPECT_OK(
      ops->deltaHead({state, put(x), put(gates), put(logDecay), put(bias), out,
                      heads, keyHeads, keyDim, valueDim, 2 * heads, 0},
                     batch * heads, *stream));
  std::vector<float> got = get(out, batch * width * heads * valueDim);
  std::vector<float> after = get(memory, pool.size());
  const int32_t pages[2][3] = {{5, 1, 3}, {2, 7, 0}}, counts[2] = {3, 2};
  for (int32_t b = 0; b < batch; ++b)
    for (int32_t h = 0; h < heads; ++h) {
      int32_t first = h * keyDim * valueDim;
      std::vector<double> s(keyDim * valueDim, 0);
      for (size_t i = 0; i < s.size() && b == 0; ++i)
        s[i] = entryState(pool, 5)[first + i];
      for (int32_t t = 0; t < counts[b]; ++t) {
        int32_t row = b * width + t;
        auto at = [&](int32_t i) { return fromBf16(x[row * columns + i]); };
        std::vector<double> q(keyDim), k(keyDim);
        double qq = 1e-6, kk = 1e-6;
        for (int32_t i = 0; i < keyDim; ++i) {
          q[i] = at(h / 2 * keyDim + i);
          k[i] = at(keyHeads * keyDim + h / 2 * keyDim + i);
          qq += q[i] * q[i];
          kk += k[i] * k[i];
        }
        double decay =
            std::exp(-std::exp(double(fromBf16(logDecay[h]))) *
                     std::log1p(std::exp(double(fromBf16(gates[row * 8 + h])) +
                                         fromBf16(bias[h]))));
        double beta =
            1 / (1 + std::exp(-double(fromBf16(gates[row * 8 + heads + h]))));
        for (int32_t j = 0; j < valueDim; ++j) {
          double seen = 0, want = 0;
          for (int32_t i = 0; i < keyDim; ++i)
            seen += decay * s[i * valueDim + j] * k[i] / std::sqrt(kk);
          double change =
              beta * (at(2 * keyHeads * keyDim + h * valueDim + j) - seen);
          for (int32_t i = 0; i < keyDim; ++i) {
            double &cell = s[i * valueDim + j];
            cell = decay * cell + k[i] / std::sqrt(kk) * change;
            want += cell * q[i] / std::sqrt(qq * keyDim);
            EXPECT_NEAR(
                entryState(after, pages[b][t])[first + i * valueDim + j], cell,
                1e-5);
          }
          EXPECT_NEAR(got[(row * heads + h) * valueDim + j], want, 1e-5);
        }
      }
    }
}

TEST_P(MixerTest, StepsOfOneRowGiveTheBitsOfOneStep) {
  constexpr int32_t heads = 2, dim = 16, columns = 6 * dim;
  std::vector<Bf16> x = randomBf16(batch * width * columns);
  std::vector<Bf16> gates = randomBf16(batch * width * 2 * heads);
  const Bf16 *decay = put(randomBf16(heads)), *bias = put(randomBf16(heads));
  StateArgs state = stateArgs(/*snapshots=*/false);
  DeltaArgs args = {
      state, put(x),    put(gates),
      decay, bias,      put(std::vector<float>(batch * width * heads * dim)),
      heads, heads,     dim,
      dim,   2 * heads, 0};
  EXPECT_OK(ops->deltaHead(args, batch * heads, *stream));
  std::vector<float> at_once = get(args.out, batch * width * heads * dim);
  std::vector<float> end = get(memory, pool.size());

  EXPECT_OK(device->copyToDevice(memory, pool.data(), pool.size() * 4));
  for (int32_t t = 0; t < 3; ++t) {
    // Only row t of each request, as a step of its own over the same rows.
    DeltaArgs one = args;
    one.state.lengths = put(std::vector<int32_t>{10 + t, t});
    one.state.counts = put(std::vector<int32_t>{1, t < 2});
    one.in += t * columns;
    one.gates += t * 2 * heads;
    one.out += t * heads * dim;
    EXPECT_OK(ops->deltaHead(one, batch * heads, *stream));
  }
  EXPECT_EQ(get(args.out, batch * width * heads * dim), at_once);
  EXPECT_EQ(get(memory, pool.size()), end);
}

TEST_P(MixerTest, GatedNorm) {
  constexpr int32_t rows = 2, heads = 3, dim = 20, stride = 70, offset = 4;
  std::vector<float> x = randomFloats(rows * heads * dim);
  std::vector<Bf16> w = randomBf16(dim), gate = randomBf16(rows * stride);
  Bf16 *out = put(std::vector<Bf16>(rows * heads * dim));
  EXPECT_OK(ops->gatedNormHead(
      {put(x), put(w), put(gate), out, heads, dim, stride, offset, 1e-6f},
      rows * heads, *stream));
  std::vector<Bf16> got = get(out, rows * heads * dim);
  for (int32_t i = 0; i < rows * heads; ++i) {
    double sum = 0;
    for (int32_t d = 0; d < dim; ++d)
      sum += double(x[i * dim + d]) * x[i * dim + d];
    for (int32_t d = 0; d < dim; ++d) {
      double z =
          fromBf16(gate[i / heads * stride + offset + i % heads * dim + d]);
      double want = x[i * dim + d] / std::sqrt(sum / dim + 1e-6) *
                    fromBf16(w[d]) * z / (1 + std::exp(-z));
      EXPECT_NEAR(fromBf16(got[i * dim + d]), want, bf16Slack(want));
    }
  }
}

TEST_P(MixerTest, ReattendingGivesTheBlockRowsTheirAttention) {
  constexpr int32_t width = 3, heads = 4, kvHeads = 2, dim = 64, page = 4;
  constexpr int32_t maxKeys = 16, plane = page * kvHeads * dim, window = 5;
  std::vector<Bf16> pages = randomBf16(6 * 2 * plane);
  std::vector<Bf16> query = randomBf16(2 * width * heads * dim, 3);
  std::vector<Bf16> keys = randomBf16(2 * width * kvHeads * dim);
  std::vector<Bf16> values = randomBf16(2 * width * kvHeads * dim);
  std::vector<int32_t> table = {4, 1, 3, -1, 0, -1, -1, -1};
  std::vector<int32_t> lengths = {9, 0}, counts = {3, 2};
  const char *pool = reinterpret_cast<const char *>(put(pages));
  ReattendArgs a = {};
  a.query = put(query);
  a.blockKeys = put(keys);
  a.blockValues = put(values);
  a.output = put(std::vector<Bf16>(query.size(), 1));
  a.keys = pool;
  a.values = pool + plane * 2;
  a.table = put(table);
  a.lengths = put(lengths);
  a.counts = put(counts);
  a.allQueries = put(std::vector<Bf16>(2 * maxKeys * heads * dim));
  a.allKeys = put(std::vector<Bf16>(2 * maxKeys * kvHeads * dim));
  a.allValues = put(std::vector<Bf16>(2 * maxKeys * kvHeads * dim));
  a.allOutputs = put(std::vector<Bf16>(2 * maxKeys * heads * dim));
  a.tableStride = 4;
  a.pageBytes = 2 * plane * 2;
  a.pageTokens = page;
  a.maxKeys = maxKeys;
  a.width = width;
  a.heads = heads;
  a.kvHeads = kvHeads;
  a.dim = dim;
  a.window = window;
  a.scale = 0.125f;
  EXPECT_OK(ops->gatherKey(a, 2 * maxKeys, *stream));
  EXPECT_OK(ops->attendHead(a, 2 * maxKeys * heads, *stream));
  std::vector<Bf16> got = get(a.output, query.size());
  for (int32_t b = 0; b < 2; ++b)
    for (int32_t j = 0; j < counts[b]; ++j)
      for (int32_t h = 0; h < heads; ++h) {
        auto row = [&](int32_t key, int32_t side) {
          int32_t kv = h / 2;
          if (key >= lengths[b])
            return (side ? values : keys).data() +
                   ((b * width + key - lengths[b]) * kvHeads + kv) * dim;
          int32_t id = table[b * 4 + key / page];
          return pages.data() + (2 * id + side) * plane +
                 (kv * page + key % page) * dim;
        };
        std::vector<double> want(dim);
        double sum = 0;
        for (int32_t key = 0; key < lengths[b] + counts[b]; ++key) {
          if (std::abs(lengths[b] + j - key) >= window)
            continue;
          double dot = 0;
          for (int32_t d = 0; d < dim; ++d)
            dot += double(fromBf16(
                       query[((b * width + j) * heads + h) * dim + d])) *
                   fromBf16(row(key, 0)[d]);
          double p = std::exp(dot * 0.125);
          sum += p;
          for (int32_t d = 0; d < dim; ++d)
            want[d] += p * fromBf16(row(key, 1)[d]);
        }
        for (int32_t d = 0; d < dim; ++d)
          EXPECT_NEAR(fromBf16(got[((b * width + j) * heads + h) * dim + d]),
                      want[d] / sum, bf16Slack(want[d] / sum) + 1e-4);
      }
}

INSTANTIATE_TEST_SUITE_P(Devices, MixerTest, testing::Values("host", "cuda"),
                         [](const auto &info) { return info.param; });

} // namespace
