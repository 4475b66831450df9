//===- LaneCases.cpp - Small cases with every kind of schedule ------------===//

#include "test/numerics/LaneCases.h"

#include "codegen/Compiler.h"
#include "test/numerics/Random.h"

using namespace tokentile;

/// A schedule for a spec of `rows` rows; it may turn out not to fit.
static std::string drawSchedule(Random &random, int64_t rows,
                                const std::string &chip) {
  std::string text = " schedule<mma chip \"" + chip + "\" key_tile " +
                     std::to_string(random.pick({16, 32, 64, 64, 128}));
  int64_t blocks = rows > 128 || (rows > 16 && random.oneIn(4)) ? 2 : 1;
  int64_t warps = ((rows + blocks - 1) / blocks + 15) / 16;
  // Warps without rows must do no harm.
  if (warps < 8 && random.oneIn(8))
    ++warps;
  text += " row_warps " + std::to_string(warps);
  text += " key_warps " + std::to_string(random.pick({1, 2, 4}));
  text += " stages " + std::to_string(random.pick({2, 2, 3, 4}));
  if (blocks > 1)
    text += " row_blocks 2 max_sweeps 2";
  text += std::string(" query ") + random.pick({"shared", "registers"});
  return text + ">";
}

LaneCase tokentile::makeLaneCase(uint64_t seed, int index, int batch) {
  LaneCase result = {makeCase(seed, index, batch, Size::Small),
                     laneChips[index % std::size(laneChips)]};
  auto context = createContext();
  Random random(seed, uint64_t(index) + 1000003);
  const std::string plain = result.testCase.specText;
  auto module = llvm::cantFail(parseSpec(plain, "spec", *context));
  int64_t rows = (*module->getOps<attn::KernelOp>().begin()).getRows();
  for (int attempt = 0; attempt < 30; ++attempt) {
    result.testCase.specText = plain + drawSchedule(random, rows, result.chip);
    auto drawn = parseSpec(result.testCase.specText, "spec", *context);
    if (!drawn) {
      llvm::consumeError(drawn.takeError());
      continue;
    }
    module = std::move(*drawn);
    llvm::Error error = lowerTo(*module, Level::Plan, result.chip);
    if (!error)
      return result;
    llvm::consumeError(std::move(error));
  }
  result.testCase.specText = plain;
  return result;
}
