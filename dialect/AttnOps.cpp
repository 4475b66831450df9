//===- AttnOps.cpp - Verifier and accessors of the attention spec ---------===//
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

//===----------------------------------------------------------------------===//
// Constraints between clauses
//===----------------------------------------------------------------------===//

static int64_t getBits(ElementKind element) {
  switch (element) {
  case ElementKind::BF16:
  case ElementKind::FP16:
    return 16;
  case ElementKind::E4M3:
  case ElementKind::Int8:
    return 8;
  case ElementKind::NVFP4:
    return 4;
  }
  return 0;
}

static int64_t getRowBytes(StorageAttr storage, int64_t width) {
  return width * getBits(storage.getElement()) / 8;
}

// One plane: what its storage asks of the width of its rows.
static LogicalResult verifyStorage(KernelOp op, StringRef plane,
                                   StorageAttr storage, int64_t width) {
  if (storage.getGroup() && width % storage.getGroup() != 0) // C36
    return op.emitOpError()
           << "expected 'of' in '" << plane << "' to divide a row of " << width
           << ", got " << storage.getGroup();
  if (storage.getRotation() == Rotation::Hadamard &&
      !llvm::isPowerOf2_64(width)) // C37
    return op.emitOpError() << "expected rows of a power of two for 'rotated' "
                               "in '"
                            << plane << "', got " << width;
  return success();
}

static LogicalResult verifyPaging(KernelOp op) {
  PagingAttr paging = op.getPaging();
  HeadsAttr heads = op.getHeads();
  int64_t slot =
      heads.getKv() * std::max(getRowBytes(op.getKeys(), heads.getDim()),
                               getRowBytes(op.getValues(), op.getValueDim()));
  if (paging.getSlotStride() && paging.getSlotStride() < slot) // C38
    return op.emitOpError() << "expected 'slot_stride' of at least " << slot
                            << " bytes, got " << paging.getSlotStride();
  int64_t ring = paging.getRing();
  if (ring && op.getSees().getPrefix() == PrefixKind::All) // C39
    return op.emitOpError()
           << "expected 'prefix' left or symmetric for a 'ring', got all";
  bool dense = op.getBlockKind() == BlockKind::Dense;
  int64_t own = dense ? 0 : op.getTokens();
  if (ring && ring - own < op.getSees().getWindow()) // C40
    return op.emitOpError()
           << "expected 'ring' to hold 'within' " << op.getSees().getWindow()
           << " and " << own << " block rows, got " << ring;
  return success();
}

static LogicalResult verifyFactor(KernelOp op, StringRef name,
                                  std::optional<APFloat> value) {
  if (!value || (value->isFiniteNonZero() && !value->isNegative()))
    return success();
  SmallString<16> text;
  value->toString(text);
  return op.emitOpError() << "expected '" << name
                          << "' to be finite and positive, got " << text;
}

static LogicalResult verifyLatent(KernelOp op) {
  if (!op.getLatent())
    return success();
  if (op.getKeys() != op.getValues()) // C43
    return op.emitOpError() << "expected 'values' stored as 'keys' when "
                               "'latent', got "
                            << op.getValues() << " and " << op.getKeys();
  if (op.getValueDim() > op.getHeads().getDim()) // C44
    return op.emitOpError()
           << "expected 'value_dim' of at most 'dim' " << op.getHeads().getDim()
           << " when 'latent', got " << op.getValueDim();
  return success();
}

// What a dense block of quantised rows would be is not defined.
static LogicalResult verifyDense(KernelOp op) {
  if (op.getBlockKind() != BlockKind::Dense)
    return success();
  for (StorageAttr storage : {op.getKeys(), op.getValues()})
    if (getBits(storage.getElement()) != 16) // C46
      return op.emitOpError() << "expected 'keys' and 'values' of bf16 or fp16 "
                                 "for 'block' dense, got "
                              << stringifyElementKind(storage.getElement());
  return success();
}

// A name is a symbol of PTX and of host code, and part of a file's name.
static bool isIdentifier(StringRef name) {
  auto isLetter = [](char c) { return llvm::isAlpha(c) || c == '_'; };
  return !name.empty() && isLetter(name.front()) &&
         llvm::all_of(name,
                      [&](char c) { return isLetter(c) || llvm::isDigit(c); });
}

LogicalResult KernelOp::verify() {
  if (!isIdentifier(getSymName())) // C69
    return emitOpError() << "expected a name of letters, digits and '_', got '"
                         << getSymName() << "'";
  int64_t tokens = getTokens();
  if (tokens < 1 || tokens > 64) // C35
    return emitOpError() << "expected 'tokens' from 1 to 64, got " << tokens;
  if (failed(verifyStorage(*this, "keys", getKeys(), getHeads().getDim())) ||
      failed(verifyStorage(*this, "values", getValues(), getValueDim())) ||
      failed(verifyPaging(*this)) ||
      failed(verifyFactor(*this, "scale", getScale())) ||     // C41
      failed(verifyFactor(*this, "softcap", getSoftcap())) || // C42
      failed(verifyLatent(*this)) || failed(verifyDense(*this)))
    return failure();
  SplitAttr split = getSplitOrDefault();
  int64_t keyTile = getScheduleOrDefault().getKeyTile();
  if (split.getKind() == SplitKind::Keys && keyTile &&
      split.getValue() % keyTile != 0) // C45
    return emitOpError() << "expected 'split' keys in multiples of 'key_tile' "
                         << keyTile << ", got " << split.getValue();
  if (getScheduleOrDefault().getInvariant() &&
      split.getKind() == SplitKind::Count) // C75
    return emitOpError() << "expected 'split' auto, keys or pieces with an "
                            "invariant schedule, got count";
  return success();
}

//===----------------------------------------------------------------------===//
// The score region
//===----------------------------------------------------------------------===//

LogicalResult KernelOp::verifyRegions() {
  if (getScore().empty())
    return success();
  Builder builder(getContext());
  Type index = builder.getIndexType();
  SmallVector<Type> expected = {builder.getF32Type(), index, index, index};
  if (!getScore().hasOneBlock() ||
      getScore().getArgumentTypes() != TypeRange(expected)) // C47
    return emitOpError() << "expected 'score' of one block of (f32, index, "
                            "index, index), got "
                         << getScore().getBlocks().size() << " of ("
                         << getScore().getArgumentTypes() << ")";
  Block &block = getScore().front();
  if (!isa<YieldOp>(block.back())) // C48
    return emitOpError() << "expected 'score' to end in 'attn.yield', got '"
                         << block.back().getName() << "'";
  for (Operation &op : block)
    if (!isMemoryEffectFree(&op)) // C49
      return op.emitOpError()
             << "expected no side effects inside 'score', got some";
  return success();
}

//===----------------------------------------------------------------------===//
// Clauses and their defaults
//===----------------------------------------------------------------------===//

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
                           0, 0, MeetKind::Auto, 0, 0, 0, QueryPlace::Auto,
                           /*invariant=*/false);
}

int64_t KernelOp::getSlotStride(StorageAttr storage, int64_t dim) {
  if (int64_t stride = getPaging().getSlotStride())
    return stride;
  bool interleaved = getPaging().getOrder() == PageOrderKind::NHD ||
                     getPaging().getOrder() == PageOrderKind::Contiguous;
  return (interleaved ? getHeads().getKv() : 1) * getRowBytes(storage, dim);
}
