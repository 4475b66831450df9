//===- Weights.cpp - Tensors of the reference model on a device -----------===//

#include "tools/reference-model/Weights.h"

#include "runtime/ThreadPool.h"

#include <algorithm>
#include <cmath>
#include <thread>

using namespace tokentile;
using namespace tokentile::reference;

namespace {

struct Part {
  std::string name;
  std::vector<int64_t> shape;
};

/// Reads tensors one behind another into a buffer; keeps the first failure.
class Loader {
public:
  Loader(Device &device, const WeightSource &source)
      : device(device), source(source) {}

  Buffer load(const std::vector<Part> &parts) {
    std::vector<Bf16> elements;
    for (const Part &part : parts) {
      used.insert(part.name);
      if (status.ok())
        status = source.read(part.name, part.shape, elements);
    }
    if (!status.ok())
      return Buffer();
    size_t bytes = elements.size() * sizeof(Bf16);
    StatusOr<Buffer> buffer = device.allocate(bytes);
    status = buffer.ok()
                 ? device.copyToDevice(buffer->data(), elements.data(), bytes)
                 : buffer.status();
    return buffer.ok() ? *std::move(buffer) : Buffer();
  }

  Device &device;
  const WeightSource &source;
  std::set<std::string> used;
  Status status;
};

/// What every kind of layer has: its norms and its feed-forward part.
void loadFeedForward(Loader &loader, const StackConfig &config,
                     const std::string &prefix, LayerWeights &layer) {
  int64_t hidden = config.hidden, inner = config.inner;
  layer.inputNorm =
      loader.load({{prefix + "input_layernorm.weight", {hidden}}});
  layer.postNorm =
      loader.load({{prefix + "post_attention_layernorm.weight", {hidden}}});
  layer.gateUp =
      loader.load({{prefix + "mlp.gate_proj.weight", {inner, hidden}},
                   {prefix + "mlp.up_proj.weight", {inner, hidden}}});
  layer.down =
      loader.load({{prefix + "mlp.down_proj.weight", {hidden, inner}}});
}

void loadAttention(Loader &loader, const StackConfig &config,
                   const std::string &layerPrefix, LayerWeights &layer) {
  std::string prefix = layerPrefix + "self_attn.";
  int64_t hidden = config.hidden, dim = config.headDim;
  int64_t queries = config.queryHeads * dim, keys = config.kvHeads * dim;
  layer.qkv = loader.load({{prefix + "q_proj.weight", {queries, hidden}},
                           {prefix + "k_proj.weight", {keys, hidden}},
                           {prefix + "v_proj.weight", {keys, hidden}}});
  layer.queryNorm = loader.load({{prefix + "q_norm.weight", {dim}}});
  layer.keyNorm = loader.load({{prefix + "k_norm.weight", {dim}}});
  layer.output = loader.load({{prefix + "o_proj.weight", {hidden, queries}}});
}

void loadDelta(Loader &loader, const TargetConfig &config,
               const std::string &layerPrefix, LayerWeights &layer) {
  std::string prefix = layerPrefix + "linear_attn.";
  int64_t hidden = config.hidden, heads = config.deltaHeads;
  int64_t keys = int64_t(config.deltaKeyHeads) * config.deltaKeyDim;
  int64_t values = heads * config.deltaValueDim;
  int64_t channels = 2 * keys + values;
  layer.deltaIn =
      loader.load({{prefix + "in_proj_qkv.weight", {channels, hidden}},
                   {prefix + "in_proj_z.weight", {values, hidden}},
                   {prefix + "in_proj_a.weight", {heads, hidden}},
                   {prefix + "in_proj_b.weight", {heads, hidden}}});
  layer.conv = loader.load({{prefix + "conv1d.weight", {channels, 4}}});
  layer.logDecay = loader.load({{prefix + "A_log", {heads}}});
  layer.decayBias = loader.load({{prefix + "dt_bias", {heads}}});
  layer.deltaNorm =
      loader.load({{prefix + "norm.weight", {config.deltaValueDim}}});
  layer.output = loader.load({{prefix + "out_proj.weight", {hidden, values}}});
}

uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

bool endsWith(const std::string &text, const std::string &end) {
  return text.size() >= end.size() &&
         text.compare(text.size() - end.size(), end.size(), end) == 0;
}

} // namespace

