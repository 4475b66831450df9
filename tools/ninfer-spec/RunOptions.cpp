//===- RunOptions.cpp - What a run of ninfer-spec is told -----------------===//

#include "tools/ninfer-spec/RunOptions.h"

#include <CLI/CLI.hpp>

#include <cstdlib>

using namespace tokentile;
using reference::DraftRoute;

static Status bad(const std::string &message) {
  return Status(StatusCode::InvalidArgument, message);
}

StatusOr<DraftRoute> tokentile::readRoute(const std::string &name) {
  if (name == "batched")
    return DraftRoute::Batched;
  if (name == "loop")
    return DraftRoute::Loop;
  if (name == "reattend")
    return DraftRoute::Reattend;
  return bad("--draft-route '" + name +
             "' is unknown; batched, loop and reattend work");
}

StatusOr<std::optional<float>>
tokentile::readAgreement(const std::string &draft) {
  const std::string kind = "agree:";
  if (draft.rfind(kind, 0) != 0)
    return std::optional<float>();
  const char *text = draft.c_str() + kind.size();
  char *end = nullptr;
  float probability = std::strtof(text, &end);
  if (end == text || *end || !(probability >= 0 && probability <= 1))
    return bad("--draft '" + draft +
               "' is unknown; agree:P works with P from 0 to 1");
  return std::optional<float>(probability);
}

static Status checkRange(const char *option, int64_t value, int64_t least,
                         int64_t most) {
  if (value >= least && value <= most)
    return Status();
  return bad(std::string(option) + " " + std::to_string(value) +
             " does not fit; " + std::to_string(least) + " to " +
             std::to_string(most) + " work");
}

Status tokentile::checkOptions(const RunOptions &options) {
  for (int32_t batch : options.batches)
    if (Status status = checkRange("--batch", batch, 1, 1024); !status.ok())
      return status;
  for (int32_t length : options.promptTokens)
    if (Status status = checkRange("--prompt-tokens", length, 1, 1 << 20);
        !status.ok())
      return status;
  for (int32_t width : options.widths)
    if (Status status = checkRange("--width", width, 0, 63); !status.ok())
      return status;
  for (const Status &status :
       {checkRange("--tokens", options.tokens, 1, 1 << 20),
        checkRange("--page", options.page, 16, 256)})
    if (!status.ok())
      return status;
  for (const std::string &mode : options.modes)
    if (mode != "graph" && mode != "eager")
      return bad("--mode '" + mode + "' is unknown; graph and eager work");
  if (!(options.temperature >= 0))
    return bad("--temperature " + std::to_string(options.temperature) +
               " does not fit; 0 and more work");
  if (options.check && options.temperature > 0)
    return bad("--check compares greedy decoding; --temperature=0 works");
  for (const std::string &draft : options.drafts) {
    StatusOr<std::optional<float>> agreement = readAgreement(draft);
    if (!agreement.ok())
      return agreement.status();
    if (options.drafts.size() > 1 && !*agreement)
      return bad("--draft '" + draft + "' is in a list; lists of agree:P work");
  }
  return Status();
}

void tokentile::addRunOptions(CLI::App &app, RunOptions &options) {
  app.add_option("--target", options.target,
                 "Folder of a checkpoint, or seed:N (default: seed:1)");
  auto list = [](CLI::Option *option) {
    option->delimiter(',')->allow_extra_args(false);
  };
  list(app.add_option(
      "--draft", options.drafts,
      "Folder of a checkpoint, seed:N (default: seed:2), or a list of agree:P, "
      "a draft that is right with probability P"));
  app.add_option("--target-config", options.targetConfig,
                 "config.json whose geometry a target of seed:N has");
  app.add_option("--draft-config", options.draftConfig,
                 "config.json whose geometry a draft of seed:N or agree:P has");
  list(app.add_option("--batch", options.batches,
                      "Requests at once, a list (default: 1)"));
  list(app.add_option("--width", options.widths,
                      "Draft tokens of a step, a list; 0 is plain decode "
                      "(default: 8)"));
  app.add_option("--tokens", options.tokens,
                 "Tokens that each request emits (default: 64)");
  list(app.add_option("--prompt-tokens", options.promptTokens,
                      "Lengths of drawn prompts, a list taken in turn "
                      "(default: 32)"));
  app.add_option("--prompts", options.prompts,
                 "File of prompts, a line of token ids each");
  app.add_option("--stop", options.stop, "Token that ends a request");
  app.add_option("--temperature", options.temperature,
                 "0 is greedy (default: 0)");
  app.add_option("--seed", options.seed,
                 "Of drawn prompts and of sampling (default: 0)");
  app.add_option("--page", options.page, "Keys of a page (default: 64)");
  app.add_option("--device", options.device, "host (default), cuda or cuda:N");
  list(app.add_option("--draft-route", options.routes,
                      "Attention of the draft, a list of batched (default), "
                      "loop, reattend"));
  list(app.add_option("--mode", options.modes,
                      "How steps are queued, a list of graph (default), one "
                      "launch a step, and eager, call by call"));
  app.add_option("--tokens-out", options.tokensOut,
                 "File for the emitted tokens of the first run, a line each "
                 "request");
  app.add_option("--json", options.json,
                 "File for the figures as JSON, a line each run");
  app.add_flag("--prompts-first", options.promptsFirst,
               "Read all prompts before the first decode step, and time the "
               "steps in which all requests decode");
  app.add_flag("--check", options.check,
               "Also decode plainly; exit 1 at the first differing token");
}
