//===- AttnRoleOps.cpp - Verifiers of roles and rings ---------------------===//
//
// Each check carries the number of its constraint in dialect/README.md.
//
//===----------------------------------------------------------------------===//

#include "dialect/AttnOps.h"

using namespace mlir;
using namespace tokentile::attn;

bool tokentile::attn::standsAmong(Operation *op, StringRef role) {
  for (Region *region = op->getParentRegion(); region;
       region = region->getParentRegion())
    if (auto roles = dyn_cast<RolesOp>(region->getParentOp()))
      return region == (role == "producers" ? &roles.getProducers()
                                            : &roles.getConsumers());
  return false;
}

LogicalResult AllocRingOp::verify() {
  int64_t offset = getOffset(), readers = getReaders();
  if (offset < 0 || offset % 8 != 0) // C76
    return emitOpError() << "expected 'offset' to be a multiple of 8, got "
                         << offset;
  if (readers < 1 || readers > 32) // C77
    return emitOpError() << "expected 'readers' from 1 to 32, got " << readers;
  return success();
}

LogicalResult FillOp::verify() {
  int64_t slots = getBuffer().getType().getStages();
  int64_t stages = getRing().getType().getStages();
  if (slots != stages) // C79
    return emitOpError() << "expected a 'buffer' of as many slots as the ring "
                            "has, got "
                         << slots << " and " << stages;
  return success();
}
