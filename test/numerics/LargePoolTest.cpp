//===- LargePoolTest.cpp - Offsets that do not fit 32 bits ----------------===//
//
// A pool whose pages lie on both sides of 2^31 bytes, 2^31 elements and 2^32
// elements. The pool is address space without memory: only the pages of the
// tables become resident.
//
//===----------------------------------------------------------------------===//

#include "runtime/JitCompiler.h"
#include "test/numerics/LaneRunner.h"

#include <gtest/gtest.h>

#include <cstring>
#include <sys/mman.h>

using namespace tokentile;

namespace {

/// Address space that is zero until it is written.
class SparseMemory {
public:
  explicit SparseMemory(int64_t bytes) : bytes(bytes) {
    void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    start = mapped == MAP_FAILED ? nullptr : static_cast<char *>(mapped);
  }
  ~SparseMemory() {
    if (start)
      munmap(start, bytes);
  }
  SparseMemory(const SparseMemory &) = delete;

  MemoryRange range() const { return {start, start + bytes, false}; }

  char *start = nullptr;
  int64_t bytes;
};

/// A problem whose pages are moved far apart, or for contiguous keys whose
/// requests are.
class LargePool {
public:
  LargePool(Problem &problem, const KernelInfo &info)
      : problem(problem), info(info), args(problem.getHostArgs()),
        isContiguous(info.pageOrder == PageOrder::Contiguous) {
    unit = isContiguous ? info.keySlotStride : args.keyPageStride;
    // The last place of a pool, in units, lies past 2^32 elements.
    units = (int64_t(1) << 33) / unit + 1024;
    isHeadMajor = info.pageOrder == PageOrder::HeadMajor;
    int64_t bytes = units * unit * (isHeadMajor ? info.kvHeads : 1);
    keys = std::make_unique<SparseMemory>(bytes);
    values = std::make_unique<SparseMemory>(bytes);
  }

  bool isMapped() const { return keys->start && values->start; }

  /// Moves everything and points the tables at it.
  void spread() {
    if (isContiguous)
      return spreadRequests();
    HostTensor &table = problem.getTensor("table");
    auto *ids = reinterpret_cast<int32_t *>(table.data());
    int64_t edges[] = {int64_t(1) << 31, int64_t(1) << 32, int64_t(1) << 33};
    int64_t moved = 0;
    for (int64_t i = 0; i < table.bytes / 4; ++i) {
      if (ids[i] < 0 || ids[i] >= args.poolPages)
        continue;
      // Pages before, at and behind each edge in turn.
      int64_t to = edges[moved % 3] / unit - 2 + moved / 3;
      ++moved;
      copyUnits(ids[i], to, 1);
      ids[i] = int32_t(to);
    }
    EXPECT_GE(moved, 9);
  }

  void adjust(KernelArgs &changed) const {
    changed.keys = keys->start;
    changed.values = values->start;
    if (isHeadMajor)
      changed.keyHeadStride = changed.valueHeadStride = units * unit;
    changed.poolPages = isContiguous ? 0 : int32_t(units);
  }

  std::unique_ptr<SparseMemory> keys, values;

private:
  void spreadRequests() {
    auto *offsets =
        reinterpret_cast<int32_t *>(problem.getTensor("key_offsets").data());
    int64_t edges[] = {int64_t(1) << 31, int64_t(1) << 32, int64_t(1) << 33};
    for (int32_t b = 0; b < args.batch; ++b) {
      int64_t to = edges[b % 3] / unit - 20;
      copyUnits(offsets[b], to, offsets[b + 1] - offsets[b]);
      offsets[b] = int32_t(to);
    }
  }

  void copyUnits(int64_t from, int64_t to, int64_t count) {
    int64_t heads = isHeadMajor ? info.kvHeads : 1;
    for (int64_t head = 0; head < heads; ++head) {
      int64_t source = head * args.keyHeadStride * (heads > 1) + from * unit;
      int64_t target = head * units * unit + to * unit;
      for (auto [pool, old] : {std::pair(keys.get(), args.keys),
                               std::pair(values.get(), args.values)})
        std::memcpy(pool->start + target,
                    static_cast<const char *>(old) + source, count * unit);
    }
  }

  Problem &problem;
  const KernelInfo &info;
  KernelArgs args;
  bool isContiguous, isHeadMajor = false;
  int64_t unit, units;
};

/// One pool order.
class OffsetsPast32Bits : public testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    testCase.specText =
        "attn.kernel @large heads<4 over 2, dim 256> tokens<3> sees<prefix "
        "all, suffix causal> keys<bf16> values<bf16> paging<" +
        GetParam() + "> block<in_pages> split<count of 2>";
    testCase.batch = 3;
    testCase.contexts = testCase.lengths = {45, 60, 37};
    testCase.columns = {3, 3, 3};
    auto made = LaneRunner::create(testCase.specText, "sm_80");
    ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
    lanes = std::move(*made);
    std::string error;
    problem = Problem::create(lanes->getSpec(), testCase, error);
    ASSERT_TRUE(problem) << error;
    pool = std::make_unique<LargePool>(*problem, lanes->getInfo());
    if (!pool->isMapped())
      GTEST_SKIP() << "the system grants no 16 GiB of address space";
    pool->spread();
  }

  Case testCase;
  std::unique_ptr<LaneRunner> lanes;
  std::unique_ptr<Problem> problem;
  std::unique_ptr<LargePool> pool;
};

TEST_P(OffsetsPast32Bits, OnTheHost) {
  StatusOr<CompiledKernel> kernel = compileKernel(testCase.specText, "host");
  ASSERT_TRUE(kernel.ok()) << kernel.status().toString();
  KernelArgs args = problem->getHostArgs();
  pool->adjust(args);
  WorkPlan work = planWork(kernel->info, {args.batch, args.maxKeys}, 4);
  args.items = work.items;
  args.slots = work.slots;
  args.mergeBlocks = work.mergeBlocks;
  args.partials = work.partials;
  Workspace workspace = workspaceOf(kernel->info, work, args.batch);
  std::vector<char> memory(workspace.bytes);
  workspace.place(memory.data(), args);
  problem->poisonOutputs();
  for (int32_t x = 0; x < args.items * 2; ++x)
    kernel->sweep(&args, x);
  for (int32_t x = 0; x < args.mergeBlocks; ++x)
    kernel->merge(&args, x);
  Comparison verdict = problem->check();
  EXPECT_TRUE(verdict.ok) << verdict.message;
}

TEST_P(OffsetsPast32Bits, LaneByLane) {
  lanes->allow(pool->keys->range());
  lanes->allow(pool->values->range());
  lanes->adjust = [&](KernelArgs &args) { pool->adjust(args); };
  auto outcome = lanes->run(*problem);
  ASSERT_TRUE(bool(outcome)) << llvm::toString(outcome.takeError());
  EXPECT_TRUE(outcome->comparison.ok) << outcome->comparison.message;
}

INSTANTIATE_TEST_SUITE_P(Orders, OffsetsPast32Bits,
                         testing::Values("page_major page 16",
                                         "head_major page 16", "nhd page 16",
                                         "contiguous"),
                         [](const auto &info) {
                           return info.param.substr(0, info.param.find(' '));
                         });

} // namespace
