//===- AttnStagedOps.cpp - Verifiers of the staged operations -------------===//
//
// Each check carries the number of its constraint in dialect/README.md.
//
//===----------------------------------------------------------------------===//

#include "dialect/AttnOps.h"

using namespace mlir;
using namespace tokentile::attn;

//===----------------------------------------------------------------------===//
// Buffers and copies
//===----------------------------------------------------------------------===//

LogicalResult AllocSharedOp::verify() {
  int64_t offset = getOffset();
  if (offset < 0 || offset % 1024 != 0) // C59
    return emitOpError() << "expected 'offset' to be a multiple of 1024, got "
                         << offset;
  return success();
}

LogicalResult CopyQueryOp::verify() {
  if (getBuffer().getType().getStages() != 1) // C60
    return emitOpError() << "expected a 'buffer' of one slot, got "
                         << getBuffer().getType().getStages();
  return success();
}

LogicalResult AsyncWaitOp::verify() {
  int64_t pending = getPending();
  if (pending < 0) // C61
    return emitOpError() << "expected 'pending' of at least 0, got " << pending;
  return success();
}

LogicalResult ViewOp::verify() {
  if (getTile().getType() != getBuffer().getType().getTile()) // C62
    return emitOpError() << "expected the buffer's tile "
                         << getBuffer().getType().getTile() << ", got "
                         << getTile().getType();
  return success();
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

// The fragment that encodes a tensor, if it is of this kind, or null.
static FragmentAttr getFragment(RankedTensorType type, FragmentKind kind) {
  auto fragment = dyn_cast_or_null<FragmentAttr>(type.getEncoding());
  return fragment && fragment.getKind() == kind ? fragment : FragmentAttr();
}

LogicalResult ReadQueryOp::verify() {
  RankedTensorType source = getSource().getType();
  RankedTensorType result = getResult().getType();
  if (!isa_and_nonnull<SharedAttr>(source.getEncoding()) ||
      !getFragment(result, FragmentKind::Query)) // C63
    return emitOpError()
           << "expected #attn.shared to a query #attn.fragment, got " << source
           << " to " << result;
  if (source.getShape() != result.getShape() ||
      source.getElementType() != result.getElementType()) // C64
    return emitOpError() << "expected one shape and element type, got "
                         << source << " to " << result;
  return success();
}

LogicalResult ReduceWarpsOp::verify() {
  RankedTensorType max = getMax().getType();
  RankedTensorType output = getOutput().getType();
  FragmentAttr statistics = getFragment(max, FragmentKind::Statistics);
  FragmentAttr partial = getFragment(output, FragmentKind::Output);
  if (!statistics || !partial ||
      statistics.getRowWarps() != partial.getRowWarps() ||
      statistics.getKeyWarps() != partial.getKeyWarps()) // C65
    return emitOpError() << "expected statistics and output fragments of the "
                            "same warps, got "
                         << max << " and " << output;
  int64_t offset = getOffset();
  if (offset < 0 || offset % 16 != 0) // C66
    return emitOpError() << "expected 'offset' to be a multiple of 16, got "
                         << offset;
  return verifyPartial(getOperation(), getMax(), getSum(), getOutput());
}

// The scratch through which key warps agree on one number of each row.
static LogicalResult verifyScratch(Operation *op, BufferType scratch,
                                   int64_t rows) {
  RankedTensorType tile = scratch.getTile();
  if (!tile.getElementType().isF32() || tile.getShape()[0] != rows ||
      tile.getShape()[1] != 4) // C67
    return op->emitOpError()
           << "expected a scratch of " << rows << "x4xf32, got " << tile;
  return success();
}

LogicalResult AgreeMaxOp::verify() {
  return verifyScratch(getOperation(), getScratch().getType(),
                       getScores().getType().getShape()[0]);
}

LogicalResult AgreeSumOp::verify() {
  return verifyScratch(getOperation(), getScratch().getType(),
                       getSum().getType().getShape()[0]);
}

LogicalResult ShareOp::verify() {
  RankedTensorType source = getProbabilities().getType();
  RankedTensorType tile = getBuffer().getType().getTile();
  if (!getFragment(source, FragmentKind::Probabilities) ||
      source.getShape() != tile.getShape() ||
      source.getElementType() != tile.getElementType()) // C68
    return emitOpError() << "expected a probabilities fragment of the buffer's "
                            "shape and element type, got "
                         << source << " and " << tile;
  return success();
}
