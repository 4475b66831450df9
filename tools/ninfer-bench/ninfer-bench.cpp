//===- ninfer-bench.cpp - Times of generated kernels beside their floor ---===//

#include "bench/Report.h"
#include "runtime/JitCompiler.h"
#include "tools/front/Front.h"
#include "tools/front/Tool.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

using namespace tokentile;

namespace {

/// Keys whose count, with the block's, stays within 32 bits.
constexpr int32_t maxContext = 1 << 30;

struct Options {
  FrontOptions front;
  std::string device = "cuda";
  std::vector<int32_t> contexts;
  std::vector<std::string> tables;
  int32_t batch = 1;
  std::string ragged;
  int samples = 31;
  std::string baseline;
  int32_t layers = 0;
  bool sweepOnly = false;
  std::string json;
  bool noFloor = false;
};

/// The options with every list and number read.
struct Request {
  std::vector<int32_t> tokens;
  /// The contexts of a ragged batch, or empty.
  std::vector<int32_t> ragged;
  std::vector<TableKind> tables;
  int32_t chunk = 0;
};

Status bad(const std::string &message) {
  return Status(StatusCode::InvalidArgument, message);
}

StatusOr<int32_t> readBaseline(const std::string &baseline) {
  if (baseline.empty())
    return 0;
  const std::string kind = "chunked:";
  std::string digits =
      baseline.rfind(kind, 0) == 0 ? baseline.substr(kind.size()) : "";
  bool isNumber = !digits.empty() && digits.size() < 5 &&
                  digits.find_first_not_of("0123456789") == std::string::npos;
  if (!isNumber || std::stoi(digits) == 0)
    return bad("--baseline '" + baseline + "' is unknown; chunked:C works");
  return std::stoi(digits);
}

/// Refuses ways to time that do not go together.
Status checkModes(const Options &options) {
  if (options.layers && !options.baseline.empty())
    return bad("--baseline does not go with --layers");
  if (options.sweepOnly && !options.baseline.empty())
    return bad("--baseline does not go with --sweep-only");
  if (options.sweepOnly && options.layers)
    return bad("--layers does not go with --sweep-only");
  return Status();
}

/// Reads "A,BxN,...": a context, and one that N requests have.
StatusOr<std::vector<int32_t>> readRagged(const std::string &text) {
  std::vector<int32_t> contexts;
  std::stringstream items(text);
  for (std::string item; std::getline(items, item, ',');) {
    int context = -1, count = 1, used = 0;
    int read =
        std::sscanf(item.c_str(), "%d%nx%d%n", &context, &used, &count, &used);
    if (read < 1 || used != int(item.size()) || context < 0 ||
        context > maxContext || count < 1 || count > 65535)
      return bad("--ragged '" + item +
                 "' is unknown; a context, or AxN for N of them, works");
    contexts.insert(contexts.end(), size_t(count), context);
  }
  return contexts;
}

StatusOr<Request> readOptions(Options &options) {
  Request request;
  StatusOr<std::vector<int32_t>> ragged = readRagged(options.ragged);
  if (!ragged.ok())
    return ragged.status();
  request.ragged = *ragged;
  if (!request.ragged.empty() && !options.contexts.empty())
    return bad("--ragged has contexts of its own; --context does not go with "
               "it");
  if (!request.ragged.empty()) {
    options.contexts = {
        *std::max_element(request.ragged.begin(), request.ragged.end())};
    options.batch = int32_t(request.ragged.size());
  }
  if (options.contexts.empty())
    options.contexts = {4096, 16384, 65536, 131072};
  for (int32_t context : options.contexts)
    if (context < 0 || context > maxContext)
      return bad("--context " + std::to_string(context) +
                 " does not fit; 0 to " + std::to_string(maxContext) + " work");
  if (options.batch < 1)
    return bad("--batch " + std::to_string(options.batch) +
               " does not fit; at least 1 works");
  if (options.samples < 3)
    return bad("--samples " + std::to_string(options.samples) +
               " does not fit; at least 3 works");
  if (options.layers < 0 || options.layers > 1024)
    return bad("--layers " + std::to_string(options.layers) +
               " does not fit; 1 to 1024 work");
  if (Status status = checkModes(options); !status.ok())
    return status;
  if (options.tables.empty())
    options.tables = {"identity"};
  for (const std::string &name : options.tables) {
    size_t before = request.tables.size();
    for (TableKind kind :
         {TableKind::Identity, TableKind::Fragmented, TableKind::Shuffled})
      if (name == tableName(kind))
        request.tables.push_back(kind);
    if (request.tables.size() == before)
      return bad("--table '" + name +
                 "' is unknown; identity, fragmented and shuffled work");
  }
  StatusOr<int32_t> chunk = readBaseline(options.baseline);
  if (!chunk.ok())
    return chunk.status();
  request.chunk = *chunk;
  if (request.chunk && !options.front.specFile.empty())
    return bad("--baseline makes kernels of other widths; give --model "
               "instead of a spec file");
  return request;
}

/// A chunk of a bidirectional block would not see the rest of it.
Status checkBaseline(const Request &request, const KernelInfo &info) {
  if (request.chunk && info.spec.find("suffix causal") == std::string::npos)
    return bad("--baseline does not go with kernel '" + info.name +
               "'; a causal one in pages works");
  if (request.chunk && info.denseBlock)
    return bad("--baseline does not go with --block 'dense'; in_pages works");
  return Status();
}

/// Keeps the option lists apart from the kernels: one compile for each width.
CompileTokens compilerOf(const Options &options, const Device &device) {
  return [&](int32_t tokens) -> StatusOr<CompiledKernel> {
    FrontOptions front = options.front;
    if (front.specFile.empty())
      front.tokens = {tokens};
    StatusOr<std::string> spec = buildSpec(front);
    if (!spec.ok())
      return spec.status();
    return compileKernel(*spec, device.facts().chip);
  };
}

/// The widths: those of --tokens, else the one that the spec has.
StatusOr<std::vector<int32_t>>
widthsOf(const Options &options, const Request &request, const Device &device) {
  std::vector<int32_t> widths(options.front.tokens.begin(),
                              options.front.tokens.end());
  FrontOptions first = options.front;
  if (!first.tokens.empty())
    first.tokens.resize(1);
  StatusOr<std::string> spec = buildSpec(first);
  if (!spec.ok())
    return spec.status();
  StatusOr<CompiledKernel> kernel = compileKernel(*spec, device.facts().chip);
  if (!kernel.ok())
    return kernel.status();
  if (Status status = checkBaseline(request, kernel->info); !status.ok())
    return status;
  if (widths.empty())
    widths = {kernel->info.tokens};
  return widths;
}

/// Times one shape and hands each figure to `report` as soon as it is there.
Status timeShape(Bench &bench, const Shape &shape, const Request &request,
                 const Options &options, bool withFloor,
                 const std::function<Status(const BenchRecord &)> &report) {
  std::optional<Floor> floor;
  if (withFloor) {
    StatusOr<Floor> measured = bench.floor(shape);
    if (!measured.ok())
      return measured.status();
    floor = *measured;
  }
  std::vector<int32_t> chunks = {0};
  if (request.chunk && request.chunk < shape.tokens)
    chunks.push_back(request.chunk);
  for (int32_t chunk : chunks) {
    StatusOr<BenchRecord> record =
        options.layers      ? bench.timeLayers(shape, options.layers)
        : options.sweepOnly ? bench.timeSweep(shape)
                            : bench.time(shape, chunk);
    if (!record.ok())
      return record.status();
    record->floor = floor;
    if (Status status = report(*record); !status.ok())
      return status;
  }
  return Status();
}

StatusOr<int> run(Options &options) {
  StatusOr<Request> request = readOptions(options);
  if (!request.ok())
    return request.status();
  StatusOr<std::unique_ptr<Device>> device = openDevice(options.device);
  if (!device.ok())
    return device.status();
  bool isCuda = (*device)->facts().kind == DeviceKind::Cuda;
  StatusOr<std::vector<int32_t>> widths = widthsOf(options, *request, **device);
  if (!widths.ok())
    return widths.status();
  StatusOr<std::unique_ptr<ColdTimer>> timer = ColdTimer::create(**device);
  if (!timer.ok())
    return timer.status();

  double nothing = 0;
  if (isCuda) {
    StatusOr<Timing> timing = measureNothing(**timer, options.samples);
    if (!timing.ok())
      return timing.status();
    nothing = timing->median;
  }
  const DeviceFacts &facts = (*device)->facts();
  std::printf("%s (%s), %s caches, median of %d", facts.name.c_str(),
              facts.chip.c_str(), isCuda ? "cold" : "warm", options.samples);
  if (isCuda)
    std::printf("; every figure holds %.1f us of launch and events", nothing);
  std::printf("\n%s\n", tableHead().c_str());

  Bench bench(**timer, compilerOf(options, **device), options.samples);
  if (!options.json.empty())
    if (Status status = writeText(options.json, ""); !status.ok())
      return status;
  auto report = [&](const BenchRecord &record) {
    std::printf("%s\n", tableLine(record).c_str());
    std::fflush(stdout);
    if (options.json.empty())
      return Status();
    return appendText(options.json,
                      toJsonLine(facts, nothing, options.samples, record));
  };
  for (TableKind table : request->tables)
    for (int32_t context : options.contexts)
      for (int32_t tokens : *widths) {
        Shape shape{options.batch, context, tokens, table, request->ragged};
        // The loads alone are those of one launch for requests of one length.
        bool withFloor = isCuda && !options.noFloor &&
                         request->ragged.empty() && !options.layers;
        if (Status status =
                timeShape(bench, shape, *request, options, withFloor, report);
            !status.ok())
          return status;
      }
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Times generated kernels beside the loads alone",
               "ninfer-bench");
  Options options;
  addFrontOptions(app, options.front, /*withChip=*/false);
  app.add_option("--device", options.device, "host, cuda (default) or cuda:N");
  app.add_option("--context", options.contexts,
                 "Keys before the block, a list "
                 "(default: 4096,16384,65536,131072)")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--table", options.tables,
                 "Page tables, a list of identity (default), fragmented, "
                 "shuffled")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--batch", options.batch, "Requests (default: 1)");
  app.add_option("--ragged", options.ragged,
                 "Instead of --context and --batch: the context of each "
                 "request, as 131072,4096x31");
  app.add_option("--samples", options.samples,
                 "Samples of each figure (default: 31)");
  app.add_option("--baseline", options.baseline,
                 "chunked:C also times launches of C tokens each");
  app.add_option("--layers", options.layers,
                 "Instead: the mean of so many launches back to back, each "
                 "with keys of its own");
  app.add_flag("--sweep-only", options.sweepOnly,
               "Instead: launches without their merge. Their results are "
               "partial: for timing only");
  app.add_flag("--no-floor", options.noFloor, "Do not measure the loads alone");
  app.add_option("--json", options.json,
                 "File for the figures, one JSON object a line, each written "
                 "when it is measured");
  return runTool(app, argc, argv, [&] { return run(options); });
}
