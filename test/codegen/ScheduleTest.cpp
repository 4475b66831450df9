//===- ScheduleTest.cpp - The cost model and the choice, as data ----------===//

#include "SpecBuilder.h"

#include "codegen/Layout.h"
#include "codegen/Schedule.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;
using namespace tokentile::test;

namespace {

class ScheduleTest : public testing::Test {
protected:
  KernelOp parse(const Spec &spec) {
    module = context.parse(spec.text());
    return SpecContext::kernel(*module);
  }

  static MmaSchedule plain() {
    MmaSchedule s;
    s.rowWarps = 4;
    s.keyWarps = 2;
    s.keyTile = 64;
    s.stages = 2;
    return s;
  }

  SpecContext context;
  OwningOpRef<ModuleOp> module;
};

} // namespace

TEST_F(ScheduleTest, SharedMemoryIsTheQueryAndTheSlots) {
  KernelOp spec = parse(Spec());
  MmaSchedule s;
  s.rowWarps = 6;
  s.keyWarps = 1;
  s.keyTile = 32;
  s.stages = 3;
  EXPECT_EQ(sharedLayout(spec, s).bytes, (96 + 2 * 3 * 32) * 256 * 2);
}

TEST_F(ScheduleTest, SharedMemoryHoldsTheMeetingOfKeyWarps) {
  // A bug, mended: each warp but those of key warp 0 leaves every register of
  // its statistics and its output, more than 16 rows of dim + 2 floats.
  for (int64_t dim : {64, 128, 256}) {
    Spec text;
    text.dim = dim;
    KernelOp spec = parse(text);
    for (int64_t keyWarps : {1, 2, 4})
      for (int64_t rowWarps = 1; rowWarps * keyWarps <= 8; ++rowWarps) {
        MmaSchedule s;
        s.rowWarps = rowWarps;
        s.keyWarps = keyWarps;
        s.keyTile = 16 * keyWarps;
        s.stages = 2;
        int64_t query = rowWarps * layout::kRows * dim * 2;
        int64_t lane = 2 + 2 + dim / 8 * 4;
        int64_t warps = (keyWarps - 1) * rowWarps;
        EXPECT_GE(sharedLayout(spec, s).bytes,
                  query + warps * lane * layout::kWarp * 4)
            << "dim " << dim << ", " << rowWarps << " x " << keyWarps;
      }
  }
}

TEST_F(ScheduleTest, SharedMemoryGrowsWithEachChoice) {
  KernelOp spec = parse(Spec());
  int64_t before = sharedLayout(spec, plain()).bytes;
  for (int64_t MmaSchedule::*field :
       {&MmaSchedule::rowWarps, &MmaSchedule::keyTile, &MmaSchedule::stages}) {
    MmaSchedule more = plain();
    more.*field *= 2;
    EXPECT_GT(sharedLayout(spec, more).bytes, before);
  }
}

TEST_F(ScheduleTest, FragmentsNeedRegistersForWhatTheyHold) {
  KernelOp spec = parse(Spec());
  MmaSchedule s = plain();
  // Output, one step of the query, scores and packed probabilities.
  EXPECT_EQ(fragmentRegisters(spec, s), 128 + 4 + 16 + 8);
  s.queryInRegisters = true;
  EXPECT_EQ(fragmentRegisters(spec, s), 128 + 64 + 16 + 8);
  MmaSchedule wide = plain();
  wide.keyTile *= 2;
  EXPECT_GT(fragmentRegisters(spec, wide), fragmentRegisters(spec, plain()));
  MmaSchedule divided = plain();
  divided.keyWarps *= 2;
  EXPECT_LT(fragmentRegisters(spec, divided), fragmentRegisters(spec, plain()));
}

