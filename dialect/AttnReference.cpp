//===- AttnReference.cpp - What a spec means, in fp64 ---------------------===//

#include "dialect/AttnReference.h"
#include "dialect/ReferenceElements.h"
#include "dialect/ReferenceScore.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

using namespace mlir;

namespace tokentile::attn {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// One request: where its rows and keys are.
struct Request {
  int64_t index;
  int64_t firstToken;
  int64_t columns;
  int64_t context;
  int64_t length;
};

/// Key or value rows of one request and kv head, decoded when first needed.
struct DecodedPlane {
  std::vector<double> rows;
  std::vector<bool> present;
};

class Evaluator {
public:
  Evaluator(KernelOp kernel, const ReferenceInputs &in)
      : kernel(kernel), in(in), heads(kernel.getHeads()),
        sees(kernel.getSees()), paging(kernel.getPaging()),
        query(kernel.getQueryOrDefault()),
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

  FailureOr<ReferenceResult> run();

private:
  LogicalResult checkAxes();
  LogicalResult checkStorage(StorageAttr storage, const ReferencePlane &plane,
                             StringRef axis, int64_t width);
  FailureOr<Request> findRequest(int64_t index);
  const double *getRow(DecodedPlane &decoded, const ReferencePlane &plane,
                       StorageAttr storage, int64_t width,
                       const Request &request, int64_t head, int64_t key);
  bool isSeen(const Request &request, int64_t token, int64_t position,
              int64_t key);
  void evaluateHead(const Request &request, int64_t kvHead);
  void evaluateRow(const Request &request, int64_t column, int64_t head,
                   DecodedPlane &keys, DecodedPlane &values);
  template <typename T>
  T scoreOf(T product, int64_t head, int64_t position, int64_t key);
  template <typename T>
  void finishRow(const std::vector<T> &scores,
                 const std::vector<const double *> &values, int64_t token,
                 int64_t head);
  void setEmpty(int64_t token, int64_t head, double value);

