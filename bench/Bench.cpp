//===- Bench.cpp - Generated kernels timed beside their floor -------------===//

#include "bench/Bench.h"

#include <algorithm>

using namespace tokentile;

StatusOr<const Kernel *> Bench::kernelFor(int32_t tokens) {
  std::unique_ptr<Kernel> &kernel = kernels[tokens];
  if (!kernel) {
    StatusOr<CompiledKernel> compiled = compile(tokens);
    if (!compiled.ok())
      return compiled.status();
    StatusOr<std::unique_ptr<Kernel>> loaded =
        timer.getDevice().load(*compiled);
    if (!loaded.ok())
      return loaded.status();
    kernel = *std::move(loaded);
  }
  return static_cast<const Kernel *>(kernel.get());
}

StatusOr<Workload *> Bench::workloadFor(const Shape &shape) {
  if (workload && workload->getShape() == shape)
    return workload.get();
  workload.reset();
  StatusOr<const Kernel *> kernel = kernelFor(shape.tokens);
  if (!kernel.ok())
    return kernel.status();
  StatusOr<std::unique_ptr<Workload>> made =
      Workload::create(timer.getDevice(), (*kernel)->info(), shape);
  if (!made.ok())
    return made.status();
  workload = *std::move(made);
  return workload.get();
}

Status Bench::addStep(Workload &tensors, const Shape &shape, int32_t chunk,
                      Launches &launches, BenchRecord &record) {
  int32_t size = chunk ? std::min(chunk, shape.tokens) : shape.tokens;
  record.shape = shape;
  record.sweeps = 0;
  for (int32_t before = 0; before < shape.tokens; before += size) {
    int32_t tokens = std::min(size, shape.tokens - before);
    StatusOr<const Kernel *> kernel = kernelFor(tokens);
    if (!kernel.ok())
      return kernel.status();
    const KernelInfo &info = (*kernel)->info();
    StatusOr<Plan> planned =
        plan(**kernel, {shape.batch, shape.context + before + tokens});
    if (!planned.ok())
      return planned.status();
    StatusOr<LaunchArgs> args = tensors.args(info, before, tokens);
    if (!args.ok())
      return args.status();
    StatusOr<void *> workspace = tensors.workspace(*planned);
    if (!workspace.ok())
      return workspace.status();
    args->workspace = *workspace;
    args->workspaceBytes = planned->workspace.bytes;
    launches.push_back({*planned, *args});
    if (before == 0) {
      record.kernel = info;
      record.items = planned->work.items;
      record.bytes = uniqueBytes(info, shape);
    }
    record.sweeps += info.sweeps;
  }
  return Status();
}

StatusOr<Timing> Bench::timeLaunches(const Launches &launches) {
  return timer.time(
      [&](Stream &stream) {
        for (const auto &[planned, args] : launches)
          if (Status status = launch(planned, args, stream); !status.ok())
            return status;
        return Status();
      },
      samples);
}

StatusOr<BenchRecord> Bench::timeStep(const Shape &shape, int32_t chunk,
                                      std::string mode, bool withMerge) {
  StatusOr<Workload *> tensors = workloadFor(shape);
  if (!tensors.ok())
    return tensors.status();
  Launches launches;
  BenchRecord record;
  record.mode = std::move(mode);
  if (Status status = addStep(**tensors, shape, chunk, launches, record);
      !status.ok())
    return status;
  if (!withMerge)
    for (auto &[planned, args] : launches)
      planned.work.mergeBlocks = 0;
  StatusOr<Timing> timing = timeLaunches(launches);
  if (!timing.ok())
    return timing.status();
  record.timing = *timing;
  return record;
}

StatusOr<BenchRecord> Bench::time(const Shape &shape, int32_t chunk) {
  std::string mode =
      chunk ? "chunks of " + std::to_string(chunk) : "one launch";
  return timeStep(shape, chunk, mode, /*withMerge=*/true);
}

StatusOr<BenchRecord> Bench::timeSweep(const Shape &shape) {
  return timeStep(shape, /*chunk=*/0, "sweep alone", /*withMerge=*/false);
}

StatusOr<BenchRecord> Bench::timeLayers(const Shape &shape, int32_t layers) {
  workload.reset();
  StatusOr<const Kernel *> kernel = kernelFor(shape.tokens);
  if (!kernel.ok())
    return kernel.status();
  std::vector<std::unique_ptr<Workload>> workloads;
  Launches launches;
  BenchRecord record;
  record.mode = "mean of " + std::to_string(layers) + " layers";
  for (int32_t layer = 0; layer < layers; ++layer) {
    StatusOr<std::unique_ptr<Workload>> made =
        Workload::create(timer.getDevice(), (*kernel)->info(), shape);
    if (!made.ok())
      return made.status();
    workloads.push_back(*std::move(made));
    if (Status status =
            addStep(*workloads.back(), shape, /*chunk=*/0, launches, record);
        !status.ok())
      return status;
  }
  StatusOr<Timing> timing = timeLaunches(launches);
  if (!timing.ok())
    return timing.status();
  record.timing = {timing->median / layers, timing->min / layers,
                   timing->p95 / layers, timing->spreadPercent};
  return record;
}

StatusOr<Floor> Bench::floor(const Shape &shape) {
  StatusOr<Workload *> tensors = workloadFor(shape);
  if (!tensors.ok())
    return tensors.status();
  StatusOr<const Kernel *> kernel = kernelFor(shape.tokens);
  if (!kernel.ok())
    return kernel.status();
  return measureFloor(timer, (*kernel)->info(), **tensors, samples);
}
