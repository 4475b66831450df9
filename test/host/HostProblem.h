//===- HostProblem.h - Small attention problems for host kernels -*- C++ -*-==//
//
// A problem is a spec, its program over tiles as text, and memory for one
// batch: shuffled pages, absurd table entries past the last page, NaN in every
// slot that holds no key. The expected result is a plain loop in double.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TEST_HOST_HOSTPROBLEM_H
#define TOKENTILE_TEST_HOST_HOSTPROBLEM_H

#include "codegen/KernelABI.h"

#include <string>
#include <vector>

namespace tokentile::test {

/// What is attended to. Every request has its own context and columns.
struct Spec {
  int64_t queryHeads = 4, kvHeads = 2, dim = 64, tokens = 4;
  int64_t keyTile = 64, page = 16, rowBlocks = 1, parts = 1;
  /// With `given`: added to the positions of odd tokens.
  int64_t oddOffset = 0;
  /// 0: the prefix is seen whole.
  int64_t window = 0;
  bool symmetric = false, causal = true, dense = false;
  bool counted = false, packed = false, given = false;
  bool lse = true, emptyNaN = false;
  Element query = Element::BFloat16, keys = Element::BFloat16,
          values = Element::BFloat16, output = Element::BFloat16;
  std::string order = "page_major";
  std::vector<int64_t> contexts = {100};
  /// Query tokens of each request; all of them when left out.
  std::vector<int64_t> columns;

  int64_t group() const { return queryHeads / kvHeads; }
  int64_t rows() const { return tokens * group(); }
  int64_t columnsOf(size_t b) const {
    return columns.empty() ? tokens : columns[b];
  }
  int64_t lengthOf(size_t b) const { return contexts[b] + columnsOf(b); }
};

/// A module with the plan `@k`, `@k_sweep` and `@k_merge`.
std::string tilesOf(const Spec &spec);

/// One batch in memory, for the spec it was made of.
class Problem {
public:
  explicit Problem(const Spec &spec, uint32_t seed = 1);

  /// Arguments over this problem's memory.
  KernelArgs args();
  /// Compares output and log-sum-exp with the expected ones; returns a
  /// description of the worst element out of bounds, or nothing.
  std::string check() const;

private:
  struct Row {
    std::vector<double> output, bound;
    double logSumExp;
    bool empty;
  };
  size_t keyOffset(size_t b, int64_t head, int64_t key) const;
  const uint16_t *rowOf(bool values, size_t b, int64_t head, int64_t key) const;
  Row expect(size_t b, int64_t token, int64_t head) const;
  bool sees(size_t b, int64_t position, int64_t key) const;
  int64_t positionOf(size_t b, int64_t token) const;
  size_t tokenBase(size_t b) const;
  std::string checkRow(size_t b, int64_t token, int64_t head) const;
  int64_t pageStride() const;
  int64_t headStride() const;
  int64_t slotStride() const;

  Spec spec;
  int64_t tableStride = 0, pages = 0;
  std::vector<uint16_t> queries, outputs, pool[2], dense[2];
  std::vector<int32_t> table, lengths, columns, positions, offsets, divisions;
  std::vector<float> logSumExp, partialOutput, partialStats;
};

} // namespace tokentile::test

#endif // TOKENTILE_TEST_HOST_HOSTPROBLEM_H
