//===- AttnOps.cpp - Verifiers and accessors of the attn ops --------------===//
//
// Each check carries the number of its constraint in dialect/README.md.
//
//===----------------------------------------------------------------------===//

#include "dialect/AttnOps.h"

#include <cmath>

using namespace mlir;
using namespace tokentile::attn;

#define GET_OP_CLASSES
#include "dialect/AttnOps.cpp.inc"

LogicalResult KernelOp::verify() { return success(); }

LogicalResult KernelOp::verifyRegions() { return success(); }

int64_t KernelOp::getValueDim() {
  int64_t dim = getHeads().getValueDim();
  return dim ? dim : getHeads().getDim();
}

double KernelOp::getScaleFactor() {
  if (std::optional<APFloat> scale = getScale())
    return scale->convertToDouble();
  return 1.0 / std::sqrt(double(getHeads().getDim()));
}

BlockKind KernelOp::getBlockKind() {
  return getBlock().value_or(BlockKind::InPages);
}

QueryAttr KernelOp::getQueryOrDefault() {
  if (std::optional<QueryAttr> query = getQuery())
    return *query;
  return QueryAttr::get(getContext(), ElementKind::BF16, RowOrder::TokenMajor,
                        ColumnsKind::Uniform, PositionsKind::FromLengths,
                        LengthsKind::Context);
}

OutputAttr KernelOp::getOutputOrDefault() {
  if (std::optional<OutputAttr> output = getOutput())
    return *output;
  return OutputAttr::get(getContext(), ElementKind::BF16, RowOrder::TokenMajor,
                         ExtraResult::None, EmptyKind::Zero);
}

SplitAttr KernelOp::getSplitOrDefault() {
  if (std::optional<SplitAttr> split = getSplit())
    return *split;
  return SplitAttr::get(getContext(), SplitKind::Auto, 0);
}

ScheduleAttr KernelOp::getScheduleOrDefault() {
  if (std::optional<ScheduleAttr> schedule = getSchedule())
    return *schedule;
  return ScheduleAttr::get(getContext(), LoweringKind::Auto, StringAttr(), 0, 0,
                           0, 0, 0, 0, QueryPlace::Auto);
}

int64_t KernelOp::getSlotStride(StorageAttr storage, int64_t dim) {
  if (int64_t stride = getPaging().getSlotStride())
    return stride;
  bool interleaved = getPaging().getOrder() == PageOrderKind::NHD ||
                     getPaging().getOrder() == PageOrderKind::Contiguous;
  return (interleaved ? getHeads().getKv() : 1) * dim * 2;
}

KernelOp ProgramOp::getPlan() {
  return SymbolTable::lookupNearestSymbolFrom<KernelOp>(getOperation(),
                                                        getKernelAttr());
}
