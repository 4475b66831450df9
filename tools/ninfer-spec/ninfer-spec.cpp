//===- ninfer-spec.cpp - Speculative decoding of the reference model ------===//
//
// Decodes a batch of requests with a target and a draft, and says how fast, how
// much of the draft was kept, and what each step queued.
//
//===----------------------------------------------------------------------===//

#include "tools/front/Front.h"
#include "tools/front/Tool.h"
#include "tools/ninfer-spec/RunOptions.h"
#include "tools/ninfer-spec/SpecPrompts.h"
#include "tools/ninfer-spec/SpecReport.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <set>

using namespace tokentile;
using namespace tokentile::reference;

namespace {

/// A line on standard error every two seconds.
SessionProgress progressLine(const char *what) {
  using Clock = std::chrono::steady_clock;
  auto start = Clock::now();
  return [what, start, next = 2.0](const SpecCounters &counters,
                                   size_t left) mutable {
    double seconds =
        std::chrono::duration<double>(Clock::now() - start).count();
    if (seconds < next)
      return;
    next = seconds + 2;
    std::fprintf(stderr, "%s: %lld tokens in %.0f s, %zu requests left\n", what,
                 (long long)counters.emitted, seconds, left);
  };
}

/// What every run needs.
struct Bed {
  std::unique_ptr<Device> device;
  std::unique_ptr<ReferenceRig> rig;
  TokenRows prompts;
  Buffer known;

