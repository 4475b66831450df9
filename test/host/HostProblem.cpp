//===- HostProblem.cpp - Small attention problems for host kernels --------===//

#include "HostProblem.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

using namespace tokentile;
using namespace tokentile::test;

/// Elements behind each result, and what results hold before a launch.
static constexpr int guard = 1024;
static constexpr uint16_t untouched = 1234;

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

static const llvm::fltSemantics &semanticsOf(Element element) {
  return element == Element::BFloat16 ? llvm::APFloat::BFloat()
                                      : llvm::APFloat::IEEEhalf();
}

static double decode(uint16_t bits, Element element) {
  return llvm::APFloat(semanticsOf(element), llvm::APInt(16, bits))
      .convertToDouble();
}

static uint16_t encode(double value, Element element) {
  llvm::APFloat number(value);
  bool lossy;
  number.convert(semanticsOf(element), llvm::APFloat::rmNearestTiesToEven,
                 &lossy);
  return number.bitcastToAPInt().getZExtValue();
}

/// Largest relative error of rounding to nearest.
static double epsilon(Element element) {
  return element == Element::BFloat16 ? std::ldexp(1, -8) : std::ldexp(1, -11);
}

static uint16_t poison(Element element) {
  return encode(std::nan(""), element);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

int64_t Problem::slotStride() const {
  return spec.dim * (spec.order == "page_major" ? 1 : spec.kvHeads);
}
int64_t Problem::headStride() const {
  return spec.dim * (spec.order == "page_major" ? spec.page : 1);
}
int64_t Problem::pageStride() const {
  return spec.page * spec.kvHeads * spec.dim;
}

size_t Problem::tokenBase(size_t b) const {
  return spec.packed ? size_t(columns[b]) : b * spec.tokens;
}

size_t Problem::keyOffset(size_t b, int64_t head, int64_t key) const {
  if (!spec.page)
    return (offsets[b] + key) * slotStride() + head * headStride();
  int64_t page = table[b * tableStride + key / spec.page];
  return page * pageStride() + head * headStride() +
         key % spec.page * slotStride();
}

const uint16_t *Problem::rowOf(bool values, size_t b, int64_t head,
                               int64_t key) const {
  if (!spec.dense || key < spec.contexts[b])
    return &pool[values][keyOffset(b, head, key)];
  size_t token = tokenBase(b) + key - spec.contexts[b];
  return &dense[values][(token * spec.kvHeads + head) * spec.dim];
}

Problem::Problem(const Spec &spec, uint32_t seed) : spec(spec) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  size_t batch = spec.contexts.size();
  int64_t keys = 0, longest = 0, packedTokens = 0;
  for (size_t b = 0; b < batch; ++b) {
    lengths.push_back(spec.contexts[b]);
    columns.push_back(spec.packed ? packedTokens : spec.columnsOf(b));
    packedTokens += spec.columnsOf(b);
    offsets.push_back(keys);
    keys += spec.lengthOf(b) + 3;
    longest = std::max(longest, spec.lengthOf(b));
  }
  if (spec.packed)
    columns.push_back(packedTokens);
  size_t tokens = spec.packed ? packedTokens : batch * spec.tokens;

  int64_t page = std::max<int64_t>(1, spec.page);
  tableStride = longest / page + 2;
  pages = batch * tableStride;
  std::vector<int32_t> order(pages);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  table.assign(pages, 0x7fffff00);
  Element stored[] = {spec.keys, spec.values};
  int64_t poolRows = spec.page ? pages * spec.page : keys;
  for (int which : {0, 1}) {
    pool[which].assign(poolRows * spec.kvHeads * spec.dim,
                       poison(stored[which]));
    dense[which].assign(tokens * spec.kvHeads * spec.dim,
                        poison(stored[which]));
  }
  for (size_t b = 0; b < batch; ++b) {
    int64_t paged = spec.dense ? spec.contexts[b] : spec.lengthOf(b);
    for (int64_t p = 0; p * page < paged; ++p)
      table[b * tableStride + p] = order[b * tableStride + p];
    for (int which : {0, 1})
      for (int64_t head = 0; head < spec.kvHeads; ++head)
        for (int64_t key = 0; key < spec.lengthOf(b); ++key) {
          auto *row = const_cast<uint16_t *>(rowOf(which, b, head, key));
          for (int64_t d = 0; d < spec.dim; ++d)
            row[d] = encode(normal(random), stored[which]);
        }
  }
  queries.assign(tokens * spec.queryHeads * spec.dim, poison(spec.query));
  for (size_t b = 0; b < batch; ++b)
    for (int64_t j = 0; j < spec.columnsOf(b) * spec.queryHeads * spec.dim; ++j)
      queries[tokenBase(b) * spec.queryHeads * spec.dim + j] =
          encode(2 * normal(random), spec.query);
  // Given positions differ from those that follow from the lengths.
  for (size_t b = 0; b < batch; ++b)
    for (int64_t j = 0; j < (spec.packed ? spec.columnsOf(b) : spec.tokens);
         ++j)
      positions.push_back(spec.contexts[b] + j / 2 + j % 2 * spec.oddOffset);
  outputs.assign(queries.size() + guard, untouched);
  logSumExp.assign(tokens * spec.queryHeads + guard, untouched);
  size_t padded =
      (spec.rows() + spec.rowBlocks - 1) / spec.rowBlocks * spec.rowBlocks;
  size_t partials = batch * spec.kvHeads * spec.parts * padded;
  partialOutput.assign(partials * spec.dim + guard, NAN);
  partialStats.assign(partials * 4 + guard, NAN);
  divisions.assign(batch * 2, INT32_MIN);
}

