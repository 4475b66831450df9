//===- NaiveModel.h - The reference model in fp64 ---------------*- C++ -*-===//
//
// Target and draft from their description, a whole sequence at a time, without
// caches, pages, steps or rounding: what is computed where is all that they
// share with the models under test.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TEST_REFERENCE_NAIVEMODEL_H
#define TOKENTILE_TEST_REFERENCE_NAIVEMODEL_H

#include "tools/reference-model/Weights.h"

#include <functional>
#include <map>

namespace tokentile::reference {

using Row = std::vector<double>;
using Matrix = std::vector<Row>;

/// Tensors by name, as doubles, read when they are first asked for.
class NaiveWeights {
public:
  explicit NaiveWeights(const WeightSource &source) : source(source) {}
  const Row &get(const std::string &name, std::vector<int64_t> shape);
  /// x W^T for a tensor [outputs, inputs].
  Matrix times(const Matrix &x, const std::string &name, int64_t outputs);
  /// Each row divided by its root mean square, times a tensor.
  Matrix norm(const Matrix &x, const std::string &name, double epsilon);

private:
  const WeightSource &source;
  std::map<std::string, Row> tensors;
};

class NaiveTarget {
public:
  NaiveTarget(const TargetConfig &config, const WeightSource &source)
      : config(config), weights(source) {}

  struct Result {
    Matrix logits;
    /// [layers][positions]: the residual stream after each layer.
    std::vector<Matrix> taps;
  };
  Result run(const std::vector<int32_t> &tokens);
  Matrix embed(const std::vector<int32_t> &tokens);
  Matrix head(const Matrix &normed);

private:
  Matrix delta(const Matrix &x, const std::string &prefix);

  TargetConfig config;
  NaiveWeights weights;
};

class NaiveDraft {
public:
  NaiveDraft(const DraftConfig &config, const WeightSource &source)
      : config(config), weights(source) {}

  /// Logits of the `drafts` masks behind `anchor`, which follows the positions
  /// that `taps` has rows for.
  Matrix propose(NaiveTarget &target, const std::vector<Matrix> &taps,
                 int32_t anchor, int32_t drafts);

private:
  DraftConfig config;
  NaiveWeights weights;
};

} // namespace tokentile::reference

#endif // TOKENTILE_TEST_REFERENCE_NAIVEMODEL_H
