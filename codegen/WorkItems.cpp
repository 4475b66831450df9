//===- WorkItems.cpp - Who sweeps what, by the lengths on the device ------===//

#include "codegen/WorkItems.h"

#include "codegen/Scalars.h"

using namespace mlir;
using namespace tokentile;

using Predicate = arith::CmpIPredicate;

/// Shares that are considered: one a lane of a warp.
static constexpr int64_t kShares = 32;
/// Parts that a merge takes.
static constexpr int64_t kMostParts = 256;
/// What an item costs beside its tiles, and a merge, in tiles.
static constexpr int64_t kItemCost = 1, kMergeCost = 2;
/// Costs are counted in quarters of a tile.
static constexpr int64_t kQuarters = 4;
/// Costs above are as good as this one.
static constexpr int64_t kMostCost = (1 << 26) - 1;
/// Requests of one lane's neighbours that are looked at together.
static constexpr int64_t kUnroll = 4;

Value LaneTeam::lane(OpBuilder &b, Location loc) const {
  return arith::ConstantIntOp::create(b, loc, 0, 32);
}
Value LaneTeam::speaks(OpBuilder &b, Location loc) const {
  return arith::ConstantIntOp::create(b, loc, 1, 1);
}
Value LaneTeam::before(OpBuilder &b, Location loc, Value) const {
  return arith::ConstantIntOp::create(b, loc, 0, 32);
}

/// Tiles of `request`; 0 for one that the launch does not have.
Value WorkItems::tilesIn(Builder &b, Value request) {
  Scalars s{b};
  Value exists = s.is(Predicate::slt, request, batch);
  RequestTiles tiles =
      tilesOf(b, s.smaller(request, s.add(batch, -1)), Rows::All);
  return s.ifThen(exists, s.sub(tiles.end, tiles.first));
}

/// Runs `body` on the lanes' requests, from their first and its tiles on.
SmallVector<Value> WorkItems::overRequests(Builder &b, Value tiles,
                                           ValueRange init, RequestBody body) {
  Scalars s{b};
  SmallVector<Value> start{tiles};
  llvm::append_range(start, init);
  SmallVector<Value> end =
      s.loop(batch, team.count(), start, [&](Value base, ValueRange carried) {
        SmallVector<Value> sums = body(base, carried[0], carried.drop_front());
        // Not read unless they are wanted: a warp has all of most batches.
        Value following = s.add(base, team.count());
        Value more = s.is(Predicate::slt, following, batch);
        Value next = s.choose(
            more,
            [&]() -> SmallVector<Value> {
              return {tilesIn(b, s.add(following, team.lane(b, b.getLoc())))};
            },
            [&]() -> SmallVector<Value> { return {s.number(0)}; },
            b.getI32Type())[0];
        sums.insert(sums.begin(), next);
        return sums;
      });
  end.erase(end.begin());
  return end;
}

/// What a share of at most that many tiles a part makes of all requests, of
/// which `some` have tiles.
WorkItems::Division WorkItems::consider(Builder &b, Value share, Value tiles,
                                        Value some) {
  Scalars s{b};
  Division result;
  result.share = share;
  result.reciprocal = s.reciprocal(share);
  int64_t lanes = team.count(), unroll = std::min(lanes, kUnroll);
  Value zero = s.number(0), half = s.shiftRight(share, 1);
  // Few operations: one warp does this for all lanes of all requests.
  auto count = [&](Value base, Value mine, ValueRange in) {
    Value here = s.smaller(s.sub(batch, base), s.number(lanes));
    return s.loop(here, unroll, in, [&](Value first, ValueRange carried) {
      SmallVector<Value> next(carried);
      for (int64_t i = 0; i < unroll; ++i) {
        Value tiles = team.of(b, b.getLoc(), mine, s.add(first, i));
        Value parts = s.ceilQuotient(tiles, share, result.reciprocal);
        Value several = s.is(Predicate::sgt, tiles, share);
        Value large = s.is(Predicate::sgt, tiles, half);
        next[0] = s.add(next[0], parts);
        next[1] = s.add(next[1], s.count(several));
        next[2] = s.add(next[2], s.count(large));
      }
      return next;
    });
  };
  SmallVector<Value> sums = overRequests(b, tiles, {zero, zero, zero}, count);
  result.requests = sums[1];
  result.parts = s.sub(sums[0], s.sub(some, sums[1]));
  result.large = s.sub(sums[2], sums[1]);
  return result;
}

