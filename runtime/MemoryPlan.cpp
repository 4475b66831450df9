//===- MemoryPlan.cpp - How many requests fit -----------------------------===//

#include "runtime/MemoryPlan.h"

#include <algorithm>

using namespace tokentile;

namespace {

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

Status invalid(std::string message) {
  return Status(StatusCode::InvalidArgument, std::move(message));
}

/// The largest value of [0, limit] for which `fits` holds, given that it holds
/// for 0 and for all values below one for which it holds.
template <typename Fits>
int64_t largest(int64_t limit, Fits fits) {
  int64_t low = 0;
  while (low < limit) {
    int64_t middle = low + (limit - low + 1) / 2;
    if (fits(middle))
      low = middle;
    else
      limit = middle - 1;
  }
  return low;
}

Status checkGroup(const ModelShape &model, const CacheGroup &group) {
  auto refuse = [&](const std::string &cause) {
    return invalid("model '" + model.name + "': group '" + group.name +
                   "' has " + cause);
  };
  if (group.kind == TableKind::State) {
    if (group.stateBytes < 1 || group.snapshots < 0)
      return refuse("stateBytes " + std::to_string(group.stateBytes) +
                    " and snapshots " + std::to_string(group.snapshots) +
                    "; they must be at least 1 and 0");
    return Status();
  }
  if (group.tokenBytes < 1 || group.pageTokens < 1)
    return refuse("tokenBytes " + std::to_string(group.tokenBytes) +
                  " and pageTokens " + std::to_string(group.pageTokens) +
                  "; they must be positive");
  if (group.kind == TableKind::Ring &&
      (group.window < 1 || group.uncommittedRows < 0))
    return refuse("window " + std::to_string(group.window) +
                  " and uncommittedRows " +
                  std::to_string(group.uncommittedRows) +
                  "; they must be at least 1 and 0");
  return Status();
}

/// Entries of a request of `rows` rows, the uncommitted ones included.
int64_t entriesOf(const CacheGroup &group, int64_t rows, int32_t width) {
  if (group.kind == TableKind::State)
    return group.snapshots > 0 ? group.snapshots : width;
  int64_t pages = ceilDiv(rows, group.pageTokens);
  if (group.kind == TableKind::Linear)
    return pages;
  int64_t ring = std::max<int64_t>(
      1, ceilDiv(int64_t(group.window) - 1 + group.uncommittedRows,
                 group.pageTokens));
  return std::min(pages, ring);
}

/// Rows that a request of `tokens` tokens has at its end.
int64_t rowsOf(int64_t tokens, int32_t width) { return tokens + width - 1; }

int64_t chunksOf(const ClassPlan &need, int64_t requests) {
  return ceilDiv(requests * need.pagesPerRequest, need.pagesPerChunk);
}

int64_t chunksOf(const std::vector<ClassPlan> &needs, int64_t requests) {
  int64_t chunks = 0;
  for (const ClassPlan &need : needs)
    chunks += chunksOf(need, requests);
  return chunks;
}

Status checkWorkload(const Workload &workload) {
  if (workload.requests < 1 || workload.width < 1 || workload.tokensIn < 0 ||
      workload.tokensOut < 0)
    return invalid("workload of " + std::to_string(workload.requests) +
                   " requests, width " + std::to_string(workload.width) + ", " +
                   std::to_string(workload.tokensIn) + " tokens in and " +
                   std::to_string(workload.tokensOut) +
                   " out; requests and width must be positive and tokens not "
                   "negative");
  int64_t tokens = int64_t(workload.tokensIn) + workload.tokensOut;
  if (tokens < 1 || tokens > MemoryPlan::unbounded)
    return Status(StatusCode::OutOfRange,
                  "workload of " + std::to_string(tokens) +
                      " tokens a request is not within 1 .. 2^30");
  return Status();
}

/// What each class needs for requests of `tokens` tokens.
std::vector<ClassPlan> needsOf(const ModelShape &model, const MemoryPlan &plan,
                               int64_t tokens, int32_t width) {
  std::vector<ClassPlan> needs;
  for (size_t i = 0; i < model.groups.size(); ++i) {
    ClassPlan &need = needs.emplace_back();
    need.pagesPerRequest =
        entriesOf(model.groups[i], rowsOf(tokens, width), width);
    need.pagesPerChunk =
        PagePool::pagesPerChunk(plan.chunkBytes, plan.classes[i].pageBytes);
  }
  return needs;
}

void explain(MemoryPlan &plan, int64_t requests, int64_t chunks) {
  int64_t needed = chunksOf(plan.needs, requests);
  plan.shortBytes = (needed - chunks) * plan.chunkBytes;
  int64_t left = chunks;
  size_t group = 0;
  for (; group < plan.needs.size(); ++group) {
    left -= chunksOf(plan.needs[group], requests);
    if (left < 0)
      break;
  }
  plan.shortClass = plan.classes[group].name;
  plan.reason = std::to_string(requests) + " requests need " +
                std::to_string(needed) + " chunks of " +
                std::to_string(plan.chunkBytes) + " bytes and the pool has " +
                std::to_string(chunks) + ": class '" + plan.shortClass +
                "' is short, by " + std::to_string(plan.shortBytes) + " bytes";
}

} // namespace

