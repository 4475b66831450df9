//===- NaiveModel.cpp - The reference model in fp64 -----------------------===//

#include "test/reference/NaiveModel.h"

#include <algorithm>
#include <cmath>

using namespace tokentile;
using namespace tokentile::reference;

namespace {

double silu(double x) { return x / (1 + std::exp(-x)); }

/// Normalises and rotates each head of each row, which stands at `first` + its
/// index.
void turnHeads(Matrix &x, const Row &weight, const StackConfig &config,
               size_t first) {
  size_t dim = weight.size();
  for (size_t r = 0; r < x.size(); ++r)
    for (size_t h = 0; h < x[r].size(); h += dim) {
      double sum = 0;
      for (size_t i = 0; i < dim; ++i)
        sum += x[r][h + i] * x[r][h + i];
      double factor = 1 / std::sqrt(sum / double(dim) + config.epsilon);
      for (size_t i = 0; i < dim / 2; ++i) {
        double a = x[r][h + i] * factor * weight[i];
        double b = x[r][h + i + dim / 2] * factor * weight[i + dim / 2];
        double angle = double(first + r) * std::pow(double(config.ropeTheta),
                                                    -2.0 * i / double(dim));
        x[r][h + i] = a * std::cos(angle) - b * std::sin(angle);
        x[r][h + i + dim / 2] = b * std::cos(angle) + a * std::sin(angle);
      }
    }
}

/// Attention of rows at `first` + index over keys at 0 ..., where `sees` says
/// which.
Matrix attend(const Matrix &q, const Matrix &k, const Matrix &v,
              const StackConfig &config, size_t first,
              const std::function<bool(int64_t, int64_t)> &sees) {
  size_t dim = config.headDim;
  size_t group = config.queryHeads / config.kvHeads;
  Matrix out(q.size(), Row(q.empty() ? 0 : q[0].size(), 0));
  for (size_t r = 0; r < q.size(); ++r)
    for (size_t h = 0; h < size_t(config.queryHeads); ++h) {
      size_t own = h * dim, other = h / group * dim;
      double total = 0;
      for (size_t key = 0; key < k.size(); ++key) {
        if (!sees(int64_t(first + r), int64_t(key)))
          continue;
        double dot = 0;
        for (size_t d = 0; d < dim; ++d)
          dot += q[r][own + d] * k[key][other + d];
        double p = std::exp(dot / std::sqrt(double(dim)));
        total += p;
        for (size_t d = 0; d < dim; ++d)
          out[r][own + d] += p * v[key][other + d];
      }
      for (size_t d = 0; d < dim; ++d)
        out[r][own + d] /= total;
    }
  return out;
}

void add(Matrix &x, const Matrix &y) {
  for (size_t r = 0; r < x.size(); ++r)
    for (size_t i = 0; i < x[r].size(); ++i)
      x[r][i] += y[r][i];
}

void feedForward(Matrix &x, NaiveWeights &weights, const StackConfig &config,
                 const std::string &prefix) {
  Matrix in = weights.norm(x, prefix + "post_attention_layernorm.weight",
                           config.epsilon);
  Matrix gate =
      weights.times(in, prefix + "mlp.gate_proj.weight", config.inner);
  Matrix up = weights.times(in, prefix + "mlp.up_proj.weight", config.inner);
  for (size_t r = 0; r < up.size(); ++r)
    for (size_t i = 0; i < up[r].size(); ++i)
      up[r][i] *= silu(gate[r][i]);
  add(x, weights.times(up, prefix + "mlp.down_proj.weight", config.hidden));
}

} // namespace

const Row &NaiveWeights::get(const std::string &name,
                             std::vector<int64_t> shape) {
  Row &tensor = tensors[name];
  if (tensor.empty()) {
    std::vector<Bf16> bits;
    if (source.read(name, shape, bits).ok())
      for (Bf16 value : bits)
        tensor.push_back(fromBf16(value));
  }
  return tensor;
}

