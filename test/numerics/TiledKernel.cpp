//===- TiledKernel.cpp - A plain tiled kernel to test the tests -----------===//

#include "test/numerics/TiledKernel.h"

#include "dialect/ReferenceElements.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace tokentile::attn;

namespace tokentile {

namespace {

using Row = std::vector<float>;

/// Statistics and unnormalised output of a row.
struct Partial {
  float max = -INFINITY;
  float sum = 0;
  Row output;
};

class TiledKernel {
public:
  TiledKernel(Problem &problem, KernelOp kernel, int64_t tile, int64_t splits,
              Fault fault)
      : kernel(kernel), args(problem.getHostArgs()),
        query(kernel.getQueryOrDefault()), output(kernel.getOutputOrDefault()),
        tile(tile), splits(splits), fault(fault), tokens(kernel.getTokens()),
        dim(kernel.getHeads().getDim()) {}

  void run() {
    for (request = 0; request < args.batch; ++request) {
      readRequest();
      for (int64_t row = 0; row < tokens * kernel.getHeads().getQuery(); ++row)
        runRow(row);
    }
  }

private:
  void readRequest();
  void runRow(int64_t row);
  void sweep(const Row &q, int64_t kvHead, int64_t position, int64_t split,
             Partial &partial);
  bool isSeen(int64_t position, int64_t key);
  Row loadKey(bool isKey, int64_t kvHead, int64_t key);
  Row decode(const void *row, ElementKind element);
  void writeRow(int64_t token, int64_t head, Partial &partial, bool masked);