StatusOr<MemoryPlan> tokentile::planMemory(const ModelShape &model,
                                           const Workload &workload,
                                           int64_t bytes, int64_t chunkBytes) {
  if (Status status = checkWorkload(workload); !status.ok())
    return status;
  MemoryPlan plan;
  int64_t tokens = int64_t(workload.tokensIn) + workload.tokensOut;
  for (const CacheGroup &group : model.groups) {
    if (Status status = checkGroup(model, group); !status.ok())
      return status;
    bool state = group.kind == TableKind::State;
    plan.classes.push_back(
        {group.name,
         state ? group.stateBytes : group.tokenBytes * group.pageTokens});
    TableSpec spec;
    spec.kind = group.kind;
    spec.pageTokens = group.pageTokens;
    // A ring has its full size, whatever the workload.
    int64_t rows =
        group.kind == TableKind::Ring
            ? int64_t(group.window) + group.uncommittedRows + group.pageTokens
            : rowsOf(tokens, workload.width);
    spec.entries = int32_t(entriesOf(group, rows, workload.width));
    spec.window = group.window;
    spec.uncommittedRows = group.uncommittedRows;
    plan.tables.push_back(spec);
  }
  plan.chunkBytes =
      chunkBytes > 0 ? chunkBytes : PagePool::chooseChunkBytes(plan.classes);
  StatusOr<PagePool> pool =
      PagePool::create(bytes, plan.chunkBytes, plan.classes);
  if (!pool.ok())
    return Status(pool.status().code(),
                  "model '" + model.name + "': " + pool.status().message());
  int64_t chunks = pool->chunkCount();
  plan.poolBytes = pool->bytes();

  plan.needs = needsOf(model, plan, tokens, workload.width);
  // Every request has at least one page of each class.
  int64_t pages = 0;
  for (const ClassPlan &need : plan.needs)
    pages = std::max(pages, need.pagesPerChunk * chunks);
  plan.requests = largest(
      pages, [&](int64_t n) { return chunksOf(plan.needs, n) <= chunks; });
  plan.servable = plan.requests >= workload.requests;
  for (ClassPlan &need : plan.needs)
    need.chunks = chunksOf(need, plan.requests);
  explain(plan, std::max<int64_t>(plan.requests + 1, workload.requests),
          chunks);
  plan.largestContext =
      int32_t(largest(MemoryPlan::unbounded, [&](int64_t context) {
        return chunksOf(needsOf(model, plan, context, workload.width),
                        workload.requests) <= chunks;
      }));
  return plan;
}
