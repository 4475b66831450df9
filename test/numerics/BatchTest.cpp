//===- BatchTest.cpp - Requests alone and in a batch ----------------------===//
//
// Ragged batches against the reference, and what a request owes to the others:
// with `split<keys>` not a bit. Generated host functions, and GPU kernels lane
// by lane.
//
//===----------------------------------------------------------------------===//

#include "runtime/JitCompiler.h"
#include "test/numerics/LaneRunner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

using namespace tokentile;

namespace {

std::string specOf(const std::string &rest) {
  return "attn.kernel @batch heads<6 over 2, dim 64> tokens<2> sees<prefix "
         "all, suffix causal> keys<bf16> values<bf16> paging<page_major page "
         "16> query<bf16 token_major columns counted> " +
         rest;
}

Case makeBatch(const std::string &text, const std::vector<int32_t> &contexts) {
  Case testCase;
  testCase.specText = text;
  testCase.batch = int32_t(contexts.size());
  testCase.seed = contexts.size();
  testCase.contexts = testCase.lengths = contexts;
  for (int32_t b = 0; b < testCase.batch; ++b)
    testCase.columns.push_back(2 - b % 7 / 3);
  return testCase;
}

/// One request so long that it is divided, many short ones, some without keys
/// or query tokens.
std::vector<int32_t> raggedContexts(size_t batch) {
  std::vector<int32_t> contexts(batch);
  for (size_t b = 0; b < batch; ++b)
    contexts[b] = b % 5 == 4 ? 0 : int32_t(37 * b % 150);
  contexts[batch / 2] = 3300;
  return contexts;
}

/// Runs host functions over a problem, or over one request of it.
class HostRunner {
public:
  HostRunner(const CompiledKernel &kernel, Problem &problem,
             int32_t multiprocessors)
      : kernel(kernel), problem(problem), multiprocessors(multiprocessors) {}

  void run() { run(problem.getHostArgs()); }
  /// Plans for the request alone, as short as it is.
  void runAlone(int32_t request) {
    KernelArgs args = problem.getHostArgs();
    const Case &all = problem.getCase();
    int64_t token = int64_t(request) * kernel.info.tokens;
    args.query =
        static_cast<const char *>(args.query) + token * args.queryTokenStride;
    args.output =
        static_cast<char *>(args.output) + token * args.outputTokenStride;
    args.table += request * args.tableStride;
    args.lengths += request;
    args.columns += request;
    args.batch = 1;
    args.maxKeys = std::max(1, all.contexts[request] + all.columns[request]);
    run(args);
  }
  std::vector<uint8_t> output() const {
    return problem.getTensor("output").storage;
  }
  /// Runs over changed arguments.
  void run(KernelArgs args) {
    WorkPlan work =
        planWork(kernel.info, {args.batch, args.maxKeys}, multiprocessors);
    args.items = work.items;
    args.slots = work.slots;
    args.mergeBlocks = work.mergeBlocks;
    args.partials = work.partials;
    const KernelInfo &info = kernel.info;
    Workspace workspace = workspaceOf(info, work, args.batch);
    // All ones are NaN.
    std::vector<uint8_t> memory(workspace.bytes, 0xff);
    workspace.place(memory.data(), args);
    for (int32_t x = 0; x < work.items * info.kvHeads * info.rowBlocks; ++x)
      kernel.sweep(&args, x);
    for (int32_t x = 0; x < work.mergeBlocks; ++x)
      kernel.merge(&args, x);
  }

private:
  const CompiledKernel &kernel;
  Problem &problem;
  int32_t multiprocessors;
};

class Batch : public testing::Test {
protected:
  void make(const std::string &rest, const std::vector<int32_t> &contexts,
            const std::string &chip) {
    std::string text = specOf(rest);
    auto made = LaneRunner::create(text, chip);
    ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
    lanes = std::move(*made);
    std::string error;
    problem =
        Problem::create(lanes->getSpec(), makeBatch(text, contexts), error);
    ASSERT_TRUE(problem) << error;
    StatusOr<CompiledKernel> compiled = compileKernel(text, "host");
    ASSERT_TRUE(compiled.ok()) << compiled.status().toString();
    host = *compiled;
  }

  std::unique_ptr<LaneRunner> lanes;
  std::unique_ptr<Problem> problem;
  CompiledKernel host;
};

} // namespace

TEST_F(Batch, RaggedOnTheHost) {
  for (size_t batch : {2, 3, 8, 31, 33, 70})
    for (const char *rest : {"", "split<count of 3>", "split<keys of 128>"}) {
      make(rest, raggedContexts(batch), "sm_80");
      HostRunner runner(host, *problem, 16);
      problem->poisonOutputs();
      runner.run();
      Comparison verdict = problem->check();
      EXPECT_TRUE(verdict.ok)
          << rest << ", batch " << batch << ": " << verdict.message;
    }
}

