//===- RangesTest.cpp - Blocks that sweep one request after another -------===//
//
// Compiles what blocks with ranges of tiles work out, for a thread alone and
// for a warp, and asks every block of a launch: each tile of each request must
// be swept once, blocks must have equally many, and the merge must find the
// partial results.
//
//===----------------------------------------------------------------------===//

#include "SpecBuilder.h"

#include "codegen/BlockContext.h"
#include "codegen/HostEngine.h"
#include "codegen/lanes/LaneExecutor.h"
#include "codegen/mma/WarpTeam.h"
#include "runtime/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;
using namespace tokentile::test;

namespace {

struct Item {
  int32_t block, request, part, parts, slot, first, end;
  bool operator==(const Item &) const = default;
};

/// Words of an item in memory, and items of a block at most.
constexpr int32_t kWords = 7, kMostItems = 96;

class RangesTest : public testing::Test {
protected:
  void SetUp() override;
  /// All items, block by block, of a launch that is planned for `bound` tiles a
  /// request. Fills `divisions` and `counts`.
  std::vector<Item> divide(const std::vector<int32_t> &tiles, int64_t bound,
                           bool byLanes);
  void expectComplete(const std::vector<int32_t> &tiles, int64_t bound);

  int32_t multiprocessors = 132;
  KernelInfo info;
  WorkPlan work;
  std::vector<int32_t> divisions, counts;

private:
  LLVM::LLVMFuncOp emit(const LaneTeam &team, unsigned space, StringRef name);

  SpecContext context;
  OwningOpRef<ModuleOp> module, forHost, forLanes;
  HostCode code;
  std::unique_ptr<LaneKernel> lanes;
};

} // namespace

/// A function that writes the items of block x of head 0 to `output`, and how
/// many they are to `logSumExp`.
LLVM::LLVMFuncOp RangesTest::emit(const LaneTeam &team, unsigned space,
                                  StringRef name) {
  ProgramOp program;
  for (ProgramOp op : module->getOps<ProgramOp>())
    if (op.getRole() == ProgramRole::Sweep)
      program = op;
  ImplicitLocOpBuilder b(program.getLoc(), program);
  Location loc = program.getLoc();
  Type i32 = b.getI32Type();
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  SmallVector<Type> types{pointer};
  if (space == 0)
    types.push_back(i32);
  auto function = LLVM::LLVMFuncOp::create(
      b, name,
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                  types));
  Block *entry = function.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  Value x = space ? NVVM::BlockIdXOp::create(b, i32).getResult()
                  : Value(entry->getArgument(1));
  BlockContext block(b, loc, program, entry->getArgument(0), team, space);
  auto mul = [&](Value l, int64_t r) -> Value {
    return arith::MulIOp::create(b, l, block.constant(b, r));
  };
  auto add = [&](Value l, Value r) -> Value {
    return arith::AddIOp::create(b, l, r);
  };
  auto store = [&](size_t list, Value index, Value value) {
    Value bytes = block.extend(b, mul(index, 4));
    Value address =
        arith::AddIOp::create(b, block.field(b, list, b.getI64Type()), bytes);
    LLVM::StoreOp::create(b, value, block.pointer(b, address));
  };
  Value count = block.findRange(b, mul(x, info.kvHeads * info.rowBlocks));
  store(offsetof(KernelArgs, logSumExp), x, count);
  Value zero = block.constant(b, 0), one = block.constant(b, 1);
  auto loop =
      scf::ForOp::create(b, zero, count, one, ValueRange{block.rangeStart()});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value index = loop.getInductionVar();
    Value next = block.beginInRange(b, index, loop.getRegionIterArg(0),
                                    /*leaves=*/true);
    Value at = mul(add(mul(x, kMostItems), index), kWords);
    Value values[] = {x,          block.request,   block.part,   block.parts,
                      block.slot, block.firstTile, block.endTile};
    for (auto [i, value] : llvm::enumerate(values))
      store(offsetof(KernelArgs, output), add(at, block.constant(b, i)), value);
    scf::YieldOp::create(b, next);
  }
  LLVM::ReturnOp::create(b, ValueRange());
  function->remove();
  return function;
}

