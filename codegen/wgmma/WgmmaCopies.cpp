//===- WgmmaCopies.cpp - Rings of slots, filled through tensor maps -------===//
//
// The first producers copy a tile in boxes of eight keys, which no page
// boundary divides, one box each, so that all begin together. A box some keys
// of which the pages do not hold is copied by all producers instead, sixteen
// bytes at a time, with zeros for keys that are not held, whose memory is not
// touched.
//
//===----------------------------------------------------------------------===//

#include "codegen/KernelABI.h"
#include "codegen/wgmma/WgmmaEmitter.h"

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;

static_assert(kBoxRows == layout::kGroup && kBoxColumns == layout::kPanel,
              "a box is one group of a tile");

/// The named barrier of producers.
static constexpr int64_t kProducersMeet = 2;

static constexpr StringLiteral kWait = R"({
  .reg .pred done;
again:
  mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1;
  @done bra ready;
  bra again;
ready:
})";

Value WgmmaEmitter::panelByte(Value row, Value chunk) {
  Value within = b.rem(row, layout::kGroup);
  Value atom = b.add(b.mul(b.div(row, layout::kGroup), dim / layout::kPanel),
                     b.div(chunk, layout::kSwizzle));
  Value swapped = b.xorBits(b.rem(chunk, layout::kSwizzle), within);
  Value byte = b.add(b.mul(atom, layout::kAtomBytes), b.mul(within, 128));
  return b.add(byte, b.shiftLeft(swapped, 4));
}

Value WgmmaEmitter::copyTarget(Value base, layout::CopyShape shape, int64_t j) {
  Value row = b.add(b.div(thread, shape.chunksPerRow), j * shape.step());
  if (mma.rowTiles > 1) {
    // A warp's row tiles follow one another; each is part of another product of
    // its warpgroup (layout::productRow).
    Value within = b.rem(row, layout::kRows), tile = b.div(row, layout::kRows);
    Value warp = b.div(tile, mma.rowTiles);
    Value product =
        b.add(b.mul(b.div(warp, 4), mma.rowTiles), b.rem(tile, mma.rowTiles));
    row = b.add(b.add(b.mul(product, layout::kWgmmaRows),
                      b.mul(b.rem(warp, 4), layout::kRows)),
                within);
  }
  Value byte = panelByte(row, b.rem(thread, shape.chunksPerRow));
  return b.offset(shared, b.add(base, byte));
}

void WgmmaEmitter::emit(LookupPagesOp op) {
  // For each copier the page of its box.
  map[op.getPages()] = {b.i32(0)};
  if (!plan.getPaging().getPage())
    return;
  Value row = b.mul(b.rem(producer(), boxes()), layout::kGroup);
  map[op.getPages()] = {
      lookupPage(b.add(b.mul(single(op.getTile()), keyTile), row))};
}

Value WgmmaEmitter::producer() { return b.add(thread, -mma.threads()); }

int64_t WgmmaEmitter::boxes() const { return keyTile / layout::kGroup; }

Value WgmmaEmitter::isLeader() {
  return b.is(Lane::Predicate::eq, producer(), b.i32(0));
}

Value WgmmaEmitter::isCopier() {
  return b.is(Lane::Predicate::ult, producer(), b.i32(boxes()));
}

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

void WgmmaEmitter::beginRing(AllocRingOp op) {
  for (int64_t slot = 0; slot < mma.stages; ++slot) {
    Value full = b.offset(shared, op.getOffset() + slot * layout::kRingSlot);
    ptx("mbarrier.init.shared::cta.b64 [$0], 1;", "r,~{memory}", {full});
    ptx("mbarrier.init.shared::cta.b64 [$0], $1;", "r,n,~{memory}",
        {b.offset(full, 8), b.i32(op.getReaders())});
  }
}

void WgmmaEmitter::emitRing(AllocRingOp op) {
  map[op.getRing()] = {b.i32(op.getOffset())};
}

WgmmaEmitter::Turn WgmmaEmitter::turn(Value ring, Value index) {
  Turn turn;
  turn.slot = b.rem(single(index), mma.stages);
  turn.parity = b.rem(b.div(single(index), mma.stages), 2);
  Value at = b.add(single(ring), b.mul(turn.slot, layout::kRingSlot));
  turn.full = b.offset(shared, at);
  turn.empty = b.offset(turn.full, 8);
  return turn;
}

void WgmmaEmitter::emitAcquire(AcquireOp op) {
  // Before its first completion a barrier passes for the odd parity.
  Turn at = turn(op.getRing(), op.getTurn());
  b.when(isCopier(), [&] {
    ptx(kWait, "r,r,~{memory}", {at.empty, b.xorBits(at.parity, 1)});
  });
}

void WgmmaEmitter::emitAwait(AwaitOp op) {
  Turn at = turn(op.getRing(), op.getTurn());
  ptx(kWait, "r,r,~{memory}", {at.full, at.parity});
}

