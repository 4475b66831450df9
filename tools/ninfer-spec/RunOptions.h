//===- RunOptions.h - What a run of ninfer-spec is told ---------*- C++ -*-===//

#ifndef TOKENTILE_TOOLS_NINFERSPEC_RUNOPTIONS_H
#define TOKENTILE_TOOLS_NINFERSPEC_RUNOPTIONS_H

#include "tools/reference-model/ReferenceDraft.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace tokentile {

/// Lists stand for a run of each combination.
struct RunOptions {
  std::string target = "seed:1";
  std::vector<std::string> drafts = {"seed:2"};
  std::string targetConfig, draftConfig;
  std::string device = "host";
  std::vector<std::string> routes = {"batched"};
  std::vector<std::string> modes = {"graph"};
  std::string prompts, tokensOut, json;
  std::vector<int32_t> promptTokens = {32};
  std::vector<int32_t> batches = {1};
  std::vector<int32_t> widths = {8};
  int32_t tokens = 64;
  int32_t page = 64;
  int32_t stop = -1;
  float temperature = 0;
  uint64_t seed = 0;
  bool promptsFirst = false;
  bool check = false;

  int32_t mostRequests() const {
    return *std::max_element(batches.begin(), batches.end());
  }
  int32_t mostDrafts() const {
    return *std::max_element(widths.begin(), widths.end());
  }
  /// Whether there is one run, which is told in full.
  bool isSingle() const {
    return drafts.size() * widths.size() * routes.size() * batches.size() *
               modes.size() ==
           1;
  }
  bool hasMode(const char *mode) const {
    return std::find(modes.begin(), modes.end(), mode) != modes.end();
  }
};

/// Declares the options.
void addRunOptions(CLI::App &app, RunOptions &options);
/// InvalidArgument names the option, its value and what works.
Status checkOptions(const RunOptions &options);

StatusOr<reference::DraftRoute> readRoute(const std::string &name);
/// The probability of "agree:P", or nothing for another draft.
StatusOr<std::optional<float>> readAgreement(const std::string &draft);

} // namespace tokentile

#endif // TOKENTILE_TOOLS_NINFERSPEC_RUNOPTIONS_H
