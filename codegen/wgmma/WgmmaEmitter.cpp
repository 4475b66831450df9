//===- WgmmaEmitter.cpp - Roles and their barriers ------------------------===//

#include "codegen/wgmma/WgmmaEmitter.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;

/// Named barriers; 0 is the block's.
static constexpr int64_t kConsumersMeet = 1;

WgmmaEmitter::WgmmaEmitter(Lane &b, ProgramOp program,
                           const SweepParameters &parameters)
    : MmaEmitter(b, program, parameters.args, parameters.shared),
      maps{parameters.maps[0], parameters.maps[1]}, ranges(parameters.ranges) {}

void WgmmaEmitter::emitPrefetch() {
  MmaEmitter::emitPrefetch();
  b.when(b.is(Lane::Predicate::eq, helper(), b.i32(0)), [&] {
    for (Value map : maps)
      ptx("prefetch.tensormap [$0];", "l", {map});
  });
  // The last consumer warp has nothing else to do yet.
  Value first = b.i32(mma.threads() - layout::kWarp);
  b.when(b.is(Lane::Predicate::eq, thread, first),
         [&] { program.walk([&](AllocRingOp ring) { beginRing(ring); }); });
}

LogicalResult WgmmaEmitter::emitItem() {
  beginThread();
  // Instructions of a warpgroup want operands that are plainly uniform.
  Value first =
      NVVM::ShflOp::create(b, b.getI32Type(), b.i32(-1), warp, b.i32(0),
                           b.i32(31), NVVM::ShflKind::idx, UnitAttr());
  warpgroup = b.div(first, 4);
  Operation &last = program.getBody().front().back();
  if (!isa<RolesOp>(last))
    return last.emitOpError("stands behind 'attn.roles'");
  for (Operation &op : program.getBody().front())
    if (isa<AllocSharedOp, AllocRingOp, RolesOp>(op) && failed(emitOp(op)))
      return failure();
  return success();
}

/// What a role does for one item; first what stands before the roles, for the
/// facts of an item are its own.
LogicalResult WgmmaEmitter::emitRole(RolesOp roles, Block &role) {
  for (Operation &op : program.getBody().front())
    if (!isa<AllocSharedOp, AllocRingOp, RolesOp>(op) && failed(emitOp(op)))
      return failure();
  bool consumes = &role == &roles.getConsumers().front();
  if (consumes)
    beginRows();
  return emitBlock(role);
}

/// All items of a role, one after another. Producers go on to the next while
/// consumers still have tiles of the one before.
LogicalResult WgmmaEmitter::emitItems(RolesOp roles, Block &role) {
  turnsTaken = b.i32(0);
  if (!ranges)
    return emitRole(roles, role);
  bool consumes = &role == &roles.getConsumers().front();
  LogicalResult result = success();
  b.loop(b.i32(0), items, b.i32(1), {block->rangeStart(), turnsTaken},
         [&](Value index, ValueRange carried) -> Registers {
           Value next = block->beginInRange(b, index, carried[0], consumes);
           turnsTaken = carried[1];
           // The query of the item before has been read.
           if (consumes)
             meet();
           result = emitRole(roles, role);
           Value tiles =
               arith::SubIOp::create(b, block->endTile, block->firstTile);
           return {next, b.add(carried[1], b.larger(tiles, b.i32(0)))};
         });
  return result;
}

Value WgmmaEmitter::findWork(Value x) {
  if (!ranges)
    return MmaEmitter::findWork(x);
  items = block->findRange(b, x);
  return b.is(Lane::Predicate::sgt, items, b.i32(0));
}

LogicalResult WgmmaEmitter::emitOp(Operation &op) {
  b.setLoc(op.getLoc());
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case([&](RolesOp roles) { return emitRoles(roles); })
      .Case([&](TurnsTakenOp taken) {
        map[taken.getTurns()] = {turnsTaken};
        return success();
      })
      .Case([&](AllocRingOp ring) { return emitRing(ring), success(); })
      .Case([&](AcquireOp acquire) { return emitAcquire(acquire), success(); })
      .Case([&](FillOp fill) { return emitFill(fill), success(); })
      .Case([&](AwaitOp await) { return emitAwait(await), success(); })
      .Case([&](ReleaseOp release) { return emitRelease(release), success(); })
      .Default([&](Operation *other) { return MmaEmitter::emitOp(*other); });
}

void WgmmaEmitter::ptx(StringRef text, StringRef constraints,
                       ArrayRef<Value> operands) {
  LLVM::InlineAsmOp::create(b, TypeRange(), operands, text, constraints,
                            /*has_side_effects=*/true,
                            /*is_align_stack=*/false,
                            LLVM::tailcallkind::TailCallKind::None,
                            LLVM::AsmDialectAttr(), ArrayAttr());
}

void WgmmaEmitter::meetAt(int64_t barrier, int64_t threads) {
  ptx("bar.sync $0, $1;", "n,n,~{memory}", {b.i32(barrier), b.i32(threads)});
}

void WgmmaEmitter::meet() { meetAt(kConsumersMeet, mma.threads()); }

LogicalResult WgmmaEmitter::emitRoles(RolesOp op) {
  // The barriers of the rings are ready for copies and for all threads.
  ptx("fence.mbarrier_init.release.cluster;", "~{memory}", {});
  b.barrier();
  RoleRegisters registers = roleRegisters(plan, mma, chipOf(plan));
  bool moves = registers.producers != registers.consumers;
  using Action = NVVM::SetMaxRegisterAction;
  LogicalResult result = success();
  b.choose(
      b.is(Lane::Predicate::sge, warpgroup,
           b.i32(mma.threads() / layout::kWarpgroup)),
      [&] {
        if (moves)
          NVVM::SetMaxRegisterOp::create(b, registers.producers,
                                         Action::decrease);
        result = emitItems(op, op.getProducers().front());
        return Registers();
      },
      [&] {
        if (moves)
          NVVM::SetMaxRegisterOp::create(b, registers.consumers,
                                         Action::increase);
        if (succeeded(result))
          result = emitItems(op, op.getConsumers().front());
        return Registers();
      });
  return result;
}

/// A meeting of consumers; what they wrote is then visible to products too.
void WgmmaEmitter::emit(BarrierOp) {
  ptx("fence.proxy.async.shared::cta;", "~{memory}", {});
  meet();
}
