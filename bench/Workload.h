//===- Workload.h - The tensors that are timed ------------------*- C++ -*-===//

#ifndef TOKENTILE_BENCH_WORKLOAD_H
#define TOKENTILE_BENCH_WORKLOAD_H

#include "runtime/Kernel.h"

#include <vector>

namespace tokentile {

/// Which pages the requests have. Identity: in order. Fragmented: page i is
/// page 2 i + 1 of a pool of 2 n + 1, as engines measure it. Shuffled: a
/// permutation.
enum class TableKind { Identity, Fragmented, Shuffled };

const char *tableName(TableKind kind);

/// One launch's worth of requests.
struct Shape {
  int32_t batch = 1;
  /// Keys before the block, of the longest request.
  int32_t context = 0;
  /// Query tokens of the whole step.
  int32_t tokens = 1;
  TableKind table = TableKind::Identity;
  /// The context of each request; empty if all have `context`.
  std::vector<int32_t> contexts;

  int32_t contextOf(int32_t request) const {
    return contexts.empty() ? context : contexts[request];
  }
  /// Of the longest request, block included.
  int32_t keys() const { return context + tokens; }
  bool operator==(const Shape &) const = default;
};

/// Device memory for `shape`, laid out as a kernel reads it. Kernels that
/// differ in their tokens alone share one workload.
class Workload {
public:
  static StatusOr<std::unique_ptr<Workload>>
  create(Device &device, const KernelInfo &info, const Shape &shape);

  const Shape &getShape() const { return shape; }

  /// Arguments of a launch of `tokens` query tokens after the first `before`
  /// of the step, which count as context. Each call allocates its metadata,
  /// which lives as long as the workload.
  StatusOr<LaunchArgs> args(const KernelInfo &info, int32_t before,
                            int32_t tokens);

  /// Workspace for `plan`, likewise; shared by all launches.
  StatusOr<void *> workspace(const Plan &plan);

  /// Device memory of the pools, and the table on the host: what the floor
  /// reads.
  const Buffer &keys() const { return keyPool; }
  const Buffer &values() const { return valuePool; }
  const int32_t *table() const { return tableBuffer.as<int32_t>(); }
  int64_t getTableStride() const { return tableStride; }
  int32_t getPoolPages() const { return poolPages; }

private:
  Workload(Device &device, const Shape &shape) : device(device), shape(shape) {}
  Status fillPools(const KernelInfo &info);
  Status fillTable(const KernelInfo &info);
  StatusOr<const int32_t *> upload(const std::vector<int32_t> &values);

  Device &device;
  Shape shape;
  int64_t tableStride = 0;
  int32_t poolPages = 0;
  Buffer query, output, logSumExp, keyPool, valuePool, blockKeys, blockValues;
  Buffer tableBuffer, workspaceBuffer;
  std::vector<Buffer> metadata;
};

/// Bytes of keys and values that `shape` makes a sweep read once: those that
/// at least one row sees.
int64_t uniqueBytes(const KernelInfo &info, const Shape &shape);
/// Keys of the longest request that at least one row sees.
int64_t visibleKeys(const KernelInfo &info, const Shape &shape);

} // namespace tokentile

#endif // TOKENTILE_BENCH_WORKLOAD_H
