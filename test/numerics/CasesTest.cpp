//===- CasesTest.cpp - What the generator covers --------------------------===//

#include "test/numerics/Cases.h"
#include "test/numerics/SpecText.h"

#include "mlir/IR/MLIRContext.h"
#include <gtest/gtest.h>

#include <set>

using namespace tokentile;
using namespace tokentile::attn;

namespace {

const std::vector<Case> &twoThousand() {
  static const std::vector<Case> cases = makeCases(1, 2000);
  return cases;
}

TEST(Cases, TheSameSeedGivesTheSameCases) {
  std::vector<Case> again = makeCases(1, 50);
  for (size_t i = 0; i < again.size(); ++i) {
    EXPECT_EQ(again[i].describe(), twoThousand()[i].describe());
    EXPECT_EQ(makeCase(1, int(i)).describe(), again[i].describe());
  }
  EXPECT_NE(makeCase(2, 0).describe(), again[0].describe());
}

TEST(Cases, SpecsDiffer) {
  std::set<std::string> specs;
  for (const Case &testCase : twoThousand())
    specs.insert(testCase.specText);
  EXPECT_GE(specs.size(), 300u);
}

/// Every clause appears, as text.
TEST(Cases, CoverEveryListedValue) {
  std::string all;
  for (const Case &testCase : twoThousand())
    all += testCase.specText + "\n";
  for (const char *text : {"dim 64>",
                           "dim 128>",
                           "dim 256>",
                           "keys<bf16> values<bf16>",
                           "keys<bf16> values<fp16>",
                           "keys<fp16> values<bf16>",
                           "keys<fp16> values<fp16>",
                           "page 16",
                           "page 32",
                           "page 64",
                           "page 128",
                           "page 256",
                           "page_major",
                           "head_major page",
                           "nhd page",
                           "slot_stride",
                           "contiguous",
                           " ring 16>",
                           " ring ",
                           " sink split<",
                           "split<pieces of ",
                           "block<in_pages>",
                           "block<dense>",
                           "columns uniform",
                           "columns counted",
                           "columns packed",
                           "positions given",
                           "positions from_lengths",
                           "lengths context",
                           "lengths total",
                           "prefix all",
                           "prefix left within 1,",
                           "prefix left within 4096",
                           "prefix symmetric within 16",
                           "prefix symmetric within 1024",
                           "suffix causal",
                           "suffix bidirectional",
                           "query<bf16 token_major",
                           "query<bf16 head_major",
                           "query<fp16 token_major",
                           "query<fp16 head_major",
                           "output<bf16 token_major",
                           "output<bf16 head_major",
                           "output<fp16 token_major",
                           "output<fp16 head_major",
                           "with lse",
                           "empty zero",
                           "empty nan",
                           "scale<",
                           "split<auto>",
                           "split<count of 1>",
                           "split<count of 7>",
                           "split<keys of 64>",
                           "split<keys of 512>"})
    EXPECT_NE(all.find(text), std::string::npos) << text;
}

TEST(Cases, CoverShapesAndEdges) {
  mlir::MLIRContext context;
  std::set<int64_t> groups, tokens, batches, totals, edges;
  std::set<std::pair<int, std::string>> interleaved;
  std::set<int> numbers;
  bool ragged = false, shortWindow = false, longWindow = false, none = false;
  for (size_t i = 0; i < 600; ++i) {
    const Case &testCase = twoThousand()[i];
    SpecModule spec = parseSpec(context, testCase.specText);
    ASSERT_TRUE(spec.kernel) << spec.error;
    KernelOp kernel = spec.kernel;
    groups.insert(kernel.getHeads().getGroup());
    tokens.insert(kernel.getTokens());
    batches.insert(testCase.batch);
    numbers.insert(int(testCase.numbers));
    EXPECT_LE(kernel.getRows(), 128);
    PagingAttr paging = kernel.getPaging();
    interleaved.insert({int(testCase.interleave),
                        stringifyPageOrderKind(paging.getOrder()).str()});
    int64_t page = paging.getPage() ? paging.getPage() : 64;
    int64_t window = kernel.getSees().getWindow();
    for (int32_t b = 0; b < testCase.batch; ++b) {
      int64_t total = testCase.contexts[b] + testCase.columns[b];
      totals.insert(testCase.lengths[b] ? total : 0);
      if (total > 1)
        edges.insert((total + 1) % page);
      ragged |= b && testCase.contexts[b] != testCase.contexts[0];
      none |= testCase.columns[b] == 0;
      shortWindow |= window && window < testCase.contexts[b];
      longWindow |= window > total;
    }
  }
  EXPECT_EQ(groups, (std::set<int64_t>{1, 2, 4, 5, 6, 7, 8, 16}));
  EXPECT_EQ(tokens.size(), 17u);
  EXPECT_EQ(batches, (std::set<int64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(numbers.size(), 5u);
  EXPECT_TRUE(ragged && shortWindow && longWindow && none);
  EXPECT_TRUE(totals.count(0) && totals.count(1));
  // One key short of a page, a full page, one key over.
  EXPECT_TRUE(edges.count(0) && edges.count(1) && edges.count(2));
  EXPECT_TRUE(interleaved.count({int(Interleave::Pages), "page_major"}));
  EXPECT_TRUE(interleaved.count({int(Interleave::Pages), "nhd"}));
  EXPECT_TRUE(interleaved.count({int(Interleave::Slots), "nhd"}));
}

} // namespace
