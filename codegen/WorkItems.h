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

/// Tiles of a request that some row sees, and its parts where the plan fixes
/// them.
struct RequestTiles {
  mlir::Value first, end;
  /// Null unless the plan fixes them: how many parts, and the number of part 0.
  mlir::Value parts, piece;
};

/// What a block was given. `parts` is 0 if it is nothing.
struct WorkItem {
  mlir::Value request, part, parts, slot;
};

/// Parts of a request, and the slot of the first.
struct RequestParts {
  mlir::Value parts, slot;
};

class WorkItems {
public:
  using Builder = mlir::ImplicitLocOpBuilder;
  /// Emits the tiles of a request of the launch.
  using TilesOf = std::function<RequestTiles(Builder &, mlir::Value)>;
  /// Emits what the sweep has left of a request in KernelArgs::divisions.
  using PartsOf = std::function<RequestParts(Builder &, mlir::Value)>;

  /// `batch`, `items` and `slots` are those of KernelArgs. An item has `heads`
  /// blocks, of which `blocksPerSm` share a multiprocessor; `partCost` is what
  /// it costs to write a partial result and to read it, in tiles. `fixed` plans
  /// say how many parts a request has.
  WorkItems(const LaneTeam &team, TilesOf tilesOf, PartsOf partsOf,
            mlir::Value batch, mlir::Value items, mlir::Value slots,
            int64_t heads, int64_t blocksPerSm, int64_t partCost, bool fixed)
      : team(team), tilesOf(std::move(tilesOf)), partsOf(std::move(partsOf)),
        batch(batch), items(items), slots(slots), heads(heads),
        blocksPerSm(blocksPerSm), partCost(partCost), fixed(fixed) {}

  /// The plan says how many parts a request has.
  bool fixesParts() const { return fixed; }
  /// The item of number `x` of a kv head.
  WorkItem find(Builder &b, mlir::Value x);

  /// For a merge, before it waits for the sweep: finds out what lengths say.
  /// Returns i1: the launch has several requests, and the order in which their
  /// parts are added is free.
  mlir::Value prepare(Builder &b);
  /// Part 0 of a request: by what the sweep has left, behind the wait, if the
  /// launch may have several, else by what `prepare` has found.
  WorkItem findLeft(Builder &b, mlir::Value request, bool several);

private:
  struct Division {
    /// Most tiles of a part, and one less than the factor that divides by it.
    mlir::Value share, reciprocal;
    /// Parts of requests with several; requests of one part above half a
    /// share; requests with several parts.
    mlir::Value parts, large, requests;
  };

  mlir::Value tilesIn(Builder &b, mlir::Value request);
  Division choose(Builder &b);
  Division consider(Builder &b, mlir::Value share);
  mlir::Value costOf(Builder &b, const Division &division, mlir::Value tiles);
  WorkItem search(Builder &b, const Division &division, mlir::Value wanted);
  WorkItem findFixed(Builder &b, mlir::Value x);
  mlir::Value partsAlone(Builder &b);

  const LaneTeam &team;
  TilesOf tilesOf;
  PartsOf partsOf;
  mlir::Value batch, items, slots;
  int64_t heads, blocksPerSm, partCost;
  bool fixed;
  /// Of a plan that is not fixed: parts of the only request of a launch, else
  /// 0.
  mlir::Value alone;
};

} // namespace tokentile

#endif // TOKENTILE_CODEGEN_WORKITEMS_H
