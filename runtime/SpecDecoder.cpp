//===- SpecDecoder.cpp - Requests of a speculative decoder ----------------===//
//
// Creation, warm-up, and what comes and goes between steps. SpecDecoderStep.cpp
// has the step.
//
//===----------------------------------------------------------------------===//

#include "runtime/SpecDecoder.h"

#include <algorithm>
#include <cmath>

using namespace tokentile;

namespace {

Status invalid(const std::string &message) {
  return Status(StatusCode::InvalidArgument, message);
}

Status outOfRange(const std::string &message) {
  return Status(StatusCode::OutOfRange, message);
}

std::string listOf(const std::vector<int32_t> &values) {
  std::string list;
  for (int32_t value : values)
    list += (list.empty() ? "" : ", ") + std::to_string(value);
  return list;
}

} // namespace

Status SpecDecoder::checkOptions(const BlockTables &tables,
                                 const TargetModel &target,
                                 const DraftModel *draft,
                                 const SpecOptions &options) {
  const std::vector<int32_t> &batches = options.batches;
  if (batches.empty() || batches.front() < 1 ||
      !std::is_sorted(batches.begin(), batches.end()))
    return invalid("batches " + listOf(batches) +
                   "; give positive ones in ascending order");
  if (int32_t most = std::max(batches.back(), options.promptBatch);
      most > tables.slots())
    return outOfRange("batch " + std::to_string(most) +
                      "; the tables have only " +
                      std::to_string(tables.slots()) + " slots");
  if (options.promptWidth < 1 || options.promptBatch < 1)
    return invalid("promptWidth " + std::to_string(options.promptWidth) +
                   " and promptBatch " + std::to_string(options.promptBatch) +
                   "; they must be positive");
  if (options.drafts.empty())
    return invalid("drafts is empty; give {0} for plain decode");
  for (int32_t drafts : options.drafts) {
    std::string given = "drafts " + std::to_string(drafts);
    if (drafts < 0)
      return invalid(given + "; they must not be negative");
    int32_t most = draft ? draft->maxDrafts() : 0;
    if (drafts > most)
      return outOfRange(given + "; the draft proposes at most " +
                        std::to_string(most));
    if (drafts >= tables.proposalLimit())
      return outOfRange(given + " and the anchor; the tables take at most " +
                        std::to_string(tables.proposalLimit()) +
                        " uncommitted rows");
  }
  if (draft && draft->vocabulary() != target.vocabulary())
    return invalid("vocabulary " + std::to_string(draft->vocabulary()) +
                   " of the draft is not that of the target, " +
                   std::to_string(target.vocabulary()));
  if (draft && draft->distribution() == DraftDistribution::Sparse &&
      draft->support() < 1)
    return invalid("support " + std::to_string(draft->support()) +
                   " of a sparse draft; it must be positive");
  return Status();
}

StatusOr<std::unique_ptr<SpecDecoder>>
SpecDecoder::create(Device &device, BlockTables &tables, TargetModel &target,
                    DraftModel *draft, const SpecOptions &options,
                    Stream &stream) {
  if (Status status = checkOptions(tables, target, draft, options);
      !status.ok())
    return status;
  std::unique_ptr<SpecDecoder> decoder(
      new SpecDecoder(tables, target, draft, options, stream));
  decoder->drafts = options.drafts.back();
  StatusOr<std::unique_ptr<SpecStep>> work =
      SpecStep::create(device, tables, target, draft, decoder->shapes());
  if (!work.ok())
    return work.status();
  decoder->work = *std::move(work);
  if (options.useGraphs)
    return decoder;
  for (std::unique_ptr<Event> &time : decoder->times) {
    StatusOr<std::unique_ptr<Event>> event = device.createEvent();
    if (!event.ok())
      return event.status();
    time = *std::move(event);
  }
  return decoder;
}

std::vector<StepShape> SpecDecoder::shapes() const {
  std::vector<StepShape> all = {
      {options.promptBatch, options.promptWidth, /*prompt=*/true}};
  for (int32_t batch : options.batches)
    for (int32_t each : options.drafts)
      all.push_back({batch, 1 + each, /*prompt=*/false});
  return all;
}

Status SpecDecoder::warmUp() {
  if (warm)
    return Status(StatusCode::FailedPrecondition,
                  "the decoder is warm already; nothing is captured twice");
  for (const StepShape &shape : shapes())
    if (Status status = warmUpShape(shape); !status.ok())
      return status;
  warm = true;
  return Status();
}

