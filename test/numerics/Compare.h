//===- Compare.h - The numerics rule ----------------------------*- C++ -*-===//
//
// What a kernel's result must satisfy: the same NaN and infinity masks as the
// fp64 reference; in each row an error of at most twice that of the naive
// low-precision computation plus an absolute term computed from the problem;
// over all rows a bound on the cosine distance. Bitwise equality on rerun is
// for the caller to check.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TEST_NUMERICS_COMPARE_H
#define TOKENTILE_TEST_NUMERICS_COMPARE_H

#include "dialect/AttnReference.h"

#include <string>
#include <vector>

namespace tokentile {

/// Units of rounding (half the distance from 1 to the next number).
struct Precision {
  /// Of the output's type.
  double output = 0;
  /// Of the type that probabilities are rounded to; 0 if they are exact.
  double probabilities = 0;
  /// Rounding of outputs near zero: the spacing of fp16's subnormal numbers,
  /// the smallest number that is not flushed to zero in bf16.
  double smallest = 0;
};

/// The verdict, and the figures it rests on.
struct Comparison {
  bool ok = true;
  /// What failed and where: (token, head, d), got, expected, naive, bound.
  std::string message;
  /// Largest errors against the reference.
  double maxError = 0;
  double naiveError = 0;
  /// Largest quotient of an error and its row's bound; at most 1 if ok.
  double worstQuotient = 0;
  double cosineDistance = 0;
  double cosineBound = 0;
  double logSumExpError = 0;
};

/// Compares `output` [tokens, heads, dim] and, unless it is empty,
/// `logSumExp` [tokens, heads] with `reference`.
///
/// Row bound: 2 * naive error of the row
///   + u_out * max_d |output| + (u_p + 2^-23 sqrt(keys)) * absolute,
/// with u_p the unit of the probabilities' type: what rounding every
/// probability, the output, and fp32 sums over the keys can do.
Comparison compare(const attn::ReferenceResult &reference,
                   const std::vector<double> &output,
                   const std::vector<double> &logSumExp, Precision precision);

} // namespace tokentile

#endif // TOKENTILE_TEST_NUMERICS_COMPARE_H