TEST_F(Batch, RaggedLaneByLane) {
  for (size_t batch : {2, 5, 33})
    for (const char *rest : {"", "split<count of 3>", "split<keys of 512>"}) {
      if (batch > 5 && *rest)
        continue;
      make(rest, raggedContexts(batch), "sm_100a");
      auto outcome = lanes->run(*problem);
      ASSERT_TRUE(bool(outcome)) << llvm::toString(outcome.takeError());
      EXPECT_GT(outcome->items, int32_t(batch));
      EXPECT_TRUE(outcome->comparison.ok)
          << rest << ", batch " << batch << ": " << outcome->comparison.message;
    }
}

/// A batch of requests that have all of their `tokens` query tokens.
static Case wholeBlocks(const std::string &specText,
                        const std::vector<int32_t> &contexts, int32_t tokens) {
  Case result;
  result.specText = specText;
  result.batch = int32_t(contexts.size());
  result.seed = 5;
  result.contexts = result.lengths = contexts;
  result.columns.assign(contexts.size(), tokens);
  return result;
}

// Draft blocks beside padded requests; of few tiles each is a part of its own.
TEST_F(Batch, DraftsLaneByLane) {
  constexpr int32_t tokens = 8;
  const std::string text =
      "attn.kernel @draft heads<4 over 1, dim 128> tokens<" +
      std::to_string(tokens) +
      "> sees<prefix all, suffix bidirectional> keys<bf16> values<bf16> "
      "paging<page_major page 16> block<dense> query<bf16 token_major columns "
      "counted> schedule<mma key_tile 64>";
  auto draft = LaneRunner::create(text, "sm_90a");
  ASSERT_TRUE(bool(draft)) << llvm::toString(draft.takeError());
  (*draft)->multiprocessors = 16;
  for (const std::vector<int32_t> &contexts :
       {std::vector<int32_t>{-1, -1, 640, -1}, {17, 16, 1, 600}, {-1, 700}}) {
    Case testCase = wholeBlocks(text, contexts, tokens);
    for (size_t b = 0; b < contexts.size(); ++b)
      if (contexts[b] < 0)
        testCase.contexts[b] = testCase.lengths[b] = testCase.columns[b] = 0;
    std::string error;
    problem = Problem::create((*draft)->getSpec(), testCase, error);
    ASSERT_TRUE(problem) << error;
    auto outcome = (*draft)->run(*problem);
    ASSERT_TRUE(bool(outcome)) << llvm::toString(outcome.takeError());
    EXPECT_GT(outcome->items, testCase.batch);
    EXPECT_TRUE(outcome->comparison.ok) << outcome->comparison.message;
  }
}

TEST_F(Batch, PiecesOfKeysDependOnNoOtherRequest) {
  std::vector<int32_t> contexts = raggedContexts(9);
  make("split<keys of 128>", contexts, "sm_80");
  HostRunner runner(host, *problem, 16);
  problem->poisonOutputs();
  runner.run();
  std::vector<uint8_t> together = runner.output();
  problem->poisonOutputs();
  for (int32_t b = 0; b < 9; ++b)
    runner.runAlone(b);
  EXPECT_EQ(together, runner.output());
}

// A row's pieces are those of its position, however many rows are beside it
// and wherever the window of the others begins. They are more than a merge
// reads at one time.
TEST_F(Batch, PiecesOfKeysDependOnNoOtherRow) {
  auto specOfTokens = [](int64_t tokens) {
    return "attn.kernel @batch heads<8 over 8, dim 64> tokens<" +
           std::to_string(tokens) +
           "> sees<prefix left within 5000, suffix causal> keys<bf16> "
           "values<fp16> paging<page_major page 16> output<fp16 "
           "token_major with lse> split<keys of 32> "
           "schedule<auto key_tile 32 key_warps 1>";
  };
  // The window of row 4 begins with a piece.
  constexpr int32_t tokens = 8, context = 13 * 32 + 4999 - 4;
  Case testCase = wholeBlocks(specOfTokens(tokens), {context}, tokens);
  auto all = LaneRunner::create(testCase.specText, "sm_100a");
  auto one = LaneRunner::create(specOfTokens(1), "sm_100a");
  ASSERT_TRUE(bool(all)) << llvm::toString(all.takeError());
  ASSERT_TRUE(bool(one)) << llvm::toString(one.takeError());
  std::string error;
  problem = Problem::create((*all)->getSpec(), testCase, error);
  ASSERT_TRUE(problem) << error;
  auto outcome = (*all)->run(*problem);
  ASSERT_TRUE(bool(outcome)) << llvm::toString(outcome.takeError());
  EXPECT_TRUE(outcome->comparison.ok) << outcome->comparison.message;
  // Many numbers, in fp16: few show the last bit of a sum.
  std::vector<uint8_t> together[] = {problem->getTensor("output").storage,
                                     problem->getTensor("lse").storage};
  std::vector<uint8_t> alone[] = {together[0], together[1]};
  for (int32_t token = 0; token < tokens; ++token) {
    int32_t before = context + token;
    KernelArgs all = problem->getHostArgs();
    (*one)->allow({&before, &before + 1, false});
    (*one)->adjust = [&](KernelArgs &args) {
      args.query =
          static_cast<const char *>(args.query) + token * args.queryTokenStride;
      args.output =
          static_cast<char *>(args.output) + token * args.outputTokenStride;
      args.logSumExp += token * 8;
      args.lengths = &before;
    };
    outcome = (*one)->run(*problem);
    ASSERT_TRUE(bool(outcome)) << llvm::toString(outcome.takeError());
    auto keep = [&](const char *name, int64_t bytes,
                    std::vector<uint8_t> &kept) {
      const HostTensor &tensor = problem->getTensor(name);
      int64_t at = tensor.offset + token * bytes;
      std::copy_n(tensor.storage.begin() + at, bytes, kept.begin() + at);
    };
    keep("output", all.outputTokenStride, alone[0]);
    keep("lse", 8 * sizeof(float), alone[1]);
  }
  EXPECT_EQ(together[0], alone[0]);
  EXPECT_EQ(together[1], alone[1]);
}

