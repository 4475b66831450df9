//===- ReferenceDraft.h - A DFlash draft model ------------------*- C++ -*-===//
//
// Proposes a block at once. Its context keys and values are projections of what
// it taps of the target, the same row for every layer:
//
//   c = norm(fc([taps]));   K_l = rope(norm_l(Wk_l c));   V_l = Wv_l c
//
// and its block rows are the anchor and masks, embedded by the target's table,
// which see the context and, without a causal mask, one another. The row at
// position n + i proposes the token at n + i through the target's head.
//
// Attention goes one of three routes, which differ in time and not in meaning:
// one launch for the batch; a launch for each request; or the fallback that
// attends the whole context again (Reattend.h).
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TOOLS_REFERENCEMODEL_REFERENCEDRAFT_H
#define TOKENTILE_TOOLS_REFERENCEMODEL_REFERENCEDRAFT_H

#include "tools/reference-model/ReferenceTarget.h"

namespace tokentile::reference {

enum class DraftRoute { Batched, Loop, Reattend };

/// What the target emits, for a draft that agrees with it by chance.
struct Agreement {
  /// int32 [requests, stride] on the device, by position. A request's seed is
  /// its row. Kept alive by the caller.
  const int32_t *known = nullptr;
  int32_t requests = 0;
  int64_t stride = 0;
  float probability = 0;
};

class ReferenceDraft final : public DraftModel {
public:
  /// `full` and `ring` are the classes of its full and of its sliding layers;
  /// one class may serve both, and must if the route is Reattend, which reads
  /// whole contexts. The target, whose taps, embedding and head it
  /// reads, outlives it.
  static StatusOr<std::unique_ptr<ReferenceDraft>>
  create(const ModelContext &context, const DraftConfig &config,
         DraftWeights weights, const ReferenceTarget &target,
         const CachePlace &full, const CachePlace &ring, DraftRoute route);

  /// Replaces proposals, computed as ever, from now on.
  void agree(const Agreement &with) { agreement = with; }
  /// Takes another route from now on; what was captured stays on its own.
  void take(DraftRoute other) { route = other; }

  /// fp32 [batch, drafts, vocabulary] of the last proposal.
  const Buffer &proposalLogits() const { return logits; }

  int32_t vocabulary() const override { return config.vocabulary; }
  int32_t maxDrafts() const override { return config.block - 1; }
  Status prepare(const StepShape &shape) override;
  Status propose(const StepBatch &batch, Stream &stream) override;
  Status append(const StepBatch &batch, Stream &stream) override;

private:
  ReferenceDraft(const ModelContext &context, const DraftConfig &config,
                 DraftWeights weights, const ReferenceTarget &target,
                 DecoderStack stack, const CachePlace &full,
                 const CachePlace &ring, DraftRoute route);
  Attention &attentionOf(size_t layer) {
    return config.layers[layer] == LayerKind::Sliding ? sliding : whole;
  }
  Status prepareRoute(const StepShape &shape);
  void attend(OpQueue &queue, const StepBatch &batch, size_t layer,
              Stream &stream);
  Status launchOne(Attention &attention, const StepBatch &batch,
                   LaunchArgs args, int32_t request, Stream &stream);
  void reattend(OpQueue &queue, const StepBatch &batch, const LaunchArgs &args,
                int32_t window);

  ModelContext context;
  DraftConfig config;
  DraftWeights weights;
  const ReferenceTarget &target;
  DecoderStack stack;
  CachePlace full, ring;
  DraftRoute route;
  Attention whole, sliding;
  /// Layers of their class, by layer.
  std::vector<int32_t> places;
  std::optional<Agreement> agreement;
  Buffer ids, logits, contextRows;
  /// Loop: lengths and columns, each at an aligned address of its own.
  Buffer loopLengths, loopColumns;
  /// Reattend: queries, keys, values and outputs of all keys. The last four
  /// are in use; recorded work may hold the others.
  std::vector<Buffer> combined;
  int32_t combinedBatch = 0;
};

} // namespace tokentile::reference

#endif // TOKENTILE_TOOLS_REFERENCEMODEL_REFERENCEDRAFT_H
