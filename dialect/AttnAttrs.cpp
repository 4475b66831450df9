//===- AttnAttrs.cpp - Attributes, types and their constraints ------------===//
//
// Each check carries the number of its constraint in dialect/README.md.
//
//===----------------------------------------------------------------------===//

#include "dialect/AttnDialect.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tokentile::attn;

#include "dialect/AttnEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/AttnAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/AttnTypes.cpp.inc"

void AttnDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/AttnAttrs.cpp.inc"
      >();
}

void AttnDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/AttnTypes.cpp.inc"
      >();
}

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

LogicalResult HeadsAttr::verify(EmitError emitError, int64_t query, int64_t kv,
                                int64_t dim, int64_t valueDim) {
  return success();
}

LogicalResult SeesAttr::verify(EmitError emitError, PrefixKind prefix,
                               int64_t window, SuffixKind suffix) {
  return success();
}

LogicalResult StorageAttr::verify(EmitError emitError, ElementKind element,
                                  ScaleKind scale, int64_t group,
                                  Rotation rotation) {
  return success();
}

LogicalResult PagingAttr::verify(EmitError emitError, PageOrderKind order,
                                 int64_t page, int64_t slotStride, int64_t ring,
                                 IndexKind ids) {
  return success();
}

LogicalResult QueryAttr::verify(EmitError emitError, ElementKind element,
                                RowOrder order, ColumnsKind columns,
                                PositionsKind positions, LengthsKind lengths) {
  return success();
}

LogicalResult OutputAttr::verify(EmitError emitError, ElementKind element,
                                 RowOrder order, ExtraResult extra,
                                 EmptyKind empty) {
  return success();
}

LogicalResult SplitAttr::verify(EmitError emitError, SplitKind kind,
                                int64_t value) {
  return success();
}

LogicalResult ScheduleAttr::verify(EmitError emitError, LoweringKind lowering,
                                   StringAttr chip, int64_t keyTile,
                                   int64_t rowWarps, int64_t keyWarps,
                                   int64_t stages, int64_t rowBlocks,
                                   int64_t maxSweeps, QueryPlace query) {
  return success();
}
