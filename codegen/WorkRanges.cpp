//===- WorkRanges.cpp - Blocks that sweep one request after another -------===//
//
// A long batch is divided evenly to a tile: the tiles of all requests stand in
// one row, and each block of a head has a range of it. It sweeps the requests
// that the range touches, one after another. A request without tiles counts as
// one tile, so that some block writes its empty result.
//
//===----------------------------------------------------------------------===//

#include "codegen/Scalars.h"
#include "codegen/WorkItems.h"

using namespace mlir;
using namespace tokentile;

using Predicate = arith::CmpIPredicate;

/// Tiles that a block should have: of fewer others are idle.
static constexpr int64_t kLeastTiles = 4;

/// Blocks of a head that share `total` tiles.
Value WorkItems::sharersOf(Builder &b, Value total) {
  Scalars s{b};
  Value most = s.larger(s.div(total, s.number(kLeastTiles)), s.number(1));
  return s.smaller(most, items);
}

/// The block that has tile `place` of the row.
Value WorkItems::ownerOf(Builder &b, const WorkRange &range, Value place) {
  Scalars s{b};
  // The first `rest` blocks have a tile more.
  Value sharers = sharersOf(b, range.total);
  Value each = s.div(range.total, sharers);
  Value rest = s.sub(range.total, s.mul(each, sharers));
  Value more = s.add(each, 1), longer = s.mul(rest, more);
  Value isLonger = s.is(Predicate::slt, place, longer);
  Value within = s.sub(place, s.select(isLonger, s.number(0), longer));
  Value owner = s.div(within, s.select(isLonger, more, each));
  return s.add(owner, s.select(isLonger, s.number(0), rest));
}

/// The range of block `x`, worked out by one team.
WorkRange WorkItems::findRange(Builder &b, Value x) {
  Scalars s{b};
  Location loc = b.getLoc();
  Value zero = s.number(0), one = s.number(1);
  SmallVector<Value> found = team.once(b, [&]() -> SmallVector<Value> {
    Value first = tilesIn(b, team.lane(b, loc));
    auto places = [&](Value request, Value tiles) {
      Value exists = s.is(Predicate::slt, request, batch);
      return s.ifThen(exists, s.larger(tiles, one));
    };
    auto requestOf = [&](Value base) { return s.add(base, team.lane(b, loc)); };
    SmallVector<Value> sums = overRequests(
        b, first, zero,
        [&](Value base, Value tiles, ValueRange in) -> SmallVector<Value> {
          return {s.add(in[0], places(requestOf(base), tiles))};
        });
    Value total = team.sum(b, loc, sums[0]);
    Value sharers = sharersOf(b, total);
    Value each = s.div(total, sharers);
    Value rest = s.sub(total, s.mul(each, sharers));
    Value low = s.add(s.mul(x, each), s.smaller(x, rest));
    Value some = s.add(each, s.count(s.is(Predicate::slt, x, rest)));
    some = s.ifThen(s.is(Predicate::slt, x, sharers), some);
    Value high = s.add(low, some);
    SmallVector<Value> hits = overRequests(
        b, first, {zero, zero, zero, zero},
        [&](Value base, Value tiles, ValueRange in) -> SmallVector<Value> {
          Value request = requestOf(base), count = places(request, tiles);
          Value start = s.add(in[0], team.before(b, loc, count));
          auto has = [&](Value place) {
            return s.is(Predicate::ult, s.sub(place, start), count);
          };
          Value hasFirst = has(low), hasLast = has(s.add(high, -1));
          Value number = s.add(request, one);
          return {s.add(in[0], team.sum(b, loc, count)),
                  s.add(in[1], s.ifThen(hasFirst, number)),
                  s.add(in[2], s.ifThen(hasFirst, start)),
                  s.add(in[3], s.ifThen(hasLast, number))};
        });
    Value request = team.sum(b, loc, hits[1]);
    Value start = team.sum(b, loc, hits[2]);
    Value last = team.sum(b, loc, hits[3]);
    Value count = s.add(s.sub(last, request), one);
    count = s.ifThen(s.is(Predicate::sgt, some, zero), count);
    return {s.larger(s.add(request, -1), zero), count, start, low, high, total};
  });
  return {x, found[0], found[1], found[2], found[3], found[4], found[5]};
}

RangedItem WorkItems::inRange(Builder &b, const WorkRange &range, Value request,
                              Value start, const RequestTiles &tiles) {
  Scalars s{b};
  Value zero = s.number(0), one = s.number(1);
  Value count = s.larger(s.sub(tiles.end, tiles.first), one);
  Value next = s.add(start, count);
  Value from = s.larger(s.sub(range.low, start), zero);
  Value to = s.smaller(s.sub(range.high, start), count);
  Value first = ownerOf(b, range, start);
  Value last = ownerOf(b, range, s.add(next, -1));
  WorkItem item;
  item.request = request;
  item.part = s.sub(range.number, first);
  item.parts = s.add(s.sub(last, first), one);
  // From an item to the next either the block or the request is another.
  item.slot = s.add(range.number, request);
  item.first = s.add(tiles.first, from);
  item.end = s.smaller(s.add(tiles.first, to), tiles.end);
  return {item, next};
}
