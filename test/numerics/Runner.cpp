//===- Runner.cpp - A kernel on a device against the reference ------------===//

#include "test/numerics/Runner.h"

#include <algorithm>
#include <map>

using namespace tokentile;

namespace {

/// The pattern of a workspace: NaN as floats.
constexpr uint8_t workspacePoison = 0xff;

/// The tensors of a problem in device memory, guards included.
class DeviceTensors {
public:
  DeviceTensors(Device &device, Problem &problem)
      : device(device), problem(problem) {}

  Status upload() {
    for (HostTensor &tensor : problem.getTensors()) {
      StatusOr<Buffer> buffer = device.allocate(tensor.storage.size());
      if (!buffer.ok())
        return buffer.status();
      buffers[&tensor] = *std::move(buffer);
    }
    return copy(/*onlyWritten=*/false);
  }

  /// Poisons the outputs, on the host and on the device.
  Status poisonOutputs() {
    problem.poisonOutputs();
    return copy(/*onlyWritten=*/true);
  }

  Status downloadOutputs() {
    for (HostTensor &tensor : problem.getTensors())
      if (tensor.written)
        if (Status status = device.copyToHost(tensor.storage.data(),
                                              buffers[&tensor].data(),
                                              tensor.storage.size());
            !status.ok())
          return status;
    return Status();
  }

  void *place(const HostTensor &tensor) {
    return buffers[&tensor].as<uint8_t>() + tensor.offset;
  }

private:
  Status copy(bool onlyWritten) {
    for (HostTensor &tensor : problem.getTensors())
      if (tensor.written || !onlyWritten)
        if (Status status = device.copyToDevice(buffers[&tensor].data(),
                                                tensor.storage.data(),
                                                tensor.storage.size());
            !status.ok())
          return status;
    return Status();
  }

  Device &device;
  Problem &problem;
  std::map<const HostTensor *, Buffer> buffers;
};

LaunchArgs launchArgs(const KernelArgs &from, int32_t queryTokens) {
  LaunchArgs args;
  args.query = from.query;
  args.output = from.output;
  args.logSumExp = from.logSumExp;
  args.keys = from.keys;
  args.values = from.values;
  args.blockKeys = from.blockKeys;
  args.blockValues = from.blockValues;
  args.table = from.table;
  args.lengths = from.lengths;
  args.columns = from.columns;
  args.positions = from.positions;
  args.keyOffsets = from.keyOffsets;
  args.sinks = from.sinks;
  args.tableStride = from.tableStride;
  args.poolPages = from.poolPages;
  args.queryTokens = queryTokens;
  args.queryTokenStride = from.queryTokenStride;
  args.queryHeadStride = from.queryHeadStride;
  args.outputTokenStride = from.outputTokenStride;
  args.outputHeadStride = from.outputHeadStride;
  args.keyPageStride = from.keyPageStride;
  args.keyHeadStride = from.keyHeadStride;
  args.valuePageStride = from.valuePageStride;
  args.valueHeadStride = from.valueHeadStride;
  return args;
}

std::vector<uint8_t> writtenBytes(const Problem &problem) {
  std::vector<uint8_t> bytes;
  for (const HostTensor &tensor : problem.getTensors())
    if (tensor.written)
      bytes.insert(bytes.end(), tensor.storage.begin(), tensor.storage.end());
  return bytes;
}

StatusOr<std::unique_ptr<Graph>>
record(const Plan &plan, const LaunchArgs &args, Stream &stream) {
  if (Status status = stream.beginCapture(); !status.ok())
    return status;
  Status launched = launch(plan, args, stream);
  StatusOr<std::unique_ptr<Graph>> graph = stream.endCapture();
  if (!launched.ok())
    return launched;
  return graph;
}

/// Replays the graph between two events.
StatusOr<double> replay(Graph &graph, Device &device, Stream &stream) {
  StatusOr<std::unique_ptr<Event>> start = device.createEvent();
  StatusOr<std::unique_ptr<Event>> end = device.createEvent();
  for (const Status &status : {start.status(), end.status()})
    if (!status.ok())
      return status;
  for (const Status &status : {stream.record(**start), graph.replay(stream),
                               stream.record(**end), stream.synchronize()})
    if (!status.ok())
      return status;
  return (*end)->elapsedMicroseconds(**start);
}

} // namespace

StatusOr<Runner> Runner::create(Device &device) {
  StatusOr<std::unique_ptr<Stream>> stream = device.createStream();
  if (!stream.ok())
    return stream.status();
  return Runner(device, *std::move(stream));
}

StatusOr<Outcome> Runner::run(const Kernel &kernel, Problem &problem) {
  Bounds bounds{problem.getCase().batch, std::max(1, problem.getMaxKeys())};
  StatusOr<Plan> planned = plan(kernel, bounds);
  if (!planned.ok())
    return planned.status();
  StatusOr<Outcome> outcome = run(*planned, problem);
  if (!outcome.ok() || !outcome->comparison.ok || planned->work.ranges)
    return outcome;
  // A plan of longer requests divides a batch into ranges.
  constexpr int32_t longKeys = 1 << 18;
  StatusOr<Plan> longer = plan(kernel, {bounds.batch, longKeys});
  if (!longer.ok() || !longer->work.ranges)
    return outcome;
  longer->bounds = bounds;
  StatusOr<Outcome> ranges = run(*longer, problem);
  if (!ranges.ok())
    return ranges;
  if (!ranges->comparison.ok)
    ranges->comparison.message += " (in ranges of tiles)";
  outcome->comparison = ranges->comparison;
  return outcome;
}

StatusOr<Outcome> Runner::run(const Plan &planned, Problem &problem) {
  StatusOr<Buffer> workspace = device->allocate(planned.workspace.bytes);
  if (!workspace.ok())
    return workspace.status();
  DeviceTensors tensors(*device, problem);
  if (Status status = tensors.upload(); !status.ok())
    return status;
  LaunchArgs args = launchArgs(
      problem.getArgs([&](const HostTensor &t) { return tensors.place(t); }),
      problem.getTokens());
  args.workspace = workspace->data();
  args.workspaceBytes = planned.workspace.bytes;

  Outcome outcome;
  outcome.items = planned.work.items;
  std::unique_ptr<Graph> graph;
  std::vector<uint8_t> first;
  for (int round = 0; round < 3; ++round) {
    if (Status status = tensors.poisonOutputs(); !status.ok())
      return status;
    if (workspace->size())
      if (Status status = device->fill(workspace->data(), workspacePoison,
                                       workspace->size());
          !status.ok())
        return status;
    if (round == 0) {
      if (Status status = launch(planned, args, *stream); !status.ok())
        return status;
      if (Status status = stream->synchronize(); !status.ok())
        return status;
      StatusOr<std::unique_ptr<Graph>> recorded =
          record(planned, args, *stream);
      if (!recorded.ok())
        return recorded.status();
      graph = *std::move(recorded);
    } else {
      StatusOr<double> time = replay(*graph, *device, *stream);
      if (!time.ok())
        return time.status();
      outcome.microseconds =
          round == 1 ? *time : std::min(outcome.microseconds, *time);
    }
    if (Status status = tensors.downloadOutputs(); !status.ok())
      return status;
    std::vector<uint8_t> bytes = writtenBytes(problem);
    if (round == 0)
      first = std::move(bytes);
    else if (bytes != first) {
      outcome.comparison.ok = false;
      outcome.comparison.message =
          "the result of a replay differs bit by bit from the first launch";
      return outcome;
    }
  }
  outcome.comparison = problem.check();
  return outcome;
}
