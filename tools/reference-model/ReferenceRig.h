//===- ReferenceRig.h - Target, draft and their caches ----------*- C++ -*-===//
//
// Puts together what a SpecDecoder needs: the page classes of a target and its
// draft in one pool, the models over them, and their operations.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TOOLS_REFERENCEMODEL_REFERENCERIG_H
#define TOKENTILE_TOOLS_REFERENCEMODEL_REFERENCERIG_H

#include "runtime/MemoryPlan.h"
#include "tools/reference-model/ReferenceDraft.h"

namespace tokentile::reference {

/// A model's geometry and where its tensors come from.
template <typename Config>
struct ModelSource {
  Config config;
  WeightSource weights{0};
};

/// "seed:N" with the geometry of a config.json, or with the small one if
/// `configFile` is empty; or the folder of a checkpoint.
StatusOr<ModelSource<TargetConfig>> openTarget(const std::string &name,
                                               const std::string &configFile);
StatusOr<ModelSource<DraftConfig>> openDraft(const std::string &name,
                                             const std::string &configFile,
                                             const TargetConfig &target);

/// What is to be served.
struct RigShape {
  /// Requests at once.
  int32_t batch = 1;
  /// Draft tokens of a step; 0 for plain decode.
  int32_t drafts = 0;
  /// Tokens of a request, prompt included, at most.
  int32_t tokens = 0;
  /// A prompt step: rows of one prompt, and prompts.
  int32_t chunk = 0;
  int32_t promptBatch = 1;
  int32_t pageTokens = 64;
};

class ReferenceRig {
public:
  /// Loads weights and allocates everything. `draft` is null for plain decode.
  /// Errors of the pair are those of checkPair.
  static StatusOr<std::unique_ptr<ReferenceRig>>
  create(Device &device, const RigShape &shape,
         const ModelSource<TargetConfig> &target,
         const ModelSource<DraftConfig> *draft, DraftRoute route);

  const RigShape &getShape() const { return shape; }
  const MemoryPlan &getPlan() const { return plan; }
  PagePool &getPool() { return *pool; }
  /// Empty; `batch` slots.
  BlockTables &getTables() { return *tables; }
  ReferenceTarget &getTarget() { return *target; }
  /// Null for plain decode.
  ReferenceDraft *getDraft() { return draft.get(); }

  /// The longest chunk of prompt rows that one sweep of the target takes.
  static int32_t longestChunk(const TargetConfig &target);

private:
  ReferenceRig(const RigShape &shape) : shape(shape) {}
  Status planCaches(Device &device, const TargetConfig &target,
                    const DraftConfig *draft, DraftRoute route);
  CachePlace placeOf(int32_t pageClass) const;

  RigShape shape;
  MemoryPlan plan;
  std::optional<PagePool> pool;
  Buffer memory;
  std::optional<BlockTables> tables;
  std::unique_ptr<Ops> ops;
  std::optional<Appender> appender;
  std::unique_ptr<ReferenceTarget> target;
  std::unique_ptr<ReferenceDraft> draft;
  /// Page classes, -1 where there is none.
  int32_t targetKeys = -1, targetState = -1, draftKeys = -1, draftRing = -1;
};

} // namespace tokentile::reference

#endif // TOKENTILE_TOOLS_REFERENCEMODEL_REFERENCERIG_H