/// Quarters of a tile's time until the last block ends. That is when all work
/// does if it is even, and a tail. What makes more items than the launch has
/// blocks for costs most; parts as long as the longest request never do.
Value WorkItems::costOf(Builder &b, const Division &d, const Device &device,
                        Value tiles) {
  Scalars s{b};
  bool isShared = blocksPerSm > 1;
  Value zero = s.number(0), itemCost = s.number(kItemCost);
  Value blocks = s.mul(s.add(d.parts, d.large), heads);
  // What an item costs beside its tiles another block hides, if there is one.
  if (isShared)
    itemCost = s.select(s.is(Predicate::sgt, blocks, slots), zero, itemCost);
  Value items = s.add(s.sub(batch, d.requests), d.parts);
  Value suffices = s.is(Predicate::sle, items, this->items);
  Value any = s.is(Predicate::sgt, d.requests, zero);
  Value longest =
      s.add(s.add(d.share, itemCost), s.ifThen(any, s.number(partCost)));
  longest = s.mul(longest, kQuarters);
  Value work = s.add(tiles, s.mul(items, itemCost));
  work = s.add(work, s.mul(d.parts, partCost));
  Value even =
      s.ceilQuotient(s.mul(work, heads * kQuarters), slots, device.perSlot);
  Value full = s.quotient(blocks, device.perWave);
  Value rest = s.sub(blocks, s.mul(full, device.wave));
  Value end = isShared ? endOfShared(b, longest, even, full, rest, device)
                       : endOfAlone(b, d, longest, even, full, rest);
  Value cost = s.add(end, s.ifThen(any, s.number(kMergeCost * kQuarters)));
  return s.select(suffices, cost, s.number(INT32_MAX));
}

/// A block to a multiprocessor: when waves of large items end, but a large item
/// that begins last begins before all else has ended, and is rarely a whole
/// share. Small items fill gaps, the better, the smaller they are.
Value WorkItems::endOfAlone(Builder &b, const Division &d, Value longest,
                            Value even, Value full, Value rest) {
  Scalars s{b};
  Value zero = s.number(0);
  Value some = s.is(Predicate::ne, rest, zero);
  Value waves = s.mul(longest, s.add(full, s.count(some)));
  Value last = s.add(even, s.div(s.mul(longest, 2), s.number(3)));
  Value end = s.larger(s.smaller(waves, last), even);
  Value small = s.sub(s.sub(batch, d.requests), d.large);
  Value gaps = s.is(Predicate::sgt, small, zero);
  return s.add(end, s.ifThen(gaps, s.shiftRight(s.mul(d.share, kQuarters), 3)));
}

/// Several blocks to a multiprocessor share its bandwidth: a sixth of a large
/// item behind even work, as some end later than others, and the more of one,
/// the fewer places the last wave of them fills. If there is one wave only, a
/// large item ends no sooner than alone.
Value WorkItems::endOfShared(Builder &b, Value longest, Value even, Value full,
                             Value rest, const Device &device) {
  Scalars s{b};
  Value zero = s.number(0);
  Value filled = s.is(Predicate::eq, rest, zero);
  Value free = s.select(filled, zero, s.sub(device.wave, rest));
  Value late = s.quotient(s.mul(s.mul(longest, free), 3), device.perWave);
  Value sixth = s.shiftRight(s.mul(longest, 11), 6);
  Value tail = s.select(s.is(Predicate::eq, full, zero),
                        s.larger(sixth, s.sub(longest, even)),
                        s.add(sixth, s.shiftRight(late, 2)));
  return s.add(even, tail);
}