  KernelOp kernel;
  const ReferenceInputs &in;
  HeadsAttr heads;
  SeesAttr sees;
  PagingAttr paging;
  QueryAttr query;
  OutputAttr resultSpec;
  StorageAttr keyStorage, valueStorage;
  ElementKind probability;
  double factor;
  int64_t dim, valueDim;
  bool dense;
  ScoreFunction score;
  ReferenceResult result;
};

//===----------------------------------------------------------------------===//
// What can be evaluated
//===----------------------------------------------------------------------===//

LogicalResult Evaluator::checkStorage(StorageAttr storage,
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

LogicalResult Evaluator::checkAxes() {
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

//===----------------------------------------------------------------------===//
// Where things are
//===----------------------------------------------------------------------===//

FailureOr<Request> Evaluator::findRequest(int64_t index) {
  Request request = {index, index * int64_t(kernel.getTokens()),
                     int64_t(kernel.getTokens()), 0, 0};
  if (query.getColumns() == ColumnsKind::Counted)
    request.columns = in.columns[index];
  if (query.getColumns() == ColumnsKind::Packed) {
    request.firstToken = in.columns[index];
    request.columns = in.columns[index + 1] - in.columns[index];
  }
  if (request.columns < 0 || request.columns > int64_t(kernel.getTokens())) {
    kernel.emitOpError("request ") << index << " has " << request.columns
                                   << " columns of " << kernel.getTokens();
    return failure();
  }
  int64_t given = in.lengths[index];
  bool total = query.getLengths() == LengthsKind::Total;
  request.length =
      std::max<int64_t>(0, total ? given : given + request.columns);
  if (in.maxKeys)
    request.length = std::min<int64_t>(request.length, in.maxKeys);
  request.context = std::max<int64_t>(0, request.length - request.columns);
  return request;
}

const double *Evaluator::getRow(DecodedPlane &decoded,
                                const ReferencePlane &plane,
                                StorageAttr storage, int64_t width,
                                const Request &request, int64_t head,
                                int64_t key) {
  double *out = decoded.rows.data() + key * width;
  if (decoded.present[key])
    return out;
  decoded.present[key] = true;
  auto *rows = static_cast<const char *>(plane.rows);
  auto *scales = static_cast<const char *>(plane.scales);
  if (dense && key >= request.context) {
    int64_t token = request.firstToken + key - request.context;
    rows = static_cast<const char *>(plane.block) +
           (token * heads.getKv() + head) * width * 2;
    decodeRow(storage, rows, nullptr, 1.0, width, out);
    return out;
  }
  int64_t page = 0;
  int64_t slot = in.keyOffsets ? in.keyOffsets[request.index] + key : key;
  if (paging.getOrder() != PageOrderKind::Contiguous) {
    int64_t place = paging.getRing() ? key % paging.getRing() : key;
    int64_t entry =
        request.index * in.tableStride + place / int64_t(paging.getPage());
    page = paging.getIds() == IndexKind::I64
               ? static_cast<const int64_t *>(in.table)[entry]
               : static_cast<const int32_t *>(in.table)[entry];
    slot = place % int64_t(paging.getPage());
  }
  rows += page * plane.pageStride + head * plane.headStride +
          slot * plane.slotStride;
  if (scales)
    scales += page * plane.scalePageStride + head * plane.scaleHeadStride +
              slot * plane.scaleSlotStride;
  decodeRow(storage, rows, scales, plane.factor, width, out);
  return out;
}

bool Evaluator::isSeen(const Request &request, int64_t token, int64_t position,
                       int64_t key) {
  int64_t distance = position - key;
  int64_t window = sees.getWindow();
  if (sees.getPrefix() == PrefixKind::Left && distance >= window)
    return false;
  if (sees.getPrefix() == PrefixKind::Symmetric && std::abs(distance) >= window)
    return false;
  switch (sees.getSuffix()) {
  case SuffixKind::Causal:
    return key <= position;
  case SuffixKind::Bidirectional:
    return true;
  case SuffixKind::Ancestors:
    break;
  }
  int64_t row = key - request.context;
  if (row < 0)
    return true;
  int64_t words = (int64_t(kernel.getTokens()) + 31) / 32;
  return row < int64_t(kernel.getTokens()) &&
         (in.ancestors[token * words + row / 32] >> row % 32 & 1);
}

//===----------------------------------------------------------------------===//
// Arithmetic, once exactly (T = double) and once plainly (T = float)
//===----------------------------------------------------------------------===//

/// Eight sums side by side, as any compiler would arrange them if it might.
template <typename T, typename Term>
T sumOver(int64_t count, Term term) {
  T sums[8] = {};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (int64_t lane = 0; lane < 8; ++lane)
      sums[lane] += term(i + lane);
  T sum = 0;
  for (; i < count; ++i)
    sum += term(i);
  for (T part : sums)
    sum += part;
  return sum;
}

template <typename T>
T dot(const double *x, const double *y, int64_t count) {
  return sumOver<T>(count, [=](int64_t i) { return T(x[i]) * T(y[i]); });
}

template <typename T>
T Evaluator::scoreOf(T product, int64_t head, int64_t position, int64_t key) {
  T value = product * T(factor);
  if (std::optional<APFloat> cap = kernel.getSoftcap()) {
    T limit = T(cap->convertToDouble());
    value = limit * std::tanh(value / limit);
  }
  return score.isIdentity() ? value : T(score(value, head, position, key));
}

void Evaluator::setEmpty(int64_t token, int64_t head, double value) {
  int64_t row = token * heads.getQuery() + head;
  for (int64_t d = 0; d < valueDim; ++d)
    result.output[row * valueDim + d] = result.naiveOutput[row * valueDim + d] =
        value;
  result.logSumExp[row] = result.naiveLogSumExp[row] = -infinity;
}

template <typename T>
void Evaluator::finishRow(const std::vector<T> &scores,
                          const std::vector<const double *> &values,
                          int64_t token, int64_t head) {
  constexpr bool exact = std::is_same_v<T, double>;
  T largest = *std::max_element(scores.begin(), scores.end());
  if (kernel.getSink())
    largest = std::max(largest, T(in.sinks[head]));
  T sum = kernel.getSink() ? std::exp(T(in.sinks[head]) - largest) : T(0);
  std::vector<T> sums(valueDim), sizes(valueDim);
  double square = 0;
  for (size_t j = 0; j < scores.size(); ++j) {
    T p = std::exp(scores[j] - largest);
    sum += p;
    if (!exact)
      p = T(roundTo(p, probability));
    for (int64_t d = 0; d < valueDim; ++d) {
      T term = p * T(values[j][d]);
      sums[d] += term;
      sizes[d] += std::fabs(term);
      square += exact ? double(term) * double(term) : 0;
    }
  }
  int64_t row = token * heads.getQuery() + head;
  double *out =
      (exact ? result.output : result.naiveOutput).data() + row * valueDim;
  for (int64_t d = 0; d < valueDim; ++d) {
    T value = sums[d] / sum;
    out[d] = exact ? value : roundTo(value, resultSpec.getElement());
  }
  (exact ? result.logSumExp : result.naiveLogSumExp)[row] =
      largest + std::log(sum);
  if (exact) {
    result.rows[row].absolute =
        *std::max_element(sizes.begin(), sizes.end()) / sum;
    result.rows[row].square = square / (double(sum) * double(sum));
  }
}

void Evaluator::evaluateRow(const Request &request, int64_t column,
                            int64_t head, DecodedPlane &keys,
                            DecodedPlane &values) {
  int64_t token = request.firstToken + column;
  int64_t kvHead = head / heads.getGroup();
  int64_t position = query.getPositions() == PositionsKind::Given
                         ? in.positions[token]
                         : request.context + column;
  const char *source = static_cast<const char *>(in.query) +
                       token * in.queryTokenStride + head * in.queryHeadStride;
  std::vector<double> exactQuery(dim), roundedQuery(dim);
  StorageAttr plain = StorageAttr::get(kernel.getContext(), query.getElement(),
                                       ScaleKind::None, 0, Rotation::None);
  decodeRow(plain, source, nullptr, 1.0, dim, exactQuery.data());
  for (int64_t d = 0; d < dim; ++d)
    roundedQuery[d] = isHalfWidth(keyStorage.getElement())
                          ? roundTo(exactQuery[d], keyStorage.getElement())
                          : exactQuery[d];

  ReferenceRow &row = result.rows[token * heads.getQuery() + head];
  std::vector<double> exact;
  std::vector<float> naive;
  std::vector<const double *> seen;
  bool finite = false;
  for (int64_t key = 0; key < request.length; ++key) {
    if (!isSeen(request, token, position, key))
      continue;
    const double *k =
        getRow(keys, in.keys, keyStorage, dim, request, kvHead, key);
    seen.push_back(kernel.getLatent() ? k
                                      : getRow(values, in.values, valueStorage,
                                               valueDim, request, kvHead, key));
    exact.push_back(
        scoreOf(dot<double>(exactQuery.data(), k, dim), head, position, key));
    naive.push_back(
        scoreOf(dot<float>(roundedQuery.data(), k, dim), head, position, key));
    finite |= exact.back() != -infinity;
    double size = sumOver<double>(
        dim, [&](int64_t d) { return std::fabs(exactQuery[d] * k[d]); });
    row.scores = std::max(row.scores, size * std::fabs(factor));
  }
  row.keys = int64_t(seen.size());
  if (!finite)
    return setEmpty(token, head,
                    resultSpec.getEmpty() == EmptyKind::NaN
                        ? std::numeric_limits<double>::quiet_NaN()
                        : 0.0);
  finishRow(exact, seen, token, head);
  finishRow(naive, seen, token, head);
}

void Evaluator::evaluateHead(const Request &request, int64_t kvHead) {
  size_t length = size_t(std::max<int64_t>(request.length, 0));
  DecodedPlane keys = {std::vector<double>(length * dim),
                       std::vector<bool>(length)};
  DecodedPlane values = {std::vector<double>(length * valueDim),
                         std::vector<bool>(length)};
  int64_t first = kvHead * heads.getGroup();
  for (int64_t column = 0; column < request.columns; ++column)
    for (int64_t head = first; head < first + heads.getGroup(); ++head)
      evaluateRow(request, column, head, keys, values);
}

FailureOr<ReferenceResult> Evaluator::run() {
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
  result.logSumExp.assign(rows, -infinity);
  result.naiveLogSumExp.assign(rows, -infinity);
  result.rows.resize(rows);
  for (int64_t index = 0; index < in.batch; ++index) {
    FailureOr<Request> request = findRequest(index);
    if (failed(request))
      return failure();
    for (int64_t kvHead = 0; kvHead < heads.getKv(); ++kvHead)
      evaluateHead(*request, kvHead);
  }
  return std::move(result);
}

} // namespace

FailureOr<ReferenceResult> evaluateReference(KernelOp kernel,
                                             const ReferenceInputs &inputs) {
  return Evaluator(kernel, inputs).run();
}

} // namespace tokentile::attn
