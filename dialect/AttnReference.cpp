//===- AttnReference.cpp - What can be evaluated, and the outer loops -----===//
//
// Where keys lie and what a row computes is in ReferenceEvaluator.cpp.
//
//===----------------------------------------------------------------------===//

#include "dialect/AttnReference.h"
#include "dialect/ReferenceElements.h"
#include "dialect/ReferenceEvaluator.h"

#include <limits>

using namespace mlir;

namespace tokentile::attn {

ReferenceEvaluator::ReferenceEvaluator(KernelOp kernel,
                                       const ReferenceInputs &in)
    : kernel(kernel), in(in), heads(kernel.getHeads()), sees(kernel.getSees()),
      paging(kernel.getPaging()), query(kernel.getQueryOrDefault()),
      resultSpec(kernel.getOutputOrDefault()), dim(heads.getDim()),
      valueDim(kernel.getValueDim()) {
  keyStorage = kernel.getKeys();
  valueStorage = kernel.getLatent() ? keyStorage : kernel.getValues();
  factor = kernel.getScaleFactor();
  dense = kernel.getBlockKind() == BlockKind::Dense;
  // Probabilities meet the values in their type; quantised values are
  // widened to the query's.
  probability = isHalfWidth(valueStorage.getElement())
                    ? valueStorage.getElement()
                    : query.getElement();
}

LogicalResult ReferenceEvaluator::checkStorage(StorageAttr storage,
                                               const ReferencePlane &plane,
                                               StringRef axis, int64_t width) {
  if (!plane.rows && paging.getOrder() != PageOrderKind::Contiguous)
    return kernel.emitOpError("reference needs the rows of '") << axis << "'";
  if (storage.getRotation() == Rotation::Hadamard && (width & (width - 1)))
    return kernel.emitOpError("reference evaluates 'rotated hadamard' of '")
           << axis << "' for powers of two, got " << width;
  if (dense && !plane.block)
    return kernel.emitOpError("reference needs the block rows of '")
           << axis << "'";
  if (isHalfWidth(storage.getElement()))
    return success();
  if (dense)
    return kernel.emitOpError(
               "reference does not evaluate 'block dense' with '")
           << axis << "' of element "
           << stringifyElementKind(storage.getElement());
  bool scaled = storage.getScale() != ScaleKind::None ||
                storage.getElement() == ElementKind::NVFP4;
  if (scaled && !plane.scales)
    return kernel.emitOpError("reference needs the scales of '") << axis << "'";
  return success();
}

LogicalResult ReferenceEvaluator::checkAxes() {
  if (!isHalfWidth(query.getElement()) || !isHalfWidth(resultSpec.getElement()))
    return kernel.emitOpError("reference evaluates 'query' and 'output' of "
                              "bf16 or fp16 only");
  if (failed(checkStorage(keyStorage, in.keys, "keys", dim)))
    return failure();
  if (!kernel.getLatent() &&
      failed(checkStorage(valueStorage, in.values, "values", valueDim)))
    return failure();
  if (kernel.getLatent() && valueDim > dim)
    return kernel.emitOpError("reference expects 'value_dim' within 'dim' of "
                              "'latent' keys, got ")
           << valueDim << " and " << dim;
  auto need = [&](bool needed, const void *tensor,
                  StringRef what) -> LogicalResult {
    if (needed && !tensor)
      return kernel.emitOpError("reference needs the tensor of ") << what;
    return success();
  };
  bool contiguous = paging.getOrder() == PageOrderKind::Contiguous;
  if (!contiguous && paging.getPage() <= 0)
    return kernel.emitOpError("reference expects a 'page' size");
  return success(succeeded(need(true, in.query, "'query'")) &&
                 succeeded(need(true, in.lengths, "'lengths'")) &&
                 succeeded(need(!contiguous, in.table, "page ids")) &&
                 succeeded(need(contiguous, in.keyOffsets, "key offsets")) &&
                 succeeded(need(query.getColumns() != ColumnsKind::Uniform,
                                in.columns, "'columns'")) &&
                 succeeded(need(query.getPositions() == PositionsKind::Given,
                                in.positions, "'positions'")) &&
                 succeeded(need(sees.getSuffix() == SuffixKind::Ancestors,
                                in.ancestors, "'suffix ancestors'")) &&
                 succeeded(need(kernel.getSink(), in.sinks, "'sink'")));
}

FailureOr<ReferenceResult> ReferenceEvaluator::run() {
  if (failed(checkAxes()))
    return failure();
  FailureOr<ScoreFunction> function = ScoreFunction::create(kernel);
  if (failed(function))
    return failure();
  score = *function;
  result.tokens = query.getColumns() == ColumnsKind::Packed
                      ? in.columns[in.batch]
                      : in.batch * int64_t(kernel.getTokens());
  result.heads = heads.getQuery();
  result.dim = valueDim;
  int64_t rows = result.tokens * result.heads;
  result.output.resize(rows * valueDim);
  result.naiveOutput.resize(rows * valueDim);
  // What masked columns keep.
  result.logSumExp.assign(rows, -std::numeric_limits<double>::infinity());
  result.naiveLogSumExp.assign(rows, -std::numeric_limits<double>::infinity());
  result.rows.resize(rows);
  for (int64_t index = 0; index < in.batch; ++index) {
    FailureOr<ReferenceRequest> request = findRequest(index);
    if (failed(request))
      return failure();
    for (int64_t kvHead = 0; kvHead < heads.getKv(); ++kvHead)
      evaluateHead(*request, kvHead);
  }
  return std::move(result);
}

FailureOr<ReferenceResult> evaluateReference(KernelOp kernel,
                                             const ReferenceInputs &inputs) {
  return ReferenceEvaluator(kernel, inputs).run();
}

} // namespace tokentile::attn
