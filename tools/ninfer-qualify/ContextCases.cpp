//===- ContextCases.cpp - Cases of one spec at given contexts -------------===//

#include "tools/ninfer-qualify/ContextCases.h"

#include "test/numerics/Random.h"

#include <algorithm>

using namespace tokentile;
using namespace tokentile::attn;

namespace {

constexpr std::pair<const char *, Numbers> allNumbers[] = {
    {"normal", Numbers::Normal},     {"sharp", Numbers::Sharp},
    {"mean", Numbers::Mean},         {"growing", Numbers::Growing},
    {"negative", Numbers::Negative},
};

} // namespace

const char *tokentile::numbersName(Numbers numbers) {
  for (const auto &[name, value] : allNumbers)
    if (value == numbers)
      return name;
  return "?";
}

const Numbers *tokentile::findNumbers(const std::string &name) {
  for (const auto &[known, value] : allNumbers)
    if (name == known)
      return &value;
  return nullptr;
}

Case tokentile::makeContextCase(KernelOp kernel, const std::string &specText,
                                int32_t context, int32_t batch, Numbers numbers,
                                uint64_t seed) {
  Random random(seed, uint64_t(context) * 64 + uint64_t(batch));
  QueryAttr query = kernel.getQueryOrDefault();
  int32_t tokens = int32_t(kernel.getTokens());
  bool isUniform = query.getColumns() == ColumnsKind::Uniform;
  bool isTotal = query.getLengths() == LengthsKind::Total;

  Case result;
  result.specText = specText;
  result.batch = batch;
  result.numbers = numbers;
  result.seed = seed;
  for (int32_t b = 0; b < batch; ++b) {
    int32_t keys = b == 0 ? context : int32_t(random.range(0, context));
    int32_t columns =
        isUniform || b == 0 ? tokens : int32_t(random.range(1, tokens));
    if (!isUniform && b > 0 && b == batch - 1)
      keys = columns = 0;
    result.contexts.push_back(keys);
    result.columns.push_back(columns);
    result.lengths.push_back(isTotal ? keys + columns : keys);
  }
  return result;
}
