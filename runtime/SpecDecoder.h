//===- SpecDecoder.h - Batched speculative decoding -------------*- C++ -*-===//
//
// Drives a target and, if there is one, a draft over many requests. A step is a
// transaction on the block tables:
//
//   propose -> verify -> accept -> append -> commit
//
// Its output is that of the target alone: token for token at temperature 0, in
// distribution otherwise. Prompts of any length enter in chunks; each call of
// `step` runs at most one chunk step and one decode step, so neither waits for
// the other. After `warmUp` a chunk step or a decode step is one graph launch,
// one copy of a few words to the host and one wait.
//
// Requests come and go between steps. A request that gets no page waits; when
// no request can go on, the youngest that waits gives its pages back and is run
// again later (its tokens stay), and if it has the pool to itself it fails.
//
// One thread at a time. Tables, pool, models and stream are the caller's and
// must outlive the decoder; slots 0 .. maxRequests - 1 of the tables are its
// own.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_SPECDECODER_H
#define TOKENTILE_RUNTIME_SPECDECODER_H

#include "runtime/SpecStep.h"
#include "runtime/StepGraph.h"

#include <deque>
#include <map>

namespace tokentile {

struct SpecOptions {
  /// Batches of decode steps to capture; the largest is the most requests that
  /// run at once.
  std::vector<int32_t> batches = {1};
  /// Drafts of a step to capture; 0 is plain decode. The last is used first.
  std::vector<int32_t> drafts = {0};
  /// A chunk step: rows of one prompt, and prompts.
  int32_t promptWidth = 64;
  int32_t promptBatch = 1;
  /// No decode step while a prompt is read: requests that are submitted at once
  /// start to decode at once. Otherwise neither waits for the other.
  bool promptsFirst = false;
  /// Otherwise steps are queued call by call, which measures their phases.
  bool useGraphs = true;
};

struct SpecRequest {
  /// Names the request; unique among those of the decoder.
  int64_t id = 0;
  std::vector<int32_t> prompt;
  /// The most tokens to emit.
  int32_t maxTokens = 0;
  /// At most 4. The stop token is emitted.
  std::vector<int32_t> stops;
  /// 0 for greedy.
  float temperature = 0;
  /// Of the random numbers, which do not depend on what runs beside.
  uint64_t seed = 0;
  /// A running request whose committed prefix is shared as far as the prompts
  /// agree and its caches still have it, or -1.
  int64_t sharePrefixOf = -1;
};

enum class SpecState { Running, Stopped, LengthReached, Failed };

/// What a step did for one request.
struct SpecEvent {
  int64_t id = 0;
  std::vector<int32_t> tokens;
  /// Anything but Running: the request is gone.
  SpecState state = SpecState::Running;
  /// Failed: why. Names the request.
  Status status;
};

struct SpecCounters {
  int64_t promptSteps = 0;
  int64_t decodeSteps = 0;
  int64_t emitted = 0;
  /// Requests that gave their pages back to let others go on.
  int64_t preemptions = 0;
  /// Prompt rows that were shared, not computed, and shares that the caches
  /// could not give.
  int64_t sharedRows = 0;
  int64_t sharesRefused = 0;
  /// By draft position: how often a draft was verified, and kept.
  std::vector<int64_t> drafted;
  std::vector<int64_t> kept;
  /// Of the last call of `step`, on its stream.
  StreamCounters lastStep;
  /// Microseconds of decode steps in propose, verify, accept and append; only
  /// without graphs.
  std::array<double, 4> phaseMicroseconds = {};
};

class SpecDecoder {
public:
  /// InvalidArgument or OutOfRange, with the value, for options that models or
  /// tables cannot meet: a vocabulary mismatch, more drafts than the draft
  /// proposes or the tables take.
  static StatusOr<std::unique_ptr<SpecDecoder>>
  create(Device &device, BlockTables &tables, TargetModel &target,
         DraftModel *draft, const SpecOptions &options, Stream &stream);

  /// Prepares the models, runs every shape once on padding, and captures it.
  /// Once, before the first step; nothing is captured later.
  Status warmUp();

