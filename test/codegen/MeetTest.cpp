//===- MeetTest.cpp - Row tiles and meetings of key warps -----------------===//
//
// Sweeps on the lane executor against attention in double precision, for each
// way that key warps meet and each count of row tiles. Keys are random, and
// scores so far apart that maxima differ between key warps and move from tile
// to tile.
//
//===----------------------------------------------------------------------===//

#include "SpecBuilder.h"

#include "codegen/Layout.h"
#include "codegen/lanes/LaneExecutor.h"
#include "codegen/mma/MmaEmitter.h"
#include "dialect/ReferenceElements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;
using namespace tokentile::test;

namespace {

constexpr int64_t kTokens = 4, kKeys = 150, kPage = 64, kPages = 3;

struct Case {
  int64_t dim, keyWarps, rowTiles;
  bool meetAtTile;

  std::string text() const {
    return "dim " + std::to_string(dim) + ", row_tiles " +
           std::to_string(rowTiles) + " key_warps " + std::to_string(keyWarps) +
           " meet " + (meetAtTile ? "tile" : "end");
  }
};

class MeetTest : public testing::Test {
protected:
  /// False if no such schedule fits the chip.
  bool lower(const Case &which);
  void fill();
  void runSweep(int splits, bool descendingWarps);
  /// Compares the output, or with `splits` above one what the partial results
  /// make together.
  void expectAttention(int splits);

  double element(const std::vector<uint16_t> &of, int64_t at,
                 ElementKind kind = ElementKind::BF16) {
    return decodeHalf(of[at], kind);
  }

  SpecContext context;
  OwningOpRef<ModuleOp> module;
  LLVM::LLVMFuncOp sweep;
  KernelInfo info;
  int64_t heads = 0, dim = 0;
  /// Columns of a block of a partial output.
  int64_t columns = 0;
  std::vector<uint16_t> query, keys, values, output, partialOutput;
  std::vector<float> logSumExp, partialStats;
};

} // namespace

bool MeetTest::lower(const Case &which) {
  Spec spec;
  // 40 rows, the last eight of 48 or 24 of 64 padding; 32 of dimension 256.
  heads = which.dim == 256 ? 8 : 10;
  dim = which.dim;
  spec.queryHeads = heads;
  spec.kvHeads = 1;
  spec.dim = dim;
  spec.tokens = kTokens;
  spec.values = "fp16";
  spec.rest = "output<fp16 token_major with lse> scale<1.0> schedule<mma "
              "key_tile 64 row_tiles " +
              std::to_string(which.rowTiles) + " key_warps " +
              std::to_string(which.keyWarps) + " meet " +
              (which.meetAtTile ? "tile" : "end") + ">";
  module = context.parse(spec.text());
  context.takeErrors();
  if (llvm::Error error = lowerTo(*module, Level::Plan, "sm_80")) {
    std::string message = llvm::toString(std::move(error));
    EXPECT_NE(message.find("no schedule fits"), std::string::npos) << message;
    return false;
  }
  info = describeKernel(SpecContext::kernel(*module));
  columns = partialBlock(SpecContext::kernel(*module));
  llvm::Error error = lowerTo(*module, Level::Machine, "sm_80");
  EXPECT_FALSE(bool(error)) << llvm::toString(std::move(error));
  module->walk([&](LLVM::LLVMFuncOp function) {
    if (function.getName() == info.sweepSymbol)
      sweep = function;
  });
  return true;
}

void MeetTest::fill() {
  std::mt19937 random(7);
  auto fillWith = [&](std::vector<uint16_t> &rows, int64_t count,
                      ElementKind kind) {
    rows.assign(count, encodeHalf(NAN, kind));
    for (int64_t i = 0; i < count; ++i)
      rows[i] = encodeHalf(random() / double(1u << 31) - 1, kind);
  };
  fillWith(query, kTokens * heads * dim, ElementKind::BF16);
  fillWith(keys, kKeys * dim, ElementKind::BF16);
  fillWith(values, kKeys * dim, ElementKind::FP16);
  // Slots that no request has.
  keys.resize(kPages * kPage * dim, encodeHalf(NAN, ElementKind::BF16));
  values.resize(kPages * kPage * dim, encodeHalf(NAN, ElementKind::FP16));
}

