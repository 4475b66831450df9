//===- StepGraph.h - The recorded work of steps, by shape -------*- C++ -*-===//
//
// A step is captured once for each shape, before the first request, and then
// replayed. A shape that was not captured is an error that names it: nothing is
// captured on the way.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_STEPGRAPH_H
#define TOKENTILE_RUNTIME_STEPGRAPH_H

#include "runtime/SpecModel.h"

#include <functional>
#include <vector>

namespace tokentile {

class StepGraph {
public:
  /// Captures and replays on `stream`, which must outlive this.
  explicit StepGraph(Stream &stream) : stream(&stream) {}

  /// Records what `work` queues on the stream. FailedPrecondition if the shape
  /// has been captured. If `work` fails, its error is returned and the stream
  /// captures no longer.
  Status capture(const StepShape &shape,
                 const std::function<Status(Stream &)> &work);

  /// Queues the work of a captured shape: one launch. NotFound otherwise.
  Status replay(const StepShape &shape);

  int32_t captures() const { return int32_t(graphs.size()); }

private:
  struct Entry {
    StepShape shape;
    std::unique_ptr<Graph> graph;
  };
  const Entry *find(const StepShape &shape) const;

  Stream *stream;
  std::vector<Entry> graphs;
};

} // namespace tokentile

#endif // TOKENTILE_RUNTIME_STEPGRAPH_H
