//===- SpecStep.cpp - The work of one speculative step --------------------===//

#include "runtime/SpecStep.h"

#include <algorithm>

using namespace tokentile;
using namespace tokentile::services;

namespace {

constexpr int32_t resultHead = sizeof(StepResult) / sizeof(int32_t);

/// Rows of a shape that have logits.
int64_t logitRowsOf(const StepShape &shape) {
  return shape.prompt ? 0 : shape.rows();
}

static_assert(int(DraftKind::OneHot) == int(DraftDistribution::OneHot) &&
              int(DraftKind::Full) == int(DraftDistribution::Full) &&
              int(DraftKind::Sparse) == int(DraftDistribution::Sparse));

} // namespace

StatusOr<std::unique_ptr<SpecStep>>
SpecStep::create(Device &device, BlockTables &tables, TargetModel &target,
                 DraftModel *draft, const std::vector<StepShape> &shapes) {
  if (tables.tables() > maxTables)
    return Status(StatusCode::OutOfRange,
                  std::to_string(tables.tables()) +
                      " page classes; a step takes at most " +
                      std::to_string(maxTables));
  std::unique_ptr<SpecStep> step(new SpecStep(tables, target, draft));
  if (Status status = step->allocate(device, shapes); !status.ok())
    return status;
  if (Status status = step->loadKernels(device); !status.ok())
    return status;
  return step;
}

Status SpecStep::allocate(Device &device,
                          const std::vector<StepShape> &shapes) {
  int64_t batch = 0, rows = 0, logitRows = 0, drafts = 0;
  int64_t controlSize = 0, resultSize = 0;
  for (const StepShape &shape : shapes) {
    batch = std::max<int64_t>(batch, shape.batch);
    rows = std::max<int64_t>(rows, shape.rows());
    logitRows = std::max(logitRows, logitRowsOf(shape));
    drafts = std::max<int64_t>(drafts, int64_t(shape.batch) * shape.drafts());
    controlSize = std::max(controlSize, controlBytes(shape));
    resultSize = std::max<int64_t>(resultSize,
                                   int64_t(shape.batch) * resultWords(shape));
  }
  DraftDistribution kind =
      draft ? draft->distribution() : DraftDistribution::OneHot;
  int64_t vocabulary = target.vocabulary();
  int64_t support = kind == DraftDistribution::Sparse ? draft->support() : 0;
  int64_t probabilities =
      kind == DraftDistribution::Full ? vocabulary : support;
  int64_t parts = partsOf(target.vocabulary());
  constexpr int64_t rowStatsBytes = sizeof(RowStats);
  tableRows.resize(tables.tables());

  struct Need {
    Buffer *buffer;
    int64_t bytes;
  };
  std::vector<Need> needs = {{&control, controlSize},
                             {&results, resultSize * 4},
                             {&tokenRows, rows * 4},
                             {&positions, rows * 4},
                             {&columns, batch * 4},
                             {&lengths, batch * 4},
                             {&temperatures, batch * 4},
                             {&seeds, batch * 8},
                             {&accepted, batch * 4},
                             {&logits, logitRows * vocabulary * 4},
                             {&partStats, logitRows * parts * rowStatsBytes},
                             {&stats, logitRows * rowStatsBytes},
                             {&draws, batch * parts * int64_t(sizeof(Best))},
                             {&draftProbabilities, drafts * probabilities * 4},
                             {&draftSupport, drafts * support * 4}};
  for (int32_t c = 0; c < tables.tables(); ++c)
    needs.push_back({&tableRows[c], batch * tables.stride(c) * 4});
  for (const Need &need : needs) {
    StatusOr<Buffer> buffer = device.allocate(need.bytes);
    if (!buffer.ok())
      return buffer.status();
    *need.buffer = *std::move(buffer);
  }
  for (auto [buffer, bytes] :
       {std::pair(&hostControl, controlSize), {&hostResults, resultSize * 4}}) {
    StatusOr<Buffer> pinned = device.allocatePinned(bytes);
    if (!pinned.ok())
      return pinned.status();
    *buffer = *std::move(pinned);
  }
  return Status();
}

Status SpecStep::loadKernels(Device &device) {
  auto load = [&](auto &kernel, const char *name, auto function) {
    auto loaded =
        std::decay_t<decltype(kernel)>::create(device, name, function);
    if (!loaded.ok())
      return loaded.status();
    kernel = *std::move(loaded);
    return Status();
  };
  if (Status status = load(beginKernel, "begin", services::begin); !status.ok())
    return status;
  if (Status status = load(statsKernel, "acceptStats", services::acceptStats);
      !status.ok())
    return status;
  if (Status status =
          load(draftsKernel, "acceptDrafts", services::acceptDrafts);
      !status.ok())
    return status;
  if (Status status = load(drawKernel, "acceptDraw", services::acceptDraw);
      !status.ok())
    return status;
  return load(acceptKernel, "accept", services::accept);
}

int64_t SpecStep::controlBytes(const StepShape &shape) const {
  return shape.batch * int64_t(sizeof(StepRequest)) +
         shape.rows() * int64_t(sizeof(int32_t));
}

int32_t SpecStep::resultWords(const StepShape &shape) const {
  return resultHead + shape.drafts() + 1;
}

StepRequest &SpecStep::request(int32_t b) {
  return hostControl.as<StepRequest>()[b];
}

int32_t *SpecStep::tokens(const StepShape &shape) {
  return reinterpret_cast<int32_t *>(hostControl.as<StepRequest>() +
                                     shape.batch);
}

