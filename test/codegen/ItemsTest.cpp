//===- ItemsTest.cpp - Who sweeps which part of which request -------------===//
//
// Compiles what a block works out before it begins, for a thread alone and for
// a warp, and asks every block of a launch. Each part of each request must be
// the item of exactly one block, and items must keep the device evenly busy:
// blocks are then given to free places in their order, as a GPU does.
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

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <queue>
#include <random>

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;
using namespace tokentile::test;

namespace {

/// What a block of a sweep, or a row of a merge, works out.
struct Item {
  int32_t request, part, parts, slot, first, end;
  bool operator==(const Item &) const = default;

  int64_t tiles() const { return end - first; }
};

/// What the blocks of one kv head were given, of one launch.
struct Division {
  std::vector<Item> items;
  /// Requests to merge, in the order of the merge's rows.
  std::vector<Item> merged;
};

class ItemsTest : public testing::Test {
protected:
  /// `spec` is of one query token; its `rest` may say how it splits.
  void compile(const Spec &spec, StringRef chip);
  /// Plans for these lengths, or for longer ones, and asks every block.
  Division divide(const std::vector<int32_t> &tiles, int64_t bound = 0,
                  bool byLanes = false);
  void expectComplete(const std::vector<int32_t> &tiles, int64_t bound = 0);
  /// Plans of pieces: each is swept once for every size that rows have. A row
  /// has at most `most` that grow, or if that is 0 all are of 256 keys.
  void expectPieces(const std::vector<int32_t> &tiles, int64_t bound,
                    int32_t most, int32_t window);
  /// The time of uniform work of the same tiles over the time until the last
  /// block ends; an item costs a tile more than it has.
  double evenness(const std::vector<int32_t> &tiles, int64_t bound = 0);

  int32_t multiprocessors = 132;
  KernelInfo info;
  WorkPlan work;

private:
  LLVM::LLVMFuncOp emit(const LaneTeam &team, unsigned space, bool merge);

  SpecContext context;
  OwningOpRef<ModuleOp> module, forHost, forLanes;
  HostCode code;
  std::unique_ptr<LaneKernel> sweepLanes, mergeLanes;
};

} // namespace

/// A function that writes item x to output[x]: of the sweep, or what its merge
/// knows of request x.
LLVM::LLVMFuncOp ItemsTest::emit(const LaneTeam &team, unsigned space,
                                 bool merge) {
  ProgramOp program;
  for (ProgramOp op : module->getOps<ProgramOp>())
    if ((op.getRole() == ProgramRole::Merge) == merge)
      program = op;
  OpBuilder b(program);
  Location loc = program.getLoc();
  Type i32 = b.getI32Type();
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  SmallVector<Type> types{pointer};
  if (space == 0)
    types.push_back(i32);
  auto function = LLVM::LLVMFuncOp::create(
      b, loc, merge ? "rows" : "items",
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                  types));
  Block *entry = function.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  Value x = space ? NVVM::BlockIdXOp::create(b, loc, i32).getResult()
                  : Value(entry->getArgument(1));
  BlockContext block(b, loc, program, entry->getArgument(0), team, space);
  SmallVector<Value> values;
  if (merge) {
    // Row 0 of head 0 of the request.
    MergeUnits units = block.countUnits(b, /*rows=*/1, /*several=*/true);
    Value all = block.constant(b, info.rows * info.kvHeads);
    block.findUnit(b, units, arith::MulIOp::create(b, loc, x, all));
    Value slot = block.slotOfPart(b, block.constant(b, 0));
    values = {block.request, block.part, block.parts, slot, x, x};
  } else {
    Value heads = block.constant(b, info.kvHeads * info.rowBlocks);
    block.findItem(b, arith::MulIOp::create(b, loc, x, heads));
    values = {block.request, block.part,      block.parts,
              block.slot,    block.firstTile, block.endTile};
  }
  Value start = block.field(b, offsetof(KernelArgs, output), b.getI64Type());
  for (auto [i, value] : llvm::enumerate(values)) {
    Value at = arith::AddIOp::create(
        b, loc, arith::MulIOp::create(b, loc, x, block.constant(b, 6)),
        block.constant(b, i));
    Value bytes = arith::MulIOp::create(b, loc, block.extend(b, at),
                                        block.constant64(b, 4));
    Value address = arith::AddIOp::create(b, loc, start, bytes);
    LLVM::StoreOp::create(b, loc, value, block.pointer(b, address));
  }
  LLVM::ReturnOp::create(b, loc, ValueRange());
  function->remove();
  return function;
}

