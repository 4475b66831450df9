//===- FakeModel.h - A target, a draft and their caches ---------*- C++ -*-===//
//
// Everything that a SpecDecoder needs, small: a model of hashes, its draft that
// agrees as often as asked for, and a pool with a linear class, a ring that is
// as tight as the draft's memory allows, and snapshots of a state.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TEST_RUNTIME_FAKEMODEL_H
#define TOKENTILE_TEST_RUNTIME_FAKEMODEL_H

#include "FakeModelKernels.h"
#include "TestKernel.h"

#include "runtime/SpecDecoder.h"

#include <random>

namespace tokentile::test {

struct FakeOptions {
  const char *device = "host";
  int32_t slots = 1;
  int32_t maxTokens = 128;
  int64_t chunks = 1000;
  int32_t vocabulary = 23;
  /// The most rows of a step.
  int32_t maxWidth = 16;
  /// How often in 1000 the draft agrees.
  int32_t agreement = 700;
  bool withState = false;
  DraftDistribution distribution = DraftDistribution::OneHot;
  int32_t support = 0;
  int32_t draftVocabulary = 0;
  int32_t maxDrafts = 15;
  /// As FakeArgs.
  bool lies = false;
  int32_t poison = -1;
};

class FakeWorld;

class FakeTarget final : public TargetModel {
public:
  explicit FakeTarget(FakeWorld &world) : world(world) {}
  int32_t vocabulary() const override;
  Status prepare(const StepShape &shape) override;
  Status forward(const StepBatch &batch, Stream &stream) override;

private:
  FakeWorld &world;
};

class FakeDraft final : public DraftModel {
public:
  explicit FakeDraft(FakeWorld &world) : world(world) {}
  int32_t vocabulary() const override;
  int32_t maxDrafts() const override;
  DraftDistribution distribution() const override;
  int32_t support() const override;
  Status prepare(const StepShape &shape) override { return Status(); }
  Status propose(const StepBatch &batch, Stream &stream) override;
  Status append(const StepBatch &batch, Stream &stream) override;

private:
  FakeWorld &world;
};

std::vector<int32_t> randomPrompt(std::mt19937 &random, int32_t length,
                                  int32_t vocabulary);

/// What a target alone emits: the meaning that the decoder must keep.
std::vector<int32_t> plainDecode(const FakeOptions &options,
                                 const std::vector<int32_t> &prompt,
                                 int32_t maxTokens,
                                 const std::vector<int32_t> &stops = {});

/// Probabilities of the next token.
std::vector<double> nextProbabilities(const FakeOptions &options,
                                      const std::vector<int32_t> &history,
                                      double temperature);

class FakeWorld {
public:
  static constexpr int32_t targetTable = 0, draftTable = 1, stateTable = 2;
  static constexpr int32_t pageTokens[] = {4, 3};

  /// Skips nothing: `device` is null where the options' device is missing.
  explicit FakeWorld(const FakeOptions &options);

  /// A decoder of these models that is warm; `withDraft` false for the target
  /// alone.
  std::unique_ptr<SpecDecoder> decoder(const SpecOptions &options,
                                       bool withDraft = true);
  fake::FakeArgs args(const StepBatch &batch) const;
  /// Pages in use of all classes.
  int64_t pagesInUse() const;
  /// Empty if slot, pages and device words of every request are what plain
  /// decode of `rows` rows would leave; else what differs.
  std::string audit(int32_t slot, int32_t rows);

  FakeOptions options;
  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<PagePool> pool;
  Buffer memory, taps;
  std::unique_ptr<BlockTables> tables;
  FakeTarget target{*this};
  FakeDraft draft{*this};
  /// Shapes in the order of `prepare`.
  std::vector<StepShape> prepared;
  /// If set, the next forward that is queued fails with it.
  Status failure;

  ServiceKernel<fake::FakeArgs> write, logits, propose, append;
};

/// Steps until all is done. Emitted tokens and final events by id.
struct Outcome {
  std::map<int64_t, std::vector<int32_t>> tokens;
  std::map<int64_t, SpecEvent> last;
};
void collect(const std::vector<SpecEvent> &events, Outcome &outcome);
Outcome runAll(SpecDecoder &decoder, int32_t maxSteps = 100'000);

} // namespace tokentile::test

#endif // TOKENTILE_TEST_RUNTIME_FAKEMODEL_H
