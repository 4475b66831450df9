//===- Recording.h - One recorded launch, many problems ---------*- C++ -*-===//

#ifndef TOKENTILE_TEST_GPU_RECORDING_H
#define TOKENTILE_TEST_GPU_RECORDING_H

#include "runtime/JitCompiler.h"
#include "test/numerics/Problem.h"
#include "test/numerics/SpecText.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace tokentile {

/// One recorded launch over buffers large enough for every step.
class Recording {
public:
  explicit Recording(Device &device) : device(device) {}

  /// Compiles `spec` and records its launch over the tensors of any of
  /// `problems`.
  Status record(const std::string &spec, const Bounds &bounds,
                const std::vector<Problem *> &problems) {
    StatusOr<CompiledKernel> compiled =
        compileKernel(spec, device.facts().chip);
    if (!compiled.ok())
      return compiled.status();
    kernel = *device.load(*compiled);
    stream = *device.createStream();
    StatusOr<Plan> planned = plan(*kernel, bounds);
    if (!planned.ok())
      return planned.status();
    for (Problem *problem : problems)
      for (HostTensor &tensor : problem->getTensors())
        sizes[tensor.name] = std::max(sizes[tensor.name], tensor.bytes);
    if (int64_t page = kernel->info().pageSize) {
      tableStride = kernel->info().ring ? kernel->info().ring / page
                                        : (bounds.keys + page - 1) / page;
      sizes["table"] = bounds.batch * tableStride * 4;
    }
    for (auto &[name, bytes] : sizes)
      buffers[name] = *device.allocate(bytes);
    workspace = *device.allocate(planned->workspace.bytes);

    LaunchArgs args;
    args.query = buffers["query"].data();
    args.output = buffers["output"].data();
    if (kernel->info().logSumExp)
      args.logSumExp = buffers["lse"].as<float>();
    args.keys = buffers["keys"].data();
    args.values = buffers["values"].data();
    args.blockKeys = buffers["block_keys"].data();
    args.blockValues = buffers["block_values"].data();
    args.table = buffers["table"].as<int32_t>();
    args.tableStride = tableStride;
    if (kernel->info().sink)
      args.sinks = buffers["sinks"].as<float>();
    if (kernel->info().pageOrder == PageOrder::Contiguous)
      args.keyOffsets = buffers["key_offsets"].as<int32_t>();
    args.lengths = buffers["lengths"].as<int32_t>();
    args.columns = buffers["columns"].as<int32_t>();
    args.workspace = workspace.data();
    args.workspaceBytes = workspace.size();
    if (Status status = stream->beginCapture(); !status.ok())
      return status;
    Status launched = launch(*planned, args, *stream);
    StatusOr<std::unique_ptr<Graph>> ended = stream->endCapture();
    if (!launched.ok() || !ended.ok())
      return launched.ok() ? ended.status() : launched;
    graph = *std::move(ended);
    return Status();
  }

  /// Puts the step into the buffers, replays, and reads the outputs back.
  Status replay(Problem &problem) {
    problem.poisonOutputs();
    for (HostTensor &tensor : problem.getTensors()) {
      std::vector<uint8_t> bytes(tensor.data(), tensor.data() + tensor.bytes);
      if (tensor.name == "table")
        bytes = widenTable(tensor);
      if (Status status = device.copyToDevice(buffers[tensor.name].data(),
                                              bytes.data(), bytes.size());
          !status.ok())
        return status;
    }
    for (const Status &status : {graph->replay(*stream), stream->synchronize()})
      if (!status.ok())
        return status;
    for (HostTensor &tensor : problem.getTensors())
      if (tensor.written)
        if (Status status =
                device.copyToHost(tensor.data(), buffers[tensor.name].data(),
                                  size_t(tensor.bytes));
            !status.ok())
          return status;
    return Status();
  }

private:
  /// The table with the stride that was recorded; absurd ids behind.
  std::vector<uint8_t> widenTable(const HostTensor &table) const {
    int64_t batch = table.shape[0], width = table.shape[1];
    std::vector<int32_t> wide(batch * tableStride, -1);
    auto *ids = reinterpret_cast<const int32_t *>(table.data());
    for (int64_t b = 0; b < batch; ++b)
      std::copy_n(ids + b * width, std::min(width, tableStride),
                  wide.begin() + b * tableStride);
    std::vector<uint8_t> bytes(wide.size() * 4);
    std::memcpy(bytes.data(), wide.data(), bytes.size());
    return bytes;
  }

  Device &device;
  int64_t tableStride = 0;
  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Stream> stream;
  std::map<std::string, int64_t> sizes;
  std::map<std::string, Buffer> buffers;
  Buffer workspace;
  std::unique_ptr<Graph> graph;
};

} // namespace tokentile

#endif // TOKENTILE_TEST_GPU_RECORDING_H
