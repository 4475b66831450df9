//===- LaneExecutor.h - Runs mma kernels lane by lane on the CPU ----------===//
//
// Executes one block of a kernel in its machine form (the output of
// attn-staged-to-mma, before control flow is lowered) on the CPU, so that a
// wrong lane, bank, copy or barrier fails a test where no GPU is present.
//
// The model, where it is stricter or simpler than hardware:
//  * The lanes of a warp run in lockstep under an active mask. Lanes may
//    enter a loop at different values and leave it early; its upper bound and
//    step must agree among the active lanes.
//  * The warps of a block run one after another from barrier to barrier, in an
//    order that the caller selects. Every warp must meet at the same barrier.
//  * A byte of shared memory touched by two warps between two barriers, with
//    at least one write, is a race and an error.
//  * Asynchronous copies read global memory when they are issued and reach
//    shared memory as late as the program allows: when the issuing lane waits
//    for their group. Until then their destination holds poison.
//  * Shared memory starts as poison: bytes 0xff, a NaN in every float type.
//  * mma.sync sums its sixteen products in fp32 in the order of k and then
//    adds the accumulator. Hardware keeps other intermediate bits.
//  * Values of inactive lanes are never observed and may be anything.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_CODEGEN_LANES_LANEEXECUTOR_H
#define TOKENTILE_CODEGEN_LANES_LANEEXECUTOR_H

#include "codegen/KernelABI.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace tokentile {

/// Bytes [begin, end) that a kernel may read, and write if `writable`.
struct MemoryRange {
  const void *begin = nullptr;
  const void *end = nullptr;
  bool writable = true;
};

struct LaneOptions {
  /// Threads of the block, at most 1,024.
  int threads = 128;
  /// Dynamic shared memory of the block in bytes.
  int64_t sharedBytes = 0;
  /// Run the last warp first between barriers.
  bool descendingWarps = false;
  /// Whether a read of shared bytes that nothing has written, or that a copy
  /// in flight will write, is an error rather than counted.
  bool poisonIsError = false;
  /// Whether a lane that reads or overwrites what another lane of its warp
  /// wrote, without bar.warp.sync or a barrier between, is a race too.
  /// Hardware orders neither ordinary stores nor landed copies without.
  bool lanesRace = false;
  /// Host memory that stands for global memory.
  std::vector<MemoryRange> global;
  /// Extents of the grid, for kernels that read them.
  int grid[3] = {1, 1, 1};
  /// Called when a warp begins, and whenever it waits for the launch that this
  /// one depends on. What that has written need not be seen before.
  std::function<void()> atWarpStart, atGridWait;
};

/// What one block did. A conflict degree is the largest number of distinct
/// 4-byte words that one phase of an access asks of one bank; 1 is free of
/// conflicts. `...Conflicts` sum degree - 1 over all phases.
struct LaneReport {
  int64_t instructions = 0;
  /// Instructions times the lanes that were active.
  int64_t laneOps = 0;
  int64_t barriers = 0;
  int64_t mmas = 0;
  int64_t ldmatrices = 0;
  int64_t ldmatrixConflicts = 0;
  int64_t maxLdmatrixDegree = 0;
  /// Ordinary loads and stores of shared memory.
  int64_t sharedConflicts = 0;
  int64_t maxSharedDegree = 0;
  /// Destinations of asynchronous copies.
  int64_t copyConflicts = 0;
  int64_t maxCopyDegree = 0;
  /// Copies of single lanes, and those that were never waited for.
  int64_t asyncCopies = 0;
  int64_t unlandedCopies = 0;
  /// Reads of single lanes that met a poisoned byte of shared memory.
  int64_t poisonReads = 0;
  int64_t globalBytesRead = 0;
  int64_t globalBytesWritten = 0;
  /// For each instruction of the decoded kernel, whether a warp reached it.
  std::vector<bool> reached;
};

namespace lanes {
struct Program;
} // namespace lanes

/// A kernel decoded once, to be run for many blocks. Refers to operations of
/// the function, which must outlive it. Thread-safe while ranges that two
/// blocks write do not overlap.
class LaneKernel {
public:
  LaneKernel(LaneKernel &&);
  LaneKernel &operator=(LaneKernel &&);
  ~LaneKernel();

  /// Fails, naming the operation, where the kernel uses something that the
  /// executor does not know. The kernel takes no argument, or one `!llvm.ptr`
  /// to the parameter block.
  static llvm::Expected<LaneKernel> decode(mlir::LLVM::LLVMFuncOp kernel);

  /// Runs block (x, y, z). Pointers in `args` are host memory, which must lie
  /// in `options.global` to be accessed. Fails on a race, a barrier that not
  /// all warps reach, an access out of range or misaligned, or a warp-wide
  /// operation without its lanes; the message names operations by their
  /// locations. Memory written before the failure stays written.
  llvm::Expected<LaneReport> run(const KernelArgs &args, int x, int y, int z,
                                 const LaneOptions &options) const;

  /// The operations that none of `reports` reached, in program order. What a
  /// test never reaches it does not test.
  std::vector<mlir::Operation *>
  unreached(llvm::ArrayRef<LaneReport> reports) const;

private:
  explicit LaneKernel(std::unique_ptr<lanes::Program> program);
  std::unique_ptr<lanes::Program> program;
};

/// Decodes `kernel` and runs one block of it.
llvm::Expected<LaneReport> executeBlock(mlir::LLVM::LLVMFuncOp kernel,
                                        const KernelArgs &args, int x, int y,
                                        int z, const LaneOptions &options);

} // namespace tokentile

#endif // TOKENTILE_CODEGEN_LANES_LANEEXECUTOR_H
