//===- LlvmPasses.h - The few LLVM passes our kernels need ------*- C++ -*-===//

#ifndef TOKENTILE_CODEGEN_LLVMPASSES_H
#define TOKENTILE_CODEGEN_LLVMPASSES_H

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace tokentile {

/// Sets the machine's triple and data layout and optimises the module. Kernels
/// arrive unrolled and vectorised as they should be: what is left to do is to
/// hoist invariants and to simplify. That takes a fraction of the time of -O2.
void optimizeKernels(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace tokentile

#endif // TOKENTILE_CODEGEN_LLVMPASSES_H
