//===- AppendTest.cpp - Rows into pages, compared byte by byte ------------===//
//
// Every byte of the pool is compared: a row that must not be written, such as a
// rejected one in a ring, fails as one that is missing.
//
//===----------------------------------------------------------------------===//

#include "runtime/Append.h"
#include "TestKernel.h"

#include <cmath>
#include <random>

using namespace tokentile;
using namespace tokentile::services;
using namespace tokentile::test;

namespace {

constexpr int32_t batch = 3, width = 7, kvHeads = 2, headDim = 64;
constexpr int32_t pageTokens = 16, pages = 12;

KernelInfo infoOf(PageOrder order, Element keys, Element values) {
  KernelInfo info = testInfo();
  info.pageOrder = order;
  info.kvHeads = kvHeads;
  info.headDim = headDim;
  info.pageSize = pageTokens;
  info.keyElement = keys;
  info.valueElement = values;
  int64_t heads = order == PageOrder::TokenMajor ? kvHeads : 1;
  info.keySlotStride = info.valueSlotStride = heads * headDim * 2;
  return info;
}

/// Element index of a row, from the shapes that PageOrder documents.
int64_t rowIndex(PageOrder order, int64_t page, int64_t slot, int64_t head) {
  switch (order) {
  case PageOrder::PageMajor:
    return ((page * kvHeads + head) * pageTokens + slot) * headDim;
  case PageOrder::HeadMajor:
    return ((head * pages + page) * pageTokens + slot) * headDim;
  default:
    return ((page * pageTokens + slot) * kvHeads + head) * headDim;
  }
}

class AppendTest : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    StatusOr<std::unique_ptr<Device>> opened = openDevice(GetParam());
    if (!opened.ok())
      GTEST_SKIP() << opened.status().toString();
    device = *std::move(opened);
    stream = *device->createStream();
    StatusOr<Appender> created = Appender::create(*device);
    ASSERT_TRUE(created.ok()) << created.status().toString();
    appender.emplace(*std::move(created));
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (float &value : source)
      value = normal(random);
    sourceMemory = upload(source);
    countMemory = upload(counts);
    for (Buffer *pool : {&keyPool, &valuePool}) {
      *pool = *device->allocate(poolElements * 2);
      ASSERT_OK(device->fill(pool->data(), 0xAB, poolElements * 2));
    }
  }

  template <typename T>
  Buffer upload(const std::vector<T> &values) {
    size_t bytes = values.size() * sizeof(T);
    Buffer buffer = *device->allocate(bytes);
    EXPECT_TRUE(device->copyToDevice(buffer.data(), values.data(), bytes).ok());
    return buffer;
  }

  std::vector<uint16_t> poolOf(const Buffer &buffer) {
    std::vector<uint16_t> pool(poolElements);
    EXPECT_TRUE(
        device->copyToHost(pool.data(), buffer.data(), poolElements * 2).ok());
    return pool;
  }

  /// Appends with `stride` entries a request. Both halves of a source row, keys
  /// and values, come from one projection.
  AppendArgs makeArgs(const KernelInfo &info, const std::vector<int32_t> &table,
                      const std::vector<int32_t> &lengths) {
    tableMemory = upload(table);
    lengthMemory = upload(lengths);
    LaunchArgs launch;
    launch.keys = keyPool.data();
    launch.values = valuePool.data();
    launch.table = tableMemory.as<int32_t>();
    launch.tableStride = int64_t(table.size()) / batch;
    launch.lengths = lengthMemory.as<int32_t>();
    launch.poolPages = pages;
    StatusOr<AppendArgs> args = appendArgsFor(info, launch);
    EXPECT_TRUE(args.ok()) << args.status().toString();
    const float *data = sourceMemory.as<float>();
    args->keys = {data, rowElements, headDim, Scalar::Float32};
    args->values = {data + kvHeads * headDim, rowElements, headDim,
                    Scalar::Float32};
    args->counts = countMemory.as<int32_t>();
    args->batch = batch;
    args->width = width;
    return *args;
  }

  void run(const AppendArgs &args) {
    ASSERT_OK(appender->append(args, *stream));
    ASSERT_OK(stream->synchronize());
  }

  float sourceAt(int32_t b, int32_t i, int32_t head, int32_t d) const {
    return source[(b * width + i) * rowElements + head * headDim + d];
  }

  static constexpr int64_t rowElements = 2 * kvHeads * headDim;
  static constexpr size_t poolElements = pages * kvHeads * pageTokens * headDim;
  std::vector<int32_t> counts = {5, 0, 7};
  std::vector<float> source = std::vector<float>(batch * width * rowElements);
  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
  std::optional<Appender> appender;
  Buffer sourceMemory, countMemory, tableMemory, lengthMemory;
  Buffer keyPool, valuePool;
};

