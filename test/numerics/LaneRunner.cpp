//===- LaneRunner.cpp - A GPU kernel run lane by lane on a problem --------===//

#include "test/numerics/LaneRunner.h"

#include "runtime/Kernel.h"

#include <algorithm>
#include <cmath>

using namespace tokentile;

llvm::Expected<std::unique_ptr<LaneRunner>>
LaneRunner::create(const std::string &specText, llvm::StringRef chip) {
  std::unique_ptr<LaneRunner> runner(new LaneRunner);
  if (llvm::Error error = runner->lower(specText, chip))
    return std::move(error);
  return std::move(runner);
}

llvm::Error LaneRunner::lower(const std::string &specText,
                              llvm::StringRef chip) {
  auto parsed = parseSpec(specText, "spec", *context);
  if (!parsed)
    return parsed.takeError();
  source = std::move(*parsed);
  spec = *source->getOps<attn::KernelOp>().begin();
  machine = source->clone();
  if (llvm::Error error = lowerTo(*machine, Level::Plan, chip))
    return error;
  info = describeKernel(*machine->getOps<attn::KernelOp>().begin());
  if (llvm::Error error = lowerTo(*machine, Level::Machine, chip))
    return error;
  for (auto [symbol, kernel] : {std::pair(info.sweepSymbol, &sweep),
                                std::pair(info.mergeSymbol, &merge)}) {
    mlir::LLVM::LLVMFuncOp found;
    machine->walk([&, name = symbol](mlir::LLVM::LLVMFuncOp function) {
      if (function.getSymName() == name)
        found = function;
    });
    auto decoded = LaneKernel::decode(found);
    if (!decoded)
      return decoded.takeError();
    *kernel = std::make_unique<LaneKernel>(std::move(*decoded));
    // The merge, which comes last, is asked.
    waits = false;
    found.walk([&](mlir::NVVM::GriddepcontrolOp) { waits = true; });
  }
  return llvm::Error::success();
}

llvm::Error LaneRunner::runGrid(const LaneKernel &kernel,
                                const KernelArgs &args, LaneOptions options,
                                LaneReport &reached, LaneOutcome &outcome) {
  for (int x = 0; x < options.grid[0]; ++x) {
    auto report = kernel.run(args, x, 0, 0, options);
    if (!report)
      return llvm::createStringError("block " + std::to_string(x) + ": " +
                                     llvm::toString(report.takeError()));
    outcome.mmas += report->mmas;
    outcome.laneOps += report->laneOps;
    outcome.ldmatrixConflicts += report->ldmatrixConflicts;
    // A block without tiles leaves its query behind; that is harmless.
    if (report->mmas)
      outcome.unlandedCopies += report->unlandedCopies;
    reached.reached.resize(report->reached.size());
    for (size_t i = 0; i < report->reached.size(); ++i)
      if (report->reached[i])
        reached.reached[i] = true;
  }
  return llvm::Error::success();
}

llvm::Error LaneRunner::runAll(const KernelArgs &args,
                               const LaneOptions &options,
                               LaneOutcome &outcome) {
  LaneOptions sweeping = options;
  sweeping.threads = info.threads;
  sweeping.sharedBytes = info.sharedBytes;
  sweeping.grid[0] = args.items * info.kvHeads * info.rowBlocks;
  llvm::Error error = runGrid(*sweep, args, sweeping, sweepReached, outcome);
  if (error || args.mergeBlocks == 0)
    return error;
  LaneOptions merging = options;
  merging.threads = info.mergeThreads;
  merging.sharedBytes = info.mergeSharedBytes;
  merging.grid[0] = args.mergeBlocks;
  // Before a warp of a merge waits it may find the division of any launch.
  std::vector<int32_t> left(args.divisions, args.divisions + 2 * args.batch);
  int warp = 0;
  merging.atWarpStart = [&] {
    const int32_t found[] = {-1, 2, INT32_MAX, INT32_MIN};
    if (waits && ++warp % 5 < 4)
      std::fill_n(args.divisions, 2 * args.batch, found[warp % 5]);
  };
  merging.atGridWait = [&] { llvm::copy(left, args.divisions); };
  return runGrid(*merge, args, merging, mergeReached, outcome);
}

llvm::Expected<LaneOutcome> LaneRunner::run(Problem &problem) {
  LaneOutcome outcome;
  KernelArgs args = problem.getHostArgs();
  if (adjust)
    adjust(args);
  WorkPlan work = planWork(info, {args.batch, args.maxKeys}, multiprocessors);
  outcome.items = args.items = work.items;
  args.slots = work.slots;
  args.mergeBlocks = work.mergeBlocks;
  args.partials = work.partials;
  Workspace workspace = workspaceOf(info, work, args.batch);
  std::vector<uint8_t> memory(workspace.bytes + 63);
  auto *aligned = reinterpret_cast<uint8_t *>(
      (reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
  workspace.place(aligned, args);
  if (adjustWork)
    adjustWork(args);

  LaneOptions options;
  options.poisonIsError = options.lanesRace = true;
  options.global = extra;
  for (HostTensor &tensor : problem.getTensors())
    options.global.push_back(
        {tensor.data(), tensor.data() + tensor.bytes, tensor.written});
  if (work.merges())
    options.global.push_back({aligned, aligned + workspace.bytes});

  std::vector<uint8_t> first;
  for (bool descending : {false, true}) {
    options.descendingWarps = descending;
    problem.poisonOutputs();
    // All ones are NaN.
    std::fill(memory.begin(), memory.end(), 0xff);
    if (llvm::Error error = runAll(args, options, outcome))
      return std::move(error);
    std::vector<uint8_t> bytes;
    for (const HostTensor &tensor : problem.getTensors())
      if (tensor.written)
        bytes.insert(bytes.end(), tensor.storage.begin(), tensor.storage.end());
    if (!descending)
      first = std::move(bytes);
    else if (bytes != first)
      return llvm::createStringError(
          "the result depends on the order of the warps");
  }
  outcome.comparison = problem.check();
  return outcome;
}

std::vector<mlir::Operation *> LaneRunner::unreached() const {
  std::vector<mlir::Operation *> result;
  if (!sweepReached.reached.empty())
    result = sweep->unreached(sweepReached);
  if (!mergeReached.reached.empty()) {
    auto more = merge->unreached(mergeReached);
    result.insert(result.end(), more.begin(), more.end());
  }
  return result;
}
