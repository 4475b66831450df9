//===- ModelTest.cpp - A row's logits are its own -------------------------===//
//
// Drives the models by hand, without a decoder: the same tokens in steps of one
// row, of several, in prompt chunks, alone and in a ragged batch, must give the
// same bits; a draft's proposals do not depend on its route.
//
//===----------------------------------------------------------------------===//

#include "test/reference/HandDriven.h"
#include "test/reference/NaiveModel.h"

#include <algorithm>

using namespace tokentile;
using namespace tokentile::reference;

namespace {

class ModelTest : public testing::TestWithParam<std::tuple<std::string, bool>> {
protected:
  void SetUp() override {
    StatusOr<std::unique_ptr<Device>> opened =
        openDevice(std::get<0>(GetParam()));
    if (!opened.ok())
      GTEST_SKIP() << opened.status().toString();
    device = *std::move(opened);
    target.config = smallTarget(/*recurrent=*/std::get<1>(GetParam()));
    target.weights = WeightSource(3);
    draft.config = smallDraft(target.config);
    draft.weights = WeightSource(4);
  }

  HandDriven drive(int32_t batch, int32_t drafts,
                   DraftRoute route = DraftRoute::Batched) {
    RigShape shape;
    shape.batch = batch;
    shape.drafts = drafts;
    shape.tokens = 400;
    shape.chunk = 32;
    shape.promptBatch = batch;
    shape.pageTokens = 16;
    return HandDriven(*device, shape, target, draft, route);
  }

  std::unique_ptr<Device> device;
  ModelSource<TargetConfig> target;
  ModelSource<DraftConfig> draft;
};

std::vector<int32_t> countTokens(int32_t count, int32_t first) {
  std::vector<int32_t> tokens(count);
  for (int32_t i = 0; i < count; ++i)
    tokens[i] = (first + i * 31 + i * i) % 90;
  return tokens;
}

TEST_P(ModelTest, ARowsLogitsDependOnTheTokensBeforeItAlone) {
  std::vector<int32_t> tokens = countTokens(300, 7);
  HandDriven plain = drive(1, 0);
  std::vector<std::vector<float>> want;
  for (int32_t token : tokens)
    want.push_back(plain.step({{token}}, {1}, 1, false)[0][0]);

  // Prompt chunks of ragged sizes, then verify steps of which only some rows
  // are kept; beside a request that grows at another pace.
  for (int32_t drafts : {1, 3, 15}) {
    HandDriven driven = drive(3, drafts);
    std::vector<int32_t> other = countTokens(380, 11);
    size_t at = 0, beside = 0;
    for (int32_t rows : {1, 32, 17, 32}) {
      auto slice = [&](const std::vector<int32_t> &from, size_t first) {
        return std::vector<int32_t>(from.begin() + first,
                                    from.begin() + first + rows);
      };
      driven.step({slice(tokens, at), {}, slice(other, beside)},
                  {rows, 0, rows}, 32, /*prompt=*/true);
      at += rows;
      beside += rows;
    }
    for (int32_t kept = 1; at + drafts + 1 <= tokens.size() &&
                           beside + drafts + 1 <= other.size();
         kept = kept % (drafts + 1) + 1) {
      // Rows beyond the kept ones are wrong guesses.
      std::vector<int32_t> block(tokens.begin() + at,
                                 tokens.begin() + at + drafts + 1);
      for (int32_t i = kept; i <= drafts; ++i)
        block[i] = (block[i] + 1) % 90;
      std::vector<int32_t> more(other.begin() + beside,
                                other.begin() + beside + drafts);
      auto got = driven.step({block, {}, more}, {kept, 0, 1}, drafts + 1,
                             /*prompt=*/false);
      for (int32_t i = 0; i < kept; ++i)
        ASSERT_EQ(got[0][i], want[at + i])
            << drafts << " drafts, row " << i << " at " << at + i;
      at += kept;
      beside += 1;
    }
    EXPECT_GT(at, 110u);
  }
}

TEST_P(ModelTest, LogitsDifferFromTokenToToken) {
  HandDriven plain = drive(1, 0);
  std::vector<float> first = plain.step({{5}}, {1}, 1, false)[0][0];
  plain.step({{9}}, {1}, 1, false);
  std::vector<float> second = plain.step({{5}}, {1}, 1, false)[0][0];
  EXPECT_NE(first, second) << "what came before does not count";
  EXPECT_TRUE(std::all_of(first.begin(), first.end(),
                          [](float x) { return std::isfinite(x); }));
  EXPECT_NE(*std::max_element(first.begin(), first.end()),
            *std::min_element(first.begin(), first.end()));
}

TEST_P(ModelTest, ProposalsDoNotDependOnTheRouteNorOnTheBatch) {
  const int32_t drafts = 8;
  std::vector<std::vector<int32_t>> proposals;
  for (DraftRoute route :
       {DraftRoute::Batched, DraftRoute::Loop, DraftRoute::Reattend}) {
    HandDriven driven = drive(3, drafts, route);
    std::vector<int32_t> a = countTokens(70, 1), b = countTokens(9, 2);
    for (size_t i = 0; i < a.size(); i += 14) {
      std::vector<int32_t> chunk(a.begin() + i, a.begin() + i + 14);
      driven.step({chunk, {}, i ? std::vector<int32_t>() : b},
                  {14, 0, i ? 0 : 9}, 32, true);
    }
    proposals.push_back(driven.propose({8, -1, 9}, drafts + 1));
  }
  HandDriven alone = drive(1, drafts);
  std::vector<int32_t> b = countTokens(9, 2);
  alone.step({b}, {9}, 32, true);
  std::vector<int32_t> own = alone.propose({9}, drafts + 1);
  EXPECT_EQ(proposals[1], proposals[0]);
  EXPECT_EQ(proposals[2], proposals[0]);
  EXPECT_EQ(own, std::vector<int32_t>(proposals[0].end() - drafts,
                                      proposals[0].end()));
}

/// The worst error of a row of logits beside their spread.
double relativeError(const Row &want, const std::vector<float> &got) {
  double worst = 0, square = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    worst = std::max(worst, std::abs(want[i] - got[i]));
    square += want[i] * want[i];
  }
  return worst / std::sqrt(square / double(want.size()));
}