void ItemsTest::compile(const Spec &spec, StringRef chip) {
  module = context.parse(spec.text());
  llvm::Error error = lowerTo(*module, Level::Tiles, chip);
  ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
  info = describeKernel(SpecContext::kernel(*module));
  // RangesTest.cpp has those.
  info.rangesSymbol.clear();
  forHost = ModuleOp::create(module->getLoc());
  forLanes = ModuleOp::create(module->getLoc());
  for (bool merge : {false, true}) {
    forHost->push_back(emit(LaneTeam(), 0, merge));
    LLVM::LLVMFuncOp lanes = emit(WarpTeam(), 1, merge);
    forLanes->push_back(lanes);
    auto decoded = LaneKernel::decode(lanes);
    ASSERT_TRUE(bool(decoded)) << llvm::toString(decoded.takeError());
    (merge ? mergeLanes : sweepLanes) =
        std::make_unique<LaneKernel>(std::move(*decoded));
  }
  auto compiled = jitHostModule(*forHost, "items", "rows");
  ASSERT_TRUE(bool(compiled)) << llvm::toString(compiled.takeError());
  code = std::move(*compiled);
}

Division ItemsTest::divide(const std::vector<int32_t> &tiles, int64_t bound,
                           bool byLanes) {
  // Whole tiles and the tile's first key: `lengths<total>`.
  std::vector<int32_t> lengths;
  for (int32_t count : tiles)
    lengths.push_back(count ? (count - 1) * info.keyTile + 1 : 0);
  int64_t longest = *std::max_element(tiles.begin(), tiles.end());
  Bounds bounds{int32_t(tiles.size()),
                int32_t(std::max<int64_t>({longest, bound, 1}) * info.keyTile)};
  work = planWork(info, bounds, multiprocessors);
  std::vector<Item> out(std::max<int64_t>(work.items, bounds.batch) + 1,
                        Item{-7, -7, -7, -7, -7, -7});
  KernelArgs args = {};
  args.output = out.data();
  args.lengths = lengths.data();
  std::vector<int32_t> divisions(bounds.batch * 2, INT32_MIN);
  args.divisions = work.merges() ? divisions.data() : nullptr;
  args.batch = bounds.batch;
  args.items = work.items;
  args.slots = work.slots;
  args.mergeBlocks = work.mergeBlocks;
  args.partials = work.partials;
  args.maxKeys = bounds.keys;
  auto run = [&](const LaneKernel &lanes, HostKernelFn host, int32_t x) {
    if (!byLanes)
      return host(&args, x);
    LaneOptions options;
    options.threads = 32;
    options.global = {
        {lengths.data(), lengths.data() + lengths.size(), false},
        {divisions.data(), divisions.data() + divisions.size(), true},
        {out.data(), out.data() + out.size(), true}};
    auto report = lanes.run(args, x, 0, 0, options);
    ASSERT_TRUE(bool(report)) << llvm::toString(report.takeError());
  };
  Division division;
  for (int32_t x = 0; x < work.items; ++x)
    run(*sweepLanes, code.sweep, x);
  division.items.assign(out.begin(), out.begin() + work.items);
  EXPECT_EQ(out.back().request, -7);
  if (!work.merges())
    return division;
  for (int32_t request = 0; request < bounds.batch; ++request) {
    run(*mergeLanes, code.merge, request);
    bool always = info.splitPolicy == SplitPolicy::Keys ||
                  info.splitPolicy == SplitPolicy::Pieces;
    if (always || out[request].parts > 1)
      division.merged.push_back(out[request]);
  }
  return division;
}

