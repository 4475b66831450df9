//===- MmaCopies.cpp - Pages and queries to shared memory -----------------===//
//
// cp.async of 16 bytes a thread. Rows that a request does not have are filled
// with zeros and their memory is not touched, so that neither a poisoned slot
// nor an absurd page id can reach a product.
//
//===----------------------------------------------------------------------===//

#include "codegen/mma/MmaEmitter.h"

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;

layout::CopyShape MmaEmitter::copyShape(int64_t rows) const {
  return layout::shareCopies(mma.threads(), dim * 2 / layout::kChunk, rows);
}

void MmaEmitter::whenCopying(layout::CopyShape shape,
                             llvm::function_ref<void()> body) {
  if (shape.threads == mma.threads())
    return body();
  b.when(b.lessThan(thread, shape.threads), body);
}

Value MmaEmitter::copyTarget(Value base, layout::CopyShape shape, int64_t j) {
  Value row = b.div(thread, shape.chunksPerRow);
  Value chunk = b.rem(thread, shape.chunksPerRow);
  // With a step below eight rows the swizzle changes from copy to copy.
  Value swapped = b.xorBits(chunk, b.rem(row, 8));
  swapped = b.xorBits(swapped, j * shape.step() % 8);
  Value byte = b.add(b.mul(row, dim * 2), b.shiftLeft(swapped, 4));
  Value start = b.offset(shared, b.add(base, byte));
  return b.offset(start, j * shape.step() * dim * 2);
}

void MmaEmitter::emit(CopyQueryOp op) {
  layout::CopyShape shape = copyShape(mma.rows());
  Value base = single(op.getBuffer());
  bool same =
      plan.getQueryOrDefault().getElement() == plan.getKeys().getElement();
  whenCopying(shape, [&] {
    Value chunk = b.rem(thread, shape.chunksPerRow);
    for (int64_t j = 0; j < shape.count(); ++j) {
      Value row = b.add(b.div(thread, shape.chunksPerRow), j * shape.step());
      row = b.add(row, block->firstRow);
      Value live =
          b.both(block->rowIsLive(b, row), b.lessThan(row, block->shape.rows));
      Value address = block->queryAddress(b, row);
      address = b.add(address, b.extend(b.shiftLeft(chunk, 4)));
      Value target = copyTarget(base, shape, j);
      if (same) {
        b.copyAsync(target, b.global(address), live);
        continue;
      }
      // The query meets the keys in their element type.
      Type word = b.getI32Type(), words = b.vector(4, word);
      Type from = element(StorageAttr::get(
          b.getContext(), plan.getQueryOrDefault().getElement(),
          ScaleKind::None, 0, Rotation::None));
      Type to = element(plan.getKeys());
      Value read = b.choose(
          live, [&] { return Registers{b.load(words, b.global(address))}; },
          [&] {
            return Registers{
                b.gather({b.i32(0), b.i32(0), b.i32(0), b.i32(0)})};
          })[0];
      Registers converted;
      for (int64_t i : {0, 1, 2, 3}) {
        Value pair =
            LLVM::BitcastOp::create(b, b.vector(2, from), b.element(read, i));
        Registers wide;
        for (int64_t half : {0, 1})
          wide.push_back(
              arith::ExtFOp::create(b, b.getF32Type(), b.element(pair, half)));
        converted.push_back(b.pack(wide[0], wide[1], to));
      }
      b.store(b.gather(converted), target);
    }
  });
}

Value MmaEmitter::lookupPage(Value key) {
  int64_t page = plan.getPaging().getPage();
  bool dense = plan.getBlockKind() == BlockKind::Dense;
  Value keys = dense ? block->context : block->length;
  Value last = b.div(b.add(keys, page - 1), page);
  last = arith::MaxSIOp::create(b, b.add(last, -1), b.i32(0));
  Value index = b.smaller(b.div(key, page), last);
  return b.load(b.getI32Type(), b.global(block->tableAddress(b, index)));
}

