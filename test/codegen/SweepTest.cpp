//===- SweepTest.cpp - Keys are read once ---------------------------------===//
//
// Runs the tiles-level program of every part of a request, but for the
// mathematics, and counts the tiles it loads: each part's range, each plane,
// each row block. What a sweep requests is what its rows see. Who gets which
// part is in ItemsTest.cpp.
//
//===----------------------------------------------------------------------===//

#include "SpecBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseMap.h"

#include <gtest/gtest.h>

#include <map>

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;
using namespace tokentile::test;

namespace {

/// A request as a block sees it; positions follow the context.
struct Request {
  int64_t length = 0;
  int64_t columns = 0;
  int64_t context() const { return std::max<int64_t>(0, length - columns); }
};

/// Tiles that the blocks of one kv head load, by plane: how often each.
struct Loads {
  std::map<int64_t, int64_t> tiles[2];
  int64_t bytes[2] = {0, 0};
};

/// Runs the scalars and the control flow of one block's sweep.
class Interpreter {
public:
  /// `parts` is what the lengths of all requests came to, if they decide.
  Interpreter(ProgramOp program, Request request, int64_t part, int64_t parts,
              Loads &loads)
      : program(program), request(request), part(part), parts(parts),
        loads(loads) {}

  /// Returns how many parts there are.
  int64_t run() {
    runBlock(program.getBody().front());
    return parts;
  }

private:
  void set(Value value, int64_t number) {
    scalars[value] =
        IntegerAttr::get(IntegerType::get(value.getContext(), 32), number);
  }
  int64_t get(Value value) {
    return cast<IntegerAttr>(scalars.lookup(value)).getInt();
  }
  void runBlock(Block &block) {
    for (Operation &op : block)
      runOp(op);
  }
  void setFacts(ValueRange facts) {
    int64_t context = request.context();
    int64_t numbers[] = {request.length, context, request.columns, context,
                         context + request.columns - 1};
    for (auto [value, number] : llvm::zip(facts, numbers))
      set(value, number);
  }
  void runItem(ItemOp item);
  void runOp(Operation &op);
  void fold(Operation &op);

  ProgramOp program;
  Request request;
  int64_t part, parts;
  Loads &loads;
  llvm::DenseMap<Value, Attribute> scalars;
};

} // namespace

/// Every arith operation of a program folds once its operands are known.
void Interpreter::fold(Operation &op) {
  if (op.getNumResults() != 1 || isa<ShapedType>(op.getResult(0).getType()))
    return;
  SmallVector<Attribute> operands;
  for (Value operand : op.getOperands())
    operands.push_back(scalars.lookup(operand));
  SmallVector<OpFoldResult> results;
  ASSERT_TRUE(succeeded(op.fold(operands, results)))
      << op.getName().getStringRef().str();
  ASSERT_EQ(results.size(), 1u);
  scalars[op.getResult(0)] = isa<Value>(results[0])
                                 ? scalars.lookup(cast<Value>(results[0]))
                                 : cast<Attribute>(results[0]);
}

void Interpreter::runItem(ItemOp item) {
  Block &region = item.getTiles().front();
  setFacts(region.getArguments());
  runBlock(region);
  auto yield = cast<YieldTilesOp>(region.getTerminator());
  int64_t first = get(yield.getFirst()), end = get(yield.getEnd());
  if (Value fixed = yield.getParts())
    parts = get(fixed);
  if (yield.getSize()) {
    int64_t size = get(yield.getSize()), piece = first / size + part;
    parts = llvm::divideCeil(end, size) - first / size;
    first = std::max(first, piece * size);
    end = std::min(end, (piece + 1) * size);
  } else {
    int64_t tiles = end - first;
    end = first + tiles * (part + 1) / parts;
    first += tiles * part / parts;
  }
  set(item.getFirst(), first);
  set(item.getEnd(), end);
  set(item.getPart(), part);
  set(item.getParts(), parts);
  set(item.getSlot(), parts == 1 ? -1 : part);
}

void Interpreter::runOp(Operation &op) {
  if (auto facts = dyn_cast<RequestOp>(op)) {
    setFacts(facts.getResults());
  } else if (auto item = dyn_cast<ItemOp>(op)) {
    runItem(item);
  } else if (auto load = dyn_cast<LoadTileOp>(op)) {
    bool values = load.getPlane() == Plane::Values;
    auto type = cast<RankedTensorType>(load.getResult().getType());
    ++loads.tiles[values][get(load.getTile())];
    loads.bytes[values] += type.getNumElements() * 2;
  } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
    int64_t end = get(loop.getUpperBound()), step = get(loop.getStep());
    for (int64_t i = get(loop.getLowerBound()); i < end; i += step) {
      set(loop.getInductionVar(), i);
      runBlock(*loop.getBody());
    }
  } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
    Attribute condition = scalars.lookup(branch.getCondition());
    bool taken = !cast<IntegerAttr>(condition).getValue().isZero();
    if (Block *block = taken ? branch.thenBlock() : branch.elseBlock())
      runBlock(*block);
  } else if (isa<arith::ArithDialect>(op.getDialect())) {
    fold(op);
  }
}