void WeightSource::draw(const std::string &name,
                        const std::vector<int64_t> &shape, Bf16 *to) const {
  uint64_t key = mix(seed + 0x9e3779b97f4a7c15ull);
  for (char c : name)
    key = mix(key * 31 + uint8_t(c));
  float middle = 0, reach = 0;
  if (shape.size() > 1)
    reach = std::sqrt(
        3.0f / float(endsWith(name, "embed_tokens.weight") ? 1 : shape[1]));
  else if (endsWith(name, "A_log"))
    middle = -2, reach = 1;
  else if (endsWith(name, "dt_bias"))
    reach = 0.5f;
  else
    middle = 1, reach = 0.1f;
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  constexpr int64_t piece = 1 << 16;
  auto fill = [&](int64_t part) {
    int64_t end = std::min(count, (part + 1) * piece);
    for (int64_t i = part * piece; i < end; ++i) {
      float unit = float(mix(key + uint64_t(i)) >> 40) / float(1 << 23) - 1;
      to[i] = toBf16(middle + reach * unit);
    }
  };
  int64_t parts = (count + piece - 1) / piece;
  ThreadPool(parts > 1 ? std::thread::hardware_concurrency() : 1)
      .forEach(parts, fill);
}

Status WeightSource::read(const std::string &name,
                          const std::vector<int64_t> &shape,
                          std::vector<Bf16> &to) const {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  if (!isSeeded()) {
    StatusOr<const Bf16 *> found = checkpoint->find(name, shape);
    if (!found.ok())
      return found.status();
    to.insert(to.end(), *found, *found + count);
    return Status();
  }
  to.resize(to.size() + size_t(count));
  draw(name, shape, to.data() + to.size() - count);
  return Status();
}

StatusOr<TargetWeights> reference::loadTarget(Device &device,
                                              const TargetConfig &config,
                                              const WeightSource &source) {
  if (!source.isSeeded() && config.hasLayer(LayerKind::GatedDelta))
    return Status(StatusCode::NotCovered,
                  "model file '" + config.name +
                      "' has layer_types \"linear_attention\", which work with "
                      "seeded weights only");
  TargetWeights weights;
  Loader loader(device, source);
  int64_t hidden = config.hidden, vocabulary = config.vocabulary;
  weights.embedding =
      loader.load({{"model.embed_tokens.weight", {vocabulary, hidden}}});
  for (size_t i = 0; i < config.layers.size() && loader.status.ok(); ++i) {
    std::string prefix = "model.layers." + std::to_string(i) + ".";
    LayerWeights &layer = weights.layers.emplace_back();
    loadFeedForward(loader, config, prefix, layer);
    if (config.layers[i] == LayerKind::GatedDelta)
      loadDelta(loader, config, prefix, layer);
    else
      loadAttention(loader, config, prefix, layer);
  }
  weights.norm = loader.load({{"model.norm.weight", {hidden}}});
  if (!config.tiedHead)
    weights.ownHead = loader.load({{"lm_head.weight", {vocabulary, hidden}}});
  if (!loader.status.ok())
    return loader.status;
  // A tied head may be stored all the same.
  loader.used.insert("lm_head.weight");
  if (Status status = source.checkOnly(loader.used); !status.ok())
    return status;
  return weights;
}

StatusOr<DraftWeights> reference::loadDraft(Device &device,
                                            const DraftConfig &config,
                                            const WeightSource &source) {
  DraftWeights weights;
  Loader loader(device, source);
  int64_t hidden = config.hidden;
  int64_t keys = int64_t(config.kvHeads) * config.headDim;
  weights.fuse = loader.load(
      {{"fc.weight",
        {hidden, int64_t(config.taps.size()) * config.targetHidden}}});
  weights.contextNorm = loader.load({{"hidden_norm.weight", {hidden}}});
  weights.norm = loader.load({{"norm.weight", {hidden}}});
  std::vector<Part> context;
  for (size_t i = 0; i < config.layers.size() && loader.status.ok(); ++i) {
    std::string prefix = "layers." + std::to_string(i) + ".";
    LayerWeights &layer = weights.layers.emplace_back();
    loadFeedForward(loader, config, prefix, layer);
    loadAttention(loader, config, prefix, layer);
    for (const char *name : {"k", "v"})
      context.push_back(
          {prefix + "self_attn." + name + "_proj.weight", {keys, hidden}});
  }
  weights.contextKv = loader.load(context);
  if (!loader.status.ok())
    return loader.status;
  if (Status status = source.checkOnly(loader.used); !status.ok())
    return status;
  return weights;
}