KernelArgs Problem::args() {
  KernelArgs a = {};
  a.query = queries.data();
  a.output = outputs.data();
  a.logSumExp = spec.lse ? logSumExp.data() : nullptr;
  a.keys = pool[0].data();
  a.values = pool[1].data();
  a.blockKeys = dense[0].data();
  a.blockValues = dense[1].data();
  a.table = table.data();
  a.lengths = lengths.data();
  a.columns = columns.data();
  a.positions = positions.data();
  a.keyOffsets = offsets.data();
  a.partialOutput = partialOutput.data();
  a.partialStats = partialStats.data();
  a.divisions = divisions.data();
  a.queryTokenStride = a.outputTokenStride = spec.queryHeads * spec.dim * 2;
  a.queryHeadStride = a.outputHeadStride = spec.dim * 2;
  a.keyPageStride = a.valuePageStride = pageStride() * 2;
  a.keyHeadStride = a.valueHeadStride = headStride() * 2;
  a.tableStride = tableStride;
  a.batch = spec.contexts.size();
  a.items = a.batch * spec.parts;
  a.slots = spec.parts;
  a.partials = int64_t(a.batch) * spec.parts;
  // Not a divisor of the rows.
  a.mergeBlocks = spec.parts > 1 ? 7 : 0;
  a.maxKeys = 1 << 20;
  return a;
}

//===----------------------------------------------------------------------===//
// Expectation
//===----------------------------------------------------------------------===//

int64_t Problem::positionOf(size_t b, int64_t token) const {
  return spec.given ? positions[tokenBase(b) + token]
                    : spec.contexts[b] + token;
}

bool Problem::sees(size_t b, int64_t position, int64_t key) const {
  if (spec.causal && key > position)
    return false;
  if (spec.window && position - key >= spec.window)
    return false;
  return !(spec.window && spec.symmetric && key - position >= spec.window);
}

