//===- SpecStep.h - The work of one speculative step ------------*- C++ -*-===//
//
// Internal to SpecDecoder. Owns the arrays of a step and queues its work:
//
//   requests and tokens to the device, begin, propose, forward, accept, append,
//   results to the host
//
// All of it reads what the host put into `request` and `tokens` when it runs,
// so it may be recorded once for each shape and replayed.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_SPECSTEP_H
#define TOKENTILE_RUNTIME_SPECSTEP_H

#include "runtime/BlockTables.h"
#include "runtime/ServiceKernel.h"
#include "runtime/SpecModel.h"
#include "runtime/services/Accept.h"

#include <array>

namespace tokentile {

class SpecStep {
public:
  /// Points of a step between which time is measured.
  enum Mark { Start, Proposed, Verified, Accepted, Appended, marks };

  /// Arrays for steps of the given shapes. `draft` may be null.
  static StatusOr<std::unique_ptr<SpecStep>>
  create(Device &device, BlockTables &tables, TargetModel &target,
         DraftModel *draft, const std::vector<StepShape> &shapes);

  /// What the host sets before a step runs: entries of the batch, and
  /// [batch, width] tokens of which rows beyond the columns do not matter.
  services::StepRequest &request(int32_t b);
  int32_t *tokens(const StepShape &shape);
  /// What it reads when the stream is done.
  const services::StepResult &result(const StepShape &shape, int32_t b) const;
  /// Emitted tokens of a request.
  const int32_t *emitted(const StepShape &shape, int32_t b) const;

  /// Queues one step. What models are shown of it is poisoned afterwards, so
  /// they must freeze by value what their work needs. Records the events in
  /// `times` if there are any.
  Status run(const StepShape &shape, Stream &stream,
             std::array<std::unique_ptr<Event>, marks> *times = nullptr);

private:
  SpecStep(BlockTables &tables, TargetModel &target, DraftModel *draft)
      : tables(tables), target(target), draft(draft) {}

  Status allocate(Device &device, const std::vector<StepShape> &shapes);
  Status loadKernels(Device &device);
  Status queue(const StepBatch &batch, Stream &stream,
               std::array<std::unique_ptr<Event>, marks> *times);
  StepBatch batchOf(const StepShape &shape) const;
  Status begin(const StepBatch &batch, Stream &stream) const;
  Status accept(const StepBatch &batch, Stream &stream) const;
  int64_t controlBytes(const StepShape &shape) const;
  int32_t resultWords(const StepShape &shape) const;

  BlockTables &tables;
  TargetModel &target;
  DraftModel *draft;

  ServiceKernel<services::BeginArgs> beginKernel;
  ServiceKernel<services::AcceptArgs> statsKernel, draftsKernel, drawKernel,
      acceptKernel;

  /// Requests, then tokens; pinned and on the device.
  Buffer hostControl, control;
  /// Results; pinned and on the device.
  Buffer hostResults, results;
  Buffer tokenRows, positions, columns, lengths, temperatures, seeds, accepted;
  std::vector<Buffer> tableRows;
  Buffer logits, partStats, stats, draws, draftProbabilities, draftSupport;

  /// What models are shown while a step is queued. Empty otherwise, so that
  /// work which looks at it when it runs fails at once, on the host too.
  StepBatch shown;
};

} // namespace tokentile

#endif // TOKENTILE_RUNTIME_SPECSTEP_H
