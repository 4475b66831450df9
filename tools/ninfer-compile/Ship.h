//===- Ship.h - Kernels for programs without the compiler -------*- C++ -*-===//

#ifndef TOKENTILE_TOOLS_NINFERCOMPILE_SHIP_H
#define TOKENTILE_TOOLS_NINFERCOMPILE_SHIP_H

#include "codegen/Compiler.h"
#include "runtime/Status.h"

#include <string>

namespace tokentile {

/// Writes `<kernel>.<chip>.ptx` into `directory`, which must exist, and enters
/// it in the manifest there, in the place of an entry of the same kernel and
/// chip. InvalidArgument for a host kernel.
Status ship(const std::string &directory, const CompileResult &result);

} // namespace tokentile

#endif // TOKENTILE_TOOLS_NINFERCOMPILE_SHIP_H
