//===- Explain.h - What a compiled kernel will do ---------------*- C++ -*-===//

#ifndef TOKENTILE_TOOLS_NINFERCOMPILE_EXPLAIN_H
#define TOKENTILE_TOOLS_NINFERCOMPILE_EXPLAIN_H

#include "codegen/ChipFacts.h"
#include "codegen/Compiler.h"

#include <string>

namespace tokentile {

/// The launch that is explained.
struct ExplainedLaunch {
  int32_t batch = 1;
  /// Keys before the block.
  int32_t context = 0;
};

/// Lines `key: value` about a compiled kernel, one launch of it on `chip`, and
/// the phases of its compile.
std::string explain(const CompileResult &result, const ChipFacts &chip,
                    const ExplainedLaunch &launch);

} // namespace tokentile

#endif // TOKENTILE_TOOLS_NINFERCOMPILE_EXPLAIN_H