void WgmmaEmitter::emitRelease(ReleaseOp op) {
  Turn at = turn(op.getRing(), op.getTurn());
  b.when(b.is(Lane::Predicate::eq, lane, b.i32(0)), [&] {
    ptx("mbarrier.arrive.shared::cta.b64 _, [$0];", "r,~{memory}", {at.empty});
  });
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void WgmmaEmitter::copyBox(FillOp op, Value target, Value slot, Value page,
                           Value full) {
  ptx("cp.async.bulk.tensor.5d.shared::cluster.global.tile"
      ".mbarrier::complete_tx::bytes [$0], [$1, {$2, $3, $4, $5, $6}], [$7];",
      "r,l,n,r,n,r,r,r,~{memory}",
      {target, maps[op.getPlane() == Plane::Values], b.i32(0), slot, b.i32(0),
       block->kvHead, page, full});
}

int64_t WgmmaEmitter::boxBytes() const { return layout::kGroup * dim * 2; }

Value WgmmaEmitter::firstSlot(Value firstKey) {
  int64_t page = plan.getPaging().getPage();
  if (!page)
    return b.add(firstKey, block->keyOffset);
  return page > keyTile ? b.rem(firstKey, page) : b.i32(0);
}

void WgmmaEmitter::copyWhole(FillOp op, Value target, Value full) {
  int64_t page = plan.getPaging().getPage();
  int64_t bytes = op.getBuffer().getType().getSlotBytes();
  b.when(isLeader(), [&] {
    ptx("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;",
        "r,n,~{memory}", {full, b.i32(bytes)});
  });
  b.when(isCopier(), [&] {
    Value row = b.mul(producer(), layout::kGroup);
    Value slot = b.add(firstSlot(b.mul(single(op.getTile()), keyTile)),
                       page && page < keyTile ? b.rem(row, page) : row);
    copyBox(op, b.offset(target, b.mul(producer(), boxBytes())), slot,
            single(op.getPages()), full);
  });
  // Left diverged, the other lanes of the copiers' warp go ahead to later tiles
  // and take their turns from them: a sweep of 128K keys took 8 % longer.
  NVVM::SyncWarpOp::create(b, b.i32(-1));
}

/// Rows [first, first + rows) of a tile by the producers: zeros or dense rows
/// for keys that the pages do not hold. All lie in page `page`, which is looked
/// up for each of them if it is null.
void WgmmaEmitter::copyRows(FillOp op, Value target, Value first, int64_t rows,
                            Value page) {
  layout::CopyShape shape =
      layout::shareCopies(layout::kWarpgroup, dim * 2 / layout::kChunk, rows);
  Value producer = this->producer();
  Value chunk = b.rem(producer, shape.chunksPerRow);
  Value bytes = b.extend(b.shiftLeft(chunk, 4));
  Value firstKey = b.mul(single(op.getTile()), keyTile);
  auto copy = [&](Value row) {
    Value key = b.add(firstKey, row);
    Value pageId = page ? page : lookupPage(key);
    Value address = block->keyAddress(b, op.getPlane(), pageId, key);
    if (plan.getBlockKind() == BlockKind::Dense) {
      Value own = block->denseAddress(b, op.getPlane(), key);
      Value paged = b.is(Lane::Predicate::slt, key, block->context);
      address = b.select(paged, address, own);
    }
    b.copyAsync(b.offset(target, panelByte(row, chunk)),
                b.global(b.add(address, bytes)), block->keyIsHeld(b, key));
  };
  auto all = [&] {
    Value start = b.add(first, b.div(producer, shape.chunksPerRow));
    if (page) {
      for (int64_t j = 0; j < shape.count(); ++j)
        copy(b.add(start, j * shape.step()));
      return;
    }
    b.loop(start, b.add(first, rows), b.i32(shape.step()), {},
           [&](Value row, ValueRange) {
             copy(row);
             return Registers();
           });
  };
  if (shape.threads == layout::kWarpgroup)
    all();
  else
    b.when(b.lessThan(producer, shape.threads), all);
}

void WgmmaEmitter::copyRest(FillOp op, Value target, Value full) {
  int64_t page = plan.getPaging().getPage();
  // Of small pages a tile has several, and producers no registers to number
  // them by the row.
  if (page && page < keyTile)
    return copyRows(op, target, b.i32(0), keyTile, Value());
  Value firstKey = b.mul(single(op.getTile()), keyTile);
  Value firstSlotOfTile = firstSlot(firstKey);
  Value pageId = registers(op.getPages())[0];
  auto eachBox = [&](Value row, ValueRange) {
    auto box = [&] {
      ptx("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], $1;",
          "r,n,~{memory}", {full, b.i32(boxBytes())});
      // Rows of a box follow one another in groups of that many bytes.
      Value byte = b.mul(row, boxBytes() / layout::kGroup);
      copyBox(op, b.offset(target, byte), b.add(firstSlotOfTile, row), pageId,
              full);
    };
    b.choose(
        areWhole(b.add(firstKey, row), layout::kGroup),
        [&] {
          b.when(isLeader(), box);
          return Registers();
        },
        [&] {
          copyRows(op, target, row, layout::kGroup, pageId);
          return Registers();
        });
    return Registers();
  };
  b.loop(b.i32(0), b.i32(keyTile), b.i32(layout::kGroup), {}, eachBox);
}

void WgmmaEmitter::emitFill(FillOp op) {
  Turn at = turn(op.getRing(), op.getTurn());
  int64_t slotBytes = op.getBuffer().getType().getSlotBytes();
  Value byte = b.add(single(op.getBuffer()), b.mul(at.slot, slotBytes));
  Value target = b.offset(shared, byte);
  b.choose(
      isWhole(single(op.getTile())),
      [&] {
        copyWhole(op, target, at.full);
        return Registers();
      },
      [&] {
        // The leader has found the slot empty; the others hear of it here.
        meetAt(kProducersMeet, layout::kWarpgroup);
        copyRest(op, target, at.full);
        ptx("cp.async.wait_all;", "~{memory}", {});
        ptx("fence.proxy.async.shared::cta;", "~{memory}", {});
        meetAt(kProducersMeet, layout::kWarpgroup);
        b.when(isLeader(), [&] {
          ptx("mbarrier.arrive.shared::cta.b64 _, [$0];", "r,~{memory}",
              {at.full});
        });
        return Registers();
      });
}
