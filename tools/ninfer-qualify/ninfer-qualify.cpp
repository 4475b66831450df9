//===- ninfer-qualify.cpp - Generated kernels against the reference -------===//
//
// One line for each case. A case fails if its result breaks the numerics rule
// of test/numerics/Compare.h, or is not the same bits on each run.
//
//===----------------------------------------------------------------------===//

#include "tools/front/Front.h"
#include "tools/front/Tool.h"
#include "tools/ninfer-qualify/ContextCases.h"
#include "tools/ninfer-qualify/Qualifier.h"

#include <cinttypes>
#include <cstdio>

using namespace tokentile;

namespace {

/// Keys whose count, with the block's, stays within 32 bits.
constexpr int32_t maxContext = 1 << 30;

struct Options {
  FrontOptions front;
  std::string device = "host";
  std::vector<int32_t> contexts;
  std::vector<std::string> numbers;
  int32_t batch = 2;
  uint64_t seed = 1;
  int32_t random = 0;
  int32_t first = 0;
  int32_t firstBatch = 0;
  int32_t batches = 1;
  std::string ptx;
  std::string dump;
  bool summary = false;
};

struct Counts {
  int passed = 0;
  int failed = 0;
  int refused = 0;
};

Status bad(const std::string &message) {
  return Status(StatusCode::InvalidArgument, message);
}

Status checkOptions(Options &options) {
  if (options.batch < 1)
    return bad("--batch " + std::to_string(options.batch) +
               " does not fit; at least 1 works");
  if (options.contexts.empty())
    options.contexts = {0, 1, 63, 64, 65, 1000};
  for (int32_t context : options.contexts)
    if (context < 0 || context > maxContext)
      return bad("--context " + std::to_string(context) +
                 " does not fit; 0 to " + std::to_string(maxContext) + " work");
  if (options.numbers.empty())
    options.numbers = {"normal", "mean"};
  for (const std::string &name : options.numbers)
    if (!findNumbers(name))
      return bad("--numbers '" + name +
                 "' is unknown; normal, sharp, mean, growing and negative "
                 "work");
  if (options.first < 0 || options.firstBatch < 0 || options.batches < 1)
    return bad("--first " + std::to_string(options.first) + ", --first-batch " +
               std::to_string(options.firstBatch) + " and --batches " +
               std::to_string(options.batches) +
               " do not fit; at least 0, 0 and 1 work");
  if (options.random < 0 || options.random > INT32_MAX - options.first)
    return bad("--random " + std::to_string(options.random) +
               " does not fit; a count works");
  if (options.random && !(options.ptx.empty() && options.dump.empty()))
    return bad("--random makes specs of its own; --ptx and --dump do not go "
               "with it");
  // How random specs are lowered may be chosen.
  FrontOptions chosen = options.front;
  chosen.lowering = "";
  if (const char *option = kernelOption(chosen); option && options.random)
    return bad("--random makes specs of its own; " + std::string(option) +
               " does not go with it");
  if (!options.ptx.empty() && options.device == "host")
    return bad("--ptx does not go with --device 'host'; cuda works");
  return Status();
}

void printOutcome(const Outcome &outcome, const std::string &what) {
  const Comparison &result = outcome.comparison;
  std::printf("%s %s items %d error %.2e (%.2f of its bound, naive %.2e) "
              "%.1f us%s%s\n",
              result.ok ? "pass" : "FAIL", what.c_str(), outcome.items,
              result.maxError, result.worstQuotient, result.naiveError,
              outcome.microseconds, result.ok ? "" : ": ",
              result.ok ? "" : onOneLine(result.message).c_str());
  std::fflush(stdout);
}

int finish(const Counts &counts) {
  std::printf("%d passed, %d failed, %d refused\n", counts.passed,
              counts.failed, counts.refused);
  return counts.failed ? exitFailure : 0;
}

/// One line a newcomer understands; `keys` are those of the longest request.
void printSummary(const KernelInfo &info, const Outcome &worst, int64_t keys) {
  int64_t visible = info.window
                        ? std::min<int64_t>(keys, info.window - 1 + info.tokens)
                        : keys;
  std::printf("%-30s %5d %7d %12.0f %9.1e %4s %11.1f\n", info.name.c_str(),
              info.rows, info.sweeps,
              double(visible * info.keyBytesPerToken()) / 1024,
              worst.comparison.maxError, worst.comparison.ok ? "yes" : "NO",
              worst.microseconds);
}

std::string folderOf(const Options &options, int32_t context,
                     const std::string &numbers) {
  if (options.dump.empty())
    return "";
  bool isOne = options.contexts.size() == 1 && options.numbers.size() == 1;
  return isOne ? options.dump
               : options.dump + "/" + std::to_string(context) + "-" + numbers;
}

StatusOr<int> runContexts(Qualifier &qualifier, const Options &options) {
  StatusOr<std::string> text = buildSpec(options.front);
  if (!text.ok())
    return text.status();
  std::string ptx;
  if (!options.ptx.empty()) {
    StatusOr<std::string> read = readText(options.ptx, "PTX file");
    if (!read.ok())
      return read.status();
    ptx = *std::move(read);
  }
  StatusOr<LoadedSpec> loaded =
      qualifier.load(*text, specName(options.front), ptx);
  if (!loaded.ok())
    return loaded.status();
  const KernelInfo &info = loaded->kernel->info();
  if (!options.summary)
    std::printf("kernel %s on %s: %d rows, %d sweep(s), compiled in %.0f ms\n",
                info.name.c_str(), qualifier.getDevice().facts().name.c_str(),
                info.rows, info.sweeps, loaded->compileMilliseconds);
  Counts counts;
  Outcome worst;
  int64_t longest = 0;
  for (int32_t context : options.contexts)
    for (const std::string &numbers : options.numbers) {
      Case testCase =
          makeContextCase(loaded->spec, *text, context, options.batch,
                          *findNumbers(numbers), options.seed);
      StatusOr<Outcome> outcome = qualifier.judge(
          *loaded, testCase, folderOf(options, context, numbers));
      if (!outcome.ok())
        return outcome.status();
      bool isOk = outcome->comparison.ok;
      ++(isOk ? counts.passed : counts.failed);
      if (!options.summary || !isOk)
        printOutcome(*outcome, "context " + std::to_string(context) +
                                   " batch " + std::to_string(options.batch) +
                                   " " + numbers);
      worst.comparison.ok &= isOk;
      worst.comparison.maxError =
          std::max(worst.comparison.maxError, outcome->comparison.maxError);
      if (context + info.tokens >= longest) {
        longest = context + info.tokens;
        worst.microseconds = outcome->microseconds;
      }
    }
  if (!options.summary)
    return finish(counts);
  printSummary(info, worst, longest);
  return counts.failed ? exitFailure : 0;
}

/// Counts and prints a case that could not be run.
void printNotRun(const Status &status, const std::string &what,
                 Counts &counts) {
  bool isRefused = status.code() == StatusCode::NotCovered;
  ++(isRefused ? counts.refused : counts.failed);
  std::printf("%s %s: %s\n", isRefused ? "refused" : "FAIL", what.c_str(),
              onOneLine(status.message()).c_str());
}

StatusOr<int> runRandom(Qualifier &qualifier, const Options &options) {
  Counts counts;
  StatusOr<std::string> schedule = scheduleClause(options.front);
  if (!schedule.ok())
    return schedule.status();
  for (int32_t i = options.first; i < options.first + options.random; ++i) {
    Case first = makeCase(options.seed, i);
    StatusOr<LoadedSpec> loaded =
        qualifier.load(first.specText + " " + *schedule, "spec", "");
    for (int32_t j = 0; j < options.batches; ++j) {
      int32_t batch = options.firstBatch + j;
      Case testCase = makeCase(options.seed, i, batch);
      std::string what = "case " + std::to_string(i) + " batch " +
                         std::to_string(batch) + " of seed " +
                         std::to_string(options.seed) + ": " +
                         onOneLine(testCase.describe());
      if (!loaded.ok()) {
        printNotRun(loaded.status(), what, counts);
        break;
      }
      StatusOr<Outcome> outcome = qualifier.judge(*loaded, testCase, "");
      if (!outcome.ok()) {
        printNotRun(outcome.status(), what, counts);
        continue;
      }
      ++(outcome->comparison.ok ? counts.passed : counts.failed);
      printOutcome(*outcome, what);
    }
  }
  return finish(counts);
}

StatusOr<int> run(Options &options) {
  if (Status status = checkOptions(options); !status.ok())
    return status;
  StatusOr<std::unique_ptr<Qualifier>> qualifier =
      Qualifier::create(options.device);
  if (!qualifier.ok())
    return qualifier.status();
  return options.random ? runRandom(**qualifier, options)
                        : runContexts(**qualifier, options);
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Runs a generated kernel against the fp64 reference",
               "ninfer-qualify");
  Options options;
  addFrontOptions(app, options.front, /*withChip=*/false);
  app.add_option("--device", options.device, "host (default), cuda or cuda:N");
  app.add_option("--context", options.contexts,
                 "Keys before the block, a list "
                 "(default: 0,1,63,64,65,1000)")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--batch", options.batch, "Requests (default: 2)");
  app.add_option("--numbers", options.numbers,
                 "How tensors are drawn, a list of normal, sharp, mean, "
                 "growing, negative (default: normal,mean)")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--seed", options.seed, "Seed of the cases (default: 1)");
  app.add_option("--random", options.random,
                 "Instead: this many specs and batches drawn at random");
  app.add_option("--first", options.first,
                 "With --random: index of the first spec (default: 0)");
  app.add_option("--batches", options.batches,
                 "With --random: batches of each spec (default: 1)");
  app.add_option("--first-batch", options.firstBatch,
                 "With --random: index of the first batch (default: 0)");
  app.add_option("--ptx", options.ptx, "Run this PTX, made from the same spec");
  app.add_option("--dump", options.dump,
                 "Write every tensor of a case into this folder as .npy");
  app.add_flag("--summary", options.summary,
               "One line for all cases: kernel, rows, sweeps, KiB that a sweep "
               "of the longest request reads, error, pass, microseconds");
  return runTool(app, argc, argv, [&] { return run(options); });
}