/// The best of kShares shares of the longest request, whose tiles the lanes
/// have as `first`.
WorkItems::Division WorkItems::choose(Builder &b, Value first) {
  Scalars s{b};
  Location loc = b.getLoc();
  Value zero = s.number(0), one = s.number(1);
  bool isWarp = team.count() == kShares;
  // Quotients that need no length come first, while lengths are on their way.
  Value wave = s.mul(slots, blocksPerSm);
  Device device{wave, s.reciprocal(wave), s.reciprocal(slots)};
  Value atOnce = s.div(slots, s.number(heads));
  Value range = s.add(s.larger(atOnce, s.number(kShares)), -1);
  auto partsOf = [&](Value candidate) {
    return s.add(s.div(s.mul(candidate, range), s.number(kShares - 1)), one);
  };
  Value parts, perPart;
  if (isWarp) {
    parts = partsOf(team.lane(b, loc));
    perPart = s.reciprocal(parts);
  }
  SmallVector<Value> found =
      overRequests(b, first, {zero, zero, zero},
                   [&](Value, Value mine, ValueRange in) -> SmallVector<Value> {
                     return {s.add(in[0], mine), s.larger(in[1], mine),
                             s.add(in[2], s.smaller(mine, one))};
                   });
  Value all = team.sum(b, loc, found[0]);
  Value most = team.largest(b, loc, found[1]);
  Value some = team.sum(b, loc, found[2]);
  Value least = s.larger(s.divUp(most, s.number(kMostParts)), one);
  auto considerParts = [&](Value parts, Value perPart) {
    Value share = s.larger(least, s.ceilQuotient(most, parts, perPart));
    return consider(b, share, first, some);
  };
  auto values = [](const Division &d) -> SmallVector<Value> {
    return {d.share, d.reciprocal, d.parts, d.large, d.requests};
  };
  SmallVector<Value> best;
  if (isWarp) {
    Division mine = considerParts(parts, perPart);
    // Of the lanes with the smallest cost the first one has the largest share.
    Value cost = s.smaller(costOf(b, mine, device, all), s.number(kMostCost));
    Value rank = s.sub(s.number((kMostCost + 1) * kShares - 1),
                       s.add(s.mul(cost, kShares), team.lane(b, loc)));
    Value first = team.largest(b, loc, rank);
    Value winner = s.sub(s.number(kShares - 1), s.bits(first, kShares - 1));
    for (Value value : values(mine))
      best.push_back(team.of(b, loc, value, winner));
  } else {
    Value never = s.number(INT32_MAX);
    best =
        s.loop(s.number(kShares), 1, {one, zero, zero, zero, zero, never},
               [&](Value candidate, ValueRange before) -> SmallVector<Value> {
                 Value parts = partsOf(candidate);
                 Division mine = considerParts(parts, s.reciprocal(parts));
                 Value cost = costOf(b, mine, device, all);
                 Value wins = s.is(Predicate::slt, cost, before[5]);
                 SmallVector<Value> next = values(mine);
                 next.push_back(cost);
                 for (auto [value, old] : llvm::zip(next, before))
                   value = s.select(wins, value, old);
                 return next;
               });
  }
  return {best[0], best[1], best[2], best[3], best[4]};
}

