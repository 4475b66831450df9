//===- LaneCases.h - Small cases with every kind of schedule ----*- C++ -*-===//

#ifndef TOKENTILE_TEST_NUMERICS_LANECASES_H
#define TOKENTILE_TEST_NUMERICS_LANECASES_H

#include "test/numerics/Cases.h"

namespace tokentile {

/// GPUs whose lowering is run lane by lane.
constexpr const char *laneChips[] = {"sm_80", "sm_90a"};

/// A case of `Size::Small` whose spec carries a schedule that fits one of
/// `laneChips`, drawn at random where the chip's own choice would always be
/// the same. The seed and the two indices decide everything.
struct LaneCase {
  Case testCase;
  std::string chip;
};
LaneCase makeLaneCase(uint64_t seed, int index, int batch);

} // namespace tokentile

#endif // TOKENTILE_TEST_NUMERICS_LANECASES_H
