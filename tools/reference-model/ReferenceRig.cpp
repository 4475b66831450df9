//===- ReferenceRig.cpp - Target, draft and their caches ------------------===//

#include "tools/reference-model/ReferenceRig.h"

#include <algorithm>
#include <filesystem>

using namespace tokentile;
using namespace tokentile::reference;

namespace {

int64_t countLayers(const StackConfig &config, LayerKind kind) {
  return std::count(config.layers.begin(), config.layers.end(), kind);
}

/// The number of "seed:N", or nothing.
StatusOr<std::optional<uint64_t>> readSeed(const std::string &name) {
  const std::string kind = "seed:";
  if (name.rfind(kind, 0) != 0)
    return std::optional<uint64_t>();
  std::string digits = name.substr(kind.size());
  if (digits.empty() || digits.size() > 18 ||
      digits.find_first_not_of("0123456789") != std::string::npos)
    return Status(StatusCode::InvalidArgument,
                  "model '" + name + "' is unknown; seed:N works");
  return std::optional<uint64_t>(std::stoull(digits));
}

/// Opens a model: `small` makes the geometry of a seed without a file.
template <typename Config>
StatusOr<ModelSource<Config>>
openModel(const std::string &name, const std::string &configFile,
          StatusOr<Config> (&load)(const std::string &),
          const std::function<Config()> &small) {
  StatusOr<std::optional<uint64_t>> seed = readSeed(name);
  if (!seed.ok())
    return seed.status();
  if (*seed) {
    StatusOr<Config> config = configFile.empty() ? small() : load(configFile);
    if (!config.ok())
      return config.status();
    if (configFile.empty())
      config->name = name;
    return ModelSource<Config>{*config, WeightSource(**seed)};
  }
  if (!configFile.empty())
    return Status(StatusCode::InvalidArgument,
                  "a geometry file does not go with '" + name +
                      "', which has its own config.json; seed:N works");
  if (!std::filesystem::is_directory(name))
    return Status(StatusCode::InvalidArgument,
                  "model '" + name +
                      "' is not a folder; the folder of a checkpoint, seed:N "
                      "and, as a draft, agree:P work");
  StatusOr<Config> config = load(name + "/config.json");
  if (!config.ok())
    return config.status();
  StatusOr<Checkpoint> checkpoint = Checkpoint::open(name);
  if (!checkpoint.ok())
    return checkpoint.status();
  return ModelSource<Config>{*config, WeightSource(*std::move(checkpoint))};
}

} // namespace

StatusOr<ModelSource<TargetConfig>>
reference::openTarget(const std::string &name, const std::string &configFile) {
  return openModel<TargetConfig>(name, configFile, loadTargetConfig,
                                 [] { return smallTarget(); });
}

StatusOr<ModelSource<DraftConfig>>
reference::openDraft(const std::string &name, const std::string &configFile,
                     const TargetConfig &target) {
  return openModel<DraftConfig>(name, configFile, loadDraftConfig,
                                [&] { return smallDraft(target); });
}

int32_t ReferenceRig::longestChunk(const TargetConfig &target) {
  constexpr int32_t mostRows = 128, mostTokens = 64;
  return std::min(mostTokens, mostRows / (target.queryHeads / target.kvHeads));
}

