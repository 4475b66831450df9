//===- LaneRunner.h - A GPU kernel run lane by lane on a problem -*- C++
//-*-===//
//
// Compiles a spec to its machine form and runs every block of the sweep and
// the merge on the lane executor, over the problem's host memory. What a GPU
// would do, minus time.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TEST_NUMERICS_LANERUNNER_H
#define TOKENTILE_TEST_NUMERICS_LANERUNNER_H

#include "codegen/Compiler.h"
#include "codegen/lanes/LaneExecutor.h"
#include "test/numerics/Problem.h"

namespace tokentile {

/// What all blocks of a launch came to.
struct LaneOutcome {
  Comparison comparison;
  /// Of one kv head, as planned.
  int32_t items = 1;
  int64_t mmas = 0;
  int64_t laneOps = 0;
  int64_t ldmatrixConflicts = 0;
  /// Copies that no wait covered, in blocks that multiplied.
  int64_t unlandedCopies = 0;
};

class LaneRunner {
public:
  /// Fails as the compiler does, or where the executor does not know an
  /// operation.
  static llvm::Expected<std::unique_ptr<LaneRunner>>
  create(const std::string &specText, llvm::StringRef chip);

  /// The spec as it was given, for Problem::create.
  attn::KernelOp getSpec() { return spec; }
  const KernelInfo &getInfo() const { return info; }

  /// Runs the launch twice, the warps of each block in ascending and then in
  /// descending order; the bits must agree, and the numerics rule judges them.
  /// Races, reads of poison and accesses outside the tensors are errors.
  llvm::Expected<LaneOutcome> run(Problem &problem);

  /// Adds memory that is not in the problem's tensors to what may be read.
  void allow(MemoryRange range) { extra.push_back(range); }
  /// Multiprocessors for the planner: few, so that parts stay few.
  int32_t multiprocessors = 12;
  /// Changes the parameter block of the next runs: before they are planned, and
  /// once the plan is in it.
  std::function<void(KernelArgs &)> adjust, adjustWork;

  /// Operations of the sweep and of the merge that no run has reached.
  std::vector<mlir::Operation *> unreached() const;

private:
  LaneRunner() : context(createContext()) {}
  llvm::Error lower(const std::string &specText, llvm::StringRef chip);
  llvm::Error runAll(const KernelArgs &args, const LaneOptions &options,
                     LaneOutcome &outcome);
  llvm::Error runGrid(const LaneKernel &kernel, const KernelArgs &args,
                      LaneOptions options, LaneReport &reached,
                      LaneOutcome &outcome);

  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> source, machine;
  attn::KernelOp spec;
  KernelInfo info;
  std::unique_ptr<LaneKernel> sweep, merge;
  /// The merge begins before the sweep has ended, and waits for it.
  bool waits = false;
  /// Everything that any run reached.
  LaneReport sweepReached, mergeReached;
  std::vector<MemoryRange> extra;
};

} // namespace tokentile

#endif // TOKENTILE_TEST_NUMERICS_LANERUNNER_H
