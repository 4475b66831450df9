//===- TilesToHostResults.cpp - Tiles out: outputs, partials, merge -------===//

#include "codegen/TilesToHostOps.h"

#include "codegen/KernelABI.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;
using namespace tokentile::host;

using arith::CmpFPredicate;
using arith::CmpIPredicate;

static constexpr double infinity = std::numeric_limits<double>::infinity();

void Emitter::addSink(const Result &from, const Result &to) {
  int64_t columns = from.output.columns, lanes = HostBuilder::lanes(columns);
  Value zero = h.i64(0);
  h.loop(from.output.rows, 1, [&](Value index) {
    Value max = h.load(from.max, zero, index);
    Value sum = h.load(from.sum, zero, index);
    Value sink = ctx.sinkOfRow(h, rowOf(index));
    Value empty = h.compare(CmpFPredicate::OEQ, max, h.f32(-infinity));
    Value newMax = h.select(empty, max, arith::MaxNumFOp::create(h, max, sink));
    Value factor = h.select(empty, h.f32(1),
                            h.exp2(arith::SubFOp::create(h, max, newMax)));
    Value added = h.select(empty, h.f32(0),
                           h.exp2(arith::SubFOp::create(h, sink, newMax)));
    h.store(newMax, to.max, zero, index);
    h.store(h.multiplyAdd(sum, factor, added), to.sum, zero, index);
    Value factors = h.broadcast(factor, lanes);
    h.loop(columns, lanes, [&](Value column) {
      Value o = h.load(from.output, index, column, lanes);
      h.store(arith::MulFOp::create(h, o, factors), to.output, index, column);
    });
  });
}

void Emitter::storeRowResult(const Result &t, Value index, Value row) {
  OutputAttr spec = ctx.plan.getOutputOrDefault();
  int64_t columns = t.output.columns, lanes = HostBuilder::lanes(columns);
  Value live = ctx.rowIsLive(h, row);
  Value max = h.load(t.max, h.i64(0), index);
  Value sum = h.load(t.sum, h.i64(0), index);
  Value some = h.compare(CmpFPredicate::UNE, sum, h.f32(0));
  Value full = arith::AndIOp::create(h, live, some);
  Value pointer = ctx.pointer(h, ctx.outputAddress(h, row));
  h.branch(
      full,
      [&] {
        Value divisor = h.broadcast(sum, lanes);
        h.loop(columns, lanes, [&](Value column) {
          Value o = h.load(t.output, index, column, lanes);
          h.storeRow(arith::DivFOp::create(h, o, divisor), pointer, column,
                     spec.getElement());
        });
      },
      [&] {
        bool nan = spec.getEmpty() == EmptyKind::NaN;
        Value empty = h.f32(nan ? std::nan("") : 0);
        Value filler = h.broadcast(h.select(live, empty, h.f32(0)), lanes);
        h.loop(columns, lanes, [&](Value column) {
          h.storeRow(filler, pointer, column, spec.getElement());
        });
      });
  if (spec.getExtra() != ExtraResult::LogSumExp)
    return;
  Value list = ctx.field(h, offsetof(KernelArgs, logSumExp), h.getI64Type());
  h.branch(h.compare(CmpIPredicate::ne, list, h.i64(0)), [&] {
    Value log = math::LogOp::create(h, sum);
    Value value = h.multiplyAdd(max, h.f32(M_LN2), log);
    value = h.select(full, value, h.f32(-infinity));
    Value at = ctx.pointer(h, ctx.logSumExpAddress(h, row));
    h.storeFloats(value, at, h.i64(0));
  });
}

void Emitter::storeResult(const Result &t) {
  bool packed =
      ctx.plan.getQueryOrDefault().getColumns() == ColumnsKind::Packed;
  h.loop(t.output.rows, 1, [&](Value index) {
    Value row = rowOf(index);
    // Packed rows past a request's columns belong to the next request.
    Value exists =
        packed ? ctx.rowIsLive(h, row)
               : h.compare(CmpIPredicate::slt, row, h.i32(ctx.shape.rows));
    h.branch(exists, [&] { storeRowResult(t, index, row); });
  });
}

void Emitter::storePartial(const Result &t) {
  int64_t columns = t.output.columns, lanes = HostBuilder::lanes(columns);
  Value zero = h.i64(0);
  h.loop(t.output.rows, 1, [&](Value index) {
    Value row = rowOf(index);
    Value statistics[] = {h.load(t.max, zero, index),
                          h.load(t.sum, zero, index)};
    Value stats = ctx.pointer(h, ctx.statsAddress(h, ctx.slot, row));
    for (int which : {0, 1})
      h.storeFloats(statistics[which], stats, h.i64(which));
    Value some = h.compare(CmpFPredicate::UNE, statistics[1], h.f32(0));
    h.branch(some, [&] {
      Value pointer = ctx.pointer(h, ctx.partialAddress(h, ctx.slot, row));
      h.loop(columns, lanes, [&](Value column) {
        h.storeFloats(h.load(t.output, index, column, lanes), pointer, column);
      });
    });
  });
}

void Emitter::mergePartials(const Result &t) {
  int64_t columns = t.output.columns, lanes = HostBuilder::lanes(columns);
  Value zero = h.i64(0), parts = h.toI64(ctx.parts);
  auto slotOf = [&](Value part) { return ctx.slotOfPart(h, h.toI32(part)); };
  auto statistic = [&](Value part, Value row, int which) {
    Value at = ctx.pointer(h, ctx.statsAddress(h, slotOf(part), row));
    return h.loadFloats(at, h.i64(which), 1);
  };
  h.fill(t.output, h.f32(0));
  h.loop(t.output.rows, 1, [&](Value index) {
    Value row = rowOf(index);
    auto contributes = [&](Value sum) {
      return h.compare(CmpFPredicate::UNE, sum, h.f32(0));
    };
    Value max =
        h.fold(parts, 1, h.f32(-infinity), [&](Value part, ValueRange best) {
          Value higher =
              arith::MaxNumFOp::create(h, best[0], statistic(part, row, 0));
          Value some = contributes(statistic(part, row, 1));
          return SmallVector<Value>{h.select(some, higher, best[0])};
        })[0];
    h.store(max, t.max, zero, index);
    h.store(h.f32(0), t.sum, zero, index);
    h.loop(parts, 1, [&](Value part) {
      Value sum = statistic(part, row, 1);
      h.branch(contributes(sum), [&] {
        Value weight =
            h.exp2(arith::SubFOp::create(h, statistic(part, row, 0), max));
        Value total = h.load(t.sum, zero, index);
        h.store(h.multiplyAdd(weight, sum, total), t.sum, zero, index);
        Value weights = h.broadcast(weight, lanes);
        Value pointer =
            ctx.pointer(h, ctx.partialAddress(h, slotOf(part), row));
        h.loop(columns, lanes, [&](Value column) {
          Value o = h.loadFloats(pointer, column, lanes);
          Value before = h.load(t.output, index, column, lanes);
          h.store(h.multiplyAdd(weights, o, before), t.output, index, column);
        });
      });
    });
  });
}
