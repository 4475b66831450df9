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

static ParseResult parseInvariant(AsmParser &parser, bool &invariant) {
  invariant = succeeded(parser.parseOptionalKeyword("invariant"));
  return success();
}

static void printInvariant(AsmPrinter &printer, bool invariant) {
  if (invariant)
    printer << " invariant";
}

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

// Parameters are zero when they are left out; see Attn_Open in AttnAttrs.td.

//===----------------------------------------------------------------------===//
// Problem
//===----------------------------------------------------------------------===//

static bool isWidth(int64_t dim) {
  return dim >= 16 && dim <= 576 && dim % 16 == 0;
}

LogicalResult HeadsAttr::verify(EmitError emitError, int64_t query, int64_t kv,
                                int64_t dim, int64_t valueDim) {
  if (query < 1 || query > 65535 || kv < 1 || kv > 65535) // C1
    return emitError() << "expected 'query' and 'kv' from 1 to 65535, got "
                       << query << " over " << kv;
  if (query % kv != 0) // C2
    return emitError() << "expected 'query' divisible by 'kv', got " << query
                       << " over " << kv;
  if (!isWidth(dim)) // C3
    return emitError()
           << "expected 'dim' to be a multiple of 16 from 16 to 576, got "
           << dim;
  if (valueDim != 0 && !isWidth(valueDim)) // C4
    return emitError()
           << "expected 'value_dim' to be a multiple of 16 from 16 to 576, got "
           << valueDim;
  return success();
}

LogicalResult SeesAttr::verify(EmitError emitError, PrefixKind prefix,
                               int64_t window, SuffixKind suffix) {
  if (prefix == PrefixKind::All && window != 0) // C5
    return emitError() << "expected no 'within' after 'prefix all', got "
                       << window;
  if (prefix != PrefixKind::All && window < 1) // C6
    return emitError() << "expected a positive 'within' after 'prefix "
                       << stringifyPrefixKind(prefix) << "', got " << window;
  return success();
}

static bool isQuantised(ElementKind element) {
  return element != ElementKind::BF16 && element != ElementKind::FP16;
}

// Whether elements of this kind can share a scale in that way.
static LogicalResult verifyScale(EmitError emitError, ElementKind element,
                                 ScaleKind scale, int64_t group) {
  StringRef got = stringifyScaleKind(scale);
  if (isQuantised(element) == (scale == ScaleKind::None)) // C7
    return emitError() << "expected "
                       << (isQuantised(element) ? "a 'scale'" : "no 'scale'")
                       << " for " << stringifyElementKind(element) << ", got "
                       << got;
  if (element == ElementKind::E4M3 && scale == ScaleKind::Group) // C8
    return emitError() << "expected 'scale' row, head or tensor for e4m3, got "
                       << got;
  if (element == ElementKind::Int8 && scale != ScaleKind::Group) // C9
    return emitError() << "expected 'scale' group for int8, got " << got;
  if (element == ElementKind::NVFP4 &&
      (scale != ScaleKind::Group || group != 16)) // C10
    return emitError() << "expected 'scale' group of 16 for nvfp4, got " << got
                       << " of " << group;
  return success();
}

LogicalResult StorageAttr::verify(EmitError emitError, ElementKind element,
                                  ScaleKind scale, int64_t group,
                                  Rotation rotation) {
  if (failed(verifyScale(emitError, element, scale, group)))
    return failure();
  bool grouped = scale == ScaleKind::Group;
  if (grouped ? group < 1 : group != 0) // C11
    return emitError() << "expected " << (grouped ? "a positive" : "no")
                       << " 'of' for 'scale' " << stringifyScaleKind(scale)
                       << ", got " << group;
  if (!isQuantised(element) && rotation != Rotation::None) // C12
    return emitError() << "expected no 'rotated' for "
                       << stringifyElementKind(element) << ", got "
                       << stringifyRotation(rotation);
  return success();
}

static bool isPowerOfTwo(int64_t value) {
  return value > 0 && llvm::isPowerOf2_64(value);
}

