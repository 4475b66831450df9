//===- SpecReport.h - What a speculative run came to ------------*- C++ -*-===//

#ifndef TOKENTILE_TOOLS_NINFERSPEC_SPECREPORT_H
#define TOKENTILE_TOOLS_NINFERSPEC_SPECREPORT_H

#include "tools/reference-model/SpecSession.h"

namespace tokentile {

/// One run: a draft, a width, a route, a batch, a mode.
struct SpecRun {
  std::string draft;
  int32_t width = 0;
  int32_t batch = 0;
  std::string route;
  bool useGraphs = true;
  reference::SessionResult result;
  /// Microseconds of a decode step in propose, verify, accept and append, from
  /// a run without graphs.
  std::array<double, 4> phases = {};
  /// Of plain decode with this batch, if it ran.
  std::optional<double> plainTokensPerSecond;
};

/// What the runs of one table have in common.
struct SpecSetting {
  DeviceFacts device;
  std::string target, draft;
  int32_t width = 0;
};

/// A head line; then several lines of a single run, or one line of each run
/// under the names of its columns.
std::string headLine(const SpecSetting &setting);
std::string toText(const SpecRun &run);
std::string tableHead();
std::string tableLine(const SpecRun &run);
/// One line of JSON Lines, which says all about the run; bench/README.md names
/// the fields.
std::string toJsonLine(const SpecSetting &setting, const SpecRun &run);

} // namespace tokentile

#endif // TOKENTILE_TOOLS_NINFERSPEC_SPECREPORT_H