/// Finds item `wanted`. Items come in the order: parts of divided requests,
/// other requests above half a share, the rest.
WorkItem WorkItems::search(Builder &b, const Division &d, Value first,
                           Value wanted) {
  Scalars s{b};
  Location loc = b.getLoc();
  Value zero = s.number(0), one = s.number(1);
  // Three counts in one word: lanes have at most 256 parts each.
  constexpr int64_t kLarge = 1 << 16, kSmall = 1 << 24;
  auto unpack = [&](Value word) -> SmallVector<Value> {
    return {s.bits(word, kLarge - 1), s.bits(s.shiftRight(word, 16), 255),
            s.shiftRight(word, 24)};
  };
  SmallVector<Value> found = overRequests(
      b, first, {zero, zero, zero, zero, zero, zero},
      [&](Value base, Value tiles, ValueRange in) -> SmallVector<Value> {
        Value request = s.add(base, team.lane(b, loc));
        Value exists = s.is(Predicate::slt, request, batch);
        Value parts =
            s.larger(s.ceilQuotient(tiles, d.share, d.reciprocal), one);
        Value several = s.is(Predicate::sgt, parts, one);
        Value large = s.is(Predicate::sgt, s.add(tiles, tiles), d.share);
        Value word =
            s.select(several, parts,
                     s.select(large, s.number(kLarge), s.number(kSmall)));
        word = s.ifThen(exists, word);
        SmallVector<Value> before = unpack(team.before(b, loc, word));
        SmallVector<Value> all = unpack(team.sum(b, loc, word));
        Value dividedAt = s.add(in[0], before[0]);
        Value largeAt = s.add(s.add(d.parts, in[1]), before[1]);
        Value smallAt = s.add(s.add(s.add(d.parts, d.large), in[2]), before[2]);
        Value start =
            s.select(several, dividedAt, s.select(large, largeAt, smallAt));
        Value hit = s.is(Predicate::ult, s.sub(wanted, start), parts);
        hit = s.both(hit, exists);
        return {s.add(in[0], all[0]),
                s.add(in[1], all[1]),
                s.add(in[2], all[2]),
                s.add(in[3], s.ifThen(hit, s.add(request, one))),
                s.add(in[4], s.ifThen(hit, start)),
                s.add(in[5], s.ifThen(hit, parts))};
      });
  Value number = team.sum(b, loc, found[3]);
  Value start = team.sum(b, loc, found[4]);
  Value parts = team.sum(b, loc, found[5]);
  Value request = s.larger(s.add(number, -1), zero);
  return {request, s.sub(wanted, start), parts, wanted};
}

/// The last parts come first: they may be the longest.
WorkItem WorkItems::findPart(Builder &b, Value x) {
  Scalars s{b};
  Value request = s.rem(x, batch);
  Value parts = tilesOf(b, request, Rows::All).parts;
  Value part = s.add(s.sub(parts, s.div(x, batch)), -1);
  Value idle = s.is(Predicate::slt, part, s.number(0));
  Value slot = s.add(s.mul(request, slots), part);
  return {request, part, s.select(idle, s.number(0), parts), slot};
}

/// The slot of the first of all pieces of a request that have `size` tiles;
/// piece p is at that slot and p modulo `slots`.
Value WorkItems::firstSlot(Builder &b, Value request, Value size) {
  Scalars s{b};
  Value first = s.mul(request, slots);
  if (!pieces.most)
    return first;
  // Rows of a request have two sizes at most, and these differ by one. A launch
  // with room for one has none but the least.
  Value other = s.bits(s.sub(size, s.number(pieces.leastSize)), 1);
  return s.add(first, s.mul(other, s.mul(batch, slots)));
}

RowPieces WorkItems::piecesOfRow(Builder &b, Value request,
                                 const RequestTiles &tiles) {
  Scalars s{b};
  Value first = s.div(tiles.first, tiles.size);
  Value count = s.sub(s.divUp(tiles.end, tiles.size), first);
  Value some = s.is(Predicate::sgt, tiles.end, tiles.first);
  return {s.ifThen(some, count), firstSlot(b, request, tiles.size),
          s.rem(first, slots)};
}