void RangesTest::SetUp() {
  Spec spec;
  spec.queryHeads = 32;
  spec.kvHeads = 8;
  spec.dim = 128;
  spec.tokens = 9;
  spec.sees = "prefix all, suffix bidirectional";
  spec.rest = "query<bf16 token_major lengths total>";
  module = context.parse(spec.text());
  llvm::Error error = lowerTo(*module, Level::Tiles, "sm_90a");
  ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
  info = describeKernel(SpecContext::kernel(*module));
  ASSERT_FALSE(info.rangesSymbol.empty());
  forHost = ModuleOp::create(module->getLoc());
  forLanes = ModuleOp::create(module->getLoc());
  // The engine wants a merge too.
  forHost->push_back(emit(LaneTeam(), 0, "ranges"));
  forHost->push_back(emit(LaneTeam(), 0, "again"));
  LLVM::LLVMFuncOp ofLanes = emit(WarpTeam(), 1, "ranges");
  forLanes->push_back(ofLanes);
  auto decoded = LaneKernel::decode(ofLanes);
  ASSERT_TRUE(bool(decoded)) << llvm::toString(decoded.takeError());
  lanes = std::make_unique<LaneKernel>(std::move(*decoded));
  auto compiled = jitHostModule(*forHost, "ranges", "again");
  ASSERT_TRUE(bool(compiled)) << llvm::toString(compiled.takeError());
  code = std::move(*compiled);
}

std::vector<Item> RangesTest::divide(const std::vector<int32_t> &tiles,
                                     int64_t bound, bool byLanes) {
  std::vector<int32_t> lengths;
  for (int32_t count : tiles)
    lengths.push_back(count ? (count - 1) * info.keyTile + 1 : 0);
  Bounds bounds{int32_t(tiles.size()), int32_t(bound * info.keyTile)};
  work = planWork(info, bounds, multiprocessors);
  EXPECT_TRUE(work.ranges);
  std::vector<Item> out(work.items * kMostItems);
  counts.assign(work.items, -1);
  divisions.assign(tiles.size() * 2, INT32_MIN);
  KernelArgs args = {};
  args.output = out.data();
  args.logSumExp = reinterpret_cast<float *>(counts.data());
  args.lengths = lengths.data();
  args.divisions = divisions.data();
  args.batch = bounds.batch;
  args.items = work.items;
  args.slots = work.slots;
  args.partials = work.partials;
  args.maxKeys = bounds.keys;
  LaneOptions options;
  options.threads = 32;
  auto add = [&](auto &list, bool isWritten) {
    options.global.push_back(
        {list.data(), list.data() + list.size(), isWritten});
  };
  add(lengths, false);
  add(divisions, true);
  add(out, true);
  add(counts, true);
  std::vector<Item> items;
  for (int32_t x = 0; x < work.items; ++x) {
    if (byLanes) {
      auto report = lanes->run(args, x, 0, 0, options);
      EXPECT_TRUE(bool(report)) << llvm::toString(report.takeError());
    } else {
      code.sweep(&args, x);
    }
    EXPECT_LE(counts[x], kMostItems);
    auto first = out.begin() + x * kMostItems;
    items.insert(items.end(), first, first + counts[x]);
  }
  return items;
}

