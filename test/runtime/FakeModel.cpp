//===- FakeModel.cpp - A target, a draft and their caches -----------------===//

#include "FakeModel.h"
#include "runtime/Nvrtc.h"

#include <cmath>

using namespace tokentile;
using namespace tokentile::fake;
using namespace tokentile::test;

namespace tokentile {
/// FakeModelKernels.h as text.
extern const char *const fakeModelSource;
} // namespace tokentile

namespace {

uint32_t hashOf(const FakeOptions &options,
                const std::vector<int32_t> &history) {
  Recent recent;
  uint32_t state = 0;
  for (int32_t token : history) {
    recent.push(token);
    state = options.withState ? mix(state, uint32_t(token)) : 0;
  }
  return recent.hash(state);
}

/// The model's kernels for a device, compiled once.
std::string cubinFor(const Device &device) {
  static std::map<std::string, std::string> cubins;
  if (device.facts().kind == DeviceKind::Host)
    return "";
  std::string &cubin = cubins[device.facts().chip];
  if (!cubin.empty())
    return cubin;
  StatusOr<std::string> compiled =
      compileCuda(std::string(serviceSource) + fakeModelSource, "fake model",
                  device.facts().chip, {"--std=c++17"});
  EXPECT_TRUE(compiled.ok()) << compiled.status().toString();
  return cubin = *compiled;
}

} // namespace

std::vector<int32_t> test::randomPrompt(std::mt19937 &random, int32_t length,
                                        int32_t vocabulary) {
  std::vector<int32_t> prompt(length);
  for (int32_t &token : prompt)
    token = int32_t(random() % uint32_t(vocabulary));
  return prompt;
}

std::vector<int32_t> test::plainDecode(const FakeOptions &options,
                                       const std::vector<int32_t> &prompt,
                                       int32_t maxTokens,
                                       const std::vector<int32_t> &stops) {
  std::vector<int32_t> history = prompt, emitted;
  while (int32_t(emitted.size()) < maxTokens) {
    history.push_back(greedyOf(hashOf(options, history), options.vocabulary));
    emitted.push_back(history.back());
    if (std::count(stops.begin(), stops.end(), history.back()))
      break;
  }
  return emitted;
}

std::vector<double> test::nextProbabilities(const FakeOptions &options,
                                            const std::vector<int32_t> &history,
                                            double temperature) {
  std::vector<double> weights;
  double sum = 0;
  for (int32_t v = 0; v < options.vocabulary; ++v) {
    weights.push_back(
        std::exp(double(logitOf(hashOf(options, history), v)) / temperature));
    sum += weights.back();
  }
  for (double &weight : weights)
    weight /= sum;
  return weights;
}

int32_t FakeTarget::vocabulary() const { return world.options.vocabulary; }

Status FakeTarget::prepare(const StepShape &shape) {
  world.prepared.push_back(shape);
  return Status();
}

Status FakeTarget::forward(const StepBatch &batch, Stream &stream) {
  if (!world.failure.ok())
    return world.failure;
  FakeArgs args = world.args(batch);
  if (Status status = world.write.launch({args.batch, 1, 1}, 32, args, stream);
      !status.ok() || args.prompt)
    return status;
  return world.logits.launch({args.width, args.batch, 1}, 32, args, stream);
}

int32_t FakeDraft::vocabulary() const {
  return world.options.draftVocabulary ? world.options.draftVocabulary
                                       : world.options.vocabulary;
}
int32_t FakeDraft::maxDrafts() const { return world.options.maxDrafts; }
DraftDistribution FakeDraft::distribution() const {
  return world.options.distribution;
}
int32_t FakeDraft::support() const { return world.options.support; }

Status FakeDraft::propose(const StepBatch &batch, Stream &stream) {
  FakeArgs args = world.args(batch);
  return world.propose.launch({args.batch, 1, 1}, 32, args, stream);
}

Status FakeDraft::append(const StepBatch &batch, Stream &stream) {
  FakeArgs args = world.args(batch);
  return world.append.launch({args.batch, 1, 1}, 32, args, stream);
}

FakeWorld::FakeWorld(const FakeOptions &given) : options(given) {
  StatusOr<std::unique_ptr<Device>> opened = openDevice(options.device);
  if (!opened.ok())
    return;
  device = *std::move(opened);
  stream = *device->createStream();
  std::vector<PageClass> classes = {{"target", 256}, {"draft", 512}};
  int32_t pages = (options.maxTokens + pageTokens[0] - 1) / pageTokens[0];
  std::vector<TableSpec> specs = {
      {TableKind::Linear, pageTokens[0], pages, 0, 0},
      {TableKind::Ring, pageTokens[1], 2, memoryTokens, 0}};
  if (options.withState) {
    classes.push_back({"state", 256});
    specs.push_back({TableKind::State, 0, options.maxWidth, 0, 0});
  }
  pool = std::make_unique<PagePool>(
      *PagePool::create(options.chunks * 1024, 1024, classes));
  memory = *device->allocate(pool->bytes());
  taps = *device->allocate(4 * 65536);
  // What a fresh page holds must not matter.
  EXPECT_TRUE(device->fill(memory.data(), 0x5A, pool->bytes()).ok());
  tables = std::make_unique<BlockTables>(*BlockTables::create(
      *device, *pool, memory.data(), options.slots, std::move(specs)));
  std::string cubin = cubinFor(*device);
  auto load = [&](auto &kernel, const char *symbol, auto function) {
    kernel = *ServiceKernel<FakeArgs>::create(*device, cubin, symbol, function);
  };
  load(write, "tokentile_fakeWrite", fakeWrite);
  load(logits, "tokentile_fakeLogits", fakeLogits);
  load(propose, "tokentile_fakePropose", fakePropose);
  load(append, "tokentile_fakeAppend", fakeAppend);
}

