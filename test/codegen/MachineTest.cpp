//===- MachineTest.cpp - Kernels of the machine level, lane by lane -------===//
//
// Runs sweeps of small problems on the lane executor with the shared memory
// that describeKernel states. All scores are equal and the value of key k is k
// in each dimension, so an output is the mean number of the keys that its row
// sees. Every slot that no row sees holds NaN, and table entries past the
// request, or before its window, name no page.
//
//===----------------------------------------------------------------------===//

#include "SpecBuilder.h"

#include "codegen/lanes/LaneExecutor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;
using namespace tokentile::test;

static uint16_t bf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits >> 16;
}

static float fromBf16(uint16_t half) {
  uint32_t bits = uint32_t(half) << 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

namespace {

constexpr int64_t kPage = 16;

struct Problem {
  Spec spec;
  int64_t length = 200;
  /// 0 without a window.
  int64_t window = 0;
  int64_t columns = 8;

  int64_t context() const { return length - columns; }
  bool sees(int64_t token, int64_t key) const {
    int64_t position = context() + token;
    return key <= position && (!window || position - key < window);
  }
  /// Whether some row sees a key.
  bool holds(int64_t key) const {
    return key < length && (!window || sees(0, key) || key > context());
  }
  /// The mean number of the keys that a row sees.
  double mean(int64_t token) const {
    double sum = 0, count = 0;
    for (int64_t k = 0; k < length; ++k)
      if (sees(token, k)) {
        sum += k;
        ++count;
      }
    return token < columns ? sum / count : 0;
  }
};

/// The memory of one launch, one request.
struct Tensors {
  Tensors(const Problem &problem, const KernelInfo &info);

  KernelArgs args(const Problem &problem, const KernelInfo &info);
  /// What the kernel may read and write.
  LaneOptions options(const KernelInfo &info);

  std::vector<uint16_t> query, output, keys, values;
  std::vector<int32_t> table, lengths, columns;
};

class MachineTest : public testing::Test {
protected:
  void lower(const Problem &problem) {
    module = context.parse(problem.spec.text());
    llvm::Error error = lowerTo(*module, Level::Plan, "sm_86");
    ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
    info = describeKernel(SpecContext::kernel(*module));
    error = lowerTo(*module, Level::Machine, "sm_86");
    // The plan is planned again as it stands.
    ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
    module->walk([&](LLVM::LLVMFuncOp function) {
      if (function.getName() == info.sweepSymbol)
        sweep = function;
    });
    ASSERT_TRUE(sweep);
  }

  /// Runs every block of kv head 0 and compares the live rows.
  void expectMeans(const Problem &problem);

  SpecContext context;
  OwningOpRef<ModuleOp> module;
  LLVM::LLVMFuncOp sweep;
  KernelInfo info;
};

/// 64 rows in four warps, two key warps, tiles of two pages.
Problem problem(const std::string &rest = "") {
  Problem p;
  p.spec.queryHeads = 16;
  p.spec.kvHeads = 2;
  p.spec.dim = 64;
  p.spec.tokens = 8;
  p.spec.paging = "page_major page 16";
  p.spec.rest = rest + " schedule<mma key_tile 32 row_warps 4 key_warps 2 "
                       "stages 2>";
  return p;
}

} // namespace

Tensors::Tensors(const Problem &problem, const KernelInfo &info)
    : query(info.tokens * info.queryHeads * info.headDim, bf16(1)),
      output(query.size(), bf16(NAN)), lengths{int32_t(problem.context())},
      columns{int32_t(problem.columns)} {
  int64_t dim = info.headDim, kv = info.kvHeads;
  int64_t pages = (problem.length + kPage - 1) / kPage;
  keys.assign(pages * kv * kPage * dim, bf16(NAN));
  values = keys;
  table.assign(pages + 4, INT32_MAX / 2);
  for (int64_t k = 0; k < problem.length; ++k) {
    if (!problem.holds(k))
      continue;
    int64_t page = pages - 1 - k / kPage;
    table[k / kPage] = page;
    for (int64_t d = 0; d < dim; ++d) {
      int64_t at = (page * kv * kPage + k % kPage) * dim + d;
      keys[at] = bf16(0);
      values[at] = bf16(float(k));
    }
  }
}

KernelArgs Tensors::args(const Problem &problem, const KernelInfo &info) {
  int64_t dim = info.headDim, heads = info.queryHeads, kv = info.kvHeads;
  KernelArgs args = {};
  args.query = query.data();
  args.output = output.data();
  args.keys = keys.data();
  args.values = values.data();
  args.table = table.data();
  args.lengths = lengths.data();
  args.columns = columns.data();
  args.queryTokenStride = args.outputTokenStride = heads * dim * 2;
  args.queryHeadStride = args.outputHeadStride = dim * 2;
  args.keyPageStride = args.valuePageStride = kv * kPage * dim * 2;
  args.keyHeadStride = args.valueHeadStride = kPage * dim * 2;
  args.tableStride = table.size();
  args.batch = 1;
  args.items = args.slots = 1;
  args.maxKeys = problem.length;
  return args;
}

LaneOptions Tensors::options(const KernelInfo &info) {
  LaneOptions options;
  options.threads = info.threads;
  options.sharedBytes = info.sharedBytes;
  options.poisonIsError = true;
  auto range = [&](auto &data, bool writable) {
    options.global.push_back(
        {data.data(), data.data() + data.size(), writable});
  };
  range(query, false);
  range(output, true);
  range(keys, false);
  range(values, false);
  range(table, false);
  range(lengths, false);
  range(columns, false);
  return options;
}

void MachineTest::expectMeans(const Problem &problem) {
  lower(problem);
  Tensors tensors(problem, info);
  KernelArgs args = tensors.args(problem, info);
  LaneOptions options = tensors.options(info);
  for (int x = 0; x < info.rowBlocks; ++x) {
    auto report = executeBlock(sweep, args, x, 0, 0, options);
    ASSERT_TRUE(bool(report)) << llvm::toString(report.takeError());
    EXPECT_EQ(report->poisonReads, 0);
    EXPECT_EQ(report->ldmatrixConflicts, 0);
    EXPECT_EQ(report->copyConflicts, 0);
    if (problem.columns == 0)
      EXPECT_EQ(report->mmas, 0) << "nothing to do";
  }
  int64_t dim = info.headDim, heads = info.queryHeads, kv = info.kvHeads;
  for (int64_t token = 0; token < info.tokens; ++token) {
    double mean = problem.mean(token);
    for (int64_t head = 0; head < heads / kv; ++head)
      for (int64_t d = 0; d < dim; ++d)
        ASSERT_NEAR(fromBf16(tensors.output[(token * heads + head) * dim + d]),
                    mean, mean / 128)
            << "token " << token << ", head " << head << ", dimension " << d;
  }
}

TEST_F(MachineTest, KeyWarpsMeetWithinSharedMemory) {
  // A bug, mended: the meeting wrote past what describeKernel states.
  expectMeans(problem());
}

TEST_F(MachineTest, SlotsBeforeTheWindowReachNoResult) {
  // A bug, mended: tiles across the edge of a window were copied whole.
  for (int64_t window : {1, 8, 33, 40, 100}) {
    SCOPED_TRACE(window);
    Problem p = problem();
    p.window = window;
    p.spec.sees =
        "prefix left within " + std::to_string(window) + ", suffix causal";
    expectMeans(p);
  }
}

TEST_F(MachineTest, LengthsAtEdgesOfTilesAndPages) {
  for (int64_t length : {8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 191, 193}) {
    SCOPED_TRACE(length);
    Problem p = problem();
    p.length = length;
    expectMeans(p);
  }
}

TEST_F(MachineTest, MaskedColumnsAreZeroAndCostNothingAlone) {
  for (int64_t columns : {0, 1, 5}) {
    SCOPED_TRACE(columns);
    Problem p = problem("query<bf16 token_major columns counted>");
    p.columns = columns;
    expectMeans(p);
  }
}

TEST_F(MachineTest, RowBlocksWithPaddedRows) {
  // 56 rows in two blocks of 32: the last eight have no query.
  Problem p = problem();
  p.spec.tokens = p.columns = 7;
  p.spec.rest = "schedule<mma key_tile 32 row_warps 2 key_warps 1 stages 3 "
                "row_blocks 2 max_sweeps 2>";
  expectMeans(p);
}

TEST_F(MachineTest, GroupsThatDoNotDivideAWarpOfRows) {
  for (int64_t group : {3, 5, 7}) {
    SCOPED_TRACE(group);
    Problem p = problem();
    p.spec.queryHeads = 2 * group;
    p.spec.rest = "schedule<mma key_tile 64 stages 2>";
    expectMeans(p);
  }
}