void RangesTest::expectComplete(const std::vector<int32_t> &tiles,
                                int64_t bound) {
  std::vector<Item> items = divide(tiles, bound, false);
  std::vector<std::vector<Item>> found(tiles.size());
  std::vector<int64_t> places(work.items);
  std::map<int32_t, int> slots;
  for (const Item &item : items) {
    ASSERT_GE(item.request, 0);
    ASSERT_LT(item.request, int32_t(tiles.size()));
    found[item.request].push_back(item);
    // A request without tiles takes a place too.
    places[item.block] += tiles[item.request] ? item.end - item.first : 1;
    if (item.parts == 1) {
      ASSERT_EQ(item.slot, -1 - item.request);
      continue;
    }
    ASSERT_GE(item.slot, 0);
    ASSERT_LT(item.slot, work.partials);
    ASSERT_EQ(++slots[item.slot], 1) << "slot " << item.slot;
  }
  // Of few tiles the last blocks have none.
  while (places.back() == 0)
    places.pop_back();
  auto [least, most] = std::minmax_element(places.begin(), places.end());
  ASSERT_LE(*most - *least, 1);
  ASSERT_TRUE(*least >= 4 || places.size() == 1);
  for (size_t r = 0; r < tiles.size(); ++r) {
    SCOPED_TRACE("request " + std::to_string(r));
    const std::vector<Item> &parts = found[r];
    ASSERT_FALSE(parts.empty());
    int32_t end = 0;
    for (size_t p = 0; p < parts.size(); ++p) {
      ASSERT_EQ(parts[p].part, int32_t(p));
      ASSERT_EQ(parts[p].parts, int32_t(parts.size()));
      ASSERT_EQ(parts[p].first, end);
      end = parts[p].end;
      ASSERT_TRUE(end > parts[p].first || tiles[r] == 0);
    }
    ASSERT_EQ(end, tiles[r]);
    // What the merge is told.
    ASSERT_EQ(divisions[2 * r], int32_t(parts.size()));
    for (size_t p = 0; p < parts.size() && parts.size() > 1; ++p)
      ASSERT_EQ(parts[p].slot, divisions[2 * r + 1] + int32_t(p));
  }
}

TEST_F(RangesTest, EveryTileIsSweptOnce) {
  for (const std::vector<int32_t> &tiles : {std::vector<int32_t>{0, 0},
                                            {1, 0},
                                            {0, 1},
                                            {700, 700},
                                            {1, 700},
                                            {700, 0, 1},
                                            {0, 0, 0, 33},
                                            {33, 33, 33},
                                            {2, 31, 700, 5, 0, 0}})
    expectComplete(tiles, 700);
}

TEST_F(RangesTest, RandomBatches) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    multiprocessors = 4 + random() % 200;
    size_t batch = 2 + random() % 90;
    std::vector<int32_t> tiles(batch);
    int32_t most = 1 + random() % 400, zeros = random() % 4;
    for (int32_t &count : tiles)
      count = int32_t(random() % 4) < zeros ? 0 : random() % (most + 1);
    expectComplete(tiles, 1000);
    if (HasFatalFailure())
      return;
  }
}

TEST_F(RangesTest, AWarpFindsWhatAThreadFinds) {
  std::mt19937 random(4);
  for (size_t batch : {2, 3, 8, 31, 32, 33, 65}) {
    std::vector<int32_t> tiles(batch);
    for (int32_t &count : tiles)
      count = random() % 90;
    std::vector<Item> alone = divide(tiles, 1000, false);
    std::vector<int32_t> left = divisions;
    EXPECT_EQ(alone, divide(tiles, 1000, true)) << "batch " << batch;
    EXPECT_EQ(left, divisions);
  }
}

/// Of few tiles and of single requests items are better; with a window requests
/// are of one length, and each has a place if they fill the device.
TEST_F(RangesTest, ShortBatchesHaveNone) {
  auto hasRanges = [&](int32_t batch, int32_t keys) {
    return planWork(info, {batch, keys}, 132).ranges;
  };
  EXPECT_FALSE(hasRanges(1, 1 << 20));
  EXPECT_FALSE(hasRanges(8, 1309));
  EXPECT_TRUE(hasRanges(8, 8009));
  EXPECT_TRUE(hasRanges(32, 8009));
  info.window = 2048;
  EXPECT_TRUE(hasRanges(16, 8009));
  EXPECT_FALSE(hasRanges(32, 8009));
  EXPECT_TRUE(hasRanges(40, 8009));
  info.rangesSymbol.clear();
  EXPECT_FALSE(hasRanges(16, 8009));
}

TEST_F(RangesTest, ARequestHasNoMorePartsThanAMergeTakes) {
  info.kvHeads = 1;
  WorkPlan one = planWork(info, {2, 1 << 17}, 132);
  EXPECT_TRUE(one.ranges);
  EXPECT_EQ(one.items, 256);
  EXPECT_EQ(one.partials, 256 + 2);
}