// Rounding to bf16 at each step of a layer makes errors of some percent of the
// spread; a wrong layer, position, mask or norm, errors as large as it.
constexpr double roundingError = 0.06;

TEST_P(ModelTest, LogitsAreThoseOfTheDescription) {
  std::vector<int32_t> tokens = countTokens(60, 5);
  NaiveTarget naive(target.config, target.weights);
  NaiveTarget::Result want = naive.run(tokens);
  HandDriven plain = drive(1, 3);
  for (size_t i = 0; i < tokens.size(); i += 4) {
    std::vector<int32_t> block(tokens.begin() + i, tokens.begin() + i + 4);
    std::vector<std::vector<float>> got = plain.step({block}, {4}, 4, false)[0];
    for (size_t j = 0; j < 4; ++j)
      EXPECT_LT(relativeError(want.logits[i + j], got[j]), roundingError)
          << "position " << i + j;
  }
}

TEST_P(ModelTest, ProposalsAreThoseOfTheDescription) {
  std::vector<int32_t> tokens = countTokens(60, 5);
  NaiveTarget naive(target.config, target.weights);
  NaiveDraft naiveDraft(draft.config, draft.weights);
  for (int32_t drafts : {1, 8, 15}) {
    HandDriven driven = drive(1, drafts);
    for (size_t length : {20, 52}) {
      std::vector<int32_t> before(tokens.begin(), tokens.begin() + length);
      size_t committed = driven.length(0);
      driven.step({{before.begin() + committed, before.end()}},
                  {int32_t(length - committed)}, 32, true);
      driven.propose({tokens[length]}, drafts + 1);
      Matrix want = naiveDraft.propose(naive, naive.run(before).taps,
                                       tokens[length], drafts);
      std::vector<std::vector<float>> got = driven.proposalLogits(drafts);
      for (int32_t i = 0; i < drafts; ++i)
        EXPECT_LT(relativeError(want[i], got[i]), roundingError)
            << drafts << " drafts behind " << length << ", row " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, ModelTest,
                         testing::Combine(testing::Values("host", "cuda"),
                                          testing::Bool()),
                         [](const auto &info) {
                           return std::get<0>(info.param) +
                                  (std::get<1>(info.param) ? "_recurrent"
                                                           : "_attention");
                         });

} // namespace