void ItemsTest::expectComplete(const std::vector<int32_t> &tiles,
                               int64_t bound) {
  Division division = divide(tiles, bound);
  std::vector<std::vector<int>> seen(tiles.size());
  std::map<int32_t, int> slots;
  for (const Item &item : division.items) {
    if (item.parts == 0)
      continue;
    ASSERT_GE(item.request, 0);
    ASSERT_LT(item.request, int32_t(tiles.size()));
    auto edge = [&](int64_t part) {
      return tiles[item.request] * part / item.parts;
    };
    ASSERT_EQ(item.first, edge(item.part));
    ASSERT_EQ(item.end, edge(item.part + 1));
    ASSERT_GE(item.part, 0);
    ASSERT_LT(item.part, item.parts);
    ASSERT_LE(item.parts, std::max(1, tiles[item.request]));
    seen[item.request].resize(item.parts);
    ASSERT_EQ(int32_t(seen[item.request].size()), item.parts);
    ++seen[item.request][item.part];
    if (item.parts > 1) {
      ASSERT_GE(item.slot, 0);
      ASSERT_LT(item.slot, work.partials);
      ASSERT_EQ(++slots[item.slot], 1) << "slot " << item.slot;
    }
  }
  std::map<int32_t, Item> merged;
  for (const Item &item : division.merged)
    ASSERT_TRUE(merged.insert({item.request, item}).second);
  for (size_t r = 0; r < tiles.size(); ++r) {
    ASSERT_FALSE(seen[r].empty()) << "request " << r << " has no item";
    for (int count : seen[r])
      ASSERT_EQ(count, 1) << "request " << r;
    ASSERT_EQ(merged.count(r), seen[r].size() > 1) << "request " << r;
  }
  for (const Item &item : division.items) {
    if (item.parts < 2)
      continue;
    const Item &row = merged.at(item.request);
    ASSERT_EQ(row.parts, item.parts);
    ASSERT_EQ(row.slot + item.part, item.slot);
  }
}

void ItemsTest::expectPieces(const std::vector<int32_t> &tiles, int64_t bound,
                             int32_t most, int32_t window) {
  Division division = divide(tiles, bound);
  ASSERT_EQ(division.merged.size(), tiles.size());
  // By request and first tile.
  std::map<std::pair<int32_t, int32_t>, std::vector<Item>> found;
  std::map<int32_t, int> slots;
  for (const Item &item : division.items) {
    if (item.parts == 0)
      continue;
    ASSERT_EQ(++slots[item.slot], 1) << "slot " << item.slot;
    ASSERT_GE(item.slot, 0);
    ASSERT_LT(item.slot, work.partials);
    found[{item.request, item.first}].push_back(item);
  }
  int32_t tile = info.keyTile, least = (256 + tile - 1) / tile;
  auto sizeOf = [&](int32_t seen) {
    if (window)
      seen = std::min(seen, (window + tile - 1) / tile + 1);
    return most ? std::max((seen + most - 1) / most, least) : 256 / tile;
  };
  for (int32_t r = 0; r < int32_t(tiles.size()); ++r) {
    SCOPED_TRACE("request " + std::to_string(r) + " of " +
                 std::to_string(tiles[r]) + " tiles");
    auto take = [&](int32_t first, int32_t end) {
      std::vector<Item> &items = found[{r, first}];
      auto item = llvm::find_if(items, [&](Item i) { return i.end == end; });
      if (item == items.end())
        return -1;
      int32_t slot = item->slot;
      items.erase(item);
      return slot;
    };
    // The newest row is at the first key of its tile.
    int32_t newest = tiles[r];
    int32_t position = std::max((newest - 1) * tile + 1 - info.tokens, 0);
    int32_t oldest = newest ? position / tile + 1 : 0;
    int32_t start = window ? std::max(position - window + 1, 0) / tile : 0;
    int32_t firstSlot = -1;
    auto takeAll = [&](int32_t size, int32_t end) {
      firstSlot = -1;
      for (int32_t p = start / size; p * size < end; ++p) {
        int32_t first = std::max(p * size, start);
        int32_t slot = take(first, std::min((p + 1) * size, end));
        ASSERT_GE(slot, 0) << "no piece at " << first;
        firstSlot = firstSlot < 0 ? slot : firstSlot;
      }
    };
    int32_t size = sizeOf(newest), oldSize = sizeOf(oldest);
    takeAll(size, newest);
    if (newest && oldSize != size)
      takeAll(oldSize, std::min(newest, oldSize * most));
    // Row 0 is the oldest.
    const Item &row = division.merged[r];
    ASSERT_EQ(row.parts,
              newest ? (oldest - 1) / oldSize - start / oldSize + 1 : 0);
    if (row.parts)
      ASSERT_EQ(row.slot, firstSlot);
  }
  for (const auto &[where, items] : found)
    ASSERT_TRUE(items.empty()) << "request " << where.first << " has a piece "
                               << "more at tile " << where.second;
}

