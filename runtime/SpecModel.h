//===- SpecModel.h - What a decoder asks of its models ----------*- C++ -*-===//
//
// The seam between SpecDecoder and the models that it drives. The decoder owns
// requests, tables, acceptance and the graph of a step; a model owns weights,
// activations and attention launches. A model is a few calls that queue work on
// a stream:
//
//   prompt step   forward -> append
//   decode step   propose -> forward -> accept -> append
//
// where accept is the decoder's. Prompt steps make no logits: the last token of
// a prompt is the anchor of the first decode step. Each call is made once for
// each shape, while the stream captures, and its work is then replayed for
// every step. So a call must queue the same work whatever the batch holds: it
// allocates nothing, does not synchronize, and reads nothing of the step on the
// host. `prepare` is where plans are made and memory is allocated. Before it
// captures a shape the decoder makes the same calls once uncaptured on a batch
// of padding only, so that libraries load what they load lazily. On the host,
// work is a closure with its arguments captured by value (HostStream::submit).
//
// Rows. A step has batch * width rows, row (b, i) at index b * width + i, as
// generated kernels with counted columns have their query rows. Request b uses
// the first columns[b] of its rows. Rows beyond are padding, and so are all
// rows of a request with 0 columns: whatever is computed for them is ignored,
// but they must not be written to pages or states, and their table entries must
// not be followed.
//
// Caches. A model knows at creation the pool's memory and which page classes
// are its own; StepBatch::tables has their page ids. A row at `position` of a
// linear or ring class lies where runtime/README.md, "Paged caches", says;
// runtime/Append.h writes rows there. Committed keys of request b are
// lengths[b].
//
// Hidden states that a draft taps pass from the target to the draft directly:
// the draft is created with the memory that its target's forward fills, one row
// for each row of the step. It stays valid until the next forward.
//
// Trees: a later StepBatch may give each row its parent. Nothing here assumes
// that row i follows row i - 1 except `positions`, which the batch gives.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_SPECMODEL_H
#define TOKENTILE_RUNTIME_SPECMODEL_H

#include "runtime/Device.h"

#include <vector>

namespace tokentile {

/// What a step is captured for.
struct StepShape {
  /// Requests, padding included.
  int32_t batch = 0;
  /// Rows of one request at most.
  int32_t width = 0;
  /// Rows hold prompt tokens, all of which will be committed; else row 0 is
  /// the last token emitted and rows 1 .. width - 1 are drafts.
  bool prompt = false;

  int32_t rows() const { return batch * width; }
  int32_t drafts() const { return prompt ? 0 : width - 1; }
};

/// Page ids of one page class, int32 [batch, stride]; see KernelArgs::table.
/// State classes: entry 0 is the state after the committed rows, to be taken as
/// zeros if lengths[b] is 0. A prompt step leaves the state after all columns
/// in entry 0; a decode step leaves the state after row i in entry i, row 0 in
/// place, if the class has several entries.
struct StepTable {
  const int32_t *ids = nullptr;
  int64_t stride = 0;
};

/// The device arrays of a step, all owned by the decoder, at the same addresses
/// in every replay. Padded requests have 0 columns, length 0 and entries 0.
struct StepBatch {
  StepShape shape;

  /// Token of each row, [batch, width]. In range for every row, also padding
  /// (0). `propose` writes rows (b, 1 + i), i < drafts(), before forward reads
  /// them.
  int32_t *tokens = nullptr;
  /// Position of each row, [batch, width]: lengths[b] + i.
  const int32_t *positions = nullptr;
  /// Rows of each request, [batch]: 0 .. width. LaunchArgs::columns.
  const int32_t *columns = nullptr;
  /// Committed rows of each request, [batch]: LaunchArgs::lengths of a kernel
  /// with lengths<context>.
  const int32_t *lengths = nullptr;
  /// Rows that acceptance committed, [batch]: 0 .. columns[b]. Valid in append.
  const int32_t *accepted = nullptr;
  /// By page class of the pool.
  std::vector<StepTable> tables;

  /// Written by forward, float [batch, width, vocabulary]; null in prompt
  /// steps. NaN or plus infinity is an error of the request, unless plain
  /// decode would lack the row.
  float *logits = nullptr;

  /// 0 for greedy, else the divisor of the logits, [batch]. For `propose`.
  const float *temperatures = nullptr;
  /// Keys of the random numbers, [batch]; see services/Philox.h. A number
  /// depends on seed, position and purpose only, never on the batch.
  const uint64_t *seeds = nullptr;
  /// Draft distributions, written by propose as DraftModel::distribution says;
  /// entry (b, i) is that of row (b, 1 + i).
  /// Full: float [batch, drafts, vocabulary].
  /// Sparse: float and int32 [batch, drafts, support], ids distinct.
  float *draftProbabilities = nullptr;
  int32_t *draftSupport = nullptr;
};

/// From what a draft token was drawn, which exact rejection must know. Requests
/// with temperature 0 compare tokens only and ignore the probabilities.
enum class DraftDistribution {
  /// The token is a function of the history: no probabilities.
  OneHot,
  /// Drawn from draftProbabilities, normalised over the vocabulary.
  Full,
  /// Drawn from draftProbabilities over draftSupport, normalised.
  Sparse,
};

/// The model whose output is produced.
class TargetModel {
public:
  virtual ~TargetModel();
  virtual int32_t vocabulary() const = 0;
  /// Makes ready for steps of `shape`; called before the first of them, outside
  /// any capture. Shapes share memory where they can: steps run one by one.
  virtual Status prepare(const StepShape &shape) = 0;
  /// Queues embedding, layers and head over the rows of `batch`: writes the
  /// keys, values and states of rows i < columns[b], the logits, and the
  /// memory that a draft taps.
  virtual Status forward(const StepBatch &batch, Stream &stream) = 0;
};

/// A model that guesses what the target will emit.
class DraftModel {
public:
  virtual ~DraftModel();
  virtual int32_t vocabulary() const = 0;
  /// The most tokens that it proposes for one request.
  virtual int32_t maxDrafts() const = 0;
  virtual DraftDistribution distribution() const {
    return DraftDistribution::OneHot;
  }
  /// Sparse: candidates of each row.
  virtual int32_t support() const { return 0; }
  virtual Status prepare(const StepShape &shape) = 0;
  /// Queues the proposal: reads row (b, 0) of tokens, which is the anchor at
  /// position lengths[b], and the draft's caches of [0, lengths[b]); writes
  /// tokens of rows 1 .. drafts() and what `distribution` asks for. Rows at
  /// and beyond columns[b] are ignored.
  virtual Status propose(const StepBatch &batch, Stream &stream) = 0;
  /// Queues the append of the target's tapped rows (b, i), i < accepted[b], to
  /// the draft's caches at positions lengths[b] + i. Never of other rows: in a
  /// ring they would overwrite live ones.
  virtual Status append(const StepBatch &batch, Stream &stream) = 0;
};

} // namespace tokentile

#endif // TOKENTILE_RUNTIME_SPECMODEL_H
