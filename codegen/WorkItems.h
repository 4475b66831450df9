//===- WorkItems.h - Who sweeps what, by the lengths on the device -*- C++ -*-//
//
// The requests of a launch are divided into parts, and each part is the item of
// one block. Every block works the division out for itself, from the lengths
// that it finds on the device, and so does the merge; no plan of lengths exists
// anywhere. `codegen/README.md` describes the rule and why it is this one.
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

class WorkItems {
public:
  /// Emits the tiles of a request of the launch.
  using TilesOf =
      std::function<RequestTiles(mlir::ImplicitLocOpBuilder &, mlir::Value)>;

  /// `batch`, `items` and `slots` are those of KernelArgs. An item has `heads`
  /// blocks; `partCost` is what it costs to write a partial result and to read
  /// it, in tiles. `fixed` plans say how many parts a request has.
  WorkItems(const LaneTeam &team, TilesOf tilesOf, mlir::Value batch,
            mlir::Value items, mlir::Value slots, int64_t heads,
            int64_t partCost, bool fixed)
      : team(team), tilesOf(std::move(tilesOf)), batch(batch), items(items),
        slots(slots), heads(heads), partCost(partCost), fixed(fixed) {}

  /// The item of number `x` of a kv head.
  WorkItem find(mlir::ImplicitLocOpBuilder &b, mlir::Value x);

  /// Works out the division once, for `divided` and `findDivided`.
  void divide(mlir::ImplicitLocOpBuilder &b);
  /// Requests that may have several parts.
  mlir::Value divided() const { return dividedRequests; }
  /// The `j`-th of them, part 0. Behind `divide`.
  WorkItem findDivided(mlir::ImplicitLocOpBuilder &b, mlir::Value j);

private:
  struct Division {
    /// Most tiles of a part, and its reciprocal.
    mlir::Value share, reciprocal;
    /// Parts of requests with several; requests of one part above half a
    /// share; requests with several parts.
    mlir::Value parts, large, requests;
  };

  mlir::Value tilesIn(mlir::ImplicitLocOpBuilder &b, mlir::Value request);
  Division choose(mlir::ImplicitLocOpBuilder &b);
  Division consider(mlir::ImplicitLocOpBuilder &b, mlir::Value share);
  mlir::Value costOf(mlir::ImplicitLocOpBuilder &b, const Division &division,
                     mlir::Value tiles);
  WorkItem search(mlir::ImplicitLocOpBuilder &b, const Division &division,
                  mlir::Value wanted, bool amongDivided);
  WorkItem findFixed(mlir::ImplicitLocOpBuilder &b, mlir::Value x);

  const LaneTeam &team;
  TilesOf tilesOf;
  mlir::Value batch, items, slots;
  int64_t heads, partCost;
  bool fixed;
  mlir::Value share, dividedRequests;
};

} // namespace tokentile

#endif // TOKENTILE_CODEGEN_WORKITEMS_H
