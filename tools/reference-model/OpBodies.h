//===- OpBodies.h - One row of every small operation ------------*- C++ -*-===//
//
// What a decoder layer computes beside its products and its attention, once
// for both devices: this file is compiled by the host compiler and, as text, by
// NVRTC, as runtime/services/Team.h describes. Each body computes one row (one
// head, one request) with a team.
//
// A row's bits depend on nothing but that row: not on how many rows there are,
// nor on the requests beside it. Sums run in the team's fixed order.
//
// Activations and weights are bf16, the residual stream and recurrent
// state fp32. A *slot* is a request of the batch; row r belongs to
// slot r / width, and is live if r % width < counts[slot].
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TOOLS_REFERENCEMODEL_OPBODIES_H
#define TOKENTILE_TOOLS_REFERENCEMODEL_OPBODIES_H

#ifndef __CUDACC_RTC__
#include "runtime/services/Numbers.h"
#endif

namespace tokentile::reference {

using services::Best;
using services::Team;

using Bf16 = uint16_t;

TOKENTILE_SERVICE float fromBf16(Bf16 bits) {
  return services::fromBFloat16(bits);
}
TOKENTILE_SERVICE Bf16 toBf16(float value) {
  return services::toBFloat16(value);
}

/// out[row] = table[ids[row]], as fp32. An id out of range reads row 0.
struct EmbedArgs {
  const int *ids;
  const Bf16 *table;
  float *out;
  int dim;
  int vocab;
};
TOKENTILE_SERVICE void embedRow(const Team &team, const EmbedArgs &a, int32_t x,
                                int32_t, int32_t) {
  int64_t row = x;
  int id = a.ids[row];
  const Bf16 *from =
      a.table + (int64_t)(id < 0 || id >= a.vocab ? 0 : id) * a.dim;
  for (int i = team.rank(); i < a.dim; i += team.size())
    a.out[row * a.dim + i] = fromBf16(from[i]);
}

/// out[row] = x[from] / rms(x[from]) * weight. `from` is the row itself, or, if
/// `group` is not 0, row `first + row % group` of slot row / group, whose rows
/// are `width`.
struct RmsNormArgs {
  const float *in;
  const Bf16 *weight;
  Bf16 *out;
  int dim;
  int group;
  int width;
  int first;
  float epsilon;
};
TOKENTILE_SERVICE void rmsNormRow(const Team &team, const RmsNormArgs &a,
                                  int32_t x, int32_t, int32_t) {
  int64_t row = x;
  int64_t from = row;
  if (a.group)
    from = row / a.group * a.width + a.first + row % a.group;
  const float *in = a.in + from * a.dim;
  float sum = 0;
  for (int i = team.rank(); i < a.dim; i += team.size())
    sum += in[i] * in[i];
  float factor = 1 / sqrtf(team.sum(sum) / float(a.dim) + a.epsilon);
  for (int i = team.rank(); i < a.dim; i += team.size())
    a.out[row * a.dim + i] = toBf16(in[i] * factor * fromBf16(a.weight[i]));
}

/// out[row, offset ...] = x[row] as bf16: one tap of the residual stream.
struct TapArgs {
  const float *in;
  Bf16 *out;
  int dim;
  int stride;
  int offset;
};
TOKENTILE_SERVICE void tapRow(const Team &team, const TapArgs &a, int32_t row,
                              int32_t, int32_t) {
  for (int i = team.rank(); i < a.dim; i += team.size())
    a.out[row * a.stride + a.offset + i] = toBf16(a.in[row * a.dim + i]);
}

/// out[row, i] = silu(in[row, i]) * in[row, inner + i].
struct SwiGluArgs {
  const Bf16 *in;
  Bf16 *out;
  int inner;
};
TOKENTILE_SERVICE void swiGluRow(const Team &team, const SwiGluArgs &a,
                                 int32_t x, int32_t, int32_t) {
  int64_t row = x;
  const Bf16 *in = a.in + row * 2 * a.inner;
  for (int i = team.rank(); i < a.inner; i += team.size()) {
    float gate = fromBf16(in[i]);
    a.out[row * a.inner + i] =
        toBf16(gate / (1 + expf(-gate)) * fromBf16(in[a.inner + i]));
  }
}

/// Heads of a fused projection [rows, stride]: normalised over the head (if
/// there is a weight), rotated by the row's position (if frequencies are
/// given), written to [rows, heads, dim]. Element i is rotated with i + dim / 2
/// ("neox"); frequencies are [dim / 2]. Row index here: row * heads + head.
struct HeadsArgs {
  const Bf16 *in;
  const Bf16 *weight;
  const float *frequencies;
  const int *positions;
  Bf16 *out;
  int heads;
  int dim;
  int stride;
  int offset;
  float epsilon;
};
TOKENTILE_SERVICE void headsRow(const Team &team, const HeadsArgs &a, int32_t x,
                                int32_t, int32_t) {
  int64_t index = x;
  int64_t row = index / a.heads;
  int head = int(index % a.heads);
  const Bf16 *in = a.in + row * a.stride + a.offset + head * a.dim;
  Bf16 *out = a.out + index * a.dim;
  float factor = 1;
  if (a.weight) {
    float sum = 0;
    for (int i = team.rank(); i < a.dim; i += team.size())
      sum += fromBf16(in[i]) * fromBf16(in[i]);
    factor = 1 / sqrtf(team.sum(sum) / float(a.dim) + a.epsilon);
  }
  int half = a.dim / 2;
  float position = a.frequencies ? float(a.positions[row]) : 0;
  for (int i = team.rank(); i < half; i += team.size()) {
    float x = fromBf16(in[i]) * factor, y = fromBf16(in[i + half]) * factor;
    if (a.weight) {
      x *= fromBf16(a.weight[i]);
      y *= fromBf16(a.weight[i + half]);
    }
    if (a.frequencies) {
      float angle = position * a.frequencies[i];
      float c = cosf(angle), s = sinf(angle), turned = x * c - y * s;
      y = y * c + x * s;
      x = turned;
    }
    out[i] = toBf16(x);
    out[i + half] = toBf16(y);
  }
}

/// The causal depthwise convolution of a gated-delta-net layer, over four
/// rows, then silu. Row index here: a slot. The last three inputs are state,
/// fp32 [3, channels], at byte `offset` of the page that entry 0 of the slot's
/// table names; at length 0 it is zero and not read. With `snapshots` the
/// state after row i goes to entry i, else to entry 0.
struct StateArgs {
  char *pool;
  const int *table;
  const int *lengths;
  const int *counts;
  int64_t tableStride;
  int64_t pageBytes;
  int64_t offset;
  int width;
  int snapshots;
};
TOKENTILE_SERVICE float *stateOf(const StateArgs &a, int64_t slot, int entry) {
  int64_t page = a.table[slot * a.tableStride + (a.snapshots ? entry : 0)];
  return (float *)(a.pool + page * a.pageBytes + a.offset);
}
struct ConvArgs {
  StateArgs state;
  const Bf16 *in;
  const Bf16 *weight;
  Bf16 *out;
  int channels;
  int stride;
};
TOKENTILE_SERVICE void convSlot(const Team &team, const ConvArgs &a, int32_t x,
                                int32_t, int32_t) {
  int64_t slot = x;
  int count = a.state.counts[slot];
  for (int c = team.rank(); c < a.channels; c += team.size()) {
    float w[3] = {0, 0, 0};
    if (count > 0 && a.state.lengths[slot] > 0)
      for (int j = 0; j < 3; ++j)
        w[j] = stateOf(a.state, slot, 0)[j * a.channels + c];
    for (int i = 0; i < count; ++i) {
      int64_t row = slot * a.state.width + i;
      float x = fromBf16(a.in[row * a.stride + c]);
      const Bf16 *k = a.weight + c * 4;
      float y = w[0] * fromBf16(k[0]);
      y += w[1] * fromBf16(k[1]);
      y += w[2] * fromBf16(k[2]);
      y += x * fromBf16(k[3]);
      a.out[row * a.channels + c] = toBf16(y / (1 + expf(-y)));
      w[0] = w[1];
      w[1] = w[2];
      w[2] = x;
      if (!a.state.snapshots && i + 1 < count)
        continue;
      float *after = stateOf(a.state, slot, i);
      for (int j = 0; j < 3; ++j)
        after[j * a.channels + c] = w[j];
    }
  }
}

/// The recurrence of a gated-delta-net head, one row at a time. Row index here:
/// slot * heads + head. Input rows are [query heads' q, k, values' v]; head h
/// uses key head h / (heads / keyHeads). Gates are rows [2 * heads]: decay
/// logits, then write strengths. State is fp32 [heads, keyDim, valueDim].
///   g = exp(-exp(logDecay) * softplus(a + bias)),  b = sigmoid(beta)
///   S = g S;  S += k (b (v - S^T k))^T;  out = S^T q / sqrt(keyDim)
/// with q and k of length 1.
struct DeltaArgs {
  StateArgs state;
  const Bf16 *in;
  const Bf16 *gates;
  const Bf16 *logDecay;
  const Bf16 *bias;
  float *out;
  int heads;
  int keyHeads;
  int keyDim;
  int valueDim;
  int gateStride;
  int gateOffset;
};
TOKENTILE_SERVICE void deltaHead(const Team &team, const DeltaArgs &a,
                                 int32_t x, int32_t, int32_t) {
  int64_t index = x;
  int64_t slot = index / a.heads;
  int head = int(index % a.heads), keyHead = head / (a.heads / a.keyHeads);
  int stride = 2 * a.keyHeads * a.keyDim + a.heads * a.valueDim;
  int64_t within = (int64_t)head * a.keyDim * a.valueDim;
  bool fresh = a.state.lengths[slot] == 0;
  for (int t = 0; t < a.state.counts[slot]; ++t) {
    int64_t row = slot * a.state.width + t;
    const Bf16 *q = a.in + row * stride + keyHead * a.keyDim;
    const Bf16 *k = q + a.keyHeads * a.keyDim;
    const Bf16 *v =
        a.in + row * stride + 2 * a.keyHeads * a.keyDim + head * a.valueDim;
    float qq = 0, kk = 0;
    for (int i = team.rank(); i < a.keyDim; i += team.size()) {
      qq += fromBf16(q[i]) * fromBf16(q[i]);
      kk += fromBf16(k[i]) * fromBf16(k[i]);
    }
    float qScale = 1 / sqrtf((team.sum(qq) + 1e-6f) * float(a.keyDim));
    float kScale = 1 / sqrtf(team.sum(kk) + 1e-6f);
    const Bf16 *gates = a.gates + row * a.gateStride + a.gateOffset;
    float x = fromBf16(gates[head]) + fromBf16(a.bias[head]);
    float softplus = x > 20 ? x : log1pf(expf(x));
    float decay = expf(-expf(fromBf16(a.logDecay[head])) * softplus);
    float beta = 1 / (1 + expf(-fromBf16(gates[a.heads + head])));
    const float *before =
        fresh ? nullptr : stateOf(a.state, slot, t > 0 ? t - 1 : 0) + within;
    float *after = stateOf(a.state, slot, t) + within;
    for (int j = team.rank(); j < a.valueDim; j += team.size()) {
      float seen = 0;
      for (int i = 0; i < a.keyDim && before; ++i)
        seen += before[i * a.valueDim + j] * decay * fromBf16(k[i]) * kScale;
      float change = beta * (fromBf16(v[j]) - seen), out = 0;
      for (int i = 0; i < a.keyDim; ++i) {
        float s = before ? before[i * a.valueDim + j] * decay : 0;
        s += fromBf16(k[i]) * kScale * change;
        after[i * a.valueDim + j] = s;
        out += s * fromBf16(q[i]) * qScale;
      }
      a.out[(row * a.heads + head) * a.valueDim + j] = out;
    }
    fresh = false;
  }
}

/// out[row, head] = rmsnorm(in[row, head]) * silu(gate[row, head]). Row index
/// here: row * heads + head.
struct GatedNormArgs {
  const float *in;
  const Bf16 *weight;
  const Bf16 *gate;
  Bf16 *out;
  int heads;
  int dim;
  int gateStride;
  int gateOffset;
  float epsilon;
};
TOKENTILE_SERVICE void gatedNormHead(const Team &team, const GatedNormArgs &a,
                                     int32_t x, int32_t, int32_t) {
  int64_t index = x;
  int64_t row = index / a.heads;
  int head = int(index % a.heads);
  const float *in = a.in + index * a.dim;
  const Bf16 *gate = a.gate + row * a.gateStride + a.gateOffset + head * a.dim;
  float sum = 0;
  for (int i = team.rank(); i < a.dim; i += team.size())
    sum += in[i] * in[i];
  float factor = 1 / sqrtf(team.sum(sum) / float(a.dim) + a.epsilon);
  for (int i = team.rank(); i < a.dim; i += team.size()) {
    float z = fromBf16(gate[i]);
    a.out[index * a.dim + i] =
        toBf16(in[i] * factor * fromBf16(a.weight[i]) * z / (1 + expf(-z)));
  }
}

/// ids[slot * width + 1 + i] = the index of the largest of row slot * drafts +
/// i, the first of equal ones.
struct ArgmaxArgs {
  const float *in;
  int *ids;
  int vocab;
  int drafts;
};
TOKENTILE_SERVICE void argmaxRow(const Team &team, const ArgmaxArgs &a,
                                 int32_t x, int32_t, int32_t) {
  int64_t row = x;
  const float *in = a.in + row * a.vocab;
  int best = team.rank() < a.vocab ? team.rank() : 0;
  for (int i = team.rank(); i < a.vocab; i += team.size())
    if (in[i] > in[best])
      best = i;
  best = team.best({in[best], best}).index;
  if (team.rank() == 0)
    a.ids[row / a.drafts * (a.drafts + 1) + 1 + row % a.drafts] = best;
}

/// What a draft reads: its anchor, then masks. Row index here: a row of the
/// step.
struct BlockIdsArgs {
  const int *tokens;
  int *ids;
  int width;
  int mask;
};
TOKENTILE_SERVICE void blockIdsRow(const Team &team, const BlockIdsArgs &a,
                                   int32_t x, int32_t, int32_t) {
  int64_t row = x;
  if (team.rank() == 0)
    a.ids[row] = row % a.width ? a.mask : a.tokens[row];
}

/// Replaces proposals by those of a draft that agrees with the target with a
/// given probability. `known` holds what the target emits, [requests, stride],
/// by position; the request is the slot's seed. Row index here: slot * drafts +
/// i, for the token at position lengths[slot] + 1 + i.
struct AgreeArgs {
  const int *known;
  const uint64_t *seeds;
  const int *lengths;
  int *ids;
  int64_t stride;
  int requests;
  int vocab;
  int drafts;
  float probability;
};
TOKENTILE_SERVICE void agreeRow(const Team &team, const AgreeArgs &a, int32_t x,
                                int32_t, int32_t) {
  int64_t row = x;
  int64_t slot = row / a.drafts, i = row % a.drafts;
  int64_t position = a.lengths[slot] + 1 + i;
  uint64_t request = a.seeds[slot];
  if (team.rank() || request >= (uint64_t)a.requests || position >= a.stride)
    return;
  uint64_t bits = request * 0x9e3779b97f4a7c15ull + position + 1;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ull;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebull;
  bits ^= bits >> 31;
  int token = a.known[request * a.stride + position];
  bool agrees = float(bits >> 40) < a.probability * float(1 << 24);
  a.ids[slot * (a.drafts + 1) + 1 + i] = agrees ? token : (token + 1) % a.vocab;
}

/// Words [slots, count] of `in`, to [slots, stride] of `out`: one request's
/// metadata at an aligned address.
struct SpreadArgs {
  const int *in;
  int *out;
  int count;
  int stride;
};
TOKENTILE_SERVICE void spreadSlot(const Team &team, const SpreadArgs &a,
                                  int32_t x, int32_t, int32_t) {
  int64_t slot = x;
  for (int i = team.rank(); i < a.count; i += team.size())
    a.out[slot * a.stride + i] = a.in[slot * a.count + i];
}

TOKENTILE_SERVICE_KERNEL(embedRow, EmbedArgs)
TOKENTILE_SERVICE_KERNEL(rmsNormRow, RmsNormArgs)
TOKENTILE_SERVICE_KERNEL(tapRow, TapArgs)
TOKENTILE_SERVICE_KERNEL(swiGluRow, SwiGluArgs)
TOKENTILE_SERVICE_KERNEL(headsRow, HeadsArgs)
TOKENTILE_SERVICE_KERNEL(convSlot, ConvArgs)
TOKENTILE_SERVICE_KERNEL(deltaHead, DeltaArgs)
TOKENTILE_SERVICE_KERNEL(gatedNormHead, GatedNormArgs)
TOKENTILE_SERVICE_KERNEL(argmaxRow, ArgmaxArgs)
TOKENTILE_SERVICE_KERNEL(blockIdsRow, BlockIdsArgs)
TOKENTILE_SERVICE_KERNEL(agreeRow, AgreeArgs)
TOKENTILE_SERVICE_KERNEL(spreadSlot, SpreadArgs)

} // namespace tokentile::reference

#endif // TOKENTILE_TOOLS_REFERENCEMODEL_OPBODIES_H