Matrix NaiveWeights::times(const Matrix &x, const std::string &name,
                           int64_t outputs) {
  int64_t inputs = int64_t(x[0].size());
  const Row &w = get(name, {outputs, inputs});
  Matrix out;
  for (const Row &row : x) {
    Row &to = out.emplace_back(outputs, 0);
    for (int64_t n = 0; n < outputs; ++n)
      for (int64_t i = 0; i < inputs; ++i)
        to[n] += row[i] * w[n * inputs + i];
  }
  return out;
}

Matrix NaiveWeights::norm(const Matrix &x, const std::string &name,
                          double epsilon) {
  const Row &w = get(name, {int64_t(x[0].size())});
  Matrix out = x;
  for (Row &row : out) {
    double sum = 0;
    for (double value : row)
      sum += value * value;
    double factor = 1 / std::sqrt(sum / double(row.size()) + epsilon);
    for (size_t i = 0; i < row.size(); ++i)
      row[i] *= factor * w[i];
  }
  return out;
}

Matrix NaiveTarget::embed(const std::vector<int32_t> &tokens) {
  const Row &table = weights.get("model.embed_tokens.weight",
                                 {config.vocabulary, config.hidden});
  Matrix x;
  for (int32_t token : tokens)
    x.emplace_back(table.begin() + int64_t(token) * config.hidden,
                   table.begin() + int64_t(token + 1) * config.hidden);
  return x;
}

Matrix NaiveTarget::head(const Matrix &normed) {
  return weights.times(normed, "lm_head.weight", config.vocabulary);
}

NaiveTarget::Result NaiveTarget::run(const std::vector<int32_t> &tokens) {
  Matrix x = embed(tokens);
  Result result;
  for (size_t layer = 0; layer < config.layers.size(); ++layer) {
    std::string prefix = "model.layers." + std::to_string(layer) + ".";
    Matrix in =
        weights.norm(x, prefix + "input_layernorm.weight", config.epsilon);
    if (config.layers[layer] == LayerKind::GatedDelta) {
      add(x, delta(in, prefix + "linear_attn."));
    } else {
      std::string own = prefix + "self_attn.";
      int64_t dim = config.headDim, keys = config.kvHeads * dim;
      Matrix q =
          weights.times(in, own + "q_proj.weight", config.queryHeads * dim);
      Matrix k = weights.times(in, own + "k_proj.weight", keys);
      Matrix v = weights.times(in, own + "v_proj.weight", keys);
      turnHeads(q, weights.get(own + "q_norm.weight", {dim}), config, 0);
      turnHeads(k, weights.get(own + "k_norm.weight", {dim}), config, 0);
      bool slides = config.layers[layer] == LayerKind::Sliding;
      Matrix out = attend(q, k, v, config, 0, [&](int64_t row, int64_t key) {
        return key <= row && (!slides || row - key < config.window);
      });
      add(x, weights.times(out, own + "o_proj.weight", config.hidden));
    }
    feedForward(x, weights, config, prefix);
    result.taps.push_back(x);
  }
  result.logits = head(weights.norm(x, "model.norm.weight", config.epsilon));
  return result;
}

