//===- SpecPrompts.h - What requests start from -----------------*- C++ -*-===//

#ifndef TOKENTILE_TOOLS_NINFERSPEC_SPECPROMPTS_H
#define TOKENTILE_TOOLS_NINFERSPEC_SPECPROMPTS_H

#include "runtime/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tokentile {

using TokenRows = std::vector<std::vector<int32_t>>;

/// `count` prompts of drawn tokens; request i has the length that `lengths`
/// gives it, taken in turn.
TokenRows drawPrompts(uint64_t seed, int32_t count,
                      const std::vector<int32_t> &lengths, int32_t vocabulary);

/// `count` prompts of a file, one a line, as token ids between blanks; the
/// lines are taken in turn. DataError names the line and what is wrong.
StatusOr<TokenRows> readPrompts(const std::string &path, int32_t count,
                                int32_t vocabulary);

/// One line for each request.
std::string toLines(const TokenRows &rows);

} // namespace tokentile

#endif // TOKENTILE_TOOLS_NINFERSPEC_SPECPROMPTS_H