TEST_F(ScheduleTest, CostFallsAndRisesWithTheRightChoices) {
  KernelOp spec = parse(Spec());
  for (const ChipFacts &chip : knownChips()) {
    if (chip.isHost())
      continue;
    SCOPED_TRACE(chip.name.str());
    double cost = cyclesPerKey(spec, plain(), chip);
    EXPECT_GT(cost, 0);
    MmaSchedule rows = plain();
    rows.rowWarps *= 2;
    EXPECT_GT(cyclesPerKey(spec, rows, chip), cost) << "more padded rows";
    MmaSchedule stages = plain();
    stages.stages += 1;
    EXPECT_LE(cyclesPerKey(spec, stages, chip), cost) << "more bytes in flight";
    MmaSchedule tile = plain();
    tile.keyTile *= 2;
    EXPECT_LT(cyclesPerKey(spec, tile, chip), cost) << "fewer tiles";
    MmaSchedule registers = plain();
    registers.queryInRegisters = true;
    EXPECT_LE(cyclesPerKey(spec, registers, chip), cost) << "fewer reads";
    ChipFacts slow = chip;
    slow.gigabytesPerSecond /= 2;
    EXPECT_GE(cyclesPerKey(spec, plain(), slow), cost) << "less bandwidth";
  }
}

TEST_F(ScheduleTest, EveryPointHasAScheduleThatFitsOrARefusal) {
  for (const ChipFacts &chip : knownChips()) {
    if (chip.isHost())
      continue;
    for (Spec point : publishedGeometries())
      for (point.tokens = 1; point.tokens <= 32; ++point.tokens) {
        SCOPED_TRACE(chip.name.str() + ": " + point.text());
        KernelOp spec = parse(point);
        context.takeErrors();
        ScheduleAttr chosen = selectSchedule(spec, chip);
        int64_t rows = point.tokens * (point.queryHeads / point.kvHeads);
        int64_t limit = point.dim > 128 ? 128 : chip.hasWgmma() ? 256 : 160;
        if (!chosen) {
          EXPECT_GT(rows, limit);
          EXPECT_NE(context.takeErrors().find("sweeps over the keys"),
                    std::string::npos);
          continue;
        }
        EXPECT_LE(rows, limit);
        MmaSchedule s = readSchedule(chosen);
        EXPECT_EQ(s.rowBlocks, 1) << "one sweep";
        EXPECT_GE(s.rows(), rows);
        EXPECT_EQ(s.wgmma, chip.hasWgmma() && rows > 16);
        EXPECT_LT(s.rows() - (s.wgmma ? 64 : s.rowTiles * 16), rows)
            << "no warp or warpgroup without rows";
        EXPECT_LE(s.warps(), 16);
        EXPECT_EQ(s.keyTile % (16 * s.keyWarps), 0);
        EXPECT_LE(sharedLayout(spec, s).bytes, chip.sharedPerBlock);
        RoleRegisters registers = roleRegisters(spec, s, chip);
        EXPECT_LE(fragmentRegisters(spec, s) + (s.wgmma ? 52 : 59),
                  registers.consumers);
        int64_t producers = s.blockThreads() - s.threads();
        EXPECT_LE(registers.consumers * s.threads() +
                      registers.producers * producers,
                  65536 / blocksPerSm(spec, s, chip));
        // The driver takes 1 KiB for each block.
        EXPECT_LE(blocksPerSm(spec, s, chip) *
                      (sharedLayout(spec, s).bytes + 1024),
                  chip.sharedPerSm);
        EXPECT_EQ(blocksPerSm(spec, s, chip) == 2, chip.hasWgmma() &&
                                                       point.dim <= 128 &&
                                                       rows > 16 && rows <= 64);
        EXPECT_EQ(selectSchedule(spec, chip), chosen) << "stable";
      }
  }
}

TEST_F(ScheduleTest, AChosenScheduleIsObeyedWhenGiven) {
  for (const ChipFacts &chip : knownChips()) {
    KernelOp spec = parse(Spec());
    ScheduleAttr chosen = selectSchedule(spec, chip);
    ASSERT_TRUE(chosen);
    spec.setScheduleAttr(chosen);
    EXPECT_EQ(selectSchedule(spec, chip), chosen) << chip.name.str();
  }
}

