//===- ChipFacts.h - What schedule selection knows of a chip ----*- C++ -*-===//

#ifndef TOKENTILE_CODEGEN_CHIPFACTS_H
#define TOKENTILE_CODEGEN_CHIPFACTS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace tokentile {

/// Facts of one target, from vendors' data sheets for its largest common part.
struct ChipFacts {
  llvm::StringRef name;
  /// The part whose figures these are.
  llvm::StringRef part;
  int64_t multiprocessors;
  /// Shared memory a block may ask for, and of a multiprocessor, in bytes.
  int64_t sharedPerBlock;
  int64_t sharedPerSm;
  /// Memory bandwidth and dense 16-bit mma.sync rate with fp32 accumulators of
  /// the whole chip, and its clock.
  double gigabytesPerSecond;
  double mmaTeraflops;
  double gigahertz;
  /// Dense 16-bit rate of wgmma, 0 where there is none.
  double wgmmaTeraflops;
  /// Oldest PTX version that knows the target and the instructions we use.
  int64_t ptxVersion;
  bool hasWgmma() const { return wgmmaTeraflops > 0; }
  bool isHost() const { return name == "host"; }
};

/// Every chip we generate for.
llvm::ArrayRef<ChipFacts> knownChips();

/// The facts of `name`, or null.
const ChipFacts *findChip(llvm::StringRef name);

} // namespace tokentile

#endif // TOKENTILE_CODEGEN_CHIPFACTS_H
