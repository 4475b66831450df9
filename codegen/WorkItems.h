//===- WorkItems.h - Who sweeps what, by the lengths on the device -*- C++ -*-//
//
// The requests of a launch are divided into parts, and each part is the item of
// one block. Every block of a sweep works the division out for itself, from the
// lengths that it finds on the device, and leaves that of a batch to the merge;
// no plan of lengths exists anywhere. `codegen/README.md` describes the rule
// and why it is this one.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_CODEGEN_WORKITEMS_H
#define TOKENTILE_CODEGEN_WORKITEMS_H

#include "codegen/LaneTeam.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <functional>

namespace tokentile {

/// Tiles of a request that some row sees.
struct RequestTiles {
  mlir::Value first, end;
  /// Null unless the plan fixes them: how many parts; tiles of a piece.
  mlir::Value parts, size;
};

/// How a plan divides a request: by the lengths of all, into a fixed number of
/// parts, or into pieces whose size does not depend on the launch.
enum class DivisionKind { Lengths, Parts, Pieces };

/// What a block was given. `parts` is 0 if it is nothing.
struct WorkItem {
  mlir::Value request, part, parts, slot;
  /// Its tiles, or null if they are what its part of the request says.
  mlir::Value first = nullptr, end = nullptr;
};

/// Of pieces that grow with a row's position the most that a row has, 0 if they
/// do not grow, and the tiles of the smallest.
struct GrowingPieces {
  int64_t most, leastSize;
};

/// Parts of a request, and the slot of the first (KernelArgs::divisions).
struct RequestParts {
  mlir::Value parts, slot;
};

/// The pieces of a row: how many, the slot of the first of all of their size,
/// and how far behind it, modulo `slots`, the first of the row is.
struct RowPieces {
  mlir::Value count, slot, first;
};

/// Tiles [low, high) of the row in which those of all requests stand, `total`
/// of them: what block `number` of a head has (WorkRanges.cpp). They are of
/// `count` requests from `request` on, whose tiles begin at `start`.
struct WorkRange {
  mlir::Value number, request, count, start, low, high, total;
};

/// An item of a range, and where the next request begins.
struct RangedItem {
  WorkItem item;
  mlir::Value next;
};

class WorkItems {
public:
  using Builder = mlir::ImplicitLocOpBuilder;
  /// Which rows of a request: all, or the oldest.
  enum class Rows { All, Oldest };
  /// Emits the tiles that rows of a request of the launch see.
  using TilesOf = std::function<RequestTiles(Builder &, mlir::Value, Rows)>;

  /// `batch`, `items` and `slots` are those of KernelArgs. An item has `heads`
  /// blocks, of which `blocksPerSm` share a multiprocessor; `partCost` is what
  /// it costs to write a partial result and to read it, in tiles.
  WorkItems(const LaneTeam &team, TilesOf tilesOf, mlir::Value batch,
            mlir::Value items, mlir::Value slots, int64_t heads,
            int64_t blocksPerSm, int64_t partCost, DivisionKind kind,
            GrowingPieces pieces)
      : team(team), tilesOf(std::move(tilesOf)), batch(batch), items(items),
        slots(slots), heads(heads), blocksPerSm(blocksPerSm),
        partCost(partCost), kind(kind), pieces(pieces) {}

  DivisionKind getKind() const { return kind; }
  /// The item of number `x` of a kv head.
  WorkItem find(Builder &b, mlir::Value x);

  /// Instead of one item: the range of block `x` of a head.
  WorkRange findRange(Builder &b, mlir::Value x);
  /// The item of `request` in a range, which begins at `start` and has `tiles`.
  RangedItem inRange(Builder &b, const WorkRange &range, mlir::Value request,
                     mlir::Value start, const RequestTiles &tiles);

  /// For a merge, before it waits for the sweep: finds out what lengths say.
  /// Returns i1: the launch has several requests, and the order in which their
  /// parts are added is free; null if the plan fixes them.
  mlir::Value prepare(Builder &b);
  /// Part 0 of a request of a merge, if it is the only one of its launch, as
  /// `prepare` has found, or the plan fixes its parts.
  WorkItem findFixed(Builder &b, mlir::Value request);
  /// The pieces of a row of a request that sees `tiles`.
  RowPieces piecesOfRow(Builder &b, mlir::Value request,
                        const RequestTiles &tiles);

private:
  struct Division {
    /// Most tiles of a part, and one less than the factor that divides by it.
    mlir::Value share, reciprocal;
    /// Parts of requests with several; requests of one part above half a
    /// share; requests with several parts.
    mlir::Value parts, large, requests;
  };

  /// Blocks that run at one time, and the reciprocals of that and of `slots`.
  struct Device {
    mlir::Value wave, perWave, perSlot;
  };
  /// From the number of the team's first request, the tiles of the lane's, and
  /// what is carried.
  using RequestBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      mlir::Value, mlir::Value, mlir::ValueRange)>;

  mlir::Value tilesIn(Builder &b, mlir::Value request);
  llvm::SmallVector<mlir::Value> overRequests(Builder &b, mlir::Value tiles,
                                              mlir::ValueRange init,
                                              RequestBody body);
  Division choose(Builder &b, mlir::Value first);
  Division consider(Builder &b, mlir::Value share, mlir::Value tiles,
                    mlir::Value some);
  mlir::Value costOf(Builder &b, const Division &division, const Device &device,
                     mlir::Value tiles);
  mlir::Value endOfAlone(Builder &b, const Division &division,
                         mlir::Value longest, mlir::Value even,
                         mlir::Value full, mlir::Value rest);
  mlir::Value endOfShared(Builder &b, mlir::Value longest, mlir::Value even,
                          mlir::Value full, mlir::Value rest,
                          const Device &device);
  WorkItem search(Builder &b, const Division &division, mlir::Value first,
                  mlir::Value wanted);
  mlir::Value sharersOf(Builder &b, mlir::Value total);
  mlir::Value ownerOf(Builder &b, const WorkRange &range, mlir::Value place);
  WorkItem findPart(Builder &b, mlir::Value x);
  WorkItem findPiece(Builder &b, mlir::Value x);
  mlir::Value firstSlot(Builder &b, mlir::Value request, mlir::Value size);
  mlir::Value partsAlone(Builder &b);

  const LaneTeam &team;
  TilesOf tilesOf;
  mlir::Value batch, items, slots;
  int64_t heads, blocksPerSm, partCost;
  DivisionKind kind;
  GrowingPieces pieces;
  /// By lengths: parts of the only request of a launch, else 0.
  mlir::Value alone;
};

} // namespace tokentile

#endif // TOKENTILE_CODEGEN_WORKITEMS_H