/// What was written is the rounded source, everywhere else is poison.
TEST_P(AppendTest, EveryPageOrderAndElement) {
  // Page 0 is a valid id of nobody: a padded request must not write it.
  std::vector<int32_t> table = {3, 7, 5, 0, 0, 0, 11, 2, 9};
  std::vector<int32_t> lengths = {13, 0, 30};
  for (PageOrder order :
       {PageOrder::PageMajor, PageOrder::HeadMajor, PageOrder::TokenMajor}) {
    ASSERT_OK(device->fill(keyPool.data(), 0xAB, poolElements * 2));
    ASSERT_OK(device->fill(valuePool.data(), 0xAB, poolElements * 2));
    run(makeArgs(infoOf(order, Element::BFloat16, Element::Float16), table,
                 lengths));
    std::vector<uint16_t> keys(poolElements, 0xABAB), values = keys;
    for (int32_t b = 0; b < batch; ++b)
      for (int32_t i = 0; i < counts[b]; ++i)
        for (int32_t head = 0; head < kvHeads; ++head)
          for (int32_t d = 0; d < headDim; ++d) {
            int32_t p = lengths[b] + i;
            int64_t at = rowIndex(order, table[b * 3 + p / pageTokens],
                                  p % pageTokens, head) +
                         d;
            keys[at] = toBFloat16(sourceAt(b, i, head, d));
            values[at] = toFloat16(sourceAt(b, i, kvHeads + head, d));
          }
    EXPECT_EQ(poolOf(keyPool), keys) << "order " << int(order);
    EXPECT_EQ(poolOf(valuePool), values) << "order " << int(order);
  }
}

/// A ring of one page takes 16 rows; the others of the page are still live.
TEST_P(AppendTest, RingKeepsLiveRowsAndTheLastOfOneTurn) {
  std::vector<int32_t> table = {4, 0, 6};
  std::vector<int32_t> lengths = {30, 0, 1'000'003};
  run(makeArgs(
      infoOf(PageOrder::PageMajor, Element::BFloat16, Element::BFloat16), table,
      lengths));
  std::vector<uint16_t> expected(poolElements, 0xABAB);
  for (int32_t b : {0, 2})
    for (int32_t i = 0; i < counts[b]; ++i)
      for (int32_t head = 0; head < kvHeads; ++head)
        for (int32_t d = 0; d < headDim; ++d)
          expected[rowIndex(PageOrder::PageMajor, table[b],
                            (lengths[b] + i) % pageTokens, head) +
                   d] = toBFloat16(sourceAt(b, i, head, d));
  EXPECT_EQ(poolOf(keyPool), expected);
}

/// More rows than the ring has: the last ones stay, whatever runs first.
TEST_P(AppendTest, RingSmallerThanTheRows) {
  KernelInfo info =
      infoOf(PageOrder::PageMajor, Element::BFloat16, Element::BFloat16);
  info.pageSize = 4;
  std::vector<int32_t> table = {4, 0, 6}, lengths = {30, 0, 8};
  AppendArgs args = makeArgs(info, table, lengths);
  for (int32_t repeat = 0; repeat < 20; ++repeat)
    run(args);
  std::vector<uint16_t> keys = poolOf(keyPool);
  for (int32_t b : {0, 2})
    for (int32_t i = counts[b] - 4; i < counts[b]; ++i)
      for (int32_t head = 0; head < kvHeads; ++head)
        EXPECT_EQ(
            keys[((table[b] * kvHeads + head) * 4 + (lengths[b] + i) % 4) *
                 headDim],
            toBFloat16(sourceAt(b, i, head, 0)))
            << "request " << b << " row " << i;
}

