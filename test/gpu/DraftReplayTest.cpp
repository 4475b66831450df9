//===- DraftReplayTest.cpp - Every draft kernel against fp64, replayed ----===//
//
// Wrong attention of a draft only lowers acceptance: no output is wrong. So
// each shape of published drafts is held to the numerics rule here, through one
// recorded launch whose requests grow, shrink and are padding: block rows in a
// dense segment behind the pages of each request, or (joined) in contiguous
// keys behind the context, with packed queries. Runs on the host, with few
// heads, and on a GPU.
//
//===----------------------------------------------------------------------===//

#include "test/gpu/Recording.h"

#include <gtest/gtest.h>

using namespace tokentile;

namespace {

constexpr int32_t batch = 4;
constexpr int32_t maxKeys = 700;

/// Contexts by step; -1 is padding.
const std::vector<int32_t> steps[] = {
    {0, 15, 300, -1}, {17, 16, 1, 600}, {-1, -1, 640, -1},
    {64, 63, 0, 127}, {-1, -1, -1, -1}, {500, 31, 33, 2},
};

struct Heads {
  int query, kv;
};

class DraftReplay : public testing::TestWithParam<
                        std::tuple<std::string, Heads, int32_t, std::string>> {
};

/// Full, window, ring and sink have pages; joined and joined_window do not.
std::string specOf(Heads heads, int32_t tokens, const std::string &kind) {
  bool isJoined = kind.rfind("joined", 0) == 0;
  std::string prefix =
      kind == "full" || kind == "joined" ? "all" : "symmetric within 100";
  std::string cache = isJoined
                          ? "paging<contiguous> block<in_pages> "
                            "query<bf16 token_major columns packed "
                            "lengths total>"
                          : "paging<page_major page 16" +
                                std::string(kind == "ring" ? " ring 128" : "") +
                                "> block<dense> "
                                "query<bf16 token_major columns counted>";
  return "attn.kernel @draft heads<" + std::to_string(heads.query) + " over " +
         std::to_string(heads.kv) + ", dim 128> tokens<" +
         std::to_string(tokens) + "> sees<prefix " + prefix +
         ", suffix bidirectional> keys<bf16> values<bf16> " + cache +
         (kind == "sink" ? " sink" : "") + " split<auto>";
}

TEST_P(DraftReplay, IsRightAtEveryStep) {
  auto [name, heads, tokens, kind] = GetParam();
  StatusOr<std::unique_ptr<Device>> device = openDevice(name);
  if (!device.ok())
    GTEST_SKIP() << device.status().toString();
  std::string text = specOf(heads, tokens, kind);
  mlir::MLIRContext context;
  SpecModule spec = parseSpec(context, text);
  ASSERT_TRUE(spec.kernel) << spec.error;
  std::vector<std::unique_ptr<Problem>> problems;
  std::vector<Problem *> all;
  for (const std::vector<int32_t> &contexts : steps) {
    Case step;
    step.specText = text;
    step.batch = batch;
    for (size_t b = 0; b < contexts.size(); ++b) {
      // The last request's block ends early, as near its last token.
      int32_t columns = b + 1 == contexts.size() ? tokens - 1 : tokens;
      if (contexts[b] < 0)
        columns = 0;
      bool isJoined = kind.rfind("joined", 0) == 0;
      step.contexts.push_back(std::max(0, contexts[b]));
      step.columns.push_back(columns);
      step.lengths.push_back(step.contexts[b] + (isJoined ? columns : 0));
    }
    step.seed = problems.size() + 1;
    std::string error;
    problems.push_back(Problem::create(spec.kernel, step, error));
    ASSERT_TRUE(problems.back()) << error;
    all.push_back(problems.back().get());
  }
  // What is planned for much longer requests is divided into ranges of tiles,
  // where the kernel has them.
  std::vector<int32_t> bounds = {maxKeys};
  if (name != "host")
    bounds.push_back(100000);
  for (int32_t bound : bounds) {
    Recording recording(**device);
    Status recorded = recording.record(text, {batch, bound}, all);
    ASSERT_TRUE(recorded.ok()) << recorded.toString();
    for (size_t i = 0; i < all.size(); ++i) {
      Status status = recording.replay(*all[i]);
      ASSERT_TRUE(status.ok()) << status.toString();
      Comparison verdict = all[i]->check();
      EXPECT_TRUE(verdict.ok)
          << "bound " << bound << " step " << i << ": " << verdict.message;
    }
  }
}

std::string nameOf(const testing::TestParamInfo<DraftReplay::ParamType> &info) {
  auto [name, heads, tokens, kind] = info.param;
  return "q" + std::to_string(heads.query) + "_kv" + std::to_string(heads.kv) +
         "_t" + std::to_string(tokens) + "_" + kind;
}

const auto widths = testing::Values(8, 9, 10, 16, 17);
const auto kinds = testing::Values("full", "window", "ring", "sink", "joined",
                                   "joined_window");

// A host kernel is the same code for each kv head.
INSTANTIATE_TEST_SUITE_P(
    Host, DraftReplay,
    testing::Combine(testing::Values("host"),
                     testing::Values(Heads{4, 1}, Heads{8, 1}), widths, kinds),
    nameOf);
INSTANTIATE_TEST_SUITE_P(
    Cuda, DraftReplay,
    testing::Combine(testing::Values("cuda"),
                     testing::Values(Heads{32, 8}, Heads{64, 8}, Heads{32, 4}),
                     widths, kinds),
    nameOf);

} // namespace
