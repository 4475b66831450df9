//===- MemoryPlan.h - How many requests fit ---------------------*- C++ -*-===//
//
// Sizes a PagePool and its BlockTables for a model, a verify width and an
// amount of memory, and says how many requests they serve. The answer holds in
// whatever order pages come and go (see PagePool.h, Capacity).
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_MEMORYPLAN_H
#define TOKENTILE_RUNTIME_MEMORYPLAN_H

#include "runtime/BlockTables.h"

namespace tokentile {

/// Layers that share one page class: their pages have the same ids.
struct CacheGroup {
  std::string name;
  TableKind kind = TableKind::Linear;
  /// Linear, Ring: bytes of one position over all layers of the group.
  int64_t tokenBytes = 0;
  int32_t pageTokens = 0;
  /// Ring: as in TableSpec.
  int32_t window = 0;
  int32_t uncommittedRows = 0;
  /// State: bytes of one snapshot over all layers, and snapshots of a request;
  /// 0 for one per verify row, 1 for input replay.
  int64_t stateBytes = 0;
  int32_t snapshots = 0;
};

/// Bytes of K and V of one position.
constexpr int64_t kvTokenBytes(int64_t layers, int64_t kvHeads, int64_t headDim,
                               int64_t elementBytes) {
  return 2 * layers * kvHeads * headDim * elementBytes;
}

/// Everything a model caches: target, draft and recurrent layers.
struct ModelShape {
  std::string name;
  std::vector<CacheGroup> groups;
};

/// What is to be served.
struct Workload {
  /// Requests at once.
  int32_t requests = 1;
  /// Verify rows of a step, 1 + k; 1 for plain decode.
  int32_t width = 1;
  /// Tokens of one request.
  int32_t tokensIn = 0;
  int32_t tokensOut = 0;
};

/// The need of one page class.
struct ClassPlan {
  /// At the end of a request's life.
  int64_t pagesPerRequest = 0;
  int64_t pagesPerChunk = 0;
  /// For `requests` requests of the plan.
  int64_t chunks = 0;
};

struct MemoryPlan {
  /// For PagePool::create and BlockTables::create; tables of this workload.
  int64_t poolBytes = 0;
  int64_t chunkBytes = 0;
  std::vector<PageClass> classes;
  std::vector<TableSpec> tables;

  /// How many requests of this workload fit at once.
  int64_t requests = 0;
  bool servable = false;
  std::vector<ClassPlan> needs;
  /// Why not more: for the larger of requests + 1 and Workload::requests, the
  /// first class in the order of the groups that gets too few chunks, and the
  /// bytes that the pool lacks for all classes. `reason` says so in words.
  std::string shortClass;
  int64_t shortBytes = 0;
  std::string reason;
  /// The most tokens, in and out together, of Workload::requests requests that
  /// are all at their end; 0 if none fit, `unbounded` if length costs nothing.
  int32_t largestContext = 0;
  static constexpr int32_t unbounded = 1 << 30;
};

/// Plans `bytes` bytes. A request is counted at its end, with a whole proposal
/// reserved: tokensIn + tokensOut + width - 1 rows. `chunkBytes` is chosen if
/// 0. Errors are those of a shape, a workload or a size that cannot work at
/// all; too little memory for the workload is an answer, not an error.
StatusOr<MemoryPlan> planMemory(const ModelShape &model,
                                const Workload &workload, int64_t bytes,
                                int64_t chunkBytes = 0);

} // namespace tokentile

#endif // TOKENTILE_RUNTIME_MEMORYPLAN_H