Status SpecDecoder::warmUpShape(const StepShape &shape) {
  if (Status status = target.prepare(shape); !status.ok())
    return status;
  if (draft)
    if (Status status = draft->prepare(shape); !status.ok())
      return status;
  for (int32_t b = 0; b < shape.batch; ++b)
    fill(shape, b, nullptr);
  if (Status status = work->run(shape, stream); !status.ok())
    return status;
  if (Status status = stream.synchronize(); !status.ok())
    return status;
  if (!options.useGraphs)
    return Status();
  return graphs.capture(
      shape, [&](Stream &recording) { return work->run(shape, recording); });
}

Status SpecDecoder::checkRequest(const SpecRequest &request) const {
  std::string name = "request " + std::to_string(request.id) + ": ";
  if (requests.count(request.id))
    return invalid(name + "another one has this id");
  if (request.prompt.empty())
    return invalid(name + "the prompt is empty; give at least one token");
  for (size_t i = 0; i < request.prompt.size(); ++i)
    if (request.prompt[i] < 0 || request.prompt[i] >= target.vocabulary())
      return outOfRange(name + "prompt token " + std::to_string(i) + " is " +
                        std::to_string(request.prompt[i]) +
                        "; the vocabulary has " +
                        std::to_string(target.vocabulary()));
  if (request.maxTokens < 1)
    return invalid(name + "maxTokens " + std::to_string(request.maxTokens) +
                   "; it must be positive");
  if (!std::isfinite(request.temperature) || request.temperature < 0)
    return invalid(name + "temperature " + std::to_string(request.temperature) +
                   "; it must be finite and not negative");
  if (request.stops.size() > services::maxStops)
    return outOfRange(name + std::to_string(request.stops.size()) +
                      " stop tokens; at most " +
                      std::to_string(services::maxStops));
  int64_t rows = int64_t(request.prompt.size()) + request.maxTokens - 1;
  if (rows > tables.capacity())
    return outOfRange(
        name + "a prompt of " + std::to_string(request.prompt.size()) +
        " and maxTokens " + std::to_string(request.maxTokens) + " need " +
        std::to_string(rows) + " rows; the tables hold " +
        std::to_string(tables.capacity()));
  return Status();
}

Status SpecDecoder::submit(SpecRequest given) {
  if (Status status = checkRequest(given); !status.ok())
    return status;
  int64_t id = given.id;
  Request request;
  request.tokens = given.prompt;
  request.given = std::move(given);
  queue.push_back(&requests.emplace(id, std::move(request)).first->second);
  return Status();
}

StatusOr<SpecDecoder::Request *> SpecDecoder::find(int64_t id) {
  auto found = requests.find(id);
  if (found == requests.end())
    return Status(StatusCode::NotFound,
                  "request " + std::to_string(id) + " is not here");
  return &found->second;
}

/// Takes the request's pages and slot, if it has them.
Status SpecDecoder::leave(Request &request) {
  if (request.slot < 0)
    return Status();
  int32_t slot = request.slot;
  request.slot = -1;
  running.erase(std::find(running.begin(), running.end(), &request));
  crowded = false;
  return tables.release(slot);
}

Status SpecDecoder::preempt(int64_t id) {
  StatusOr<Request *> request = find(id);
  if (!request.ok())
    return request.status();
  if ((*request)->setAside)
    return Status(StatusCode::FailedPrecondition,
                  "request " + std::to_string(id) +
                      " is set aside already; resume it first");
  (*request)->setAside = true;
  queue.erase(std::remove(queue.begin(), queue.end(), *request), queue.end());
  return leave(**request);
}

Status SpecDecoder::resume(int64_t id) {
  StatusOr<Request *> request = find(id);
  if (!request.ok())
    return request.status();
  if (!(*request)->setAside)
    return Status(StatusCode::FailedPrecondition,
                  "request " + std::to_string(id) + " is not set aside");
  (*request)->setAside = false;
  queue.push_back(*request);
  return Status();
}

Status SpecDecoder::cancel(int64_t id) {
  StatusOr<Request *> request = find(id);
  if (!request.ok())
    return request.status();
  queue.erase(std::remove(queue.begin(), queue.end(), *request), queue.end());
  Status status = leave(**request);
  requests.erase(id);
  return status;
}

Status SpecDecoder::setDrafts(int32_t wanted) {
  const std::vector<int32_t> &captured = options.drafts;
  if (std::find(captured.begin(), captured.end(), wanted) == captured.end())
    return outOfRange("drafts " + std::to_string(wanted) +
                      " were not captured; captured are " + listOf(captured));
  drafts = wanted;
  return Status();
}

const std::vector<int32_t> *SpecDecoder::tokensOf(int64_t id) const {
  auto found = requests.find(id);
  return found == requests.end() ? nullptr : &found->second.tokens;
}
