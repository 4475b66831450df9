//===- SpecSession.h - Requests through a decoder, timed --------*- C++ -*-===//

#ifndef TOKENTILE_TOOLS_REFERENCEMODEL_SPECSESSION_H
#define TOKENTILE_TOOLS_REFERENCEMODEL_SPECSESSION_H

#include "runtime/SpecDecoder.h"
#include "tools/reference-model/ReferenceRig.h"

namespace tokentile::reference {

struct SessionOptions {
  /// Requests at once, at most those of the rig; 0 for as many.
  int32_t batch = 0;
  /// Drafts of a step, at most those of the rig; 0 for plain decode, which
  /// leaves the draft alone.
  int32_t drafts = 0;
  /// Tokens to emit for each request.
  int32_t maxTokens = 0;
  /// Ends a request early, or -1.
  int32_t stop = -1;
  float temperature = 0;
  /// Request i has seed `seed` + i.
  uint64_t seed = 0;
  /// Read all prompts before the first decode step. Then decode steps of less
  /// than a whole batch, at the end, are not timed.
  bool promptsFirst = false;
  /// Otherwise steps are queued call by call, and phases are timed.
  bool useGraphs = true;
};

struct SessionResult {
  /// What each request emitted.
  std::vector<std::vector<int32_t>> tokens;
  /// Of requests that failed, each naming its request; the others went on.
  std::vector<Status> failures;
  SpecCounters counters;
  /// From the first step to the last; warming up is before.
  double seconds = 0;
  /// Of the steps that are timed, those in which no prompt was read, and what
  /// they emitted.
  double decodeSeconds = 0;
  int64_t decodeTokens = 0;
  int64_t decodeSteps = 0;
  /// What the last of these queued.
  StreamCounters decodeStep;

  double tokensPerSecond() const {
    return double(decodeTokens) / decodeSeconds;
  }
};

/// Called after each step with the counters so far and the requests that are
/// not done.
using SessionProgress = std::function<void(const SpecCounters &, size_t left)>;

/// Runs one request for each prompt, as many at once as the rig holds, and
/// leaves the rig's tables empty. A request that the decoder refuses is an
/// error, one that fails later is not.
StatusOr<SessionResult>
runSession(Device &device, ReferenceRig &rig, const SessionOptions &options,
           const std::vector<std::vector<int32_t>> &prompts,
           const SessionProgress &progress = nullptr);

/// The first place where two runs differ; a run that ends early differs there.
struct Difference {
  size_t request = 0;
  size_t position = 0;
};
std::optional<Difference>
firstDifference(const std::vector<std::vector<int32_t>> &a,
                const std::vector<std::vector<int32_t>> &b);

/// What a draft must know to agree with greedy runs of the target: prompts and
/// emitted tokens by position, on the device. `memory` keeps them alive.
StatusOr<Agreement>
makeAgreement(Device &device, const std::vector<std::vector<int32_t>> &prompts,
              const std::vector<std::vector<int32_t>> &emitted,
              float probability, Buffer &memory);

} // namespace tokentile::reference

#endif // TOKENTILE_TOOLS_REFERENCEMODEL_SPECSESSION_H