void MmaEmitter::emit(LookupPagesOp op) {
  Registers &pages = map[op.getPages()];
  int64_t page = plan.getPaging().getPage();
  if (!page) {
    pages = {b.i32(0)};
    return;
  }
  layout::CopyShape shape = copyShape(keyTile);
  Value row = b.div(thread, shape.chunksPerRow);
  for (int64_t i = 0; i < shape.lookups(page); ++i) {
    Value key = b.add(b.mul(single(op.getTile()), keyTile),
                      i * shape.keysPerLookup(page));
    if (shape.step() > page)
      key = b.add(key, b.mul(b.div(row, page), page));
    pages.push_back(lookupPage(key));
  }
}

/// Copies this thread's rows of a tile; `whole` promises that the pages hold
/// all of them.
void MmaEmitter::copyRows(AsyncCopyOp op, bool whole) {
  layout::CopyShape shape = copyShape(keyTile);
  int64_t page = plan.getPaging().getPage();
  bool keys = op.getPlane() == Plane::Keys;
  int64_t stride =
      plan.getSlotStride(keys ? plan.getKeys() : plan.getValues(), dim);
  bool dense = plan.getBlockKind() == BlockKind::Dense;
  int64_t perLookup = page ? shape.keysPerLookup(page) : keyTile;

  int64_t slotBytes = op.getBuffer().getType().getSlotBytes();
  Value base =
      b.add(single(op.getBuffer()), b.mul(single(op.getSlot()), slotBytes));
  Value first = b.add(b.mul(single(op.getTile()), keyTile),
                      b.div(thread, shape.chunksPerRow));
  Value chunk = b.extend(b.shiftLeft(b.rem(thread, shape.chunksPerRow), 4));
  Value start;
  for (int64_t j = 0; j < shape.count(); ++j) {
    int64_t ahead = j * shape.step();
    Value key = b.add(first, ahead);
    if (ahead % perLookup == 0)
      start = b.add(
          block->keyAddress(b, op.getPlane(),
                            registers(op.getPages())[ahead / perLookup], key),
          chunk);
    Value address = b.add(start, ahead % perLookup * stride);
    Value live;
    if (!whole) {
      live = block->keyIsHeld(b, key);
      if (dense) {
        Value own = block->denseAddress(b, op.getPlane(), key);
        Value paged = b.is(Lane::Predicate::slt, key, block->context);
        address = b.select(paged, address, b.add(own, chunk));
      }
    }
    b.copyAsync(copyTarget(base, shape, j), b.global(address), live);
  }
}

Value MmaEmitter::areWhole(Value first, int64_t keys) {
  bool dense = plan.getBlockKind() == BlockKind::Dense;
  Value end = b.add(first, keys);
  Value whole =
      b.is(Lane::Predicate::sle, end, dense ? block->context : block->length);
  // Keys before every row's window may lie in pages of another request now.
  if (block->oldestKey)
    whole = b.both(whole, b.is(Lane::Predicate::sge, first, block->oldestKey));
  return whole;
}

Value MmaEmitter::isWhole(Value tile) {
  return areWhole(b.mul(tile, keyTile), keyTile);
}

void MmaEmitter::emit(AsyncCopyOp op) {
  whenCopying(copyShape(keyTile), [&] {
    b.choose(
        isWhole(single(op.getTile())),
        [&] {
          copyRows(op, true);
          return Registers();
        },
        [&] {
          copyRows(op, false);
          return Registers();
        });
  });
}

void MmaEmitter::emit(AsyncWaitOp op) {
  NVVM::CpAsyncWaitGroupOp::create(b, op.getPending());
}

void MmaEmitter::emit(ViewOp op) {
  int64_t bytes = op.getBuffer().getType().getSlotBytes();
  map[op.getTile()] = {
      b.add(single(op.getBuffer()), b.mul(single(op.getSlot()), bytes))};
}