TEST_F(ScheduleTest, TheScheduleDoesNotDependOnHowKeysAreStored) {
  const ChipFacts &chip = *findChip("sm_90a");
  ScheduleAttr bf16 = selectSchedule(parse(Spec()), chip);
  Spec other;
  other.keys = "fp16";
  other.paging = "nhd page 128";
  KernelOp spec = parse(other);
  ScheduleAttr fp16 = selectSchedule(spec, chip);
  EXPECT_EQ(readSchedule(bf16).keyTile, readSchedule(fp16).keyTile);
  EXPECT_EQ(readSchedule(bf16).stages, readSchedule(fp16).stages);
}

TEST_F(ScheduleTest, AxesOfTheSpecLeaveFewerRegisters) {
  // Windows and small pages take registers from fragments.
  const ChipFacts &chip = *findChip("sm_90a");
  Spec other;
  other.paging = "nhd page 16";
  other.sees = "prefix left within 4096, suffix bidirectional";
  KernelOp plain = parse(Spec());
  int64_t most =
      fragmentRegisters(plain, readSchedule(selectSchedule(plain, chip)));
  KernelOp spec = parse(other);
  EXPECT_LT(fragmentRegisters(spec, readSchedule(selectSchedule(spec, chip))),
            most);
}

TEST_F(ScheduleTest, MeetingAtEveryTileDividesTheOutput) {
  KernelOp spec = parse(Spec());
  MmaSchedule end = plain(), tile = plain();
  tile.meetAtTile = true;
  EXPECT_EQ(fragmentRegisters(spec, end) - fragmentRegisters(spec, tile), 64);
  // Probabilities of 64 rows and keys, and sixteen bytes a row.
  SharedLayout layout = sharedLayout(spec, tile);
  EXPECT_EQ(layout.probabilities, 64 * 256 * 2);
  EXPECT_EQ(layout.scratch - layout.probabilities, 64 * 64 * 2);
  EXPECT_EQ(layout.tiles - layout.scratch, 64 * 16);
}

TEST_F(ScheduleTest, KnownChipsAreFound) {
  for (const ChipFacts &chip : knownChips())
    EXPECT_EQ(findChip(chip.name), &chip);
  EXPECT_EQ(findChip("sm_70"), nullptr);
  EXPECT_EQ(findChip(""), nullptr);
}

TEST_F(ScheduleTest, InvariantRowsOfGivenPositionsHavePiecesOfOneSize) {
  Spec spec;
  spec.rest =
      "query<bf16 token_major positions given> schedule<auto invariant>";
  KernelOp kernel = parse(spec);
  const ChipFacts &facts = *findChip("sm_90a");
  ScheduleAttr chosen = selectSchedule(kernel, facts);
  ASSERT_TRUE(chosen) << context.takeErrors();
  kernel.setScheduleAttr(chosen);
  EXPECT_EQ(selectSplit(kernel, facts).getKind(), SplitKind::Keys);
}

TEST_F(ScheduleTest, InvariantSchedulesSumInOneOrder) {
  for (Spec spec : publishedGeometries())
    for (const char *chip : {"sm_80", "sm_86", "sm_90a"}) {
      ScheduleAttr first;
      SplitAttr split;
      for (spec.tokens = 1; spec.tokens <= 8; ++spec.tokens) {
        spec.rest = "schedule<auto max_sweeps 4 invariant>";
        KernelOp kernel = parse(spec);
        const ChipFacts &facts = *findChip(chip);
        ScheduleAttr chosen = selectSchedule(kernel, facts);
        ASSERT_TRUE(chosen) << spec.text() << context.takeErrors();
        kernel.setScheduleAttr(chosen);
        SplitAttr pieces = selectSplit(kernel, facts);
        EXPECT_TRUE(chosen.getInvariant());
        EXPECT_EQ(pieces.getKind(), SplitKind::Pieces);
        first = first ? first : chosen;
        split = split ? split : pieces;
        EXPECT_EQ(pieces.getValue(), split.getValue()) << spec.text();
        EXPECT_EQ(chosen.getKeyTile(), first.getKeyTile()) << spec.text();
        EXPECT_EQ(chosen.getKeyWarps(), first.getKeyWarps()) << spec.text();
        EXPECT_EQ(chosen.getMeet(), first.getMeet()) << spec.text();
        EXPECT_EQ(chosen.getLowering(), first.getLowering()) << spec.text();
      }
    }
}
