//===- SpecReport.cpp - What a speculative run came to --------------------===//

#include "tools/ninfer-spec/SpecReport.h"

#include <nlohmann/json.hpp>

#include <cstdarg>
#include <cstdio>

using namespace tokentile;
using reference::SessionResult;

namespace {

const char *const phaseNames[] = {"propose", "verify", "accept", "append"};

std::string format(const char *text, ...) {
  char line[256];
  va_list args;
  va_start(args, text);
  std::vsnprintf(line, sizeof(line), text, args);
  va_end(args);
  return line;
}

int64_t sum(const std::vector<int64_t> &values) {
  int64_t total = 0;
  for (int64_t value : values)
    total += value;
  return total;
}

/// Emitted tokens of a request's decode step.
double acceptanceLength(const SpecCounters &counters) {
  int64_t steps = counters.drafted.empty() ? 0 : counters.drafted[0];
  return steps ? 1 + double(sum(counters.kept)) / double(steps) : 1;
}

const char *modeOf(const SpecRun &run) {
  return run.useGraphs ? "graph" : "eager";
}

double stepMicroseconds(const SessionResult &result) {
  return 1e6 * result.decodeSeconds /
         double(std::max<int64_t>(result.decodeSteps, 1));
}

} // namespace

std::string tokentile::headLine(const SpecSetting &setting) {
  return format("%s (%s), target %s, draft %s, width %d\n",
                setting.device.name.c_str(), setting.device.chip.c_str(),
                setting.target.c_str(), setting.draft.c_str(), setting.width);
}

std::string tokentile::toText(const SpecRun &run) {
  const SessionResult &result = run.result;
  const SpecCounters &counters = result.counters;
  const StreamCounters &step = result.decodeStep;
  std::string text = format("batch              %d, %s, %s\n", run.batch,
                            run.route.c_str(), modeOf(run));
  text += format("tokens a second    %.1f", result.tokensPerSecond());
  if (run.plainTokensPerSecond)
    text += format(", %.2fx of plain decode",
                   result.tokensPerSecond() / *run.plainTokensPerSecond);
  text += format("\nstep               %.1f us, %lld steps, %.2f tokens each "
                 "of a request\n",
                 stepMicroseconds(result), (long long)counters.decodeSteps,
                 acceptanceLength(counters));
  text += "phases             ";
  for (size_t i = 0; i < run.phases.size(); ++i)
    text += format("%s%s %.1f us", i ? ", " : "", phaseNames[i], run.phases[i]);
  text += "\nacceptance         ";
  if (counters.drafted.empty())
    text += "no drafts";
  for (size_t i = 0; i < counters.drafted.size(); ++i)
    text += format("%s%.0f%%", i ? " " : "",
                   100.0 * double(counters.kept[i]) /
                       double(std::max<int64_t>(counters.drafted[i], 1)));
  text += format("\nqueued by a step   %lld graphs, %lld kernels, %lld copies "
                 "to and %lld from the device, %lld waits\n",
                 (long long)step.graphLaunches, (long long)step.kernelLaunches,
                 (long long)step.copiesToDevice, (long long)step.copiesToHost,
                 (long long)step.synchronizations);
  return text;
}

std::string tokentile::tableHead() {
  return format("%5s %-9s %-6s %10s %7s %10s %7s %9s %9s %9s %9s %9s\n",
                "batch", "route", "mode", "tokens/s", "plain", "step us",
                "tokens", "propose", "verify", "accept", "append", "launches");
}

std::string tokentile::tableLine(const SpecRun &run) {
  const SessionResult &result = run.result;
  double plain = run.plainTokensPerSecond
                     ? result.tokensPerSecond() / *run.plainTokensPerSecond
                     : 1;
  const StreamCounters &step = result.decodeStep;
  return format("%5d %-9s %-6s %10.1f %6.2fx %10.1f %7.2f %9.1f %9.1f %9.1f "
                "%9.1f %9lld\n",
                run.batch, run.route.c_str(), modeOf(run),
                result.tokensPerSecond(), plain, stepMicroseconds(result),
                acceptanceLength(result.counters), run.phases[0], run.phases[1],
                run.phases[2], run.phases[3],
                (long long)(step.graphLaunches + step.kernelLaunches));
}

std::string tokentile::toJsonLine(const SpecSetting &setting,
                                  const SpecRun &run) {
  const SessionResult &result = run.result;
  const SpecCounters &counters = result.counters;
  const StreamCounters &step = result.decodeStep;
  nlohmann::ordered_json json;
  json["device"] = setting.device.name;
  json["chip"] = setting.device.chip;
  json["target"] = setting.target;
  json["draft"] = setting.draft;
  json["width"] = setting.width;
  json["batch"] = run.batch;
  json["draft_route"] = run.route;
  json["mode"] = modeOf(run);
  json["tokens_per_second"] = result.tokensPerSecond();
  if (run.plainTokensPerSecond)
    json["plain_tokens_per_second"] = *run.plainTokensPerSecond;
  json["step_us"] = stepMicroseconds(result);
  for (size_t i = 0; i < run.phases.size(); ++i)
    json["phase_us"][phaseNames[i]] = run.phases[i];
  json["acceptance_length"] = acceptanceLength(counters);
  json["drafted"] = counters.drafted;
  json["kept"] = counters.kept;
  json["queued_by_step"] = {{"graph_launches", step.graphLaunches},
                            {"kernel_launches", step.kernelLaunches},
                            {"copies_to_device", step.copiesToDevice},
                            {"copies_to_host", step.copiesToHost},
                            {"synchronizations", step.synchronizations},
                            {"captures", step.captures}};
  json["failures"] = nlohmann::ordered_json::array();
  for (const Status &failure : result.failures)
    json["failures"].push_back(failure.message());
  json["prompt_steps"] = counters.promptSteps;
  json["emitted"] = counters.emitted;
  json["decode_steps"] = result.decodeSteps;
  json["decode_tokens"] = result.decodeTokens;
  json["decode_seconds"] = result.decodeSeconds;
  json["seconds"] = result.seconds;
  return json.dump() + "\n";
}
