//===- GraphReplayTest.cpp - One recorded launch, many steps --------------===//
//
// An engine records a launch once and replays it while requests grow, shrink,
// come and go. Only device memory changes between replays: keys, lengths,
// columns, positions, tables. Runs on the host always, and on a GPU where there
// is one.
//
//===----------------------------------------------------------------------===//

#include "runtime/JitCompiler.h"
#include "test/numerics/Problem.h"
#include "test/numerics/SpecText.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

using namespace tokentile;

namespace {

constexpr int32_t batch = 3;
constexpr int32_t maxKeys = 1100;
constexpr int64_t tableStride = 80;

/// What requests look like at one step.
struct Step {
  std::vector<int32_t> contexts, columns;
};

const Step steps[] = {
    {{0, 1, 15}, {4, 4, 4}},      {{16, 63, 1000}, {4, 1, 3}},
    {{17, 1000, 0}, {4, 2, 4}},   {{64, 0, 127}, {1, 0, 4}},
    {{0, 0, 0}, {0, 0, 0}},       {{1000, 1001, 1002}, {4, 3, 2}},
    {{128, 129, 130}, {2, 2, 2}},
};

Case makeStep(const std::string &spec, const Step &step, uint64_t seed) {
  Case testCase;
  testCase.specText = spec;
  testCase.batch = batch;
  testCase.contexts = testCase.lengths = step.contexts;
  testCase.columns = step.columns;
  testCase.seed = seed;
  return testCase;
}

/// One recorded launch over buffers large enough for every step.
class Recording {
public:
  explicit Recording(Device &device) : device(device) {}

  Status record(const std::string &spec, std::vector<Problem *> problems) {
    StatusOr<CompiledKernel> compiled =
        compileKernel(spec, device.facts().chip);
    if (!compiled.ok())
      return compiled.status();
    kernel = *device.load(*compiled);
    stream = *device.createStream();
    StatusOr<Plan> planned = plan(*kernel, {batch, maxKeys});
    if (!planned.ok())
      return planned.status();
    for (Problem *problem : problems)
      for (HostTensor &tensor : problem->getTensors())
        sizes[tensor.name] = std::max(sizes[tensor.name], tensor.bytes);
    sizes["table"] = batch * tableStride * 4;
    for (auto &[name, bytes] : sizes)
      buffers[name] = *device.allocate(bytes);
    workspace = *device.allocate(planned->workspaceBytes);

    LaunchArgs args;
    args.query = buffers["query"].data();
    args.output = buffers["output"].data();
    args.logSumExp = buffers["lse"].as<float>();
    args.keys = buffers["keys"].data();
    args.values = buffers["values"].data();
    args.table = buffers["table"].as<int32_t>();
    args.tableStride = tableStride;
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
  static std::vector<uint8_t> widenTable(const HostTensor &table) {
    int64_t width = table.shape[1];
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
  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Stream> stream;
  std::map<std::string, int64_t> sizes;
  std::map<std::string, Buffer> buffers;
  Buffer workspace;
  std::unique_ptr<Graph> graph;
};

class GraphReplay
    : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(GraphReplay, StaysRightWhileLengthsAndTablesChange) {
  auto [name, rest] = GetParam();
  StatusOr<std::unique_ptr<Device>> device = openDevice(name);
  if (!device.ok())
    GTEST_SKIP() << device.status().toString();
  std::string text =
      std::string("attn.kernel @replay heads<12 over 2, dim 128> tokens<4> ") +
      "sees<prefix " + rest +
      "keys<bf16> values<bf16> paging<page_major page "
      "16> block<in_pages> query<bf16 token_major columns counted> "
      "output<bf16 token_major with lse>";
  mlir::MLIRContext context;
  SpecModule spec = parseSpec(context, text);
  ASSERT_TRUE(spec.kernel) << spec.error;
  std::vector<std::unique_ptr<Problem>> problems;
  std::vector<Problem *> all;
  for (const Step &step : steps) {
    std::string error;
    problems.push_back(Problem::create(
        spec.kernel, makeStep(text, step, problems.size() + 1), error));
    ASSERT_TRUE(problems.back()) << error;
    all.push_back(problems.back().get());
  }
  Recording recording(**device);
  Status recorded = recording.record(text, all);
  ASSERT_TRUE(recorded.ok()) << recorded.toString();
  // Twice, so that every step also follows the longest ones.
  for (int round = 0; round < 2; ++round)
    for (size_t i = 0; i < all.size(); ++i) {
      Status status = recording.replay(*all[i]);
      ASSERT_TRUE(status.ok()) << status.toString();
      Comparison verdict = all[i]->check();
      EXPECT_TRUE(verdict.ok)
          << "round " << round << " step " << i << ": " << verdict.message;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Devices, GraphReplay,
    testing::Combine(testing::Values("host", "cuda"),
                     testing::Values("all, suffix causal> ",
                                     "left within 100, suffix causal> ",
                                     "symmetric within 30, suffix "
                                     "bidirectional> ")),
    [](const auto &info) {
      std::string prefix = std::get<1>(info.param);
      return std::get<0>(info.param) + "_" +
             prefix.substr(0, prefix.find_first_of(" ,"));
    });

} // namespace