  /// The first requests.
  TokenRows some(const TokenRows &rows, int32_t batch) const {
    return TokenRows(rows.begin(), rows.begin() + batch);
  }
};

StatusOr<Bed> prepare(const RunOptions &options) {
  // The fallback keeps whole contexts; the other routes can do with that.
  DraftRoute layout = DraftRoute::Batched;
  for (const std::string &name : options.routes) {
    StatusOr<DraftRoute> route = readRoute(name);
    if (!route.ok())
      return route.status();
    if (*route == DraftRoute::Reattend)
      layout = *route;
  }
  StatusOr<ModelSource<TargetConfig>> target =
      openTarget(options.target, options.targetConfig);
  if (!target.ok())
    return target.status();
  std::optional<ModelSource<DraftConfig>> draft;
  if (options.mostDrafts()) {
    const std::string &name = options.drafts.front();
    StatusOr<ModelSource<DraftConfig>> opened =
        openDraft(*readAgreement(name) ? "seed:2" : name, options.draftConfig,
                  target->config);
    if (!opened.ok())
      return opened.status();
    draft = *std::move(opened);
  }
  Bed run;
  int32_t vocabulary = target->config.vocabulary;
  run.prompts = drawPrompts(options.seed, options.mostRequests(),
                            options.promptTokens, vocabulary);
  if (!options.prompts.empty()) {
    StatusOr<TokenRows> read =
        readPrompts(options.prompts, options.mostRequests(), vocabulary);
    if (!read.ok())
      return read.status();
    run.prompts = *std::move(read);
  }
  StatusOr<std::unique_ptr<Device>> device = openDevice(options.device);
  if (!device.ok())
    return device.status();
  run.device = *std::move(device);

  RigShape shape;
  shape.batch = options.mostRequests();
  shape.drafts = options.mostDrafts();
  for (const std::vector<int32_t> &prompt : run.prompts)
    shape.tokens =
        std::max(shape.tokens, int32_t(prompt.size()) + options.tokens);
  shape.chunk = ReferenceRig::longestChunk(target->config);
  shape.promptBatch = std::min(options.mostRequests(), 8);
  shape.pageTokens = options.page;
  StatusOr<std::unique_ptr<ReferenceRig>> rig = ReferenceRig::create(
      *run.device, shape, *target, draft ? &*draft : nullptr, layout);
  if (!rig.ok())
    return rig.status();
  run.rig = *std::move(rig);
  return run;
}

/// Decodes `batch` requests with `drafts` drafts a step, or fewer tokens of
/// each.
StatusOr<SessionResult> decode(Bed &bed, const RunOptions &options,
                               int32_t batch, int32_t drafts, bool useGraphs,
                               int32_t tokens) {
  SessionOptions session;
  session.batch = batch;
  session.drafts = drafts;
  session.maxTokens = tokens;
  session.stop = options.stop;
  session.temperature = options.temperature;
  // A draft of agree:P knows requests by their seed.
  session.seed = *readAgreement(options.drafts.front()) ? 0 : options.seed;
  session.promptsFirst = options.promptsFirst;
  session.useGraphs = useGraphs;
  return runSession(*bed.device, *bed.rig, session,
                    bed.some(bed.prompts, batch),
                    progressLine(drafts ? "decode" : "plain decode"));
}

/// Plain decode of every batch, from most requests to fewest: the tokens of
/// the most, which start with those of fewer, and tokens a second.
StatusOr<TokenRows> decodePlainly(Bed &bed, const RunOptions &options,
                                  std::map<int32_t, double> &speeds) {
  TokenRows tokens;
  std::set<int32_t, std::greater<>> batches(options.batches.begin(),
                                            options.batches.end());
  for (int32_t batch : batches) {
    StatusOr<SessionResult> result = decode(
        bed, options, batch, 0, options.hasMode("graph"), options.tokens);
    if (!result.ok())
      return result.status();
    speeds[batch] = result->tokensPerSecond();
    if (tokens.empty())
      tokens = result->tokens;
  }
  return tokens;
}

/// Mean phases of a decode step of an eager run.
std::array<double, 4> phasesOf(const SessionResult &result) {
  std::array<double, 4> phases = result.counters.phaseMicroseconds;
  for (double &phase : phases)
    phase /= double(std::max<int64_t>(result.counters.decodeSteps, 1));
  return phases;
}

/// The runs of one route and batch, in the order of the modes.
StatusOr<std::vector<SpecRun>> decodeInModes(Bed &bed,
                                             const RunOptions &options,
                                             const std::string &route,
                                             int32_t width, int32_t batch) {
  if (ReferenceDraft *draft = bed.rig->getDraft())
    draft->take(*readRoute(route));
  // Phases can be told apart only without graphs: a few steps do.
  int32_t tokens = options.hasMode("eager")
                       ? options.tokens
                       : std::min(options.tokens, 4 * (width + 1));
  StatusOr<SessionResult> eager =
      decode(bed, options, batch, width, /*useGraphs=*/false, tokens);
  if (!eager.ok())
    return eager.status();
  std::vector<SpecRun> runs;
  for (const std::string &mode : options.modes) {
    SpecRun &run = runs.emplace_back();
    run.batch = batch;
    run.width = width;
    run.route = width ? route : "plain";
    run.useGraphs = mode == "graph";
    run.phases = phasesOf(*eager);
    run.result = *eager;
    if (!run.useGraphs)
      continue;
    StatusOr<SessionResult> result =
        decode(bed, options, batch, width, /*useGraphs=*/true, options.tokens);
    if (!result.ok())
      return result.status();
    run.result = *std::move(result);
  }
  return runs;
}

/// Whether all runs emitted what plain decode did; says so.
bool checkRuns(const Bed &bed, const TokenRows &plain,
               const std::vector<SpecRun> &runs) {
  for (const SpecRun &run : runs)
    if (std::optional<Difference> difference =
            firstDifference(bed.some(plain, run.batch), run.result.tokens)) {
      std::printf("check: request %zu differs from plain decode at token %zu "
                  "(draft %s, width %d, batch %d, %s)\n",
                  difference->request, difference->position, run.draft.c_str(),
                  run.width, run.batch, run.route.c_str());
      return false;
    }
  std::printf("check: every token is that of plain decode\n");
  return true;
}

/// Every route, batch and mode of one draft and one width; said and written as
/// they end.
Status decodeAll(Bed &bed, const RunOptions &options,
                 const SpecSetting &setting,
                 const std::map<int32_t, double> &plainSpeeds,
                 std::vector<SpecRun> &runs) {
  std::printf("%s%s", headLine(setting).c_str(),
              options.isSingle() ? "" : tableHead().c_str());
  for (const std::string &route : options.routes)
    for (int32_t batch : options.batches) {
      StatusOr<std::vector<SpecRun>> decoded =
          decodeInModes(bed, options, route, setting.width, batch);
      if (!decoded.ok())
        return decoded.status();
      for (SpecRun &run : *decoded) {
        run.draft = setting.draft;
        if (plainSpeeds.count(batch))
          run.plainTokensPerSecond = plainSpeeds.at(batch);
        std::printf(
            "%s", (options.isSingle() ? toText(run) : tableLine(run)).c_str());
        std::fflush(stdout);
        for (const Status &failure : run.result.failures)
          std::fprintf(stderr, "ninfer-spec: failed: %s\n",
                       failure.message().c_str());
        if (!options.json.empty())
          if (Status status =
                  appendText(options.json, toJsonLine(setting, run));
              !status.ok())
            return status;
        runs.push_back(std::move(run));
      }
    }
  return Status();
}

StatusOr<int> run(const RunOptions &options) {
  if (Status status = checkOptions(options); !status.ok())
    return status;
  StatusOr<Bed> prepared = prepare(options);
  if (!prepared.ok())
    return prepared.status();
  Bed &bed = *prepared;
  if (!options.json.empty())
    if (Status status = writeText(options.json, ""); !status.ok())
      return status;

  TokenRows plain;
  std::map<int32_t, double> plainSpeeds;
  ReferenceDraft *model = bed.rig->getDraft();
  if (model && (options.check || *readAgreement(options.drafts.front()))) {
    StatusOr<TokenRows> decoded = decodePlainly(bed, options, plainSpeeds);
    if (!decoded.ok())
      return decoded.status();
    plain = *std::move(decoded);
  }
  std::vector<SpecRun> runs;
  for (const std::string &draft : options.drafts) {
    if (std::optional<float> probability = *readAgreement(draft);
        model && probability) {
      StatusOr<Agreement> agreement = makeAgreement(
          *bed.device, bed.prompts, plain, *probability, bed.known);
      if (!agreement.ok())
        return agreement.status();
      model->agree(*agreement);
    }
    for (int32_t width : options.widths)
      if (Status status = decodeAll(bed, options,
                                    {bed.device->facts(), options.target,
                                     width ? draft : "none", width},
                                    plainSpeeds, runs);
          !status.ok())
        return status;
  }
  if (!options.tokensOut.empty())
    if (Status status =
            writeText(options.tokensOut, toLines(runs.front().result.tokens));
        !status.ok())
      return status;
  bool isRight = std::all_of(runs.begin(), runs.end(), [](const SpecRun &run) {
    return run.result.failures.empty();
  });
  if (options.check && !plain.empty())
    isRight = checkRuns(bed, plain, runs) && isRight;
  return isRight ? 0 : exitFailure;
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Decodes with a target and a draft", "ninfer-spec");
  RunOptions options;
  addRunOptions(app, options);
  return runTool(app, argc, argv, [&] { return run(options); });
}
