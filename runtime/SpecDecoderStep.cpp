//===- SpecDecoderStep.cpp - One step of a speculative decoder ------------===//
//
// Reserve rows of each request, run, commit what was accepted. A request is in
// a prompt step while its caches lack more than its last token, and in a decode
// step otherwise: the last token, prompt or emitted, is the anchor.
//
//===----------------------------------------------------------------------===//

#include "runtime/SpecDecoder.h"

#include <algorithm>

using namespace tokentile;
using services::StepRequest;
using services::StepResult;

int32_t SpecDecoder::pendingRows(const Request &request) const {
  return int32_t(request.tokens.size()) - tables.length(request.slot);
}

StepShape SpecDecoder::shapeOf(int32_t requests, bool prompt) const {
  if (prompt)
    return {options.promptBatch, options.promptWidth, prompt};
  return {*std::lower_bound(options.batches.begin(), options.batches.end(),
                            requests),
          1 + drafts, prompt};
}

StatusOr<std::vector<SpecEvent>> SpecDecoder::step() {
  if (!warm)
    return Status(StatusCode::FailedPrecondition,
                  "the decoder is cold; call warmUp before the first step");
  StreamCounters before = stream.counters();
  std::vector<SpecEvent> events;
  advanced = false;
  waiting.clear();
  if (Status status = admit(); !status.ok())
    return status;
  for (bool prompt : {true, false}) {
    if (!prompt && advanced && options.promptsFirst)
      break;
    if (Status status = stepOf(prompt, events); !status.ok())
      return status;
  }
  if (!advanced && !waiting.empty())
    if (Status status = makeRoom(events); !status.ok())
      return status;
  totals.lastStep = stream.counters() - before;
  return events;
}

Status SpecDecoder::admit() {
  for (int32_t slot = 0; slot < maxRequests() && !queue.empty(); ++slot) {
    if (crowded && !running.empty())
      return Status();
    if (tables.live(slot))
      continue;
    Request *request = queue.front();
    if (Status status = admitTo(*request, slot); !status.ok())
      return status;
    queue.pop_front();
    running.push_back(request);
  }
  return Status();
}

Status SpecDecoder::admitTo(Request &request, int32_t slot) {
  request.slot = slot;
  auto source = requests.find(request.given.sharePrefixOf);
  if (source == requests.end() || source->second.slot < 0)
    return tables.admit(slot, request.given.id);
  const std::vector<int32_t> &mine = request.tokens;
  const std::vector<int32_t> &theirs = source->second.tokens;
  // The last token is an anchor: it has a row of its own to run.
  int64_t limit = std::min<int64_t>(tables.length(source->second.slot),
                                    int64_t(mine.size()) - 1);
  auto shared = int32_t(
      std::mismatch(mine.begin(), mine.begin() + limit, theirs.begin()).first -
      mine.begin());
  if (tables.share(source->second.slot, slot, request.given.id, shared).ok()) {
    totals.sharedRows += shared;
    return Status();
  }
  totals.sharesRefused += 1;
  return tables.admit(slot, request.given.id);
}

/// Reserves what the request can have of the rows that it wants: drafts are
/// given up before it waits.
StatusOr<int32_t> SpecDecoder::reserve(const Request &request, bool prompt) {
  if (prompt) {
    int32_t rows = std::min(options.promptWidth, pendingRows(request) - 1);
    if (Status status = tables.append(request.slot, rows); !status.ok())
      return status;
    return rows;
  }
  int32_t left = request.given.maxTokens - request.emitted();
  for (int32_t rows = std::min(1 + drafts, left);; --rows) {
    Status status = tables.propose(request.slot, rows);
    if (status.ok())
      return rows;
    if (rows == 1)
      return status;
  }
}

Status SpecDecoder::stepOf(bool prompt, std::vector<SpecEvent> &events) {
  std::vector<Row> batch;
  size_t most = prompt ? options.promptBatch : maxRequests();
  for (Request *request : std::vector<Request *>(running)) {
    if (batch.size() == most || (pendingRows(*request) > 1) != prompt)
      continue;
    StatusOr<int32_t> rows = reserve(*request, prompt);
    if (rows.ok()) {
      batch.push_back({request, *rows});
      continue;
    }
    if (rows.status().code() == StatusCode::ResourceExhausted) {
      waiting.push_back({request, rows.status()});
      continue;
    }
    SpecEvent event = {request->given.id, {}, SpecState::Failed, rows.status()};
    if (Status status = end(*request, std::move(event), events); !status.ok())
      return status;
  }
  if (batch.empty())
    return Status();

  StepShape shape = shapeOf(int32_t(batch.size()), prompt);
  if (Status status = run(shape, batch); !status.ok()) {
    for (const Row &row : batch)
      if (Status undo = tables.commit(row.request->slot, 0); !undo.ok())
        return undo;
    return status;
  }
  advanced = true;
  (prompt ? totals.promptSteps : totals.decodeSteps) += 1;
  for (size_t b = 0; b < batch.size(); ++b)
    if (Status status = finish(shape, int32_t(b), batch[b], events);
        !status.ok())
      return status;
  return Status();
}

