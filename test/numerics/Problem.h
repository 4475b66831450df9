//===- Problem.h - The tensors of a case ------------------------*- C++ -*-===//
//
// Builds what a kernel reads, as hostile as the ABI allows: a shuffled page
// table over a pool larger than needed, NaN in every slot, page, gap and
// masked row that must not count, NaN in the keys before every row's window,
// absurd ids in the tails of the table and for pages before the window, guards
// around the outputs. Holds the reference results of the same memory.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TEST_NUMERICS_PROBLEM_H
#define TOKENTILE_TEST_NUMERICS_PROBLEM_H

#include "codegen/KernelABI.h"
#include "dialect/AttnReference.h"
#include "test/numerics/Cases.h"
#include "test/numerics/Compare.h"

#include <functional>
#include <memory>

namespace tokentile {

/// A tensor in host memory, 64-byte aligned, between two guards.
struct HostTensor {
  std::string name;
  /// "bf16", "fp16", "fp32" or "i32".
  std::string element;
  /// Axes from slow to fast with the bytes between two steps of each.
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  int64_t bytes = 0;
  /// Whether a kernel writes it.
  bool written = false;
  /// Guard, tensor, guard; see data().
  std::vector<uint8_t> storage;
  int64_t offset = 0;

  uint8_t *data() { return storage.data() + offset; }
  const uint8_t *data() const { return storage.data() + offset; }
};

class Problem {
public:
  /// Builds the tensors of `testCase`, whose spec is `kernel` (perhaps with a
  /// schedule). Returns null and says why in `error` if the two do not fit or
  /// if the reference does not evaluate the spec.
  static std::unique_ptr<Problem>
  create(attn::KernelOp kernel, const Case &testCase, std::string &error);

  /// The spec; valid while its module lives.
  attn::KernelOp getKernel() const { return kernel; }
  const Case &getCase() const { return testCase; }
  /// Query tokens in all.
  int32_t getTokens() const { return tokens; }
  /// Largest length of a request, block included: a bound for planning.
  int32_t getMaxKeys() const { return maxKeys; }

  /// Every tensor, inputs and outputs ("output" and "lse").
  std::vector<HostTensor> &getTensors() { return tensors; }
  const std::vector<HostTensor> &getTensors() const { return tensors; }
  HostTensor &getTensor(llvm::StringRef name);
  const HostTensor &getTensor(llvm::StringRef name) const;
  bool hasTensor(llvm::StringRef name) const;

  /// The parameter block over tensors that `place` has put somewhere (upload
  /// them and return device addresses). The workspace pointers are null and
  /// every request is one item: the caller, who has planned, fills them in.
  KernelArgs
  getArgs(const std::function<void *(const HostTensor &)> &place) const;
  /// The parameter block over host memory.
  KernelArgs getHostArgs();
  /// What the reference reads: the same host memory.
  attn::ReferenceInputs getReferenceInputs() const;

  /// The fp64 results, with the naive low-precision ones beside them.
  const attn::ReferenceResult &getReference() const { return reference; }
  /// Units of rounding of the spec's types, for compare().
  Precision getPrecision() const { return precision; }

  /// Fills the outputs with a finite pattern that no result has.
  void poisonOutputs();
  /// Output tensor as doubles, token-major, and log-sum-exp (empty if the spec
  /// returns none).
  std::vector<double> readOutput() const;
  std::vector<double> readLogSumExp() const;
  /// Judges the outputs in the host tensors by the numerics rule; checks the
  /// guards and the gaps between rows first.
  Comparison check() const;

private:
  friend class ProblemBuilder;
  /// Names a tensor that was written beyond its rows, or is empty.
  std::string findOverrun() const;

  Case testCase;
  attn::KernelOp kernel;
  std::vector<HostTensor> tensors;
  attn::ReferenceResult reference;
  Precision precision;
  KernelArgs layout = {};
  /// Bytes from the keys to the values of one tensor, or 0.
  int64_t valueOffset = 0;
  int64_t keySlotStride = 0;
  int64_t valueSlotStride = 0;
  int32_t tokens = 0;
  int32_t maxKeys = 0;
};

} // namespace tokentile

#endif // TOKENTILE_TEST_NUMERICS_PROBLEM_H
