//===- ReferenceEvaluator.cpp - Keys and rows in fp64 ---------------------===//

#include "dialect/ReferenceEvaluator.h"
#include "dialect/ReferenceElements.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>

using namespace mlir;

namespace tokentile::attn {

constexpr double infinity = std::numeric_limits<double>::infinity();

//===----------------------------------------------------------------------===//
// Where things are
//===----------------------------------------------------------------------===//

FailureOr<ReferenceRequest> ReferenceEvaluator::findRequest(int64_t index) {
  ReferenceRequest request = {index, index * int64_t(kernel.getTokens()),
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

const double *ReferenceEvaluator::getRow(DecodedRows &decoded,
                                         const ReferencePlane &plane,
                                         StorageAttr storage, int64_t width,
                                         const ReferenceRequest &request,
                                         int64_t head, int64_t key) {
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

bool ReferenceEvaluator::isSeen(const ReferenceRequest &request, int64_t token,
                                int64_t position, int64_t key) {
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
T ReferenceEvaluator::scoreOf(T product, int64_t head, int64_t position,
                              int64_t key) {
  T value = product * T(factor);
  if (std::optional<APFloat> cap = kernel.getSoftcap()) {
    T limit = T(cap->convertToDouble());
    value = limit * std::tanh(value / limit);
  }
  return score.isIdentity() ? value : T(score(value, head, position, key));
}

const double *ReferenceEvaluator::widen(StorageAttr storage, const double *row,
                                        int64_t width,
                                        std::vector<double> &out) {
  if (isHalfWidth(storage.getElement()))
    return row;
  out.resize(width);
  for (int64_t d = 0; d < width; ++d)
    out[d] = roundTo(row[d], query.getElement());
  return out.data();
}

void ReferenceEvaluator::setEmpty(int64_t token, int64_t head, double value) {
  int64_t row = token * heads.getQuery() + head;
  for (int64_t d = 0; d < valueDim; ++d)
    result.output[row * valueDim + d] = result.naiveOutput[row * valueDim + d] =
        value;
  result.logSumExp[row] = result.naiveLogSumExp[row] = -infinity;
}

template <typename T>
void ReferenceEvaluator::finishRow(const std::vector<T> &scores,
                                   const std::vector<const double *> &values,
                                   int64_t token, int64_t head) {
  constexpr bool exact = std::is_same_v<T, double>;
  T largest = *std::max_element(scores.begin(), scores.end());
  if (kernel.getSink())
    largest = std::max(largest, T(in.sinks[head]));
  T sum = kernel.getSink() ? std::exp(T(in.sinks[head]) - largest) : T(0);
  std::vector<T> sums(valueDim), sizes(valueDim), squares(valueDim);
  std::vector<double> widened;
  for (size_t j = 0; j < scores.size(); ++j) {
    T p = std::exp(scores[j] - largest);
    sum += p;
    if (!exact)
      p = T(roundTo(p, probability));
    const double *v =
        exact ? values[j] : widen(valueStorage, values[j], valueDim, widened);
    for (int64_t d = 0; d < valueDim; ++d) {
      T term = p * T(v[d]);
      sums[d] += term;
      sizes[d] += std::fabs(term);
      squares[d] += term * term;
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
    result.rows[row].square =
        std::accumulate(squares.begin(), squares.end(), 0.0) /
        (double(sum) * double(sum));
  }
}

void ReferenceEvaluator::evaluateRow(const ReferenceRequest &request,
                                     int64_t column, int64_t head,
                                     DecodedRows &keys, DecodedRows &values) {
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
  std::vector<double> widened;
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
    naive.push_back(scoreOf(dot<float>(roundedQuery.data(),
                                       widen(keyStorage, k, dim, widened), dim),
                            head, position, key));
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

void ReferenceEvaluator::evaluateHead(const ReferenceRequest &request,
                                      int64_t kvHead) {
  size_t length = size_t(std::max<int64_t>(request.length, 0));
  DecodedRows keys = {std::vector<double>(length * dim),
                      std::vector<bool>(length)};
  DecodedRows values = {std::vector<double>(length * valueDim),
                        std::vector<bool>(length)};
  int64_t first = kvHead * heads.getGroup();
  for (int64_t column = 0; column < request.columns; ++column)
    for (int64_t head = first; head < first + heads.getGroup(); ++head)
      evaluateRow(request, column, head, keys, values);
}

} // namespace tokentile::attn
