//===- StepGraph.cpp - The recorded work of steps, by shape ---------------===//

#include "runtime/StepGraph.h"

using namespace tokentile;

namespace {

std::string describe(const StepShape &shape) {
  return std::string(shape.prompt ? "prompt" : "decode") + " step of batch " +
         std::to_string(shape.batch) + " and width " +
         std::to_string(shape.width);
}

} // namespace

const StepGraph::Entry *StepGraph::find(const StepShape &shape) const {
  for (const Entry &entry : graphs)
    if (entry.shape.batch == shape.batch && entry.shape.width == shape.width &&
        entry.shape.prompt == shape.prompt)
      return &entry;
  return nullptr;
}

Status StepGraph::capture(const StepShape &shape,
                          const std::function<Status(Stream &)> &work) {
  if (find(shape))
    return Status(StatusCode::FailedPrecondition,
                  describe(shape) + " was captured before; replay it");
  if (Status status = stream->beginCapture(); !status.ok())
    return status;
  Status recorded = work(*stream);
  StatusOr<std::unique_ptr<Graph>> graph = stream->endCapture();
  if (!recorded.ok())
    return recorded;
  if (!graph.ok())
    return graph.status();
  graphs.push_back({shape, *std::move(graph)});
  return Status();
}

Status StepGraph::replay(const StepShape &shape) {
  const Entry *entry = find(shape);
  if (!entry)
    return Status(StatusCode::NotFound,
                  describe(shape) + " was not captured; capture it before "
                                    "the first request");
  return entry->graph->replay(*stream);
}
