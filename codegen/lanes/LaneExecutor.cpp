//===- LaneExecutor.cpp - The warps of a block and their barriers ---------===//

#include "codegen/lanes/LaneExecutor.h"

#include "codegen/lanes/LaneDecoder.h"
#include "codegen/lanes/LaneMemory.h"
#include "codegen/lanes/LaneProgram.h"
#include "codegen/lanes/LaneWarp.h"

#include "llvm/ADT/STLExtras.h"

using namespace tokentile;
using namespace tokentile::lanes;

constexpr int kMaxThreads = 1024;

LaneKernel::LaneKernel(std::unique_ptr<Program> program)
    : program(std::move(program)) {}
LaneKernel::LaneKernel(LaneKernel &&) = default;
LaneKernel &LaneKernel::operator=(LaneKernel &&) = default;
LaneKernel::~LaneKernel() = default;

llvm::Expected<LaneKernel> LaneKernel::decode(mlir::LLVM::LLVMFuncOp kernel) {
  auto program = Decoder::decode(kernel);
  if (!program)
    return program.takeError();
  return LaneKernel(std::move(*program));
}

/// All warps have stopped: an empty text if they may go on, or all are done.
static std::string meet(const std::vector<Warp> &warps,
                        const std::vector<Warp::Stop> &stops) {
  for (size_t w = 1; w < warps.size(); ++w) {
    // A warp that is done stands at its return.
    if (&warps[w].at() == &warps[0].at())
      continue;
    size_t waiting = stops[0] == Warp::Stop::Barrier ? 0 : w;
    size_t other = waiting == 0 ? w : 0;
    bool ended = stops[other] == Warp::Stop::Done;
    return "warp " + std::to_string(waiting) + " waits at " +
           describe(warps[waiting].at().source) + " but warp " +
           std::to_string(other) + (ended ? " has ended at " : " waits at ") +
           describe(warps[other].at().source);
  }
  return {};
}

static llvm::Error runWarps(Block &block, std::vector<Warp> &warps) {
  std::vector<Warp::Stop> stops(warps.size());
  for (bool begins = true;; begins = false) {
    for (size_t n = 0; n < warps.size(); ++n) {
      size_t w = block.options.descendingWarps ? warps.size() - 1 - n : n;
      if (begins && block.options.atWarpStart)
        block.options.atWarpStart();
      stops[w] = warps[w].run();
      if (stops[w] == Warp::Stop::Error)
        return llvm::createStringError(warps[w].error());
    }
    std::string mismatch = meet(warps, stops);
    if (!mismatch.empty())
      return llvm::createStringError(mismatch);
    if (stops.front() == Warp::Stop::Done)
      return llvm::Error::success();
    ++block.report.barriers;
    block.shared.barrier();
    for (Warp &warp : warps)
      warp.passBarrier();
  }
}

llvm::Expected<LaneReport> LaneKernel::run(const KernelArgs &args, int x, int y,
                                           int z,
                                           const LaneOptions &options) const {
  if (options.threads < 1 || options.threads > kMaxThreads)
    return llvm::createStringError("expected 1 to 1024 threads, got " +
                                   llvm::Twine(options.threads));
  if (options.sharedBytes < 0)
    return llvm::createStringError("expected a size of shared memory, got " +
                                   llvm::Twine(options.sharedBytes));
  LaneReport report;
  report.reached.resize(program->code.size());
  SharedMemory shared(*program, options.sharedBytes, options.lanesRace);
  std::vector<MemoryRange> ranges = options.global;
  ranges.push_back({&args, &args + 1, /*writable=*/false});
  GlobalMemory global(std::move(ranges));
  Block block{*program,
              options,
              shared,
              global,
              report,
              {x, y, z},
              reinterpret_cast<uintptr_t>(&args)};

  std::vector<Warp> warps;
  unsigned count = (options.threads + kLanes - 1) / kLanes;
  warps.reserve(count);
  for (unsigned w = 0; w < count; ++w)
    warps.emplace_back(block, w);
  if (llvm::Error error = runWarps(block, warps))
    return error;
  for (const Warp &warp : warps)
    report.unlandedCopies += warp.copiesInFlight();
  return report;
}

std::vector<mlir::Operation *>
LaneKernel::unreached(llvm::ArrayRef<LaneReport> reports) const {
  std::vector<mlir::Operation *> result;
  for (size_t i = 0; i < program->code.size(); ++i) {
    auto reaches = [&](const LaneReport &report) { return report.reached[i]; };
    mlir::Operation *op = program->code[i].source;
    if (llvm::none_of(reports, reaches) &&
        (result.empty() || result.back() != op))
      result.push_back(op);
  }
  return result;
}

llvm::Expected<LaneReport>
tokentile::executeBlock(mlir::LLVM::LLVMFuncOp kernel, const KernelArgs &args,
                        int x, int y, int z, const LaneOptions &options) {
  auto decoded = LaneKernel::decode(kernel);
  if (!decoded)
    return decoded.takeError();
  return decoded->run(args, x, y, z, options);
}
