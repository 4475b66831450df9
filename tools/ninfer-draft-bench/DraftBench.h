//===- DraftBench.h - Attention of a draft step, by route -------*- C++ -*-===//
//
// One layer's attention of a DFlash step: `width` block rows of each of c
// requests against their own contexts, which lie in pages, and against one
// another. Four ways to do it:
//
//   batched    one generated launch for all requests, lengths on the device
//   loop       the same kernel, one launch for each request
//   padded     one launch in which every context is as long as the longest
//   reattend   the fallback of vllm.cpp #2087: copy all contexts behind one
//              another, then attend with every row of them (Reattend.h)
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TOOLS_NINFERDRAFTBENCH_DRAFTBENCH_H
#define TOKENTILE_TOOLS_NINFERDRAFTBENCH_DRAFTBENCH_H

#include "bench/ColdTimer.h"
#include "tools/reference-model/Attention.h"
#include "tools/reference-model/Ops.h"

namespace tokentile {

/// The step that is timed.
struct DraftStep {
  reference::AttentionKind kind;
  int32_t width = 0;
  int32_t pageTokens = 0;
  /// One for each request.
  std::vector<int32_t> contexts;

  int32_t longest() const;
};

struct DraftTiming {
  std::string route;
  Timing timing;
  int samples = 0;
  int32_t launches = 0;
  /// What has to cross the memory bus at least once.
  int64_t bytes = 0;
};

class DraftBench {
public:
  static StatusOr<std::unique_ptr<DraftBench>> create(Device &device);

  /// Fills pages and rows for `step`; those of the last step are gone.
  Status prepare(const DraftStep &step);
  /// Names: batched, loop, padded, reattend. Replayed as a graph, cold. The
  /// fallback, which takes milliseconds, is sampled three times at most.
  StatusOr<DraftTiming> time(const std::string &route, int samples);

private:
  explicit DraftBench(Device &device) : device(device) {}
  StatusOr<Buffer> random(int64_t elements);
  StatusOr<Buffer> words(const std::vector<int32_t> &values);
  LaunchArgs argsOf(int32_t request) const;
  Status launchAll(bool padded, Stream &stream);
  Status launchLoop(Stream &stream);
  Status reattend(Stream &stream);
  Status prepareReattend();
  int64_t bytesOf(const std::string &route) const;

  Device &device;
  std::unique_ptr<ColdTimer> timer;
  std::unique_ptr<reference::Ops> ops;
  /// Numbers of which tensors are filled, over and over.
  std::vector<reference::Bf16> pattern;
  DraftStep step;
  std::string spec;
  std::unique_ptr<Kernel> kernel;
  Plan whole, one;
  Buffer pages, table, query, output, blockKeys, blockValues;
  Buffer lengths, columns, paddedLengths, loopLengths, loopColumns, workspace;
  Buffer allQueries, allKeys, allValues, allOutputs;
  int64_t tableStride = 0;
  int32_t pageIds = 0;
};

} // namespace tokentile

#endif // TOKENTILE_TOOLS_NINFERDRAFTBENCH_DRAFTBENCH_H