double ItemsTest::evenness(const std::vector<int32_t> &tiles, int64_t bound) {
  Division division = divide(tiles, bound);
  std::priority_queue<double, std::vector<double>, std::greater<>> free;
  for (int32_t i = 0; i < multiprocessors; ++i)
    free.push(0);
  double last = 0, all = 0;
  for (const Item &item : division.items)
    for (int32_t head = 0; head < info.kvHeads && item.parts; ++head) {
      double end = free.top() + item.tiles() + 1;
      free.pop();
      free.push(end);
      last = std::max(last, end);
      all += item.tiles();
    }
  return (all / multiprocessors + 1) / last;
}

namespace {

Spec decodeSpec(int64_t queryHeads, int64_t kvHeads, int64_t dim) {
  Spec spec;
  spec.queryHeads = queryHeads;
  spec.kvHeads = kvHeads;
  spec.dim = dim;
  spec.tokens = 1;
  spec.rest = "query<bf16 token_major lengths total>";
  return spec;
}

std::vector<int32_t> randomTiles(std::mt19937 &random, size_t batch,
                                 int32_t most) {
  std::vector<int32_t> tiles(batch);
  // Some batches are even, some have one long request, many have empty ones.
  int32_t kind = random() % 4;
  for (int32_t &count : tiles)
    count = kind == 0 ? most : random() % (most + 1) >> (random() % kind * 2);
  if (kind == 3)
    tiles[random() % batch] = most;
  return tiles;
}

} // namespace

TEST_F(ItemsTest, SmallBatchesOfAllLengths) {
  compile(decodeSpec(24, 4, 256), "sm_90a");
  for (int32_t slots : {1, 2, 3, 5}) {
    multiprocessors = slots * 4;
    for (int32_t a = 0; a <= 9; ++a) {
      expectComplete({a}, 9);
      for (int32_t b = 0; b <= 9; ++b) {
        expectComplete({a, b}, 9);
        for (int32_t c = 0; c <= 9; c += 3)
          expectComplete({a, b, c}, 9);
      }
    }
    if (HasFatalFailure())
      return;
  }
}

TEST_F(ItemsTest, RandomBatches) {
  std::mt19937 random(3);
  for (auto [heads, kv] : {std::pair(24, 4), std::pair(16, 2), {32, 8}}) {
    compile(decodeSpec(heads, kv, 128), "sm_90a");
    for (int round = 0; round < 400; ++round) {
      multiprocessors = 1 + random() % 264;
      size_t batch = 1 + random() % 70;
      int32_t most = 1 + random() % (round % 2 ? 40 : 3000);
      expectComplete(randomTiles(random, batch, most), most);
      if (HasFatalFailure())
        return;
    }
  }
}

TEST_F(ItemsTest, LongAndManyRequests) {
  compile(decodeSpec(24, 4, 256), "sm_90a");
  // Up to the limits of what is divided, and past them.
  expectComplete({(1 << 15) - 1, 1, 1 << 15});
  expectComplete({(1 << 15) + 1, 1, 7});
  expectComplete(std::vector<int32_t>(1024, 1 << 14), 1 << 15);
  std::vector<int32_t> tiles(2000, 3);
  tiles[1999] = 4000;
  expectComplete(tiles);
}

