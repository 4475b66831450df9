//===- StepGraph.cpp - The recorded work of steps, by shape ---------------===//

#include "runtime/StepGraph.h"

#include <algorithm>
#include <set>

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

StatusOr<StepShape> StepGraph::cover(int32_t requests, int32_t width,
                                     bool prompt) const {
  const StepShape *best = nullptr;
  int32_t largest = 0;
  std::set<int32_t> widths;
  for (const Entry &entry : graphs) {
    const StepShape &shape = entry.shape;
    if (shape.prompt != prompt)
      continue;
    widths.insert(shape.width);
    if (shape.width != width)
      continue;
    largest = std::max(largest, shape.batch);
    if (shape.batch >= requests && (!best || shape.batch < best->batch))
      best = &shape;
  }
  if (best)
    return *best;
  std::string wanted = describe({requests, width, prompt});
  if (largest > 0)
    return Status(StatusCode::OutOfRange,
                  wanted + " exceeds the largest batch captured, " +
                      std::to_string(largest));
  std::string captured;
  for (int32_t each : widths)
    captured += (captured.empty() ? "" : ", ") + std::to_string(each);
  return Status(StatusCode::OutOfRange,
                wanted + " was not captured; " +
                    (widths.empty() ? "no step like it was"
                                    : "widths captured are " + captured));
}

Status StepGraph::replay(const StepShape &shape) {
  const Entry *entry = find(shape);
  if (!entry)
    return Status(StatusCode::NotFound, describe(shape) + " was not captured");
  return entry->graph->replay(*stream);
}
