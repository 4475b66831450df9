//===- AttnTileOps.cpp - Verifiers of programs and tile operations --------===//
//
// ODS checks ranks and fp32 elements; here tiles are checked to fit together.
// Each check carries the number of its constraint in dialect/README.md.
//
//===----------------------------------------------------------------------===//

#include "dialect/AttnOps.h"

using namespace mlir;
using namespace tokentile::attn;

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

KernelOp ProgramOp::getPlan() {
  return SymbolTable::lookupNearestSymbolFrom<KernelOp>(getOperation(),
                                                        getKernelAttr());
}

LogicalResult ProgramOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!symbols.lookupNearestSymbolFrom<KernelOp>(getOperation(),
                                                 getKernelAttr())) // C50
    return emitOpError() << "expected 'of' to name an 'attn.kernel', got "
                         << getKernelAttr();
  return success();
}

LogicalResult ProgramOp::verifyRegions() {
  if (unsigned count = getBody().getNumArguments()) // C51
    return emitOpError() << "expected a body without arguments, got " << count;
  return success();
}

LogicalResult MergePartialsOp::verify() {
  if (getOperation()->getParentOfType<ProgramOp>().getRole() !=
      ProgramRole::Merge) // C53
    return emitOpError() << "expected a program of role merge, got sweep";
  return verifyPartial(getOperation(), getMax(), getSum(), getOutput());
}

LogicalResult ItemOp::verifyRegions() {
  Type i32 = IntegerType::get(getContext(), 32);
  SmallVector<Type> facts(5, i32);
  Block &block = getTiles().front();
  if (block.getArgumentTypes() != TypeRange(facts)) // C71
    return emitOpError() << "expected a region of five i32, got ("
                         << block.getArgumentTypes() << ")";
  if (block.empty() || !isa<YieldTilesOp>(block.back())) // C72
    return emitOpError() << "expected a region that ends in "
                            "'attn.yield_tiles'";
  for (Operation &op : block)
    if (op.getNumRegions() || !isMemoryEffectFree(&op) ||
        isa<RequestOp>(op)) // C73
      return op.emitOpError() << "expected only scalars of a request inside "
                                 "'attn.item'";
  auto program = getOperation()->getParentOfType<ProgramOp>();
  auto items = program.getBody().getOps<ItemOp>();
  if ((*this)->getParentOp() != program || *items.begin() != *this) // C74
    return emitOpError() << "expected once, and not nested in a program";
  KernelOp plan = program.getPlan();
  if (!plan)
    return success();
  SplitAttr split = plan.getSplitOrDefault();
  bool hasParts = split.getKind() == SplitKind::Count;
  bool hasSize = split.isSized();
  auto yield = cast<YieldTilesOp>(block.back());
  if (bool(yield.getParts()) != hasParts || bool(yield.getSize()) != hasSize)
    return yield.emitOpError() // C82
           << "expected "
           << (hasParts  ? "'in' parts"
               : hasSize ? "'by' a size"
                         : "tiles only")
           << " of a kernel with 'split' "
           << stringifySplitKind(split.getKind());
  return success();
}

//===----------------------------------------------------------------------===//
// Tiles that meet
//===----------------------------------------------------------------------===//

LogicalResult tokentile::attn::verifyPartial(Operation *op, Value max,
                                             Value sum, Value output) {
  auto rows = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getDimSize(0);
  };
  if (rows(max) != rows(output) || rows(sum) != rows(output)) // C58
    return op->emitOpError()
           << "expected 'max' and 'sum' of " << rows(output)
           << " rows as 'output', got " << rows(max) << " and " << rows(sum);
  return success();
}

LogicalResult StoreResultOp::verify() {
  return verifyPartial(getOperation(), getMax(), getSum(), getOutput());
}

LogicalResult AddSinkOp::verify() {
  KernelOp plan = getOperation()->getParentOfType<ProgramOp>().getPlan();
  if (plan && !plan.getSink()) // C70
    return emitOpError() << "expected a kernel with 'sink', got @"
                         << plan.getSymName();
  return verifyPartial(getOperation(), getMax(), getSum(), getOutput());
}

// Two factors of one product of the tensor cores.
static LogicalResult verifyFactors(Operation *op, RankedTensorType left,
                                   RankedTensorType right) {
  if (left.getElementType() != right.getElementType()) // C55
    return op->emitOpError()
           << "expected factors of one element type, got "
           << left.getElementType() << " and " << right.getElementType();
  return success();
}

LogicalResult ScoresOp::verify() {
  ArrayRef<int64_t> query = getQuery().getType().getShape();
  ArrayRef<int64_t> keys = getKeys().getType().getShape();
  ArrayRef<int64_t> scores = getScores().getType().getShape();
  if (query[1] != keys[1] || scores[0] != query[0] ||
      scores[1] != keys[0]) // C54
    return emitOpError() << "expected [R, D] x [K, D] -> [R, K], got [" << query
                         << "] x [" << keys << "] -> [" << scores << "]";
  return verifyFactors(getOperation(), getQuery().getType(),
                       getKeys().getType());
}

LogicalResult SoftmaxOp::verify() {
  ArrayRef<int64_t> scores = getScores().getType().getShape();
  ArrayRef<int64_t> max = getMax().getType().getShape();
  ArrayRef<int64_t> probabilities = getProbabilities().getType().getShape();
  if (max[0] != scores[0] || probabilities != scores) // C56
    return emitOpError() << "expected [R, K], [R] -> [R, K], got [" << scores
                         << "], [" << max << "] -> [" << probabilities << "]";
  return success();
}

LogicalResult AccumulateOp::verify() {
  ArrayRef<int64_t> output = getOutput().getType().getShape();
  ArrayRef<int64_t> alpha = getAlpha().getType().getShape();
  ArrayRef<int64_t> probabilities = getProbabilities().getType().getShape();
  ArrayRef<int64_t> values = getValues().getType().getShape();
  if (alpha[0] != output[0] || probabilities[0] != output[0] ||
      values[0] != probabilities[1] || values[1] != output[1]) // C57
    return emitOpError() << "expected [R, D], [R], [R, K], [K, D], got ["
                         << output << "], [" << alpha << "], [" << probabilities
                         << "], [" << values << "]";
  return verifyFactors(getOperation(), getProbabilities().getType(),
                       getValues().getType());
}