/// Runs a step and waits for its results.
Status SpecDecoder::run(const StepShape &shape, const std::vector<Row> &batch) {
  for (int32_t b = 0; b < shape.batch; ++b)
    fill(shape, b, size_t(b) < batch.size() ? &batch[b] : nullptr);
  if (Status status = tables.upload(stream); !status.ok())
    return status;
  Status queued = options.useGraphs ? graphs.replay(shape)
                                    : work->run(shape, stream, &times);
  if (!queued.ok())
    return queued;
  if (Status status = stream.synchronize(); !status.ok())
    return status;
  return options.useGraphs || shape.prompt ? Status() : measure();
}

/// Says what entry `b` of the step is; null for padding.
void SpecDecoder::fill(const StepShape &shape, int32_t b, const Row *row) {
  StepRequest &entry = work->request(b);
  entry = {};
  entry.slot = -1;
  std::fill_n(entry.stops, services::maxStops, -1);
  if (!row)
    return;
  const Request &request = *row->request;
  entry.seed = request.given.seed;
  entry.slot = request.slot;
  entry.columns = row->rows;
  entry.emitLimit = request.given.maxTokens - request.emitted();
  entry.temperature = request.given.temperature;
  std::copy(request.given.stops.begin(), request.given.stops.end(),
            entry.stops);
  // Rows whose tokens the host does not know are drafts.
  int32_t known = shape.prompt ? row->rows : 1;
  int32_t *tokens = work->tokens(shape) + int64_t(b) * shape.width;
  std::fill_n(tokens, shape.width, 0);
  std::copy_n(request.tokens.begin() + tables.length(request.slot), known,
              tokens);
}

/// Commits entry `b` of a step that ran.
Status SpecDecoder::finish(const StepShape &shape, int32_t b, const Row &row,
                           std::vector<SpecEvent> &events) {
  Request &request = *row.request;
  const StepResult &result = work->result(shape, b);
  if (Status status = tables.commit(request.slot, result.committed,
                                    /*deviceAdvanced=*/true);
      !status.ok())
    return status;
  SpecEvent event;
  event.id = request.given.id;
  if (result.badRow > 0) {
    event.state = SpecState::Failed;
    event.status = Status(
        StatusCode::DataError,
        "request " + std::to_string(event.id) + ": logits at position " +
            std::to_string(tables.length(request.slot) + result.badRow - 1) +
            " are not finite");
    return end(request, std::move(event), events);
  }
  if (shape.prompt)
    return Status();
  count(result, row.rows - 1);
  const int32_t *emitted = work->emitted(shape, b);
  event.tokens.assign(emitted, emitted + result.emitted);
  request.tokens.insert(request.tokens.end(), event.tokens.begin(),
                        event.tokens.end());
  const std::vector<int32_t> &stops = request.given.stops;
  if (std::find(stops.begin(), stops.end(), request.tokens.back()) !=
      stops.end())
    event.state = SpecState::Stopped;
  else if (request.emitted() == request.given.maxTokens)
    event.state = SpecState::LengthReached;
  if (event.state != SpecState::Running)
    return end(request, std::move(event), events);
  events.push_back(std::move(event));
  return Status();
}

void SpecDecoder::count(const StepResult &result, int32_t drafted) {
  totals.emitted += result.emitted;
  if (int32_t(totals.drafted.size()) < drafted) {
    totals.drafted.resize(drafted);
    totals.kept.resize(drafted);
  }
  for (int32_t i = 0; i < drafted; ++i) {
    totals.drafted[i] += 1;
    totals.kept[i] += i < result.kept;
  }
}

Status SpecDecoder::measure() {
  for (int32_t i = 0; i + 1 < SpecStep::marks; ++i) {
    StatusOr<double> time = times[i + 1]->elapsedMicroseconds(*times[i]);
    if (!time.ok())
      return time.status();
    totals.phaseMicroseconds[i] += *time;
  }
  return Status();
}

/// Nobody could go on for lack of pages. `waiting` is in order of age within
/// prompts and within those that decode.
Status SpecDecoder::makeRoom(std::vector<SpecEvent> &events) {
  auto age = [&](const auto &entry) {
    return std::find(running.begin(), running.end(), entry.first);
  };
  const auto &[youngest, cause] = *std::max_element(
      waiting.begin(), waiting.end(),
      [&](const auto &a, const auto &b) { return age(a) < age(b); });
  if (running.size() == 1)
    return end(*youngest, {youngest->given.id, {}, SpecState::Failed, cause},
               events);
  totals.preemptions += 1;
  if (Status status = leave(*youngest); !status.ok())
    return status;
  queue.push_front(youngest);
  crowded = true;
  return Status();
}

/// The request is over: reports it and takes its pages.
Status SpecDecoder::end(Request &request, SpecEvent event,
                        std::vector<SpecEvent> &events) {
  int64_t id = request.given.id;
  events.push_back(std::move(event));
  Status status = leave(request);
  requests.erase(id);
  return status;
}