TEST_F(ItemsTest, PlansThatFixTheParts) {
  std::mt19937 random(4);
  Spec spec = decodeSpec(24, 4, 256);
  spec.rest += " split<count of 5>";
  compile(spec, "sm_90a");
  for (int round = 0; round < 100; ++round) {
    expectComplete(randomTiles(random, 1 + random() % 20, 30), 30);
    if (HasFatalFailure())
      return;
  }
}

TEST_F(ItemsTest, PiecesHaveTheSizeOfTheirRows) {
  std::mt19937 random(4);
  struct PieceCase {
    int64_t heads, kv, dim, tokens;
    const char *rest;
    int32_t most, window;
  };
  const PieceCase cases[] = {
      {24, 4, 256, 1, "split<keys of 256>", 0, 0},
      {24, 4, 256, 16, "split<keys of 256>", 0, 0},
      {24, 4, 256, 16, "split<keys of 256>", 0, 700},
      {24, 4, 256, 1, "split<pieces of 5>", 5, 0},
      {24, 4, 256, 16, "split<pieces of 5>", 5, 0},
      {24, 4, 256, 16, "split<pieces of 5>", 5, 2500},
      {24, 4, 256, 16, "schedule<auto invariant>", 33, 0},
      // The fewest pieces of the smallest tiles for the most tokens.
      {4, 4, 64, 64, "split<pieces of 4> schedule<mma key_tile 16>", 4, 0},
      {4, 4, 64, 64, "split<pieces of 4> schedule<mma key_tile 16>", 4, 1111},
  };
  for (const PieceCase &test : cases) {
    SCOPED_TRACE(std::to_string(test.tokens) + " tokens, window " +
                 std::to_string(test.window) + ", " + test.rest);
    Spec spec = decodeSpec(test.heads, test.kv, test.dim);
    spec.tokens = test.tokens;
    spec.rest += std::string(" ") + test.rest;
    if (test.window)
      spec.sees = "prefix left within " + std::to_string(test.window) +
                  ", suffix causal";
    compile(spec, "sm_90a");
    int32_t most = 12 * 1024 / info.keyTile;
    for (int32_t tiles = 0; tiles <= most; ++tiles)
      expectPieces({tiles}, most, test.most, test.window);
    for (int round = 0; round < 20; ++round)
      expectPieces(randomTiles(random, 1 + random() % 20, most), most,
                   test.most, test.window);
    if (HasFatalFailure())
      return;
  }
}

TEST_F(ItemsTest, AWarpFindsWhatAThreadFinds) {
  std::mt19937 random(5);
  for (const char *split : {"", " split<count of 3>", " split<keys of 256>",
                            " split<pieces of 7>", " schedule<wgmma>"}) {
    Spec spec = decodeSpec(24, 4, 128);
    spec.rest += split;
    compile(spec, "sm_90a");
    for (int round = 0; round < 12; ++round) {
      multiprocessors = 4 + random() % 40;
      size_t batch = round < 3 ? round + 1 : 1 + random() % 70;
      std::vector<int32_t> tiles = randomTiles(random, batch, 60);
      Division alone = divide(tiles, 60), lanes = divide(tiles, 60, true);
      EXPECT_EQ(alone.items, lanes.items) << "batch " << batch;
      EXPECT_EQ(alone.merged, lanes.merged) << "batch " << batch;
    }
  }
}

TEST_F(ItemsTest, AWarpFindsWhatAThreadFindsOfFewTiles) {
  // Of few tiles each is a part of its own.
  compile(decodeSpec(24, 4, 256), "sm_90a");
  for (std::vector<int32_t> tiles : {std::vector<int32_t>{0, 0, 11, 0},
                                     {1, 1, 6, 0},
                                     {5, 6, 1, 10},
                                     {0, 0},
                                     {2, 1}}) {
    Division alone = divide(tiles, 11), lanes = divide(tiles, 11, true);
    EXPECT_EQ(alone.items, lanes.items);
    EXPECT_EQ(alone.merged, lanes.merged);
    expectComplete(tiles, 11);
  }
}