namespace {

class SweepTest : public testing::Test {
protected:
  void plan(const Spec &spec, StringRef chip = "sm_90a") {
    module = context.parse(spec.text());
    llvm::Error error = lowerTo(*module, Level::Tiles, chip);
    ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
    kernel = SpecContext::kernel(*module);
    for (ProgramOp program : module->getOps<ProgramOp>())
      if (program.getRole() == ProgramRole::Sweep)
        sweep = program;
    info = describeKernel(kernel);
  }

  /// Loads of all blocks of one kv head of one request.
  Loads launch(Request request, int64_t parts) {
    Loads loads;
    for (int64_t block = 0; block < info.rowBlocks; ++block)
      for (int64_t part = 0, count = parts; part < count; ++part)
        count = Interpreter(sweep, request, part, parts, loads).run();
    return loads;
  }

  /// Keys that some row of the block sees, by the definition of `sees`.
  std::vector<bool> seen(Request request) {
    SeesAttr sees = kernel.getSees();
    int64_t window = sees.getWindow();
    std::vector<bool> keys(request.length);
    for (int64_t j = 0; j < request.columns; ++j)
      for (int64_t k = 0, p = request.context() + j; k < request.length; ++k) {
        bool left = sees.getPrefix() == PrefixKind::All || p - k < window;
        bool right = sees.getPrefix() != PrefixKind::Symmetric ||
                     std::abs(p - k) < window;
        bool suffix = sees.getSuffix() != SuffixKind::Causal || k <= p;
        keys[k] = keys[k] || (left && right && suffix);
      }
    return keys;
  }

  /// Every key that is seen lies in a tile that is loaded `sweeps` times, and
  /// no tile is loaded otherwise.
  void expectSweeps(Request request, int64_t parts, int64_t sweeps) {
    Loads loads = launch(request, parts);
    std::map<int64_t, int64_t> expected;
    std::vector<bool> keys = seen(request);
    for (int64_t k = 0; k < request.length; ++k)
      if (keys[k])
        expected[k / info.keyTile] = sweeps;
    EXPECT_EQ(loads.tiles[0], expected);
    EXPECT_EQ(loads.tiles[1], expected);
  }

  SpecContext context;
  OwningOpRef<ModuleOp> module;
  KernelOp kernel;
  ProgramOp sweep;
  KernelInfo info;
};

const char *const kSees[] = {
    "prefix all, suffix causal",
    "prefix all, suffix bidirectional",
    "prefix left within 700, suffix causal",
    "prefix left within 700, suffix bidirectional",
    "prefix symmetric within 700, suffix causal",
    "prefix symmetric within 700, suffix bidirectional",
};

} // namespace

TEST_F(SweepTest, OneSweepRequestsWhatRowsSee) {
  for (Spec spec : publishedGeometries())
    for (int64_t tokens : {1, 8, 16}) {
      spec.tokens = tokens;
      plan(spec);
      ASSERT_EQ(info.sweeps, 1);
      for (int64_t parts : {1, 7, 132}) {
        Request request{20000, tokens};
        Loads loads = launch(request, parts);
        double unique = double(request.length) * spec.dim * 2;
        for (int plane : {0, 1}) {
          EXPECT_GE(loads.bytes[plane], unique);
          EXPECT_LE(loads.bytes[plane], 1.05 * unique) << spec.text();
        }
      }
    }
}

TEST_F(SweepTest, TwoRowBlocksReadTheKeysTwice) {
  Spec spec;
  spec.tokens = 32;
  spec.rest = "schedule<auto max_sweeps 2>";
  plan(spec);
  EXPECT_EQ(info.rowBlocks, 2);
  EXPECT_EQ(info.sweeps, 2);
  Request request{20000, 32};
  Loads loads = launch(request, 16);
  double unique = double(request.length) * spec.dim * 2;
  for (int plane : {0, 1}) {
    EXPECT_GE(loads.bytes[plane], 2 * unique);
    EXPECT_LE(loads.bytes[plane], 2.1 * unique);
  }
  expectSweeps(request, 16, 2);
}