Matrix NaiveTarget::delta(const Matrix &x, const std::string &prefix) {
  int64_t heads = config.deltaHeads, dim = config.deltaValueDim;
  int64_t keyDim = config.deltaKeyDim, keys = config.deltaKeyHeads * keyDim;
  int64_t channels = 2 * keys + heads * dim;
  Matrix in = weights.times(x, prefix + "in_proj_qkv.weight", channels);
  Matrix z = weights.times(x, prefix + "in_proj_z.weight", heads * dim);
  Matrix a = weights.times(x, prefix + "in_proj_a.weight", heads);
  Matrix b = weights.times(x, prefix + "in_proj_b.weight", heads);
  const Row &conv = weights.get(prefix + "conv1d.weight", {channels, 4});
  const Row &logDecay = weights.get(prefix + "A_log", {heads});
  const Row &bias = weights.get(prefix + "dt_bias", {heads});
  const Row &scale = weights.get(prefix + "norm.weight", {dim});
  Matrix state(heads, Row(keyDim * dim, 0)), out;
  for (size_t t = 0; t < x.size(); ++t) {
    Row mixed(channels, 0);
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t j = 0; j < 4; ++j)
        if (int64_t(t) + j >= 3)
          mixed[c] += in[t + j - 3][c] * conv[c * 4 + j];
      mixed[c] = silu(mixed[c]);
    }
    Row &to = out.emplace_back(heads * dim, 0);
    for (int64_t h = 0; h < heads; ++h) {
      const double *q =
          mixed.data() + h / (heads / config.deltaKeyHeads) * keyDim;
      const double *k = q + keys, *v = mixed.data() + 2 * keys + h * dim;
      double qq = 1e-6, kk = 1e-6;
      for (int64_t i = 0; i < keyDim; ++i) {
        qq += q[i] * q[i];
        kk += k[i] * k[i];
      }
      double decay = std::exp(-std::exp(logDecay[h]) *
                              std::log1p(std::exp(a[t][h] + bias[h])));
      double beta = 1 / (1 + std::exp(-b[t][h])), square = 0;
      for (int64_t j = 0; j < dim; ++j) {
        double seen = 0;
        for (int64_t i = 0; i < keyDim; ++i)
          seen += decay * state[h][i * dim + j] * k[i] / std::sqrt(kk);
        for (int64_t i = 0; i < keyDim; ++i) {
          double &cell = state[h][i * dim + j];
          cell = decay * cell + k[i] / std::sqrt(kk) * beta * (v[j] - seen);
          to[h * dim + j] += cell * q[i] / std::sqrt(qq * double(keyDim));
        }
        square += to[h * dim + j] * to[h * dim + j];
      }
      double factor = 1 / std::sqrt(square / double(dim) + config.epsilon);
      for (int64_t j = 0; j < dim; ++j)
        to[h * dim + j] *= factor * scale[j] * silu(z[t][h * dim + j]);
    }
  }
  return weights.times(out, prefix + "out_proj.weight", config.hidden);
}

Matrix NaiveDraft::propose(NaiveTarget &target, const std::vector<Matrix> &taps,
                           int32_t anchor, int32_t drafts) {
  Matrix tapped(taps[0].size());
  for (int32_t tap : config.taps)
    for (size_t p = 0; p < tapped.size(); ++p)
      tapped[p].insert(tapped[p].end(), taps[tap][p].begin(),
                       taps[tap][p].end());
  size_t context = tapped.size();
  Matrix c = weights.norm(weights.times(tapped, "fc.weight", config.hidden),
                          "hidden_norm.weight", config.epsilon);
  std::vector<int32_t> ids(drafts + 1, config.maskToken);
  ids[0] = anchor;
  Matrix x = target.embed(ids);
  for (size_t layer = 0; layer < config.layers.size(); ++layer) {
    std::string prefix = "layers." + std::to_string(layer) + ".";
    std::string own = prefix + "self_attn.";
    int64_t dim = config.headDim, keys = config.kvHeads * dim;
    Matrix in =
        weights.norm(x, prefix + "input_layernorm.weight", config.epsilon);
    Matrix q =
        weights.times(in, own + "q_proj.weight", config.queryHeads * dim);
    Matrix both = c;
    both.insert(both.end(), in.begin(), in.end());
    Matrix k = weights.times(both, own + "k_proj.weight", keys);
    Matrix v = weights.times(both, own + "v_proj.weight", keys);
    turnHeads(q, weights.get(own + "q_norm.weight", {dim}), config, context);
    turnHeads(k, weights.get(own + "k_norm.weight", {dim}), config, 0);
    bool slides = config.layers[layer] == LayerKind::Sliding;
    Matrix out =
        attend(q, k, v, config, context, [&](int64_t row, int64_t key) {
          return !slides || std::abs(row - key) < config.window;
        });
    add(x, weights.times(out, own + "o_proj.weight", config.hidden));
    feedForward(x, weights, config, prefix);
  }
  Matrix normed = weights.norm(x, "norm.weight", config.epsilon);
  normed.erase(normed.begin());
  return target.head(normed);
}
