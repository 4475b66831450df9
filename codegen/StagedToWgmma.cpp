//===- StagedToWgmma.cpp - attn-staged-to-wgmma ---------------------------===//
//
// Staged to machine, by wgmma and tensor maps.
//
//===----------------------------------------------------------------------===//

#include "codegen/KernelModule.h"
#include "codegen/Passes.h"
#include "codegen/wgmma/WgmmaEmitter.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace tokentile {
#define GEN_PASS_DEF_STAGEDTOWGMMAPASS
#include "codegen/Passes.h.inc"
} // namespace tokentile

using namespace mlir;
using namespace tokentile;

namespace {

struct StagedToWgmmaPass
    : tokentile::impl::StagedToWgmmaPassBase<StagedToWgmmaPass> {
  using StagedToWgmmaPassBase::StagedToWgmmaPassBase;

  void runOnOperation() override {
    auto emitSweep = [](Lane &b, attn::ProgramOp program,
                        const SweepParameters &parameters) {
      return WgmmaEmitter(b, program, parameters).emit();
    };
    if (failed(lowerPrograms(getOperation(), attn::LoweringKind::Wgmma,
                             emitSweep)))
      signalPassFailure();
  }
};

} // namespace