// The same kernel family at every width: a row's bits are those of its
// position.
TEST_F(Batch, InvariantRowsDependOnNothingElse) {
  auto specOfTokens = [](int64_t tokens) {
    return "attn.kernel @invariant heads<6 over 2, dim 64> tokens<" +
           std::to_string(tokens) +
           "> sees<prefix all, suffix causal> keys<bf16> values<fp16> "
           "paging<page_major page 16> output<fp16 token_major> "
           "sink split<pieces of 11> schedule<auto invariant>";
  };
  constexpr int32_t tokens = 16, batch = 3;
  // Of the first some rows have pieces of four tiles and others of five; of the
  // second some see one piece and others two.
  const std::vector<int32_t> contexts{11 * 256 - 6, 250, 700};
  Case testCase = wholeBlocks(specOfTokens(tokens), contexts, tokens);
  std::string error;
  auto widest = LaneRunner::create(testCase.specText, "sm_100a");
  ASSERT_TRUE(bool(widest)) << llvm::toString(widest.takeError());
  problem = Problem::create((*widest)->getSpec(), testCase, error);
  ASSERT_TRUE(problem) << error;

  for (bool onHost : {true, false}) {
    std::vector<uint8_t> together, alone;
    for (int32_t width : {16, 1, 3, 8}) {
      std::string text = specOfTokens(width);
      auto gpu = LaneRunner::create(text, "sm_100a");
      ASSERT_TRUE(bool(gpu)) << llvm::toString(gpu.takeError());
      StatusOr<CompiledKernel> compiled = compileKernel(text, "host");
      ASSERT_TRUE(compiled.ok()) << compiled.status().toString();
      // Requests one by one, their tokens in blocks of `width`.
      for (int32_t request = 0; request < batch; ++request)
        for (int32_t first = 0; first + width <= tokens; first += width) {
          int32_t before = contexts[request] + first;
          auto change = [&](KernelArgs &args) {
            int64_t token = int64_t(request) * tokens + first;
            args.query = static_cast<const char *>(args.query) +
                         token * args.queryTokenStride;
            args.output = static_cast<char *>(args.output) +
                          token * args.outputTokenStride;
            args.table += request * args.tableStride;
            args.lengths = &before;
            args.batch = 1;
          };
          HostTensor &output = problem->getTensor("output");
          if (onHost) {
            problem->poisonOutputs();
            KernelArgs args = problem->getHostArgs();
            change(args);
            HostRunner(*compiled, *problem, 16).run(args);
          } else {
            (*gpu)->allow({&before, &before + 1, false});
            (*gpu)->adjust = change;
            auto outcome = (*gpu)->run(*problem);
            ASSERT_TRUE(bool(outcome)) << llvm::toString(outcome.takeError());
          }
          int64_t stride = problem->getHostArgs().outputTokenStride;
          int64_t at =
              output.offset + (int64_t(request) * tokens + first) * stride;
          alone.resize(output.storage.size());
          std::copy_n(output.storage.begin() + at, width * stride,
                      alone.begin() + at);
        }
      if (width == 16)
        together = alone;
      // Eight and one divide sixteen; of threes the last row is left.
      int64_t stride = problem->getHostArgs().outputTokenStride;
      for (int32_t token = 0; token < batch * tokens; ++token) {
        if (width == 3 && token % tokens == 15)
          continue;
        int64_t at = problem->getTensor("output").offset + token * stride;
        EXPECT_TRUE(std::equal(together.begin() + at,
                               together.begin() + at + stride,
                               alone.begin() + at))
            << (onHost ? "host" : "lanes") << ", width " << width << ", token "
            << token;
      }
    }
    // In one launch of all requests.
    problem->poisonOutputs();
    if (onHost) {
      StatusOr<CompiledKernel> compiled =
          compileKernel(testCase.specText, "host");
      HostRunner(*compiled, *problem, 16).run();
    } else {
      auto outcome = (*widest)->run(*problem);
      ASSERT_TRUE(bool(outcome)) << llvm::toString(outcome.takeError());
    }
    EXPECT_TRUE(problem->check().ok) << problem->check().message;
    const HostTensor &output = problem->getTensor("output");
    EXPECT_TRUE(std::equal(together.begin() + output.offset,
                           together.begin() + output.offset + output.bytes,
                           output.data()))
        << (onHost ? "host" : "lanes");
  }
}
