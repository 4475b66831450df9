//===- Step.h - The arrays of a step, and its first kernel ------*- C++ -*-===//
//
// A step runs on any choice of slots. Its first kernel gathers what models read
// of them into arrays of the batch: lengths, tables, tokens and positions.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_SERVICES_STEP_H
#define TOKENTILE_RUNTIME_SERVICES_STEP_H

#ifndef __CUDACC_RTC__
#include "runtime/services/Philox.h"
#endif

namespace tokentile::services {

/// Page classes of a pool and stop tokens of a request, at most.
constexpr int32_t maxTables = 8;
constexpr int32_t maxStops = 4;

/// What the host says about one request of a step.
struct StepRequest {
  uint64_t seed;
  /// Of BlockTables; -1 for padding.
  int32_t slot;
  /// Rows: of a prompt, or the anchor and its drafts.
  int32_t columns;
  /// The most tokens to emit: 0 within a prompt.
  int32_t emitLimit;
  /// 0 for greedy.
  float temperature;
  /// Emitting one of these ends the request; -1 for none.
  int32_t stops[maxStops];
};

struct BeginArgs {
  /// [batch], and the tokens that the host knows, [batch, width].
  const StepRequest *requests;
  const int32_t *knownTokens;
  /// Of BlockTables, by slot.
  const int32_t *slotLengths;
  const int32_t *slotTables[maxTables];
  int64_t strides[maxTables];
  /// StepBatch.
  int32_t *tables[maxTables];
  int32_t *tokens;
  int32_t *positions;
  int32_t *columns;
  int32_t *lengths;
  float *temperatures;
  uint64_t *seeds;
  int32_t batch;
  int32_t width;
};

/// Block (0, b) writes the rows of request b, block (1 + c, b) its table of
/// class c.
TOKENTILE_SERVICE void begin(const Team &team, const BeginArgs &a, int32_t part,
                             int32_t b, int32_t) {
  const StepRequest &request = a.requests[b];
  bool live = request.slot >= 0;
  if (part > 0) {
    int64_t stride = a.strides[part - 1];
    const int32_t *from = a.slotTables[part - 1] + request.slot * stride;
    int32_t *to = a.tables[part - 1] + b * stride;
    for (int64_t i = team.rank(); i < stride; i += team.size())
      to[i] = live ? from[i] : 0;
    return;
  }
  int32_t length = live ? a.slotLengths[request.slot] : 0;
  for (int32_t i = team.rank(); i < a.width; i += team.size()) {
    int32_t row = b * a.width + i;
    a.tokens[row] = live ? a.knownTokens[row] : 0;
    a.positions[row] = length + i;
  }
  if (team.rank() == 0) {
    a.columns[b] = live ? request.columns : 0;
    a.lengths[b] = length;
    a.temperatures[b] = request.temperature;
    a.seeds[b] = request.seed;
  }
}

TOKENTILE_SERVICE_KERNEL(begin, BeginArgs)

} // namespace tokentile::services

#endif // TOKENTILE_RUNTIME_SERVICES_STEP_H