TEST_P(AppendTest, NormsAndRotatesKeysOnRequest) {
  constexpr int32_t rotary = 32;
  std::vector<float> weights(headDim), frequencies(rotary / 2);
  for (int32_t d = 0; d < headDim; ++d)
    weights[d] = 0.5f + 0.01f * float(d);
  for (int32_t d = 0; d < rotary / 2; ++d)
    frequencies[d] = std::pow(10000.0f, -2.0f * float(d) / rotary);
  Buffer weightMemory = upload(weights), ropeMemory = upload(frequencies);
  std::vector<int32_t> table = {3, 7, 5, 0, 0, 0, 11, 2, 9};
  std::vector<int32_t> lengths = {13, 0, 30};
  AppendArgs args =
      makeArgs(infoOf(PageOrder::PageMajor, Element::Float16, Element::Float16),
               table, lengths);
  args.keyNorm = weightMemory.data();
  args.keyNormType = Scalar::Float32;
  args.keyNormEpsilon = 1e-6f;
  args.ropeFrequencies = ropeMemory.as<float>();
  args.rotaryDim = rotary;
  run(args);
  std::vector<uint16_t> keys = poolOf(keyPool);
  for (int32_t b : {0, 2})
    for (int32_t i = 0; i < counts[b]; ++i) {
      int32_t p = lengths[b] + i;
      double squares = 0;
      for (int32_t d = 0; d < headDim; ++d)
        squares += std::pow(double(sourceAt(b, i, 1, d)), 2);
      double factor = 1 / std::sqrt(squares / headDim + 1e-6);
      std::vector<double> row(headDim);
      for (int32_t d = 0; d < headDim; ++d)
        row[d] = sourceAt(b, i, 1, d) * factor * weights[d];
      for (int32_t d = 0; d < rotary / 2; ++d) {
        double angle = p * double(frequencies[d]);
        double x = row[d], y = row[d + rotary / 2];
        row[d] = x * std::cos(angle) - y * std::sin(angle);
        row[d + rotary / 2] = y * std::cos(angle) + x * std::sin(angle);
      }
      int64_t at = rowIndex(PageOrder::PageMajor, table[b * 3 + p / pageTokens],
                            p % pageTokens, 1);
      for (int32_t d = 0; d < headDim; ++d)
        EXPECT_NEAR(fromFloat16(keys[at + d]), row[d], 4e-3)
            << "request " << b << " row " << i << " element " << d;
    }
}

TEST_P(AppendTest, CountsAreReadWhenItRuns) {
  std::vector<int32_t> table = {4, 0, 6}, lengths = {0, 0, 0};
  AppendArgs args = makeArgs(
      infoOf(PageOrder::PageMajor, Element::BFloat16, Element::BFloat16), table,
      lengths);
  ASSERT_OK(stream->beginCapture());
  ASSERT_OK(appender->append(args, *stream));
  std::unique_ptr<Graph> graph = *stream->endCapture();
  std::fill_n(reinterpret_cast<char *>(&args), sizeof(args), char(0xEE));
  std::vector<int32_t> later = {0, 0, 1};
  ASSERT_OK(device->copyToDevice(countMemory.data(), later.data(), 12));
  ASSERT_OK(graph->replay(*stream));
  ASSERT_OK(stream->synchronize());
  std::vector<uint16_t> keys = poolOf(keyPool);
  EXPECT_EQ(std::count(keys.begin(), keys.end(), 0xABAB),
            int64_t(poolElements) - kvHeads * headDim);
}

TEST_P(AppendTest, NamesWhatIsWrong) {
  std::vector<int32_t> table = {4, 0, 6}, lengths = {0, 0, 0};
  KernelInfo info =
      infoOf(PageOrder::PageMajor, Element::BFloat16, Element::BFloat16);
  AppendArgs args = makeArgs(info, table, lengths);
  args.counts = nullptr;
  expectError(appender->append(args, *stream), StatusCode::InvalidArgument,
              "counts is null");
  args = makeArgs(info, table, lengths);
  args.ropeFrequencies = sourceMemory.as<float>();
  args.rotaryDim = 80;
  expectError(appender->append(args, *stream), StatusCode::InvalidArgument,
              "rotaryDim 80");
  args = makeArgs(info, table, lengths);
  args.width = 0;
  expectError(appender->append(args, *stream), StatusCode::InvalidArgument,
              "width 0");
  info.ring = 3 * pageTokens;
  expectError(appendArgsFor(info, LaunchArgs()).status(),
              StatusCode::InvalidArgument, "whose ring has 3 entries");
  info.pageOrder = PageOrder::Contiguous;
  expectError(appendArgsFor(info, LaunchArgs()).status(),
              StatusCode::InvalidArgument, "contiguous");
}

INSTANTIATE_TEST_SUITE_P(Runtime, AppendTest, testing::Values("host", "cuda"),
                         [](const auto &info) { return info.param; });

} // namespace