Status ReferenceRig::planCaches(Device &device, const TargetConfig &target,
                                const DraftConfig *draftConfig,
                                DraftRoute route) {
  ModelShape model;
  model.name = target.name;
  auto add = [&](const std::string &name, TableKind kind) -> CacheGroup & {
    CacheGroup &group = model.groups.emplace_back();
    group.name = name;
    group.kind = kind;
    group.pageTokens = shape.pageTokens;
    return group;
  };
  auto addKeys = [&](const std::string &name, const StackConfig &config,
                     int64_t layers) {
    add(name, TableKind::Linear).tokenBytes =
        kvTokenBytes(layers, config.kvHeads, config.headDim, 2);
    return int32_t(model.groups.size()) - 1;
  };
  int64_t recurrent = countLayers(target, LayerKind::GatedDelta);
  int64_t attending = int64_t(target.layers.size()) - recurrent;
  if (attending)
    targetKeys = addKeys("target", target, attending);
  if (recurrent) {
    CacheGroup &group = add("state", TableKind::State);
    group.stateBytes = recurrent * deltaStateBytes(target);
    targetState = int32_t(model.groups.size()) - 1;
  }
  if (draftConfig) {
    // Sliding layers keep a ring. The fallback attends whole contexts.
    int64_t layers = int64_t(draftConfig->layers.size()), slides = 0;
    if (route != DraftRoute::Reattend)
      slides = countLayers(*draftConfig, LayerKind::Sliding);
    if (layers > slides)
      draftKeys = draftRing = addKeys("draft", *draftConfig, layers - slides);
    if (slides) {
      draftRing = addKeys("draft ring", *draftConfig, slides);
      if (layers == slides)
        draftKeys = draftRing;
      CacheGroup &ring = model.groups.back();
      ring.kind = TableKind::Ring;
      // A table of whole 16-byte words, see below: the ring keeps more.
      int32_t word = 4 * shape.pageTokens;
      ring.window = (draftConfig->window - 1 + word - 1) / word * word + 1;
    }
  }
  Workload workload;
  workload.requests = shape.batch;
  workload.width = shape.drafts + 1;
  workload.tokensIn = 1;
  workload.tokensOut = shape.tokens;
  // A pool of one chunk says what each class needs for a request.
  std::vector<PageClass> classes;
  for (const CacheGroup &group : model.groups)
    classes.push_back({group.name, group.kind == TableKind::State
                                       ? group.stateBytes
                                       : group.tokenBytes * group.pageTokens});
  StatusOr<MemoryPlan> planned =
      planMemory(model, workload, PagePool::chooseChunkBytes(classes));
  int64_t bytes = 0;
  if (planned.ok()) {
    for (const ClassPlan &need : planned->needs)
      bytes += (shape.batch * need.pagesPerRequest + need.pagesPerChunk - 1) /
               need.pagesPerChunk * planned->chunkBytes;
    planned = planMemory(model, workload, bytes);
  }
  if (!planned.ok())
    return planned.status();
  plan = *std::move(planned);
  StatusOr<PagePool> made =
      PagePool::create(plan.poolBytes, plan.chunkBytes, plan.classes);
  if (!made.ok())
    return made.status();
  pool = *std::move(made);
  // Tables of whole 16-byte words: the loop route reads a request's alone. No
  // page is lost by it: entries that are not reached hold none, and rings have
  // whole words already.
  for (TableSpec &table : plan.tables)
    if (table.kind != TableKind::State)
      table.entries = (table.entries + 3) / 4 * 4;
  StatusOr<Buffer> buffer = device.allocate(size_t(pool->bytes()));
  if (!buffer.ok())
    return buffer.status();
  memory = *std::move(buffer);
  StatusOr<BlockTables> madeTables = BlockTables::create(
      device, *pool, memory.data(), shape.batch, plan.tables);
  if (!madeTables.ok())
    return madeTables.status();
  tables.emplace(*std::move(madeTables));
  return Status();
}

CachePlace ReferenceRig::placeOf(int32_t pageClass) const {
  if (pageClass < 0)
    return CachePlace();
  CachePlace place;
  place.memory = memory.as<char>();
  place.pageClass = pageClass;
  place.pageBytes = plan.classes[pageClass].pageBytes;
  place.pageIds = pool->pageIds(pageClass);
  place.pageTokens = shape.pageTokens;
  if (plan.tables[pageClass].kind == TableKind::Ring)
    place.ringKeys = plan.tables[pageClass].entries * shape.pageTokens;
  return place;
}

StatusOr<std::unique_ptr<ReferenceRig>>
ReferenceRig::create(Device &device, const RigShape &shape,
                     const ModelSource<TargetConfig> &targetSource,
                     const ModelSource<DraftConfig> *draftSource,
                     DraftRoute route) {
  const TargetConfig &targetConfig = targetSource.config;
  if (draftSource)
    if (Status status =
            checkPair(targetConfig, draftSource->config, shape.drafts);
        !status.ok())
      return status;
  std::unique_ptr<ReferenceRig> rig(new ReferenceRig(shape));
  if (Status status =
          rig->planCaches(device, targetConfig,
                          draftSource ? &draftSource->config : nullptr, route);
      !status.ok())
    return status;
  StatusOr<std::unique_ptr<Ops>> ops = Ops::create(device);
  if (!ops.ok())
    return ops.status();
  rig->ops = *std::move(ops);
  StatusOr<Appender> appender = Appender::create(device);
  if (!appender.ok())
    return appender.status();
  rig->appender = *std::move(appender);

  ModelLimits limits;
  limits.rows = std::max(shape.batch * (shape.drafts + 1),
                         shape.promptBatch * shape.chunk);
  limits.batch = std::max(shape.batch, shape.promptBatch);
  limits.keys = shape.tokens + shape.drafts + 1;
  ModelContext context = {device, *rig->ops, *rig->appender, limits};
  StatusOr<TargetWeights> weights =
      loadTarget(device, targetConfig, targetSource.weights);
  if (!weights.ok())
    return weights.status();
  std::vector<int32_t> taps;
  if (draftSource)
    taps = draftSource->config.taps;
  StatusOr<std::unique_ptr<ReferenceTarget>> target = ReferenceTarget::create(
      context, targetConfig, *std::move(weights), rig->placeOf(rig->targetKeys),
      rig->placeOf(rig->targetState), taps);
  if (!target.ok())
    return target.status();
  rig->target = *std::move(target);
  if (!draftSource)
    return rig;

  StatusOr<DraftWeights> draftWeights =
      loadDraft(device, draftSource->config, draftSource->weights);
  if (!draftWeights.ok())
    return draftWeights.status();
  StatusOr<std::unique_ptr<ReferenceDraft>> draft = ReferenceDraft::create(
      context, draftSource->config, *std::move(draftWeights), *rig->target,
      rig->placeOf(rig->draftKeys), rig->placeOf(rig->draftRing), route);
  if (!draft.ok())
    return draft.status();
  rig->draft = *std::move(draft);
  return rig;
}
