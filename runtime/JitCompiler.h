//===- JitCompiler.h - Kernels compiled in process --------------*- C++ -*-===//
//
// The one header of the runtime behind which the compiler is linked, in a
// library of its own (`tokentile_jit`). A program that ships compiled kernels
// does without it.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_JITCOMPILER_H
#define TOKENTILE_RUNTIME_JITCOMPILER_H

#include "runtime/Kernel.h"

#include <string_view>

namespace tokentile {

/// Compiles the text of a module with one `attn.kernel` for `chip`: "host" or
/// a GPU such as "sm_90a", as DeviceFacts::chip says. The result loads on any
/// device of that chip. Thread-safe: calls share nothing. InvalidArgument
/// carries the first diagnostic: what the spec says wrongly, or what cannot be
/// generated for the chip.
StatusOr<CompiledKernel> compileKernel(std::string_view specText,
                                       std::string_view chip);

} // namespace tokentile

#endif // TOKENTILE_RUNTIME_JITCOMPILER_H
