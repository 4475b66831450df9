//===- StageRoles.cpp - attn-stage for wgmma ------------------------------===//
//
// Splits a sweep into two loops over the same tiles. From the first tensor on
// the program moves to the consumers, who wait for slots instead of loading;
// the producers fill them:
//
//   producers  for t: acquire, fill keys of t; acquire, fill values of t
//   consumers  copy the query
//              for t: await keys, S = Q K^T, release keys, ...
//                     await values, O = alpha O + P V, release values
//
// Keys and values have a ring each, so that products of keys do not wait for
// values. Page lookups run one tile ahead.
//
//===----------------------------------------------------------------------===//

#include "codegen/Stage.h"

#include "codegen/Layout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;

/// The turn of the rings that has tile `tile`.
Value Stager::turnOf(Value tile) {
  Value within = arith::SubIOp::create(b, tile, loop.getLowerBound());
  return arith::AddIOp::create(b, turnsTaken, within);
}

void Stager::emitProducers(Block &block, Value keyRing, Value valueRing) {
  b.setInsertionPointToStart(&block);
  Value begin = loop.getLowerBound(), one = constant(1);
  auto producer = scf::ForOp::create(b, begin, loop.getUpperBound(), one,
                                     ValueRange{lookup(begin)});
  b.setInsertionPointToStart(producer.getBody());
  Value tile = producer.getInductionVar();
  Value pages = producer.getRegionIterArg(0);
  Value following = lookup(arith::AddIOp::create(b, tile, one));
  Value turn = turnOf(tile);
  AcquireOp::create(b, keyRing, turn);
  FillOp::create(b, Plane::Keys, tile, pages, keyBuffer, keyRing, turn);
  AcquireOp::create(b, valueRing, turn);
  FillOp::create(b, Plane::Values, tile, pages, valueBuffer, valueRing, turn);
  scf::YieldOp::create(b, following);
}

/// Waits for a slot where `load` stands, and releases it behind `lastUse`.
void Stager::consume(LoadTileOp load, Operation *lastUse, Value buffer,
                     Value ring) {
  b.setInsertionPoint(load);
  Value turn = turnOf(loop.getInductionVar());
  AwaitOp::create(b, ring, turn);
  Value slot = arith::RemUIOp::create(b, turn, constant(mma.stages));
  viewInstead(load, buffer, slot);
  b.setInsertionPointAfter(lastUse);
  ReleaseOp::create(b, ring, turn);
}

void Stager::stageRoles() {
  auto load = *program.getBody().getOps<LoadQueryOp>().begin();
  Block &body = program.getBody().front();
  b.setInsertionPoint(load);
  auto tileOf = [](LoadTileOp load) {
    return cast<RankedTensorType>(load.getResult().getType());
  };
  int64_t stages = mma.stages;
  Value buffer =
      allocate(0, 1, cast<RankedTensorType>(load.getResult().getType()),
               layout::kSwizzle, layout::kPanel);
  keyBuffer = allocate(layout.tiles, stages, tileOf(loadKeys), layout::kSwizzle,
                       layout::kPanel);
  int64_t keyBytes = cast<BufferType>(keyBuffer.getType()).getBytes();
  valueBuffer = allocate(layout.tiles + keyBytes, stages, tileOf(loadValues),
                         layout::kSwizzle, layout::kPanel);
  auto ring = RingType::get(b.getContext(), stages);
  Value keyRing = AllocRingOp::create(b, ring, layout.rings, mma.warps());
  Value valueRing = AllocRingOp::create(
      b, ring, layout.rings + stages * layout::kRingSlot, mma.warps());

  turnsTaken = TurnsTakenOp::create(b, b.getI32Type());
  auto roles = RolesOp::create(b);
  Block &producers = roles.getProducers().emplaceBlock();
  Block &consumers = roles.getConsumers().emplaceBlock();
  consumers.getOperations().splice(consumers.begin(), body.getOperations(),
                                   load->getIterator(), body.end());
  emitProducers(producers, keyRing, valueRing);

  b.setInsertionPoint(load);
  CopyQueryOp::create(b, buffer);
  AsyncCommitOp::create(b);
  AsyncWaitOp::create(b, 0);
  BarrierOp::create(b);
  query = ViewOp::create(b, cast<BufferType>(buffer.getType()).getTile(),
                         buffer, constant(0));
  load.getResult().replaceAllUsesWith(query);
  load.erase();

  ScoresOp scores;
  AccumulateOp accumulate;
  loop.walk([&](ScoresOp op) { scores = op; });
  loop.walk([&](AccumulateOp op) { accumulate = op; });
  consume(loadKeys, scores, keyBuffer, keyRing);
  consume(loadValues, accumulate, valueBuffer, valueRing);
  lookupPages.erase();
}
