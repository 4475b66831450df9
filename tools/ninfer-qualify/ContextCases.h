//===- ContextCases.h - Cases of one spec at given contexts -----*- C++ -*-===//

#ifndef TOKENTILE_TOOLS_NINFERQUALIFY_CONTEXTCASES_H
#define TOKENTILE_TOOLS_NINFERQUALIFY_CONTEXTCASES_H

#include "dialect/AttnOps.h"
#include "test/numerics/Cases.h"

namespace tokentile {

/// A batch whose first request has `context` keys before its block. Others are
/// shorter, at random; in a larger batch the last one is padding where the
/// spec allows that. Counted and packed columns are drawn as well.
Case makeContextCase(attn::KernelOp kernel, const std::string &specText,
                     int32_t context, int32_t batch, Numbers numbers,
                     uint64_t seed);

/// The name of a distribution, and back; null for another name.
const char *numbersName(Numbers numbers);
const Numbers *findNumbers(const std::string &name);

} // namespace tokentile

#endif // TOKENTILE_TOOLS_NINFERQUALIFY_CONTEXTCASES_H