TEST_F(SweepTest, EveryPartOfEveryMaskLoadsItsTilesOnce) {
  for (const char *sees : kSees)
    for (const char *chip : {"sm_90a", "host"}) {
      Spec spec;
      spec.sees = sees;
      plan(spec, chip);
      for (int64_t parts : {1, 2, 3, 50})
        for (int64_t length : {16, 17, 63, 64, 65, 700, 2111, 2112}) {
          SCOPED_TRACE(std::string(sees) + ", length " +
                       std::to_string(length) + ", parts " +
                       std::to_string(parts));
          expectSweeps({length, 16}, parts, 1);
        }
    }
}

TEST_F(SweepTest, PiecesLoadEachTileOnce) {
  const std::pair<const char *, std::vector<int64_t>> cases[] = {
      {"split<keys of 256>", {16, 255, 256, 257, 2111}},
      {"split<pieces of 7> schedule<auto key_tile 64>",
       {16, 64, 65, 256, 257, 1792, 1793, 2111, 9000}}};
  for (const auto &[pieces, lengths] : cases)
    for (const char *sees : kSees) {
      Spec spec;
      spec.sees = sees;
      spec.rest = pieces;
      plan(spec);
      for (int64_t length : lengths) {
        SCOPED_TRACE(std::string(pieces) + ", " + sees + ", length " +
                     std::to_string(length));
        expectSweeps({length, 16}, /*parts=*/1, 1);
      }
    }
}

TEST_F(SweepTest, PiecesGrowWithThePosition) {
  Spec spec;
  spec.rest = "split<pieces of 7> schedule<auto key_tile 64>";
  plan(spec);
  auto pieces = [&](int64_t tiles) {
    Loads loads;
    Request request{tiles * 64, 16};
    int64_t parts = Interpreter(sweep, request, 1, 1, loads).run();
    return std::tuple(parts, loads.tiles[0].begin()->first,
                      int64_t(loads.tiles[0].size()));
  };
  // How many there are, and where the second begins and how long it is. The
  // smallest has four tiles.
  EXPECT_EQ(pieces(8), std::tuple(2, 4, 4));
  EXPECT_EQ(pieces(28), std::tuple(7, 4, 4));
  EXPECT_EQ(pieces(29), std::tuple(6, 5, 5));
  EXPECT_EQ(pieces(35), std::tuple(7, 5, 5));
  EXPECT_EQ(pieces(700), std::tuple(7, 100, 100));
}

TEST_F(SweepTest, PiecesOfAWindowDoNotGrowWithThePosition) {
  Spec spec;
  spec.sees = "prefix left within 1400, suffix causal";
  spec.rest = "split<pieces of 4> schedule<auto key_tile 64>";
  plan(spec);
  for (int64_t length : {2000, 20000, 200000}) {
    Loads loads;
    Interpreter(sweep, {length, 16}, 1, 1, loads).run();
    EXPECT_EQ(loads.tiles[0].size(), 6u) << "length " << length;
  }
}

TEST_F(SweepTest, APieceOfKeysDependsOnItsRequestAlone) {
  Spec spec;
  spec.rest = "split<keys of 256>";
  plan(spec);
  Loads few, many;
  EXPECT_EQ(Interpreter(sweep, {2048, 16}, 3, 8, few).run(), 8);
  EXPECT_EQ(Interpreter(sweep, {2048, 16}, 3, 100, many).run(), 8);
  EXPECT_EQ(few.tiles[0], many.tiles[0]);
  EXPECT_EQ(few.tiles[0].begin()->first * info.keyTile, 3 * 256);
}

TEST_F(SweepTest, RequestWithoutTokensLoadsNothing) {
  for (const char *sees : kSees)
    for (const char *columns : {"counted", "packed"}) {
      Spec spec;
      spec.sees = sees;
      spec.rest =
          std::string("query<bf16 token_major columns ") + columns + ">";
      plan(spec);
      for (int64_t parts : {1, 4}) {
        Loads loads = launch({5000, 0}, parts);
        EXPECT_EQ(loads.bytes[0] + loads.bytes[1], 0) << sees;
      }
    }
}

TEST_F(SweepTest, EmptyRequestLoadsNothing) {
  for (const char *sees : kSees) {
    Spec spec;
    spec.sees = sees;
    spec.rest = "query<bf16 token_major columns counted lengths total>";
    plan(spec);
    for (int64_t parts : {1, 4}) {
      Loads loads = launch({0, 0}, parts);
      EXPECT_EQ(loads.bytes[0] + loads.bytes[1], 0) << sees;
    }
  }
}
