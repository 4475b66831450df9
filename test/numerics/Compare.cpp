//===- Compare.cpp - The numerics rule ------------------------------------===//

#include "test/numerics/Compare.h"

#include <cmath>
#include <cstdio>

namespace tokentile {

using attn::ReferenceResult;
using attn::ReferenceRow;

namespace {

/// Half the distance from 1 to the next number of fp32, and twice as much for
/// units that truncate.
const double unitOfSingle = std::ldexp(1.0, -23);

/// One element that is as far from its bound as any.
struct Worst {
  int64_t row = -1;
  int64_t dim = 0;
  double got = 0, expected = 0, naive = 0, bound = 0;
  double quotient = -1;
};

std::string describe(const char *what, const ReferenceResult &reference,
                     const Worst &worst) {
  char text[256];
  std::snprintf(text, sizeof(text),
                "%s at (token %lld, head %lld, d %lld): got %.9g, expected "
                "%.9g, naive %.9g, bound on the error %.3g, row sees %lld keys",
                what, (long long)(worst.row / reference.heads),
                (long long)(worst.row % reference.heads), (long long)worst.dim,
                worst.got, worst.expected, worst.naive, worst.bound,
                (long long)reference.rows[worst.row].keys);
  return text;
}

/// Whether both are NaN, or the same infinity, or both finite.
bool agree(double got, double expected) {
  if (std::isnan(expected) || std::isnan(got))
    return std::isnan(expected) && std::isnan(got);
  if (std::isinf(expected) || std::isinf(got))
    return got == expected;
  return true;
}

void fail(Comparison &result, const std::string &message) {
  result.ok = false;
  result.message += (result.message.empty() ? "" : "\n") + message;
}

double rowBound(const ReferenceResult &reference, int64_t row,
                Precision precision) {
  double naive = 0, largest = 0;
  for (int64_t i = row * reference.dim; i < (row + 1) * reference.dim; ++i) {
    naive = std::fmax(
        naive, std::fabs(reference.naiveOutput[i] - reference.output[i]));
    largest = std::fmax(largest, std::fabs(reference.output[i]));
  }
  const ReferenceRow &facts = reference.rows[row];
  double sums = unitOfSingle * std::sqrt(double(facts.keys));
  return 2 * naive + precision.output * largest + precision.smallest +
         (precision.probabilities + sums) * facts.absolute;
}

bool checkMasks(const ReferenceResult &reference,
                const std::vector<double> &output, Comparison &result) {
  for (size_t i = 0; i < output.size(); ++i) {
    if (agree(output[i], reference.output[i]))
      continue;
    Worst worst;
    worst.row = int64_t(i) / reference.dim;
    worst.dim = int64_t(i) % reference.dim;
    worst.got = output[i];
    worst.expected = reference.output[i];
    worst.naive = reference.naiveOutput[i];
    fail(result, describe("nan or inf mask differs", reference, worst));
    return false;
  }
  return true;
}

void checkRows(const ReferenceResult &reference,
               const std::vector<double> &output, Precision precision,
               Comparison &result) {
  Worst worst;
  for (size_t row = 0; row < reference.rows.size(); ++row) {
    double bound = rowBound(reference, int64_t(row), precision);
    for (int64_t d = 0; d < reference.dim; ++d) {
      size_t i = row * reference.dim + d;
      double expected = reference.output[i];
      if (!std::isfinite(expected))
        continue;
      double error = std::fabs(output[i] - expected);
      double naive = std::fabs(reference.naiveOutput[i] - expected);
      result.maxError = std::fmax(result.maxError, error);
      result.naiveError = std::fmax(result.naiveError, naive);
      double quotient = error == 0 ? 0 : bound > 0 ? error / bound : HUGE_VAL;
      if (quotient > worst.quotient)
        worst = {int64_t(row),
                 d,
                 output[i],
                 expected,
                 reference.naiveOutput[i],
                 bound,
                 quotient};
    }
  }
  result.worstQuotient = std::fmax(worst.quotient, 0);
  if (worst.quotient > 1)
    fail(result, describe("output differs", reference, worst));
}

/// 1 - cos of the finite elements of two tensors; 0 if either is all zero.
double cosineDistance(const std::vector<double> &x,
                      const std::vector<double> &y) {
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i]) || !std::isfinite(y[i]))
      continue;
    xy += x[i] * y[i];
    xx += x[i] * x[i];
    yy += y[i] * y[i];
  }
  return xx > 0 && yy > 0 ? 1 - xy / std::sqrt(xx * yy) : 0;
}

/// The distance of an error e orthogonal to the result o is |e|^2 / 2|o|^2. An
/// error twice the naive one gives four times its distance; independent
/// rounding of probabilities and output gives the second term.
void checkCosine(const ReferenceResult &reference,
                 const std::vector<double> &output, Precision precision,
                 Comparison &result) {
  double norm = 0, square = 0;
  for (double value : reference.output)
    norm += std::isfinite(value) ? value * value : 0;
  for (const ReferenceRow &row : reference.rows)
    square += row.square;
  double units = precision.probabilities + unitOfSingle;
  result.cosineDistance = cosineDistance(output, reference.output);
  result.cosineBound =
      4 * cosineDistance(reference.naiveOutput, reference.output) +
      precision.output * precision.output / 2 +
      (norm > 0 ? units * units * square / (2 * norm) : 0);
  if (result.cosineDistance <= result.cosineBound)
    return;
  char text[128];
  std::snprintf(text, sizeof(text), "cosine distance %.3g exceeds %.3g",
                result.cosineDistance, result.cosineBound);
  fail(result, text);
}

/// A log-sum-exp m + log(sum) inherits the error of one score, which is a sum
/// of dim products in fp32, and a few roundings of its own size.
void checkLogSumExp(const ReferenceResult &reference,
                    const std::vector<double> &logSumExp, Comparison &result) {
  Worst worst;
  for (size_t row = 0; row < reference.rows.size(); ++row) {
    double expected = reference.logSumExp[row];
    double naive = reference.naiveLogSumExp[row];
    const ReferenceRow &facts = reference.rows[row];
    double bound =
        2 * std::fabs(naive - expected) +
        unitOfSingle * (4 + 4 * std::fabs(expected) +
                        std::sqrt(double(reference.dim)) * facts.scores);
    double error = std::fabs(logSumExp[row] - expected);
    bool same = agree(logSumExp[row], expected);
    if (same && !std::isfinite(expected))
      continue;
    result.logSumExpError = std::fmax(result.logSumExpError, error);
    double quotient = same ? error / bound : HUGE_VAL;
    if (quotient > worst.quotient)
      worst = {int64_t(row), 0,     logSumExp[row], expected,
               naive,        bound, quotient};
  }
  if (worst.quotient > 1)
    fail(result, describe("log-sum-exp differs", reference, worst));
}

} // namespace

Comparison compare(const ReferenceResult &reference,
                   const std::vector<double> &output,
                   const std::vector<double> &logSumExp, Precision precision) {
  Comparison result;
  if (output.size() != reference.output.size() ||
      (!logSumExp.empty() && logSumExp.size() != reference.rows.size())) {
    fail(result, "results have another shape than the reference");
    return result;
  }
  if (checkMasks(reference, output, result)) {
    checkRows(reference, output, precision, result);
    checkCosine(reference, output, precision, result);
  }
  if (!logSumExp.empty())
    checkLogSumExp(reference, logSumExp, result);
  return result;
}

} // namespace tokentile
