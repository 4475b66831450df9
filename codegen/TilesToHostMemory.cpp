//===- TilesToHostMemory.cpp - Tiles in: queries, pages, keys, values -----===//

#include "codegen/TilesToHostOps.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;
using namespace tokentile::host;

using arith::CmpIPredicate;

Value Emitter::rowOf(Value index) {
  return arith::AddIOp::create(h, ctx.firstRow, h.toI32(index));
}

Value Emitter::firstKey(Value tile) {
  int64_t keyTile = ctx.plan.getScheduleOrDefault().getKeyTile();
  return arith::MulIOp::create(h, tile, h.i32(keyTile));
}

Value Emitter::pageOfKey(Value key) {
  return arith::DivUIOp::create(h, key, h.i32(ctx.plan.getPaging().getPage()));
}

void Emitter::loadQuery(TileBuffer result) {
  ElementKind stored = ctx.plan.getQueryOrDefault().getElement();
  ElementKind used = ctx.plan.getKeys().getElement();
  int64_t lanes = HostBuilder::lanes(result.columns);
  Value zero = h.broadcast(h.f32(0), lanes);
  h.loop(result.rows, 1, [&](Value index) {
    Value row = rowOf(index);
    // A padding row's token lies past every request's columns.
    h.branch(
        ctx.rowIsLive(h, row),
        [&] {
          Value pointer = ctx.pointer(h, ctx.queryAddress(h, row));
          h.loop(result.columns, lanes, [&](Value column) {
            Value q = h.loadRow(pointer, column, lanes, stored);
            if (stored != used)
              q = h.round(q, used);
            h.store(q, result, index, column);
          });
        },
        [&] {
          h.loop(result.columns, lanes,
                 [&](Value column) { h.store(zero, result, index, column); });
        });
  });
}

void Emitter::lookupPages(Value tile, TileBuffer pages) {
  int64_t pageSize = ctx.plan.getPaging().getPage();
  if (pageSize == 0)
    return;
  bool dense = ctx.plan.getBlockKind() == BlockKind::Dense;
  Value end = dense ? ctx.context : ctx.length;
  Value first = pageOfKey(firstKey(tile));
  h.loop(pages.columns, 1, [&](Value index) {
    Value page = arith::AddIOp::create(h, first, h.toI32(index));
    Value key = arith::MulIOp::create(h, page, h.i32(pageSize));
    h.branch(h.compare(CmpIPredicate::slt, key, end), [&] {
      Value entry = ctx.pointer(h, ctx.tableAddress(h, page));
      Value id = LLVM::LoadOp::create(h, h.getI32Type(), entry);
      h.store(id, pages, h.i64(0), index);
    });
  });
}

Value Emitter::keyPointer(Plane plane, Value tile, Value key,
                          TileBuffer pages) {
  auto paged = [&]() -> Value {
    Value page;
    if (ctx.plan.getPaging().getPage()) {
      Value slot =
          arith::SubIOp::create(h, pageOfKey(key), pageOfKey(firstKey(tile)));
      page = h.load(pages, h.i64(0), h.toI64(slot));
    }
    return ctx.keyAddress(h, plane, page, key);
  };
  if (ctx.plan.getBlockKind() != BlockKind::Dense)
    return ctx.pointer(h, paged());
  Value inPages = h.compare(CmpIPredicate::slt, key, ctx.context);
  return ctx.pointer(h, h.chooseI64(inPages, paged, [&] {
    return ctx.denseAddress(h, plane, key);
  }));
}

void Emitter::loadTile(Plane plane, Value tile, TileBuffer pages,
                       TileBuffer result) {
  ElementKind stored = plane == Plane::Keys ? ctx.plan.getKeys().getElement()
                                            : ctx.plan.getValues().getElement();
  int64_t lanes = HostBuilder::lanes(result.columns);
  Value first = firstKey(tile);
  Value zero = h.broadcast(h.f32(0), lanes);
  h.loop(result.rows, 1, [&](Value index) {
    Value key = arith::AddIOp::create(h, first, h.toI32(index));
    h.branch(
        ctx.keyIsHeld(h, key),
        [&] {
          Value pointer = keyPointer(plane, tile, key, pages);
          h.loop(result.columns, lanes, [&](Value column) {
            h.store(h.loadRow(pointer, column, lanes, stored), result, index,
                    column);
          });
        },
        [&] {
          h.loop(result.columns, lanes,
                 [&](Value column) { h.store(zero, result, index, column); });
        });
  });
}
