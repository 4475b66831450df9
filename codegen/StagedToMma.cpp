//===- StagedToMma.cpp - attn-staged-to-mma -------------------------------===//
//
// Staged to machine, by mma.sync.
//
//===----------------------------------------------------------------------===//

#include "codegen/KernelModule.h"
#include "codegen/Passes.h"
#include "codegen/mma/MmaEmitter.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace tokentile {
#define GEN_PASS_DEF_STAGEDTOMMAPASS
#include "codegen/Passes.h.inc"
} // namespace tokentile

using namespace mlir;
using namespace tokentile;

namespace {

struct StagedToMmaPass : tokentile::impl::StagedToMmaPassBase<StagedToMmaPass> {
  using StagedToMmaPassBase::StagedToMmaPassBase;

  void runOnOperation() override {
    auto emitSweep = [](Lane &b, attn::ProgramOp program,
                        const SweepParameters &parameters) {
      return MmaEmitter(b, program, parameters.args, parameters.shared).emit();
    };
    if (failed(
            lowerPrograms(getOperation(), attn::LoweringKind::Mma, emitSweep)))
      signalPassFailure();
  }
};

} // namespace
