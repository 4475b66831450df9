//===- Kernel.h - Plan and launch of generated kernels ----------*- C++ -*-===//
//
// A kernel is loaded once, planned once for each set of bounds, and launched
// for every step:
//
//   compiled  --Device::load-->  Kernel  --plan-->  Plan  --launch-->  stream
//
// Planning is pure host work and cheap. A launch neither allocates nor
// synchronizes nor reads device memory, so it can be captured into a graph,
// and the graph stays right while lengths and tables change on the device.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_KERNEL_H
#define TOKENTILE_RUNTIME_KERNEL_H

#include "codegen/KernelABI.h"
#include "runtime/Device.h"
#include "runtime/RawKernel.h"

#include <memory>
#include <string>

namespace tokentile {

struct LaunchArgs;
struct Plan;

/// What a compiler produces: PTX for a GPU, or functions for the host.
struct CompiledKernel {
  KernelInfo info;
  std::string ptx;
  HostKernelFn sweep = nullptr;
  HostKernelFn merge = nullptr;
  /// Keeps the code of `sweep` and `merge` alive.
  std::shared_ptr<void> code;
};

/// A kernel loaded on a device. Immutable; usable from many threads.
class Kernel {
public:
  Kernel(Device &owner, KernelInfo info)
      : owner(owner), kernelInfo(std::move(info)) {}
  virtual ~Kernel();
  Device &device() const { return owner; }
  const KernelInfo &info() const { return kernelInfo; }

private:
  friend Status launch(const Plan &plan, const LaunchArgs &args,
                       Stream &stream);
  /// Queues the sweep and, if it has blocks, the merge.
  virtual Status enqueue(const Plan &plan, const KernelArgs &args,
                         Stream &stream) const = 0;

  Device &owner;
  KernelInfo kernelInfo;
};

/// Maxima of the launches of one plan.
struct Bounds {
  /// Requests; a launch has exactly so many (pad with empty ones).
  int32_t batch = 0;
  /// Keys of one request, block rows included.
  int32_t keys = 0;
};

/// Into how much work launches are divided. The division itself is the
/// device's, by the lengths that it finds (codegen/README.md).
struct WorkPlan {
  /// Items of one kv head and row block: blocks of the sweep that may have
  /// something to do.
  int32_t items = 1;
  /// Multiprocessors; with a split of fixed count or size the most parts of a
  /// request, with pieces that grow the most that have one size.
  int32_t slots = 1;
  /// Partial results of one kv head, at most; 0 if there is nothing to merge.
  int64_t partials = 0;
  /// A batch is divided into ranges of tiles, one for each item.
  bool ranges = false;
  /// Blocks of the merge kernel, 0 without one.
  int32_t mergeBlocks = 0;

  bool merges() const { return partials > 0; }
};

/// The work of launches within `bounds` on a device of so many multiprocessors.
/// REQUIRES: bounds.batch > 0 and bounds.keys > 0.
WorkPlan planWork(const KernelInfo &info, const Bounds &bounds,
                  int32_t multiprocessors);

/// Where the parts of the workspace of one launch lie: partial outputs at its
/// start, then partial statistics, then divisions, each 256-byte aligned
/// relative to the start. Empty without a merge.
struct Workspace {
  int64_t statsOffset = 0;
  int64_t divisionsOffset = 0;
  int64_t bytes = 0;

  /// Points `args` into the workspace at `base`.
  void place(void *base, KernelArgs &args) const;
};
Workspace workspaceOf(const KernelInfo &info, const WorkPlan &work,
                      int32_t batch);

/// How one kernel is launched within given bounds. A plain value; the kernel
/// must outlive it.
struct Plan {
  const Kernel *kernel = nullptr;
  Bounds bounds;
  WorkPlan work;
  /// items * kvHeads * rowBlocks blocks.
  Extent sweepGrid;
  /// work.mergeBlocks blocks, which share the rows that are merged.
  Extent mergeGrid;
  /// Dynamic shared memory of a merge block, in bytes. It starts while the
  /// sweep's last blocks end; asking for more than it uses keeps the first free
  /// multiprocessors from taking all of its blocks.
  int32_t mergeSharedBytes = 0;
  /// Workspace of one launch in flight.
  Workspace workspace;
};

/// Shared memory that lets no multiprocessor hold more than its share of
/// `blocks` merge blocks, at least what the kernel needs.
int32_t spreadMergeBytes(const KernelInfo &info, int64_t blocks,
                         const DeviceFacts &facts);

/// Plans launches within `bounds`. OutOfRange, naming the axis and the limit,
/// if the bounds are not positive or exceed what a grid can hold.
StatusOr<Plan> plan(const Kernel &kernel, const Bounds &bounds);

/// The tensors of one launch. Words and shapes are those of KernelArgs, to
/// which most fields are copied. All pointers belong to the plan's device, are
/// owned by the caller and must be 16-byte aligned.
struct LaunchArgs {
  const void *query = nullptr;
  void *output = nullptr;
  /// Required if info.logSumExp, else null.
  float *logSumExp = nullptr;
  const void *keys = nullptr;
  const void *values = nullptr;
  /// Required if info.denseBlock.
  const void *blockKeys = nullptr;
  const void *blockValues = nullptr;
  /// Required unless the keys are contiguous.
  const int32_t *table = nullptr;
  const int32_t *lengths = nullptr;
  /// Required unless info.columns is Uniform.
  const int32_t *columns = nullptr;
  /// Required if info.positionsGiven.
  const int32_t *positions = nullptr;
  /// Required if the keys are contiguous.
  const int32_t *keyOffsets = nullptr;
  /// Required if info.sink, else null.
  const float *sinks = nullptr;

  /// Entries of one row of `table`: exactly info.ring / info.pageSize for a
  /// ring (the stride of BlockTables), else at least the pages of the planned
  /// keys.
  int64_t tableStride = 0;
  /// Pages of the pool, 0 if unknown. Head-major pages need it, or both head
  /// strides.
  int32_t poolPages = 0;
  /// T, rows of the query and output tensors; -1 means batch * tokens. Packed
  /// head-major tensors need it, or their head stride.
  int64_t queryTokens = -1;

  /// Strides in bytes, multiples of 16; 0 means the dense one that KernelInfo
  /// implies.
  int64_t queryTokenStride = 0;
  int64_t queryHeadStride = 0;
  int64_t outputTokenStride = 0;
  int64_t outputHeadStride = 0;
  int64_t keyPageStride = 0;
  int64_t keyHeadStride = 0;
  int64_t valuePageStride = 0;
  int64_t valueHeadStride = 0;

  /// At least Plan::workspace.bytes; belongs to this launch until its work is
  /// done, and may be shared by launches of one stream.
  void *workspace = nullptr;
  int64_t workspaceBytes = 0;
};

/// Queues one launch on `stream`, a stream of the plan's device. Arguments are
/// frozen by value when it returns. Errors are found before anything is
/// queued: InvalidArgument names the field; ResourceExhausted a workspace that
/// is too small; OutOfRange a table that is too short for the planned keys.
Status launch(const Plan &plan, const LaunchArgs &args, Stream &stream);

/// For callers who hold lengths on the host: checks that every request stays
/// within the plan, which a launch cannot see. `lengths` is [batch] and
/// `columns`, as the kernel's info.columns says, [batch] or [batch + 1], or
/// null for Uniform; all in host memory. OutOfRange names the request, its
/// value and the bound.
Status checkLengths(const Plan &plan, const int32_t *lengths, int32_t batch,
                    const int32_t *columns = nullptr);

} // namespace tokentile

#endif // TOKENTILE_RUNTIME_KERNEL_H
