//===- ninfer-draft-bench.cpp - Attention of a draft step, by route -------===//

#include "tools/front/Front.h"
#include "tools/front/ModelZoo.h"
#include "tools/front/Tool.h"
#include "tools/ninfer-draft-bench/DraftBench.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <random>

using namespace tokentile;

namespace {

struct Options {
  std::string model = "qwen3.8-27b-dflash2";
  std::string device = "cuda";
  std::vector<std::string> contexts = {"1300", "200:8000"};
  std::vector<int32_t> batches = {1, 2, 4, 8, 16, 32};
  std::vector<std::string> routes = {"batched", "loop", "padded", "reattend"};
  int32_t width = 8;
  int32_t window = -1;
  int32_t page = 64;
  int samples = 31;
  std::string json;
};

Status bad(const std::string &message) {
  return Status(StatusCode::InvalidArgument, message);
}

/// "N", all the same; or "LO:HI", evenly spread and in no order. One request of
/// a spread has its middle.
StatusOr<std::vector<int32_t>> readContexts(const std::string &text,
                                            int32_t batch) {
  int low = 0, high = 0, used = 0;
  if (std::sscanf(text.c_str(), "%d:%d%n", &low, &high, &used) != 2) {
    used = 0;
    if (std::sscanf(text.c_str(), "%d%n", &low, &used) == 1)
      high = low;
  }
  if (size_t(used) != text.size() || low < 1 || high < low || high > 1 << 20)
    return bad("--context '" + text +
               "' is unknown; N and LO:HI work, from 1 to 1048576");
  std::vector<int32_t> contexts;
  for (int64_t i = 0; i < batch; ++i)
    contexts.push_back(batch == 1
                           ? (low + high) / 2
                           : int32_t(low + (high - low) * i / (batch - 1)));
  std::shuffle(contexts.begin(), contexts.end(), std::mt19937(1));
  return contexts;
}

Status checkOptions(const Options &options) {
  for (const std::string &route : options.routes)
    if (route != "batched" && route != "loop" && route != "padded" &&
        route != "reattend")
      return bad("--route '" + route +
                 "' is unknown; batched, loop, padded and reattend work");
  for (int32_t batch : options.batches)
    if (batch < 1 || batch > 1024)
      return bad("--batch " + std::to_string(batch) +
                 " does not fit; 1 to 1024 work");
  if (options.width < 1 || options.width > 63)
    return bad("--width " + std::to_string(options.width) +
               " does not fit; 1 to 63 work");
  if (options.samples < 3)
    return bad("--samples " + std::to_string(options.samples) +
               " does not fit; at least 3 works");
  return Status();
}

/// One figure, as bench/README.md describes.
std::string toJsonLine(const DeviceFacts &device, const DraftStep &step,
                       const std::string &context, const DraftTiming &figure) {
  const reference::AttentionKind &kind = step.kind;
  nlohmann::ordered_json json = {
      {"peer", figure.route == "reattend" ? "reattend" : "tokentile"},
      {"query_heads", kind.queryHeads},
      {"kv_heads", kind.kvHeads},
      {"head_dim", kind.headDim},
      {"causal", false},
      {"window", kind.window},
      {"page", step.pageTokens},
      {"layout", "page_major"},
      {"mode", figure.route},
      {"tokens", step.width},
      {"context", context},
      {"batch", step.contexts.size()},
      {"table", "shuffled"},
      {"launches", figure.launches},
      {"bytes", figure.bytes},
      {"time",
       {{"median_us", figure.timing.median},
        {"min_us", figure.timing.min},
        {"p95_us", figure.timing.p95},
        {"spread_percent", figure.timing.spreadPercent}}},
      {"device", device.name},
      {"chip", device.chip},
      {"cache", device.kind == DeviceKind::Cuda ? "cold" : "warm"},
      {"samples", figure.samples}};
  if (context.find(':') == std::string::npos)
    json["context"] = step.contexts.front();
  return json.dump() + "\n";
}

StatusOr<int> run(const Options &options) {
  if (Status status = checkOptions(options); !status.ok())
    return status;
  StatusOr<ModelGeometry> model = findModel(options.model);
  if (!model.ok())
    return model.status();
  DraftStep step;
  step.kind = {int32_t(model->queryHeads), int32_t(model->kvHeads),
               int32_t(model->headDim),
               options.window < 0 ? int32_t(model->window) : options.window,
               /*isDraft=*/true};
  step.width = options.width + 1;
  step.pageTokens = options.page;
  StatusOr<std::unique_ptr<Device>> device = openDevice(options.device);
  if (!device.ok())
    return device.status();
  StatusOr<std::unique_ptr<DraftBench>> bench = DraftBench::create(**device);
  if (!bench.ok())
    return bench.status();
  const DeviceFacts &facts = (*device)->facts();
  std::printf("%s (%s), %d over %d heads of %d, window %d, %d block rows, "
              "medians of %d\n%10s %5s %-9s %12s %8s %9s %10s\n",
              facts.name.c_str(), facts.chip.c_str(), step.kind.queryHeads,
              step.kind.kvHeads, step.kind.headDim, step.kind.window,
              step.width, options.samples, "context", "c", "route", "us",
              "spread", "launches", "MB");
  if (!options.json.empty())
    if (Status status = writeText(options.json, ""); !status.ok())
      return status;
  for (const std::string &contexts : options.contexts)
    for (int32_t batch : options.batches) {
      StatusOr<std::vector<int32_t>> read = readContexts(contexts, batch);
      if (!read.ok())
        return read.status();
      step.contexts = *read;
      if (Status status = (*bench)->prepare(step); !status.ok())
        return status;
      for (const std::string &route : options.routes) {
        StatusOr<DraftTiming> timing = (*bench)->time(route, options.samples);
        if (!timing.ok())
          return timing.status();
        std::printf("%10s %5d %-9s %12.1f %7.1f%% %9d %10.1f\n",
                    contexts.c_str(), batch, route.c_str(),
                    timing->timing.median, timing->timing.spreadPercent,
                    timing->launches, double(timing->bytes) / 1e6);
        std::fflush(stdout);
        if (options.json.empty())
          continue;
        if (Status status = appendText(
                options.json, toJsonLine(facts, step, contexts, *timing));
            !status.ok())
          return status;
      }
    }
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Times the attention of a draft step by route",
               "ninfer-draft-bench");
  Options options;
  app.add_option("--model", options.model,
                 "A published draft, or the path of its config.json");
  app.add_option("--device", options.device, "host, cuda (default) or cuda:N");
  auto list = [](CLI::Option *option) {
    option->delimiter(',')->allow_extra_args(false);
  };
  list(app.add_option("--context", options.contexts,
                      "Keys before the blocks, a list of N and LO:HI (default: "
                      "1300,200:8000)"));
  list(app.add_option("--batch", options.batches,
                      "Requests, a list (default: 1,2,4,8,16,32)"));
  list(app.add_option("--route", options.routes,
                      "A list of batched, loop, padded, reattend"));
  app.add_option("--width", options.width,
                 "Draft tokens; a block has one row more (default: 8)");
  app.add_option("--window", options.window,
                 "Of the layer's keys, 0 for none (default: the model's)");
  app.add_option("--page", options.page, "Keys of a page (default: 64)");
  app.add_option("--samples", options.samples,
                 "Samples of each figure (default: 31)");
  app.add_option("--json", options.json,
                 "File for the figures as JSON, a line each");
  return runTool(app, argc, argv, [&] { return run(options); });
}
