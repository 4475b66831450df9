//===- Floor.cpp - How fast the keys can be read at all -------------------===//

#include "bench/Floor.h"

#include "bench/FloorKernels.h"
#include "runtime/Nvrtc.h"

#include <algorithm>
#include <optional>

using namespace tokentile;

namespace {

constexpr int trialSamples = 9;

/// One way to load.
struct FloorShape {
  const char *symbol;
  int32_t threads;
  /// Blocks for each multiprocessor, and bytes of shared memory of each.
  int32_t blocks;
  int32_t sharedBytes;
  /// Of floorAsync, which needs its number when it is compiled.
  int32_t fixedStages = 0;
};

std::vector<FloorShape> floorShapes(const DeviceFacts &facts) {
  int32_t most = facts.sharedBytesPerBlock - 2048;
  std::vector<FloorShape> shapes;
  if (chipNumber(facts.chip) >= 90)
    for (int32_t part : {1, 2, 4})
      for (int32_t waves : {1, 2})
        shapes.push_back({"floorBulk", 160, part * waves, most / part});
  for (int32_t stages : {3, 6})
    for (int32_t part : {2, 4})
      shapes.push_back({"floorAsync", 256, part, most / part, stages});
  for (int32_t blocks : {4, 8, 16})
    shapes.push_back({"floorPlain", 256, blocks, 0});
  return shapes;
}

FloorArgs floorArgs(const KernelInfo &info, const Workload &workload) {
  const Shape &shape = workload.getShape();
  bool isPaged = info.pageOrder != PageOrder::Contiguous;
  int64_t page = isPaged ? info.pageSize : 64;
  int64_t rowBytes = int64_t(info.headDim) * 2;
  FloorArgs args = {};
  args.planes[0] = workload.keys().data();
  args.planes[1] = workload.values().data();
  args.table = isPaged ? workload.table() : nullptr;
  args.tableStride = workload.getTableStride();
  args.batch = shape.batch;
  args.units = info.kvHeads;
  args.pieceBytes = int32_t(page * rowBytes);
  args.unitStride = args.pieceBytes;
  args.pageStride = args.pieceBytes * int64_t(info.kvHeads);
  if (!isPaged)
    args.requestStride = shape.keys() * rowBytes * info.kvHeads;
  if (info.pageOrder == PageOrder::HeadMajor) {
    args.pageStride = args.pieceBytes;
    args.unitStride = args.pieceBytes * int64_t(workload.getPoolPages());
  }
  int64_t firstKey = shape.keys() - visibleKeys(info, shape);
  int64_t lastPage = (shape.keys() - 1) / page;
  args.firstPage = int32_t(firstKey / page);
  args.pages = int32_t(lastPage - args.firstPage + 1);
  args.lastBytes = int32_t((shape.keys() - lastPage * page) * rowBytes);
  return args;
}

/// A shape compiled, with its arguments.
struct FloorRun {
  std::unique_ptr<RawKernel> kernel;
  FloorShape shape;
  FloorArgs args;
  int32_t grid = 1;

  std::string describe() const {
    return std::string(shape.symbol) + ", " + std::to_string(grid) +
           " blocks, " + std::to_string(args.stages) + " stages";
  }
};

/// Null if a piece does not fit the shape.
StatusOr<std::optional<FloorRun>>
makeRun(Device &device, const FloorShape &shape, const FloorArgs &args) {
  FloorRun run;
  run.shape = shape;
  run.args = args;
  run.args.stages =
      shape.fixedStages
          ? shape.fixedStages
          : std::min(64, std::max(shape.sharedBytes / args.pieceBytes, 1));
  bool usesShared = shape.sharedBytes > 0;
  if (usesShared &&
      (run.args.stages < 2 ||
       int64_t(run.args.stages) * args.pieceBytes > shape.sharedBytes))
    return std::optional<FloorRun>();
  int64_t pieces = int64_t(2) * args.batch * args.units * args.pages;
  run.grid = int32_t(std::min<int64_t>(
      pieces, int64_t(device.facts().multiprocessors) * shape.blocks));
  run.shape.sharedBytes = usesShared ? run.args.stages * args.pieceBytes : 0;

  std::vector<std::string> flags;
  if (shape.fixedStages)
    flags.push_back("-DSTAGES=" + std::to_string(shape.fixedStages));
  StatusOr<std::string> image =
      compileCuda(floorSource, "floor.cu", device.facts().chip, flags);
  if (!image.ok())
    return image.status();
  StatusOr<std::unique_ptr<RawKernel>> kernel =
      device.loadRaw(*image, shape.symbol);
  if (!kernel.ok())
    return kernel.status();
  run.kernel = *std::move(kernel);
  return std::optional<FloorRun>(std::move(run));
}

StatusOr<Timing> timeRun(ColdTimer &timer, FloorRun &run, int samples) {
  return timer.time(
      [&](Stream &stream) {
        void *params[] = {&run.args};
        return run.kernel->launch({run.grid, 1, 1}, {run.shape.threads, 1, 1},
                                  run.shape.sharedBytes, params, stream);
      },
      samples);
}

} // namespace

StatusOr<Floor> tokentile::measureFloor(ColdTimer &timer,
                                        const KernelInfo &info,
                                        const Workload &workload, int samples) {
  Device &device = timer.getDevice();
  StatusOr<Buffer> sink = device.allocate(256);
  if (!sink.ok())
    return sink.status();
  FloorArgs args = floorArgs(info, workload);
  args.sink = sink->as<unsigned>();

  std::optional<FloorRun> best;
  double bestMedian = 0;
  for (const FloorShape &shape : floorShapes(device.facts())) {
    StatusOr<std::optional<FloorRun>> run = makeRun(device, shape, args);
    if (!run.ok())
      return run.status();
    if (!*run)
      continue;
    StatusOr<Timing> timing = timeRun(timer, **run, trialSamples);
    if (!timing.ok())
      return timing.status();
    if (!best || timing->median < bestMedian) {
      best = *std::move(run);
      bestMedian = timing->median;
    }
  }
  StatusOr<Timing> timing = timeRun(timer, *best, samples);
  if (!timing.ok())
    return timing.status();
  return Floor{*timing, best->describe()};
}

StatusOr<Timing> tokentile::measureNothing(ColdTimer &timer, int samples) {
  Device &device = timer.getDevice();
  StatusOr<std::string> image =
      compileCuda("extern \"C\" __global__ void nothing() {}", "nothing.cu",
                  device.facts().chip);
  if (!image.ok())
    return image.status();
  StatusOr<std::unique_ptr<RawKernel>> kernel =
      device.loadRaw(*image, "nothing");
  if (!kernel.ok())
    return kernel.status();
  return timer.time(
      [&](Stream &stream) {
        void *params[] = {nullptr};
        return (*kernel)->launch({1, 1, 1}, {32, 1, 1}, 0, params, stream);
      },
      samples);
}
