//===- SpecSession.cpp - Requests through a decoder, timed ----------------===//

#include "tools/reference-model/SpecSession.h"

#include <algorithm>
#include <chrono>

using namespace tokentile;
using namespace tokentile::reference;

namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Status submitAll(SpecDecoder &decoder, const SessionOptions &options,
                 const std::vector<std::vector<int32_t>> &prompts) {
  for (size_t i = 0; i < prompts.size(); ++i) {
    SpecRequest request;
    request.id = int64_t(i);
    request.prompt = prompts[i];
    request.maxTokens = options.maxTokens;
    if (options.stop >= 0)
      request.stops = {options.stop};
    request.temperature = options.temperature;
    request.seed = options.seed + i;
    if (Status status = decoder.submit(std::move(request)); !status.ok())
      return status;
  }
  return Status();
}

} // namespace

StatusOr<SessionResult>
reference::runSession(Device &device, ReferenceRig &rig,
                      const SessionOptions &options,
                      const std::vector<std::vector<int32_t>> &prompts,
                      const SessionProgress &progress) {
  StatusOr<std::unique_ptr<Stream>> stream = device.createStream();
  if (!stream.ok())
    return stream.status();
  const RigShape &shape = rig.getShape();
  SpecOptions spec;
  spec.batches = {options.batch ? options.batch : shape.batch};
  spec.drafts = {options.drafts};
  spec.promptWidth = shape.chunk;
  spec.promptBatch = std::min(shape.promptBatch, spec.batches[0]);
  spec.promptsFirst = options.promptsFirst;
  spec.useGraphs = options.useGraphs;
  StatusOr<std::unique_ptr<SpecDecoder>> made = SpecDecoder::create(
      device, rig.getTables(), rig.getTarget(),
      options.drafts ? rig.getDraft() : nullptr, spec, **stream);
  if (!made.ok())
    return made.status();
  SpecDecoder &decoder = **made;
  if (Status status = decoder.warmUp(); !status.ok())
    return status;
  if (Status status = submitAll(decoder, options, prompts); !status.ok())
    return status;

  SessionResult result;
  result.tokens.resize(prompts.size());
  size_t left = prompts.size();
  size_t whole = options.promptsFirst ? std::min(left, size_t(spec.batches[0]))
                                      : size_t(1);
  Clock::time_point start = Clock::now();
  while (!decoder.idle()) {
    SpecCounters before = decoder.counters();
    bool isWhole = left >= whole;
    Clock::time_point stepStart = Clock::now();
    StatusOr<std::vector<SpecEvent>> events = decoder.step();
    if (!events.ok())
      return events.status();
    for (const SpecEvent &event : *events) {
      if (event.state == SpecState::Failed)
        result.failures.push_back(event.status);
      std::vector<int32_t> &tokens = result.tokens[size_t(event.id)];
      tokens.insert(tokens.end(), event.tokens.begin(), event.tokens.end());
      left -= event.state != SpecState::Running;
    }
    const SpecCounters &now = decoder.counters();
    if (isWhole && now.promptSteps == before.promptSteps) {
      result.decodeSeconds += secondsSince(stepStart);
      result.decodeTokens += now.emitted - before.emitted;
      result.decodeSteps += now.decodeSteps - before.decodeSteps;
      result.decodeStep = now.lastStep;
    }
    if (progress)
      progress(now, left);
  }
  result.seconds = secondsSince(start);
  result.counters = decoder.counters();
  return result;
}

std::optional<Difference>
reference::firstDifference(const std::vector<std::vector<int32_t>> &a,
                           const std::vector<std::vector<int32_t>> &b) {
  for (size_t request = 0; request < std::max(a.size(), b.size()); ++request) {
    if (request >= a.size() || request >= b.size())
      return Difference{request, 0};
    auto [x, y] = std::mismatch(a[request].begin(), a[request].end(),
                                b[request].begin(), b[request].end());
    if (x != a[request].end() || y != b[request].end())
      return Difference{request, size_t(x - a[request].begin())};
  }
  return std::nullopt;
}

StatusOr<Agreement>
reference::makeAgreement(Device &device,
                         const std::vector<std::vector<int32_t>> &prompts,
                         const std::vector<std::vector<int32_t>> &emitted,
                         float probability, Buffer &memory) {
  Agreement agreement;
  agreement.requests = int32_t(prompts.size());
  agreement.probability = probability;
  for (size_t i = 0; i < prompts.size(); ++i)
    agreement.stride = std::max(agreement.stride,
                                int64_t(prompts[i].size() + emitted[i].size()));
  std::vector<int32_t> known(prompts.size() * size_t(agreement.stride), 0);
  for (size_t i = 0; i < prompts.size(); ++i) {
    auto at = known.begin() + int64_t(i) * agreement.stride;
    at = std::copy(prompts[i].begin(), prompts[i].end(), at);
    std::copy(emitted[i].begin(), emitted[i].end(), at);
  }
  size_t bytes = known.size() * sizeof(int32_t);
  StatusOr<Buffer> buffer = device.allocate(bytes);
  if (!buffer.ok())
    return buffer.status();
  memory = *std::move(buffer);
  agreement.known = memory.as<int32_t>();
  if (Status status = device.copyToDevice(memory.data(), known.data(), bytes);
      !status.ok())
    return status;
  return agreement;
}
