//===- Tool.h - What every main does ----------------------------*- C++ -*-===//
//
// Exit statuses of the tools: 0 is success; 1 says that a check failed; 2 says
// that the input or the machine cannot do what was asked. With 2, one line on
// standard error names what is wrong and what would work, and nothing has been
// written.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TOOLS_FRONT_TOOL_H
#define TOKENTILE_TOOLS_FRONT_TOOL_H

#include "runtime/Status.h"

#include <CLI/CLI.hpp>
#include <functional>

namespace llvm {
class Error;
} // namespace llvm

namespace tokentile {

constexpr int exitFailure = 1;
constexpr int exitBadInput = 2;

/// Parses the arguments, then runs `body`, whose value is the exit status.
int runTool(CLI::App &app, int argc, char **argv,
            const std::function<StatusOr<int>()> &body);

/// An error of the compiler as a status, on one line.
Status toStatus(llvm::Error error);

/// The same text on one line.
std::string onOneLine(std::string text);

} // namespace tokentile

#endif // TOKENTILE_TOOLS_FRONT_TOOL_H