LogicalResult PagingAttr::verify(EmitError emitError, PageOrderKind order,
                                 int64_t page, int64_t slotStride, int64_t ring,
                                 IndexKind ids) {
  if (order == PageOrderKind::Contiguous) {
    if (page || slotStride || ring || ids != IndexKind::I32) // C13
      return emitError() << "expected no 'page', 'slot_stride', 'ring' or "
                            "'ids' for contiguous keys, got page "
                         << page << ", slot_stride " << slotStride << ", ring "
                         << ring << ", ids " << stringifyIndexKind(ids);
    return success();
  }
  if (!isPowerOfTwo(page)) // C14
    return emitError() << "expected 'page' to be a power of two, got " << page;
  if (order != PageOrderKind::NHD && slotStride != 0) // C15
    return emitError() << "expected no 'slot_stride' for "
                       << stringifyPageOrderKind(order) << ", got "
                       << slotStride;
  constexpr int64_t mostStride = int64_t(1) << 30;
  if (slotStride < 0 || slotStride > mostStride || slotStride % 16 != 0) // C16
    return emitError() << "expected 'slot_stride' to be a positive multiple of "
                          "16 up to "
                       << mostStride << ", got " << slotStride;
  if (ring < 0 || ring % page != 0) // C17
    return emitError() << "expected 'ring' to be a positive multiple of 'page' "
                       << page << ", got " << ring;
  return success();
}

LogicalResult QueryAttr::verify(EmitError emitError, ElementKind element,
                                RowOrder order, ColumnsKind columns,
                                PositionsKind positions, LengthsKind lengths) {
  if (isQuantised(element)) // C18
    return emitError() << "expected 'query' of bf16 or fp16, got "
                       << stringifyElementKind(element);
  return success();
}

LogicalResult OutputAttr::verify(EmitError emitError, ElementKind element,
                                 RowOrder order, ExtraResult extra,
                                 EmptyKind empty) {
  if (isQuantised(element)) // C19
    return emitError() << "expected 'output' of bf16 or fp16, got "
                       << stringifyElementKind(element);
  return success();
}

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

LogicalResult SplitAttr::verify(EmitError emitError, SplitKind kind,
                                int64_t value) {
  if (kind != SplitKind::Auto && value < 1) // C20
    return emitError() << "expected a positive 'of' for 'split' "
                       << stringifySplitKind(kind) << ", got " << value;
  if (kind == SplitKind::Auto && value != 0) // C21
    return emitError() << "expected no 'of' for 'split' auto, got " << value;
  return success();
}

// "host", or "sm_" with a number and perhaps the suffix of a feature set.
static bool isChip(StringRef chip) {
  if (chip == "host")
    return true;
  if (!chip.consume_front("sm_"))
    return false;
  if (chip.ends_with("a") || chip.ends_with("f"))
    chip = chip.drop_back();
  return !chip.empty() && llvm::all_of(chip, llvm::isDigit);
}

static LogicalResult verifyChip(EmitError emitError, LoweringKind lowering,
                                StringAttr chip) {
  if (!chip)
    return success();
  if (!isChip(chip.getValue())) // C22
    return emitError() << "expected 'chip' to be \"host\" or such as "
                          "\"sm_90a\", got "
                       << chip;
  bool host = chip.getValue() == "host";
  if (lowering != LoweringKind::Auto &&
      host != (lowering == LoweringKind::Host)) // C23
    return emitError() << "expected 'chip' to be "
                       << (host ? "a GPU" : "\"host\"") << " for lowering "
                       << stringifyLoweringKind(lowering) << ", got " << chip;
  return success();
}

