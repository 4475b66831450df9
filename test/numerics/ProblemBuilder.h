//===- ProblemBuilder.h - Fills the tensors of a problem --------*- C++ -*-===//

#ifndef TOKENTILE_TEST_NUMERICS_PROBLEMBUILDER_H
#define TOKENTILE_TEST_NUMERICS_PROBLEMBUILDER_H

#include "test/numerics/Problem.h"
#include "test/numerics/Random.h"

namespace tokentile {

/// The pattern of outputs and their guards: finite in every type, and larger
/// than any result.
constexpr uint8_t outputPoison = 0x7b;
/// The pattern of everything else that must not count: NaN in every type.
constexpr uint8_t inputPoison = 0xff;
/// Bytes before and behind each tensor.
constexpr int64_t guardBytes = 256;

class ProblemBuilder {
public:
  ProblemBuilder(attn::KernelOp kernel, const Case &testCase);

  std::unique_ptr<Problem> build(std::string &error);

private:
  bool checkFit(std::string &error);
  HostTensor &add(const char *name, const char *element,
                  std::vector<int64_t> shape, std::vector<int64_t> strides = {},
                  bool written = false);
  void addRows(const char *name, attn::ElementKind element, bool headMajor,
               int64_t dim, bool written, int64_t &tokenStride,
               int64_t &headStride);
  void addMetadata();
  void addTable();
  void addPools();
  void addSinks();
  void addInterleavedPools(std::vector<int64_t> shape,
                           std::vector<int64_t> strides);
  void fillQuery();
  void fillKeysAndValues();
  void fillKey(int32_t request, int32_t key);
  uint8_t *rowOf(bool isKey, int32_t request, int32_t key, int64_t head);
  double direction(int64_t head, int64_t d) const;

  bool isDense();
  bool isContiguous();
  int64_t pageSize();
  /// Keys of a request that lie in pages or in the contiguous rows.
  int32_t storedKeys(int32_t request);
  int32_t lengthOf(int32_t request);
  int32_t firstTokenOf(int32_t request);
  int32_t positionOf(int32_t request, int32_t column);
  /// The oldest key that the window of one of the request's rows admits, 0
  /// without a window. Engines give away the pages of older keys.
  int32_t oldestKeyOf(int32_t request);

  attn::KernelOp kernel;
  const Case &testCase;
  std::unique_ptr<Problem> problem;
  Random random;
  attn::QueryAttr query;
  attn::OutputAttr output;
  int64_t queryHeads, kvHeads, dim;
  int64_t poolPages = 0;
  int64_t keySlotStride = 0;
  int64_t valueSlotStride = 0;
  std::vector<int32_t> pages;
};

} // namespace tokentile

#endif // TOKENTILE_TEST_NUMERICS_PROBLEMBUILDER_H
