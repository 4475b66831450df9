//===- Random.h - Random numbers that are the same everywhere ---*- C++ -*-===//
//
// SplitMix64. The distributions of the standard library differ between
// implementations; a failing seed must mean the same case on every machine.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TEST_NUMERICS_RANDOM_H
#define TOKENTILE_TEST_NUMERICS_RANDOM_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace tokentile {

class Random {
public:
  explicit Random(uint64_t seed, uint64_t stream = 0)
      : state(seed * 0x9e3779b97f4a7c15u ^ (stream + 1) * 0xd1342543de82ef95u) {
    next();
  }

  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }

  /// An integer from `low` to `high`, both included.
  int64_t range(int64_t low, int64_t high) {
    return low + int64_t(next() % uint64_t(high - low + 1));
  }

  /// True once in `count` times.
  bool oneIn(int64_t count) { return range(1, count) == 1; }

  template <typename T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[range(0, int64_t(values.size()) - 1)];
  }

  /// Mean 0, variance 1, bounded by 2 sqrt(3): a sum of four 16-bit uniforms.
  double normal() {
    uint64_t bits = next();
    double sum = 0;
    for (int i = 0; i < 4; ++i)
      sum += double(bits >> 16 * i & 0xffff) / 65536.0;
    return (sum - 2.0) * std::sqrt(3.0);
  }

private:
  uint64_t state;
};

} // namespace tokentile

#endif // TOKENTILE_TEST_NUMERICS_RANDOM_H
