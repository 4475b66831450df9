//===- CaseText.cpp - A case in words -------------------------------------===//

#include "test/numerics/Cases.h"

namespace tokentile {

namespace {

std::string join(const std::vector<int32_t> &values) {
  std::string text;
  for (int32_t value : values)
    text += (text.empty() ? "" : " ") + std::to_string(value);
  return "[" + text + "]";
}

} // namespace

std::string Case::describe() const {
  static const char *const numberNames[] = {"normal", "sharp", "mean",
                                            "growing", "negative"};
  static const char *const interleaveNames[] = {"none", "pages", "slots"};
  return specText + "\n  batch " + std::to_string(batch) + " contexts " +
         join(contexts) + " columns " + join(columns) + " lengths " +
         join(lengths) + " position shift " + std::to_string(positionShift) +
         " step " + std::to_string(positionStep) + " interleave " +
         interleaveNames[int(interleave)] + " numbers " +
         numberNames[int(numbers)] + " row gap " + std::to_string(rowGap) +
         " seed " + std::to_string(seed);
}

} // namespace tokentile
