//===- Philox.h - Random numbers by counter ---------------------*- C++ -*-===//
//
// Philox 4x32-10 (Salmon and others, "Parallel random numbers: as easy as 1, 2,
// 3", 2011). A number is a function of the request's seed, the position of the
// token that it decides, its purpose and an index, so it depends neither on
// the batch nor on the step in which the token is decided.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_SERVICES_PHILOX_H
#define TOKENTILE_RUNTIME_SERVICES_PHILOX_H

#ifndef __CUDACC_RTC__
#include "runtime/services/Team.h"
#endif

namespace tokentile::services {

/// What a number decides. Exact rejection needs the three to be independent.
enum class Purpose : uint32_t { Draft, Accept, Emit };

struct Random4 {
  uint32_t words[4];
};

TOKENTILE_SERVICE Random4 philox(uint64_t seed, Random4 counter) {
  uint32_t key[2] = {uint32_t(seed), uint32_t(seed >> 32)};
  for (int32_t round = 0; round < 10; ++round) {
    uint64_t a = uint64_t(0xD2511F53u) * counter.words[0];
    uint64_t b = uint64_t(0xCD9E8D57u) * counter.words[2];
    counter = {{uint32_t(b >> 32) ^ counter.words[1] ^ key[0], uint32_t(b),
                uint32_t(a >> 32) ^ counter.words[3] ^ key[1], uint32_t(a)}};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// Four numbers of a position: those with indices 4 * quad .. 4 * quad + 3.
TOKENTILE_SERVICE Random4 random4(uint64_t seed, int32_t position,
                                  Purpose purpose, int32_t quad) {
  return philox(seed,
                {{uint32_t(position), uint32_t(purpose), uint32_t(quad), 0}});
}

/// Uniform in the open interval (0, 1), in steps of 2^-32 near 0.
TOKENTILE_SERVICE float uniform(uint32_t word) {
  float value = (float(word) + 0.5f) * 2.3283064365386963e-10f; // 2^-32
  return value < 0.99999994f ? value : 0.99999994f;             // 1 - 2^-24
}

/// Noise of the Gumbel-max trick: the index with the greatest log weight plus
/// noise is drawn in proportion to the weights, which need not sum to one.
TOKENTILE_SERVICE float gumbel(uint32_t word) {
  // The greatest noise comes from numbers near 0, where they are dense.
  return -logf(-log1pf(-uniform(word)));
}

} // namespace tokentile::services

#endif // TOKENTILE_RUNTIME_SERVICES_PHILOX_H
