//===- Front.h - What every tool takes --------------------------*- C++ -*-===//
//
// The tools name a kernel in the same way: by a spec file, or by a model's
// geometry and a few options from which the text of a spec is built. What the
// options cannot say is said in a spec file.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TOOLS_FRONT_FRONT_H
#define TOKENTILE_TOOLS_FRONT_FRONT_H

#include "runtime/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace tokentile {

/// The options that choose a kernel. 0 and empty mean "not given".
struct FrontOptions {
  std::string specFile;
  std::string model;
  std::string kernel;
  /// Query tokens of one request; tools that compare widths take several.
  std::vector<int64_t> tokens;
  std::string keys;
  std::string values;
  int64_t page = 0;
  std::string layout;
  /// -1: the model's; 0: none.
  int64_t window = -1;
  std::string block;
  std::string split;
  std::string lowering;
  int64_t keyTile = 0;
  int64_t stages = 0;
  int64_t rowWarps = 0;
  int64_t keyWarps = 0;
  int64_t rowBlocks = 0;
  int64_t maxSweeps = 0;
  bool invariant = false;
  std::string chip;
};

/// Declares the options. `withChip` is false for tools whose device decides.
void addFrontOptions(CLI::App &app, FrontOptions &options, bool withChip);

/// The text of one `attn.kernel`: the spec file's, or one built from the
/// options. Errors name the option, its value and what works. Axes that fit
/// together badly are for the dialect's verifier to refuse.
StatusOr<std::string> buildSpec(const FrontOptions &options);

/// The `schedule` clause that the options make, or nothing. Errors name the
/// option and its value.
StatusOr<std::string> scheduleClause(const FrontOptions &options);

/// The first option given that chooses a kernel, the spec file included, or
/// null.
const char *kernelOption(const FrontOptions &options);

/// What stands for the spec in diagnostics: the file, or "spec".
std::string specName(const FrontOptions &options);

/// A file as text, or NotFound. "-" is standard input.
StatusOr<std::string> readText(const std::string &path, const char *what);

/// Writes `text` to `path`, or to standard output if it is empty or "-".
Status writeText(const std::string &path, const std::string &text);
/// The same behind what is there.
Status appendText(const std::string &path, const std::string &text);

} // namespace tokentile

#endif // TOKENTILE_TOOLS_FRONT_FRONT_H