  KernelOp kernel;
  KernelArgs args;
  QueryAttr query;
  OutputAttr output;
  int64_t tile, splits;
  Fault fault;
  int64_t tokens, dim;
  int64_t request = 0, firstToken = 0, columns = 0, length = 0, context = 0;
};

void TiledKernel::readRequest() {
  firstToken = request * tokens;
  columns = tokens;
  if (query.getColumns() == ColumnsKind::Counted)
    columns = args.columns[request];
  if (query.getColumns() == ColumnsKind::Packed) {
    firstToken = args.columns[request];
    columns = args.columns[request + 1] - firstToken;
  }
  length = args.lengths[request];
  if (query.getLengths() == LengthsKind::Context)
    length += columns;
  length = std::min<int64_t>(length, args.maxKeys);
  context = std::max<int64_t>(length - columns, 0);
}

Row TiledKernel::decode(const void *row, ElementKind element) {
  Row values(dim);
  auto *bytes = static_cast<const uint8_t *>(row);
  for (int64_t d = 0; d < dim; ++d) {
    uint16_t bits;
    std::memcpy(&bits, bytes + 2 * d, sizeof(bits));
    values[d] = float(decodeHalf(bits, element));
  }
  return values;
}

Row TiledKernel::loadKey(bool isKey, int64_t kvHead, int64_t key) {
  StorageAttr storage = isKey ? kernel.getKeys() : kernel.getValues();
  if (key >= length)
    return Row(dim);
  PagingAttr paging = kernel.getPaging();
  int64_t slotStride = kernel.getSlotStride(storage, dim);
  if (kernel.getBlockKind() == BlockKind::Dense && key >= context) {
    auto *block =
        static_cast<const uint8_t *>(isKey ? args.blockKeys : args.blockValues);
    int64_t token = firstToken + key - context;
    return decode(block +
                      (token * kernel.getHeads().getKv() + kvHead) * dim * 2,
                  storage.getElement());
  }
  auto *pool = static_cast<const uint8_t *>(isKey ? args.keys : args.values) +
               kvHead * (isKey ? args.keyHeadStride : args.valueHeadStride);
  if (paging.getOrder() == PageOrderKind::Contiguous)
    return decode(pool + (args.keyOffsets[request] + key) * slotStride,
                  storage.getElement());
  int64_t size = paging.getPage();
  int64_t place = key / size;
  if (paging.getRing())
    place %= int64_t(paging.getRing()) / size;
  if (fault == Fault::WrongPage && !isKey && place == 1)
    place = 0;
  int64_t page = args.table[request * args.tableStride + place];
  return decode(pool +
                    page * (isKey ? args.keyPageStride : args.valuePageStride) +
                    key % size * slotStride,
                storage.getElement());
}

bool TiledKernel::isSeen(int64_t position, int64_t key) {
  if (key >= length)
    return fault == Fault::UnmaskedTail;
  if (fault == Fault::DroppedKey && key == length - 1)
    return false;
  SeesAttr sees = kernel.getSees();
  if (sees.getSuffix() == SuffixKind::Causal && key > position)
    return false;
  int64_t from = fault == Fault::SharedWindow ? context : position;
  if (sees.getPrefix() == PrefixKind::Left)
    return from - key < int64_t(sees.getWindow());
  if (sees.getPrefix() == PrefixKind::Symmetric)
    return std::abs(from - key) < int64_t(sees.getWindow());
  return true;
}

void TiledKernel::sweep(const Row &q, int64_t kvHead, int64_t position,
                        int64_t split, Partial &partial) {
  partial.output.assign(dim, 0);
  int64_t tiles = (length + tile - 1) / tile;
  float factor = float(kernel.getScaleFactor() * 1.4426950408889634);
  for (int64_t t = tiles * split / splits; t < tiles * (split + 1) / splits;
       ++t) {
    std::vector<float> scores(tile, -INFINITY);
    float max = partial.max;
    for (int64_t j = 0; j < tile; ++j) {
      if (!isSeen(position, t * tile + j))
        continue;
      Row k = loadKey(true, kvHead, t * tile + j);
      float sum = 0;
      for (int64_t d = 0; d < dim; ++d)
        sum += q[d] * k[d];
      scores[j] = sum * factor;
      max = std::max(max, scores[j]);
    }
    if (max == -INFINITY)
      continue;
    float alpha = std::exp2(partial.max - max);
    partial.max = max;
    partial.sum *= alpha;
    for (float &value : partial.output)
      value *= alpha;
    for (int64_t j = 0; j < tile; ++j) {
      float p = std::exp2(scores[j] - max);
      if (p == 0)
        continue;
      partial.sum += p;
      p = float(roundTo(p, kernel.getValues().getElement()));
      Row v = loadKey(false, kvHead, t * tile + j);
      for (int64_t d = 0; d < dim; ++d)
        partial.output[d] += p * v[d];
    }
  }
}

void TiledKernel::writeRow(int64_t token, int64_t head, Partial &row,
                           bool masked) {
  auto *out = static_cast<uint8_t *>(args.output) +
              token * args.outputTokenStride + head * args.outputHeadStride;
  bool empty = masked || row.sum == 0;
  float nothing = !masked && output.getEmpty() == EmptyKind::NaN ? NAN : 0;
  for (int64_t d = 0; d < dim; ++d) {
    uint16_t bits = encodeHalf(empty ? nothing : row.output[d] / row.sum,
                               output.getElement());
    std::memcpy(out + 2 * d, &bits, sizeof(bits));
  }
  if (args.logSumExp)
    args.logSumExp[token * int64_t(kernel.getHeads().getQuery()) + head] =
        empty ? -INFINITY
              : float((row.max + std::log2(row.sum)) * 0.69314718055994531);
}

void TiledKernel::runRow(int64_t row) {
  int64_t heads = kernel.getHeads().getQuery();
  int64_t column = row / heads, head = row % heads;
  int64_t token = firstToken + column;
  Partial merged;
  merged.output.assign(dim, 0);
  if (column >= columns) {
    if (query.getColumns() == ColumnsKind::Counted)
      writeRow(token, head, merged, true);
    return;
  }
  int64_t from = fault == Fault::SwappedRows ? row / tokens : head;
  int64_t at = fault == Fault::SwappedRows ? row % tokens : column;
  int64_t position = query.getPositions() == PositionsKind::Given
                         ? args.positions[token]
                         : context + column;
  auto *source = static_cast<const uint8_t *>(args.query) +
                 (firstToken + at) * args.queryTokenStride +
                 from * args.queryHeadStride;
  Row q = decode(source, query.getElement());
  for (float &value : q)
    value = float(roundTo(value, kernel.getKeys().getElement()));
  for (int64_t split = 0; split < splits; ++split) {
    Partial partial;
    sweep(q, head / kernel.getHeads().getGroup(), position, split, partial);
    if (partial.sum == 0)
      continue;
    float max = std::max(merged.max, partial.max);
    bool scaled = fault != Fault::UnscaledMerge;
    float old = scaled ? std::exp2(merged.max - max) : 1;
    float add = scaled ? std::exp2(partial.max - max) : 1;
    merged.max = max;
    merged.sum = merged.sum * old + partial.sum * add;
    for (int64_t d = 0; d < dim; ++d)
      merged.output[d] = merged.output[d] * old + partial.output[d] * add;
  }
  if (kernel.getSink() && merged.sum > 0) {
    float sink = args.sinks[head] * 1.4426950408889634f;
    float max = std::max(merged.max, sink), old = std::exp2(merged.max - max);
    merged.max = max;
    merged.sum = merged.sum * old + std::exp2(sink - max);
    for (float &value : merged.output)
      value *= old;
  }
  writeRow(token, head, merged, false);
}

} // namespace

void runTiledKernel(Problem &problem, KernelOp kernel, int64_t tile,
                    int64_t splits, Fault fault) {
  TiledKernel(problem, kernel, tile, splits, fault).run();
}

} // namespace tokentile