void MeetTest::runSweep(int splits, bool descendingWarps) {
  std::vector<int32_t> table{0, 1, 2}, lengths{int32_t(kKeys - kTokens)};
  output.assign(query.size(), encodeHalf(NAN, ElementKind::FP16));
  logSumExp.assign(kTokens * heads, NAN);
  partialOutput.assign(splits * info.paddedRows * dim, 0xffff);
  partialStats.assign(splits * 4 * info.paddedRows, NAN);

  KernelArgs args = {};
  args.query = query.data();
  args.output = output.data();
  args.logSumExp = logSumExp.data();
  args.keys = keys.data();
  args.values = values.data();
  args.table = table.data();
  args.lengths = lengths.data();
  args.partialOutput = partialOutput.data();
  args.partialStats = partialStats.data();
  args.queryTokenStride = args.outputTokenStride = heads * dim * 2;
  args.queryHeadStride = args.outputHeadStride = dim * 2;
  args.keyPageStride = args.valuePageStride = kPage * dim * 2;
  args.keyHeadStride = args.valueHeadStride = kPage * dim * 2;
  args.tableStride = kPages;
  args.batch = 1;
  args.items = args.slots = splits;
  args.maxKeys = kKeys;

  LaneOptions options;
  options.threads = info.threads;
  options.sharedBytes = info.sharedBytes;
  options.descendingWarps = descendingWarps;
  options.poisonIsError = true;
  auto range = [&](auto &data, bool writable) {
    options.global.push_back(
        {data.data(), data.data() + data.size(), writable});
  };
  for (auto *read : {&query, &keys, &values})
    range(*read, false);
  range(table, false);
  range(lengths, false);
  range(output, true);
  range(partialOutput, true);
  range(logSumExp, true);
  range(partialStats, true);
  for (int x = 0; x < splits; ++x) {
    auto report = executeBlock(sweep, args, x, 0, 0, options);
    ASSERT_TRUE(bool(report)) << llvm::toString(report.takeError());
    EXPECT_EQ(report->ldmatrixConflicts, 0);
    EXPECT_EQ(report->copyConflicts, 0);
    EXPECT_GT(report->mmas, 0);
  }
}

void MeetTest::expectAttention(int splits) {
  // Rows that only fill the tile up are not stored.
  for (int64_t row = kTokens * heads; row < info.paddedRows; ++row)
    ASSERT_TRUE(std::isnan(partialStats[row * 4])) << "row " << row;
  for (int64_t row = 0; row < kTokens * heads; ++row) {
    int64_t seen = kKeys - kTokens + row / heads + 1;
    std::vector<double> weights(seen), expected(dim);
    double sum = 0;
    for (int64_t k = 0; k < seen; ++k) {
      double score = 0;
      for (int64_t d = 0; d < dim; ++d)
        score += element(query, row * dim + d) * element(keys, k * dim + d);
      sum += weights[k] = std::exp(score);
    }
    for (int64_t k = 0; k < seen; ++k)
      for (int64_t d = 0; d < dim; ++d)
        expected[d] +=
            weights[k] / sum * element(values, k * dim + d, ElementKind::FP16);

    // Partial results are in units of log2 and not normalised.
    double total = 0;
    std::vector<double> merged(dim);
    for (int64_t s = 0; splits > 1 && s < splits; ++s) {
      int64_t partial = s * info.paddedRows + row;
      const float *stats = &partialStats[partial * 4];
      double scale = std::exp2(stats[0]);
      total += stats[1] * scale;
      for (int64_t d = 0; d < dim; ++d) {
        int64_t place =
            d / columns * columns + layout::partialPlace(d % columns, columns);
        merged[d] +=
            element(partialOutput, partial * dim + place, ElementKind::FP16) *
            stats[2] * scale;
      }
    }
    double lse = splits > 1 ? std::log(total) : logSumExp[row];
    ASSERT_NEAR(lse, std::log(sum), 1e-4) << "row " << row;
    for (int64_t d = 0; d < dim; ++d) {
      double got = splits > 1
                       ? merged[d] / total
                       : element(output, row * dim + d, ElementKind::FP16);
      if (std::isinf(expected[d])) {
        // A probability of zero makes it NaN.
        ASSERT_FALSE(std::isfinite(got))
            << "row " << row << ", dimension " << d;
        continue;
      }
      // Probabilities and outputs are rounded to eleven bits, values below one.
      ASSERT_NEAR(got, expected[d], std::ldexp(1, -10))
          << "row " << row << ", dimension " << d;
    }
  }
}

TEST_F(MeetTest, AnInfiniteValueChangesItsOwnColumnAlone) {
  ASSERT_TRUE(lower({128, 2, 1, /*meetAtTile=*/false}));
  fill();
  values[5 * dim + 3] = encodeHalf(INFINITY, ElementKind::FP16);
  for (int splits : {1, 2}) {
    SCOPED_TRACE(splits);
    runSweep(splits, /*descendingWarps=*/false);
    expectAttention(splits);
  }
}

TEST_F(MeetTest, EverySchedule) {
  int64_t fitting = 0;
  for (int64_t dim : {64, 128, 256})
    for (int64_t keyWarps : {2, 4})
      for (int64_t rowTiles : {1, 2})
        for (bool meetAtTile : {false, true}) {
          Case which{dim, keyWarps, rowTiles, meetAtTile};
          SCOPED_TRACE(which.text());
          if (!lower(which))
            continue;
          ++fitting;
          fill();
          for (int splits : {1, 2}) {
            SCOPED_TRACE(splits);
            runSweep(splits, /*descendingWarps=*/splits == 2);
            expectAttention(splits);
            if (HasFatalFailure())
              return;
          }
        }
  // Two row tiles leave too few registers where a warp has 256 dimensions, or
  // 128 and the scores of 32 keys.
  EXPECT_EQ(fitting, 22);
}