TEST_F(ItemsTest, ARequestAloneFillsTheDevice) {
  compile(decodeSpec(24, 4, 256), "sm_90a");
  for (int32_t tiles : {1, 5, 32, 33, 34, 257, 2048}) {
    Division division = divide({tiles}, 2048);
    EXPECT_EQ(division.items[0].parts, std::min(tiles, 33));
    EXPECT_EQ(work.items, 33);
  }
}

TEST_F(ItemsTest, OneLongAmongManyShort) {
  for (auto [heads, kv] : {std::pair(16, 2), std::pair(24, 4), {32, 8}}) {
    compile(decodeSpec(heads, kv, 128), "sm_90a");
    std::vector<int32_t> tiles(32, 64 * 64 / info.keyTile);
    tiles[13] = 32 * tiles[0];
    EXPECT_GE(evenness(tiles), 0.90) << kv << " kv heads";
    // One request is divided; the others need no merge.
    EXPECT_EQ(divide(tiles).merged.size(), 1u) << kv << " kv heads";
  }
}

TEST_F(ItemsTest, RaggedBatchesAreEven) {
  for (auto [heads, kv, least] :
       {std::tuple(16, 2, 0.69), std::tuple(24, 4, 0.72), {32, 8, 0.70}}) {
    compile(decodeSpec(heads, kv, 128), "sm_90a");
    std::mt19937 random(6);
    for (size_t batch : {8, 16, 32}) {
      double sum = 0;
      for (int round = 0; round < 20; ++round) {
        std::vector<int32_t> tiles(batch);
        for (int32_t &count : tiles)
          count = (200 + random() % 7800) / info.keyTile + 1;
        double even = evenness(tiles);
        EXPECT_GE(even, least)
            << kv << " kv heads, batch " << batch << ", round " << round;
        sum += even;
      }
      // A launch has two rounds of parts more than requests. A third would make
      // this 0.81 instead of 0.80 for two kv heads, but draft batches 1 to 3 us
      // slower on an H200.
      EXPECT_GE(sum / 20, 0.79) << kv << " kv heads, batch " << batch;
    }
  }
}

TEST_F(ItemsTest, BlocksThatShareAMultiprocessorTakeSmallParts) {
  Spec spec = decodeSpec(32, 8, 128);
  spec.rest += " schedule<wgmma>";
  compile(spec, "sm_90a");
  ASSERT_EQ(info.blocksPerSm, 2);
  // Whole they are one wave, but the longest would end alone.
  std::vector<int32_t> tiles;
  for (int32_t i = 0; i < 32; ++i)
    tiles.push_back(22 + i * 104 / 31);
  expectComplete(tiles);
  int64_t most = 0;
  for (const Item &item : divide(tiles).items)
    most = std::max(most, item.parts ? item.tiles() : 0);
  EXPECT_LE(most, 126 / 3);
  // As they do not if they are equal.
  EXPECT_TRUE(divide(std::vector<int32_t>(33, 64)).merged.empty());
}

TEST_F(ItemsTest, UniformBatchesThatFillTheDeviceAreNotDivided) {
  for (auto [heads, kv] : {std::pair(16, 2), std::pair(24, 4), {32, 8}}) {
    compile(decodeSpec(heads, kv, 128), "sm_90a");
    for (int32_t tiles : {21, 64, 256})
      for (int32_t batch = 1; batch <= 64; ++batch) {
        std::vector<int32_t> uniform(batch, tiles);
        double even = evenness(uniform);
        int32_t blocks = batch * kv;
        // Whole requests end together, or nearly.
        double whole = double(blocks) / 132 / ((blocks + 131) / 132);
        if (whole > 0.92)
          EXPECT_TRUE(divide(uniform).merged.empty())
              << batch << " requests of " << tiles << " tiles, " << kv
              << " kv heads";
        EXPECT_GE(even, std::min(0.6, 0.95 * whole))
            << batch << " requests of " << tiles << " tiles, " << kv
            << " kv heads";
      }
  }
}