std::unique_ptr<SpecDecoder> FakeWorld::decoder(const SpecOptions &specOptions,
                                                bool withDraft) {
  StatusOr<std::unique_ptr<SpecDecoder>> made =
      SpecDecoder::create(*device, *tables, target,
                          withDraft ? &draft : nullptr, specOptions, *stream);
  EXPECT_TRUE(made.ok()) << made.status().toString();
  Status warm = (*made)->warmUp();
  EXPECT_TRUE(warm.ok()) << warm.toString();
  return *std::move(made);
}

FakeArgs FakeWorld::args(const StepBatch &batch) const {
  FakeArgs args = {};
  args.tokens = batch.tokens;
  args.columns = batch.columns;
  args.lengths = batch.lengths;
  args.accepted = batch.accepted;
  args.temperatures = batch.temperatures;
  args.seeds = batch.seeds;
  args.logits = batch.logits;
  args.taps = taps.as<int32_t>();
  args.targetRows = {memory.data(), 256, 0, 16, services::Scalar::Float32};
  args.targetTable = {batch.tables[targetTable].ids,
                      batch.tables[targetTable].stride, pageTokens[0]};
  args.draftRows = {memory.data(), 512, 0, 16, services::Scalar::Float32};
  args.draftTable = {batch.tables[draftTable].ids,
                     batch.tables[draftTable].stride, pageTokens[1]};
  if (options.withState) {
    args.stateIds = batch.tables[stateTable].ids;
    args.stateStride = batch.tables[stateTable].stride;
    args.statePageBytes = 256;
  }
  args.draftProbabilities = batch.draftProbabilities;
  args.draftSupport = batch.draftSupport;
  args.kind = DraftKind(options.distribution);
  args.support = options.support;
  args.batch = batch.shape.batch;
  args.width = batch.shape.width;
  args.vocabulary = options.vocabulary;
  args.prompt = batch.shape.prompt;
  args.agreement = options.agreement;
  args.lies = options.lies;
  args.poison = options.poison;
  return args;
}

int64_t FakeWorld::pagesInUse() const {
  int64_t pages = 0;
  for (int32_t c = 0; c < pool->classes(); ++c)
    pages += pool->use(c).pages;
  return pages;
}

std::string FakeWorld::audit(int32_t slot, int32_t rows) {
  auto differs = [&](const std::string &what, int64_t is, int64_t expected) {
    return "slot " + std::to_string(slot) + ": " + what + " is " +
           std::to_string(is) + ", plain decode leaves " +
           std::to_string(expected);
  };
  if (tables->length(slot) != rows)
    return differs("length", tables->length(slot), rows);
  if (tables->reserved(slot) != 0)
    return differs("reservation", tables->reserved(slot), 0);
  if (!tables->upload(*stream).ok() || !stream->synchronize().ok())
    return "upload failed";
  std::vector<int32_t> held = {
      (rows + pageTokens[0] - 1) / pageTokens[0],
      std::min(2, (rows + pageTokens[1] - 1) / pageTokens[1])};
  if (options.withState)
    held.push_back(rows > 0);
  for (int32_t c = 0; c < tables->tables(); ++c) {
    if (tables->held(c, slot) != held[c])
      return differs("pages of class " + std::to_string(c),
                     tables->held(c, slot), held[c]);
    std::vector<int32_t> ids(tables->stride(c));
    if (!device
             ->copyToHost(ids.data(),
                          tables->deviceTable(c) + slot * tables->stride(c),
                          ids.size() * 4)
             .ok())
      return "copy failed";
    for (int32_t i = 0; i < int32_t(ids.size()); ++i)
      if (ids[i] != tables->entry(c, slot, i) || (i >= held[c] && ids[i] != 0))
        return differs("device entry " + std::to_string(i), ids[i],
                       i < held[c] ? tables->entry(c, slot, i) : 0);
  }
  int32_t length = 0;
  if (!device->copyToHost(&length, tables->deviceLengths() + slot, 4).ok())
    return "copy failed";
  return length == rows ? "" : differs("device length", length, rows);
}

void test::collect(const std::vector<SpecEvent> &events, Outcome &outcome) {
  for (const SpecEvent &event : events) {
    std::vector<int32_t> &tokens = outcome.tokens[event.id];
    tokens.insert(tokens.end(), event.tokens.begin(), event.tokens.end());
    if (event.state != SpecState::Running) {
      EXPECT_EQ(outcome.last.count(event.id), 0u)
          << "request " << event.id << " ended twice";
      outcome.last[event.id] = event;
    }
  }
}

Outcome test::runAll(SpecDecoder &decoder, int32_t maxSteps) {
  Outcome outcome;
  for (int32_t i = 0; i < maxSteps && !decoder.idle(); ++i) {
    StatusOr<std::vector<SpecEvent>> events = decoder.step();
    EXPECT_TRUE(events.ok()) << events.status().toString();
    if (!events.ok())
      return outcome;
    collect(*events, outcome);
  }
  EXPECT_TRUE(decoder.idle()) << "after " << maxSteps << " steps";
  return outcome;
}