/// The pieces of the newest row come first. Blocks behind them have those of
/// the oldest, if that has smaller ones, which is rare.
WorkItem WorkItems::findPiece(Builder &b, Value x) {
  Scalars s{b};
  Value request = s.rem(x, batch), index = s.div(x, batch);
  RequestTiles tiles = tilesOf(b, request, Rows::All);
  Value size = tiles.size, end = tiles.end;
  Value exists = arith::ConstantIntOp::create(b, /*value=*/1, 1);
  if (pieces.most) {
    Value oldSize = tilesOf(b, request, Rows::Oldest).size;
    Value isOld = s.is(Predicate::sge, index, slots);
    index = s.sub(index, s.ifThen(isOld, slots));
    exists = s.select(isOld, s.is(Predicate::ne, oldSize, size), exists);
    // Further tiles are not seen by rows of this size.
    Value oldEnd = s.smaller(end, s.mul(oldSize, pieces.most));
    size = s.select(isOld, oldSize, size);
    end = s.select(isOld, oldEnd, end);
  }
  Value firstPiece = s.div(tiles.first, size);
  Value behind = s.sub(index, s.rem(firstPiece, slots));
  Value wraps = s.is(Predicate::slt, behind, s.number(0));
  behind = s.add(behind, s.ifThen(wraps, slots));
  Value piece = s.add(firstPiece, behind);
  Value begin = s.mul(piece, size);
  end = s.smaller(end, s.add(begin, size));
  begin = s.larger(begin, tiles.first);
  Value some = s.both(exists, s.is(Predicate::slt, begin, end));
  Value slot = s.add(firstSlot(b, request, size), index);
  return {request, piece, s.count(some), slot, begin, end};
}

WorkItem WorkItems::find(Builder &b, Value x) {
  if (kind == DivisionKind::Parts)
    return findPart(b, x);
  if (kind == DivisionKind::Pieces)
    return findPiece(b, x);
  Scalars s{b};
  Value zero = s.number(0), one = s.number(1);
  auto list = [](const WorkItem &item) -> SmallVector<Value> {
    return {item.request, item.part, item.parts, item.slot};
  };
  SmallVector<Type> types(4, b.getI32Type());
  auto alone = [&]() -> SmallVector<Value> {
    Value parts = partsAlone(b);
    Value idle = s.is(Predicate::sge, x, parts);
    return {zero, x, s.select(idle, zero, parts), x};
  };
  auto many = [&] {
    return s.choose(
        s.is(Predicate::eq, items, batch),
        [&]() -> SmallVector<Value> { return {x, zero, one, zero}; },
        [&] {
          return team.once(b, [&] {
            Value first = tilesIn(b, team.lane(b, b.getLoc()));
            return list(search(b, choose(b, first), first, x));
          });
        },
        types);
  };
  SmallVector<Value> item =
      s.choose(s.is(Predicate::eq, batch, one), alone, many, types);
  return {item[0], item[1], item[2], item[3]};
}

/// Parts of the only request of a launch.
Value WorkItems::partsAlone(Builder &b) {
  Scalars s{b};
  RequestTiles tiles = tilesOf(b, s.number(0), Rows::All);
  Value parts = s.smaller(s.sub(tiles.end, tiles.first), items);
  return s.larger(parts, s.number(1));
}

Value WorkItems::prepare(Builder &b) {
  Scalars s{b};
  if (kind != DivisionKind::Lengths)
    return {};
  Value isAlone = s.is(Predicate::eq, batch, s.number(1));
  alone = s.choose(
      isAlone, [&]() -> SmallVector<Value> { return {partsAlone(b)}; },
      [&]() -> SmallVector<Value> { return {s.number(0)}; }, b.getI32Type())[0];
  return s.is(Predicate::ne, batch, s.number(1));
}

WorkItem WorkItems::findFixed(Builder &b, Value request) {
  Scalars s{b};
  Value zero = s.number(0);
  if (kind == DivisionKind::Parts) {
    Value parts = tilesOf(b, request, Rows::All).parts;
    return {request, zero, parts, s.mul(request, slots)};
  }
  return {request, zero, alone, zero};
}
