//===- ProblemNumbers.cpp - What the tensors of a problem hold ------------===//
//
// Scores are steered by a direction of signs, one for each kv head: a query is
// noise plus the direction, a key is noise plus a multiple of it, and the
// multiple sets the score that is wanted.
//
//===----------------------------------------------------------------------===//

#include "test/numerics/ProblemBuilder.h"

#include "dialect/ReferenceElements.h"

#include <cstring>
#include <limits>

using namespace tokentile::attn;

namespace tokentile {

namespace {

void store(uint8_t *row, int64_t d, double value, ElementKind element) {
  uint16_t bits = encodeHalf(value, element);
  std::memcpy(row + 2 * d, &bits, sizeof(bits));
}

bool isSteered(Numbers numbers) {
  return numbers == Numbers::Growing || numbers == Numbers::Negative;
}

} // namespace

double ProblemBuilder::direction(int64_t head, int64_t d) const {
  return Random(testCase.seed, uint64_t(head * dim + d)).oneIn(2) ? 1 : -1;
}

void ProblemBuilder::addSinks() {
  HostTensor &tensor = add("sinks", "fp32", {queryHeads});
  auto *sinks = reinterpret_cast<float *>(tensor.data());
  // Beside every score, among them, above all of them, and none.
  for (int64_t head = 0; head < queryHeads; ++head)
    sinks[head] = random.pick({-80.0f, -1.5f, 0.0f, 2.25f, 6.0f, 9.0f,
                               -std::numeric_limits<float>::infinity()});
}

void ProblemBuilder::fillQuery() {
  const KernelArgs &args = problem->layout;
  uint8_t *rows = problem->getTensor("query").data();
  double size = testCase.numbers == Numbers::Mean    ? 0
                : testCase.numbers == Numbers::Sharp ? 4
                                                     : 1;
  for (int32_t request = 0; request < testCase.batch; ++request) {
    // Masked columns, and rows of padding, stay NaN.
    int32_t columns = lengthOf(request) ? testCase.columns[request] : 0;
    for (int32_t j = 0; j < columns; ++j)
      for (int64_t head = 0; head < queryHeads; ++head) {
        uint8_t *row = rows +
                       (firstTokenOf(request) + j) * args.queryTokenStride +
                       head * args.queryHeadStride;
        int64_t kvHead = head / kernel.getHeads().getGroup();
        for (int64_t d = 0; d < dim; ++d) {
          double value = size * random.normal();
          if (isSteered(testCase.numbers))
            value += direction(kvHead, d);
          store(row, d, value, query.getElement());
        }
      }
  }
}

void ProblemBuilder::fillKey(int32_t request, int32_t key) {
  double wanted = 0;
  if (testCase.numbers == Numbers::Growing)
    wanted = 24.0 * key / lengthOf(request);
  if (testCase.numbers == Numbers::Negative)
    wanted = -60;
  double along = wanted / (kernel.getScaleFactor() * double(dim));
  ElementKind keyElement = kernel.getKeys().getElement();
  ElementKind valueElement = kernel.getValues().getElement();
  bool mean = testCase.numbers == Numbers::Mean;
  for (int64_t head = 0; head < kvHeads; ++head) {
    uint8_t *keys = rowOf(true, request, key, head);
    uint8_t *values = rowOf(false, request, key, head);
    for (int64_t d = 0; d < dim; ++d) {
      double value = mean ? 0 : random.normal();
      if (along != 0)
        value += along * direction(head, d);
      store(keys, d, value, keyElement);
      store(values, d, mean ? double(random.range(-8, 8)) : random.normal(),
            valueElement);
    }
  }
}

void ProblemBuilder::fillKeysAndValues() {
  for (int32_t request = 0; request < testCase.batch; ++request)
    for (int32_t key = oldestKeyOf(request); key < lengthOf(request); ++key)
      fillKey(request, key);
}

} // namespace tokentile