LogicalResult ScheduleAttr::verify(EmitError emitError, LoweringKind lowering,
                                   StringAttr chip, int64_t keyTile,
                                   int64_t rowWarps, int64_t rowTiles,
                                   int64_t keyWarps, MeetKind meet,
                                   int64_t stages, int64_t rowBlocks,
                                   int64_t maxSweeps, QueryPlace query,
                                   bool invariant) {
  if (failed(verifyChip(emitError, lowering, chip)))
    return failure();
  std::pair<StringRef, int64_t> counts[] = {
      {"key_tile", keyTile},    {"row_warps", rowWarps},
      {"row_tiles", rowTiles},  {"key_warps", keyWarps},
      {"stages", stages},       {"row_blocks", rowBlocks},
      {"max_sweeps", maxSweeps}};
  for (auto [name, value] : counts)
    if (value < 0 || value > 1024) // C24
      return emitError() << "expected '" << name << "' from 1 to 1024, got "
                         << value;
  if (keyTile != 0 && (keyTile < 16 || !isPowerOfTwo(keyTile))) // C25
    return emitError()
           << "expected 'key_tile' to be a power of two of at least 16, got "
           << keyTile;
  if (rowWarps > 32 || keyWarps > 32 || rowWarps * keyWarps > 32) // C26
    return emitError() << "expected 'row_warps' x 'key_warps' of at most 32, "
                          "got "
                       << rowWarps << " x " << keyWarps;
  if (rowBlocks > 1 && maxSweeps < rowBlocks) // C27
    return emitError() << "expected 'max_sweeps' of at least 'row_blocks' "
                       << rowBlocks << ", got " << maxSweeps;
  return success();
}

//===----------------------------------------------------------------------===//
// Encodings and types of the staged level
//===----------------------------------------------------------------------===//

LogicalResult FragmentAttr::verify(EmitError emitError, FragmentKind kind,
                                   int64_t rowWarps, int64_t keyWarps) {
  if (rowWarps < 1 || rowWarps > 32 || keyWarps < 1 || keyWarps > 32 ||
      rowWarps * keyWarps > 32) // C28
    return emitError() << "expected 'warps' with a product from 1 to 32, got "
                       << rowWarps << " by " << keyWarps;
  return success();
}

LogicalResult FragmentAttr::verifyEncoding(ArrayRef<int64_t> shape,
                                           Type elementType,
                                           EmitError emitError) const {
  size_t rank = getKind() == FragmentKind::Statistics ? 1 : 2;
  StringRef kind = stringifyFragmentKind(getKind());
  if (shape.size() != rank) // C29
    return emitError() << "expected rank " << rank << " in fragments of "
                       << kind << ", got " << shape.size();
  bool operand = getKind() == FragmentKind::Query ||
                 getKind() == FragmentKind::Probabilities;
  if (!operand && !elementType.isF32()) // C30
    return emitError() << "expected f32 in fragments of " << kind << ", got "
                       << elementType;
  return success();
}

LogicalResult SharedAttr::verify(EmitError emitError, int64_t swizzle,
                                 int64_t panel) {
  if (!isPowerOfTwo(swizzle) || swizzle > 8) // C31
    return emitError() << "expected 'swizzle' to be 1, 2, 4 or 8, got "
                       << swizzle;
  if (panel != 0 && (panel != 64 || swizzle != 8)) // C80
    return emitError() << "expected 'panel' to be 64 with 'swizzle' 8, got "
                       << panel << " with " << swizzle;
  return success();
}

LogicalResult SharedAttr::verifyEncoding(ArrayRef<int64_t> shape,
                                         Type elementType,
                                         EmitError emitError) const {
  // The exclusive or stays inside a row only if the row is whole groups of
  // `swizzle` chunks of 16 bytes.
  int64_t bits = 128 * getSwizzle();
  if (shape.size() != 2 || ShapedType::isDynamicShape(shape) ||
      !elementType.isIntOrFloat() ||
      shape[1] % bits * elementType.getIntOrFloatBitWidth() % bits != 0) // C32
    return emitError() << "expected a static 2-D shared tensor whose rows are "
                          "multiples of "
                       << bits / 8 << " bytes, got "
                       << RankedTensorType::get(shape, elementType);
  return success();
}

LogicalResult RingType::verify(EmitError emitError, int64_t stages) {
  if (stages < 2 || stages > 8) // C81
    return emitError() << "expected a ring of 2 to 8 slots, got " << stages;
  return success();
}

LogicalResult BufferType::verify(EmitError emitError, int64_t stages,
                                 RankedTensorType tile) {
  if (stages < 1) // C33
    return emitError() << "expected a positive number of slots, got " << stages;
  if (!isa_and_nonnull<SharedAttr>(tile.getEncoding())) // C34
    return emitError() << "expected a tile encoded as #attn.shared, got "
                       << tile;
  return success();
}
