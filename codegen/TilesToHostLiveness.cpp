//===- TilesToHostLiveness.cpp - May a tile be overwritten? ---------------===//

#include "codegen/TilesToHostLiveness.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

/// May `user` run after `op`, both below the block that defines a tile? Walks
/// out from `op` until a block holds both.
static bool mayRunAfter(Operation *user, Operation *op) {
  for (Operation *outer = op; outer; outer = outer->getParentOp()) {
    Operation *inside = outer->getBlock()->findAncestorOpInBlock(*user);
    if (!inside)
      continue;
    if (inside != outer)
      return outer->isBeforeInBlock(inside);
    // Two branches of one scf.if exclude each other, and a branch runs at
    // most once; any other operation may run its region again.
    return !isa<scf::IfOp>(outer);
  }
  return true;
}

bool tokentile::host::diesAt(Value tile, Operation *op) {
  for (Operation *outer = op; outer->getBlock() != tile.getParentBlock();
       outer = outer->getParentOp())
    if (!isa<scf::IfOp>(outer->getParentOp()))
      return false;
  int own = 0;
  for (Operation *user : tile.getUsers()) {
    if (user == op)
      ++own;
    else if (mayRunAfter(user, op))
      return false;
  }
  return own <= 1;
}
