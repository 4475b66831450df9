//===- ChipFacts.cpp - The table of chips ---------------------------------===//

#include "codegen/ChipFacts.h"

using namespace tokentile;

static constexpr int64_t kKiB = 1024;

// mma.sync on Hopper and later datacenter parts reaches about 0.6 of the rate
// that their own matrix instructions do.
static const ChipFacts chips[] = {
    {"host", "this processor", 1, 1024 * kKiB, 1024 * kKiB, 50, 0.5, 3.0, 0, 0},
    {"sm_80", "A100 80GB", 108, 163 * kKiB, 164 * kKiB, 2039, 312, 1.41, 0, 74},
    {"sm_86", "RTX 3090", 82, 99 * kKiB, 100 * kKiB, 936, 71, 1.70, 0, 74},
    {"sm_89", "RTX 4090", 128, 99 * kKiB, 100 * kKiB, 1008, 165, 2.52, 0, 78},
    {"sm_90a", "H200", 132, 227 * kKiB, 228 * kKiB, 4800, 600, 1.83, 989, 80},
    {"sm_100a", "B200", 148, 227 * kKiB, 228 * kKiB, 8000, 700, 1.85, 0, 86},
    {"sm_120a", "RTX 5090", 170, 99 * kKiB, 100 * kKiB, 1792, 210, 2.41, 0, 87},
    {"sm_121a", "GB10", 48, 99 * kKiB, 100 * kKiB, 273, 62, 2.42, 0, 88},
};

llvm::ArrayRef<ChipFacts> tokentile::knownChips() { return chips; }

const ChipFacts *tokentile::findChip(llvm::StringRef name) {
  for (const ChipFacts &chip : chips)
    if (chip.name == name)
      return &chip;
  return nullptr;
}