  /// Queues a request. An error names it and the cause, and changes nothing: an
  /// id in use, an empty prompt, a token beyond the vocabulary, more rows than
  /// the tables hold, too many stop tokens.
  Status submit(SpecRequest request);
  /// Runs one step, and says what it did for each request that emitted tokens
  /// or ended. An error is that of the device: the step's reservations are
  /// undone, and the decoder is of no further use.
  StatusOr<std::vector<SpecEvent>> step();
  /// Whether no request is queued or running.
  bool idle() const { return queue.empty() && running.empty(); }

  /// Takes a request's pages and sets it aside; `resume` queues it again, and
  /// it goes on where it was after its tokens were recomputed. NotFound for an
  /// id that is not running (not set aside).
  Status preempt(int64_t id);
  Status resume(int64_t id);
  /// Drops a request, whatever its state.
  Status cancel(int64_t id);

  /// Drafts of the steps to come. OutOfRange, naming those captured, for
  /// another.
  Status setDrafts(int32_t drafts);

  /// Prompt and emitted tokens of a request; null if it is gone.
  const std::vector<int32_t> *tokensOf(int64_t id) const;
  const SpecCounters &counters() const { return totals; }

private:
  struct Request {
    SpecRequest given;
    /// Prompt and emitted tokens. The last one has no row in the caches.
    std::vector<int32_t> tokens;
    int32_t slot = -1;
    bool setAside = false;
    int32_t emitted() const {
      return int32_t(tokens.size() - given.prompt.size());
    }
  };

  /// One request of a step and the rows that are reserved for it.
  struct Row {
    Request *request;
    int32_t rows;
  };

  SpecDecoder(BlockTables &tables, TargetModel &target, DraftModel *draft,
              SpecOptions options, Stream &stream)
      : tables(tables), target(target), draft(draft),
        options(std::move(options)), stream(stream), graphs(stream) {}

  static Status checkOptions(const BlockTables &tables,
                             const TargetModel &target, const DraftModel *draft,
                             const SpecOptions &options);
  std::vector<StepShape> shapes() const;
  Status warmUpShape(const StepShape &shape);
  Status checkRequest(const SpecRequest &request) const;
  StatusOr<Request *> find(int64_t id);

  int32_t maxRequests() const { return options.batches.back(); }
  StepShape shapeOf(int32_t requests, bool prompt) const;
  /// Rows of a request that its caches lack: 1 if it decodes.
  int32_t pendingRows(const Request &request) const;
  Status admit();
  Status admitTo(Request &request, int32_t slot);
  StatusOr<int32_t> reserve(const Request &request, bool prompt);
  Status stepOf(bool prompt, std::vector<SpecEvent> &events);
  Status run(const StepShape &shape, const std::vector<Row> &batch);
  void fill(const StepShape &shape, int32_t b, const Row *row);
  Status finish(const StepShape &shape, int32_t b, const Row &row,
                std::vector<SpecEvent> &events);
  void count(const services::StepResult &result, int32_t drafted);
  Status measure();
  Status makeRoom(std::vector<SpecEvent> &events);
  Status leave(Request &request);
  Status end(Request &request, SpecEvent event, std::vector<SpecEvent> &events);

  BlockTables &tables;
  TargetModel &target;
  DraftModel *draft;
  SpecOptions options;
  Stream &stream;
  StepGraph graphs;
  std::unique_ptr<SpecStep> work;
  std::array<std::unique_ptr<Event>, SpecStep::marks> times;
  bool warm = false;
  int32_t drafts = 0;

  std::map<int64_t, Request> requests;
  /// Those that wait for a slot, and those that have one, by age.
  std::deque<Request *> queue;
  std::vector<Request *> running;
  /// Set by a preemption for lack of pages: nobody is admitted before pages
  /// come back.
  bool crowded = false;
  /// In this step: whether a row ran, and who got no page, and why.
  bool advanced = false;
  std::vector<std::pair<Request *, Status>> waiting;
  SpecCounters totals;
};

} // namespace tokentile

#endif // TOKENTILE_RUNTIME_SPECDECODER_H