const StepResult &SpecStep::result(const StepShape &shape, int32_t b) const {
  return *reinterpret_cast<const StepResult *>(hostResults.as<int32_t>() +
                                               int64_t(b) * resultWords(shape));
}

const int32_t *SpecStep::emitted(const StepShape &shape, int32_t b) const {
  return hostResults.as<int32_t>() + int64_t(b) * resultWords(shape) +
         resultHead;
}

StepBatch SpecStep::batchOf(const StepShape &shape) const {
  StepBatch batch;
  batch.shape = shape;
  batch.tokens = tokenRows.as<int32_t>();
  batch.positions = positions.as<int32_t>();
  batch.columns = columns.as<int32_t>();
  batch.lengths = lengths.as<int32_t>();
  batch.accepted = accepted.as<int32_t>();
  for (int32_t c = 0; c < tables.tables(); ++c)
    batch.tables.push_back({tableRows[c].as<int32_t>(), tables.stride(c)});
  if (!shape.prompt)
    batch.logits = logits.as<float>();
  batch.temperatures = temperatures.as<float>();
  batch.seeds = seeds.as<uint64_t>();
  batch.draftProbabilities = draftProbabilities.as<float>();
  batch.draftSupport = draftSupport.as<int32_t>();
  return batch;
}

Status SpecStep::begin(const StepBatch &batch, Stream &stream) const {
  BeginArgs args = {};
  args.requests = control.as<StepRequest>();
  args.knownTokens = reinterpret_cast<const int32_t *>(
      control.as<StepRequest>() + batch.shape.batch);
  args.slotLengths = tables.deviceLengths();
  for (int32_t c = 0; c < tables.tables(); ++c) {
    args.slotTables[c] = tables.deviceTable(c);
    args.strides[c] = tables.stride(c);
    args.tables[c] = tableRows[c].as<int32_t>();
  }
  args.tokens = batch.tokens;
  args.positions = positions.as<int32_t>();
  args.columns = columns.as<int32_t>();
  args.lengths = lengths.as<int32_t>();
  args.temperatures = temperatures.as<float>();
  args.seeds = seeds.as<uint64_t>();
  args.batch = batch.shape.batch;
  args.width = batch.shape.width;
  return beginKernel.launch({1 + tables.tables(), batch.shape.batch, 1},
                            /*threads=*/256, args, stream);
}

Status SpecStep::accept(const StepBatch &batch, Stream &stream) const {
  AcceptArgs args = {};
  args.requests = control.as<StepRequest>();
  args.tokens = batch.tokens;
  args.columns = batch.columns;
  args.lengths = batch.lengths;
  args.logits = batch.logits;
  args.partStats = partStats.as<RowStats>();
  args.stats = stats.as<RowStats>();
  args.draws = draws.as<Best>();
  args.draftProbabilities = batch.draftProbabilities;
  args.draftSupport = batch.draftSupport;
  args.results = results.as<int32_t>();
  args.accepted = accepted.as<int32_t>();
  args.slotLengths = tables.writableLengths();
  for (int32_t c = 0; c < tables.tables(); ++c)
    if (tables.spec(c).kind == TableKind::State && tables.stride(c) > 1) {
      args.slotStates[c] = tables.writableTable(c);
      args.stateStrides[c] = tables.stride(c);
    }
  args.draftKind = draft ? DraftKind(draft->distribution()) : DraftKind::OneHot;
  args.support = draft ? draft->support() : 0;
  args.batch = batch.shape.batch;
  args.width = batch.shape.width;
  args.vocabulary = target.vocabulary();
  args.resultStride = resultWords(batch.shape);
  args.prompt = batch.shape.prompt;
  int32_t parts = partsOf(args.vocabulary);
  if (!args.prompt) {
    if (Status status = statsKernel.launch({parts, args.width, args.batch},
                                           partThreads, args, stream);
        !status.ok())
      return status;
    if (Status status =
            draftsKernel.launch({args.batch, 1, 1}, 32, args, stream);
        !status.ok())
      return status;
    if (Status status = drawKernel.launch({parts, args.batch, 1}, partThreads,
                                          args, stream);
        !status.ok())
      return status;
  }
  return acceptKernel.launch({args.batch, 1, 1}, partThreads, args, stream);
}

Status SpecStep::run(const StepShape &shape, Stream &stream,
                     std::array<std::unique_ptr<Event>, marks> *times) {
  shown = batchOf(shape);
  Status status = queue(shown, stream, times);
  shown = StepBatch();
  return status;
}

Status SpecStep::queue(const StepBatch &batch, Stream &stream,
                       std::array<std::unique_ptr<Event>, marks> *times) {
  const StepShape &shape = batch.shape;
  auto mark = [&](Mark which) {
    return times ? stream.record(*(*times)[which]) : Status();
  };
  const std::function<Status()> parts[] = {
      [&] {
        return stream.copyToDevice(control.data(), hostControl.data(),
                                   controlBytes(shape));
      },
      [&] { return begin(batch, stream); },
      [&] { return mark(Start); },
      [&] {
        return shape.drafts() > 0 ? draft->propose(batch, stream) : Status();
      },
      [&] { return mark(Proposed); },
      [&] { return target.forward(batch, stream); },
      [&] { return mark(Verified); },
      [&] { return accept(batch, stream); },
      [&] { return mark(Accepted); },
      [&] { return draft ? draft->append(batch, stream) : Status(); },
      [&] { return mark(Appended); },
      [&] {
        return stream.copyToHost(hostResults.data(), results.data(),
                                 int64_t(shape.batch) * resultWords(shape) * 4);
      }};
  for (const auto &part : parts)
    if (Status status = part(); !status.ok())
      return status;
  return Status();
}