Problem::Row Problem::expect(size_t b, int64_t token, int64_t head) const {
  const uint16_t *query =
      &queries[((tokenBase(b) + token) * spec.queryHeads + head) * spec.dim];
  std::vector<double> q(spec.dim);
  for (int64_t d = 0; d < spec.dim; ++d)
    q[d] = decode(encode(decode(query[d], spec.query), spec.keys), spec.keys);
  int64_t kvHead = head / spec.group();
  std::vector<double> scores(spec.lengthOf(b), -INFINITY);
  double max = -INFINITY, sum = 0;
  for (int64_t key = 0; key < spec.lengthOf(b); ++key) {
    if (!sees(b, positionOf(b, token), key))
      continue;
    const uint16_t *k = rowOf(false, b, kvHead, key);
    double score = 0;
    for (int64_t d = 0; d < spec.dim; ++d)
      score += q[d] * decode(k[d], spec.keys);
    scores[key] = score / std::sqrt(double(spec.dim));
    max = std::max(max, scores[key]);
  }
  Row row = {std::vector<double>(spec.dim), std::vector<double>(spec.dim), 0,
             max == -INFINITY};
  for (int64_t key = 0; key < spec.lengthOf(b) && !row.empty; ++key) {
    double p = std::exp(scores[key] - max);
    sum += p;
    const uint16_t *v = rowOf(true, b, kvHead, key);
    for (int64_t d = 0; d < spec.dim; ++d) {
      row.output[d] += p * decode(v[d], spec.values);
      row.bound[d] += p * std::abs(decode(v[d], spec.values));
    }
  }
  // Each probability is rounded to the values' type, the output to its own;
  // 1e-5 of the magnitude is left to sums in fp32.
  for (int64_t d = 0; d < spec.dim && !row.empty; ++d) {
    row.output[d] /= sum;
    row.bound[d] = row.bound[d] / sum * (epsilon(spec.values) + 1e-5) +
                   std::abs(row.output[d]) * epsilon(spec.output) + 1e-7;
  }
  row.logSumExp = row.empty ? -INFINITY : max + std::log(sum);
  return row;
}

std::string Problem::checkRow(size_t b, int64_t token, int64_t head) const {
  size_t at = (tokenBase(b) + token) * spec.queryHeads + head;
  bool masked = token >= spec.columnsOf(b);
  Row row = masked ? Row{std::vector<double>(spec.dim),
                         std::vector<double>(spec.dim), -INFINITY, false}
                   : expect(b, token, head);
  auto where = [&](double got, double want) {
    return llvm::formatv(
               "request {0} token {1} head {2}: got {3:F6}, want {4:F6}", b,
               token, head, got, want)
        .str();
  };
  for (int64_t d = 0; d < spec.dim; ++d) {
    double got = decode(outputs[at * spec.dim + d], spec.output);
    bool wantNaN = row.empty && spec.emptyNaN;
    if (std::isnan(got) != wantNaN)
      return where(got, row.output[d]);
    if (!wantNaN && !(std::abs(got - row.output[d]) <= row.bound[d]))
      return where(got, row.output[d]) + llvm::formatv(", dim {0}", d).str();
  }
  if (!spec.lse)
    return logSumExp[at] == untouched ? "" : "log-sum-exp written unasked";
  double got = logSumExp[at], want = row.logSumExp;
  bool near = got == want || std::abs(got - want) <= 1e-4;
  return near ? "" : "log-sum-exp, " + where(got, want);
}

/// The elements behind the end of a result must be as they were.
template <typename T>
static bool guardHolds(const std::vector<T> &memory, T value) {
  return std::all_of(memory.end() - guard, memory.end(), [&](T element) {
    return element == value || (element != element && value != value);
  });
}

std::string Problem::check() const {
  if (!guardHolds<uint16_t>(outputs, untouched) ||
      !guardHolds<float>(logSumExp, untouched) ||
      !guardHolds<float>(partialOutput, NAN) ||
      !guardHolds<float>(partialStats, NAN))
    return "a result was written past its end";
  for (size_t b = 0; b < spec.contexts.size(); ++b) {
    int64_t tokens = spec.packed ? spec.columnsOf(b) : spec.tokens;
    for (int64_t token = 0; token < tokens; ++token)
      for (int64_t head = 0; head < spec.queryHeads; ++head) {
        std::string error = checkRow(b, token, head);
        if (!error.empty())
          return error;
      }
  }
  return "";
}
