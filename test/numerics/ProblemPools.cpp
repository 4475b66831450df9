//===- ProblemPools.cpp - Where the keys of a problem lie -----------------===//

#include "test/numerics/ProblemBuilder.h"

#include <numeric>

using namespace tokentile::attn;

namespace tokentile {

void ProblemBuilder::addTable() {
  int64_t used = 0;
  auto pagesOf = [&](int64_t keys) {
    return (keys + pageSize() - 1) / pageSize();
  };
  for (int32_t request = 0; request < testCase.batch; ++request)
    used += pagesOf(storedKeys(request));
  poolPages = used + random.range(1, 4);
  pages.resize(poolPages);
  std::iota(pages.begin(), pages.end(), 0);
  for (int64_t i = poolPages - 1; i > 0; --i)
    std::swap(pages[i], pages[random.range(0, i)]);

  int64_t ring = kernel.getPaging().getRing() / pageSize();
  int64_t width = ring ? ring : pagesOf(problem->maxKeys) + random.range(1, 3);
  HostTensor &tensor = add("table", "i32", {testCase.batch, width});
  auto *table = reinterpret_cast<int32_t *>(tensor.data());
  int64_t next = 0;
  for (int32_t request = 0; request < testCase.batch; ++request) {
    // Pages wholly before the window are no longer the request's.
    int64_t first = oldestKeyOf(request) / pageSize();
    int64_t end = pagesOf(storedKeys(request));
    int32_t *row = table + request * width;
    for (int64_t i = 0; i < width; ++i)
      row[i] = i % 2 ? -1 : 2147480000;
    // A ring may have its oldest and its newest keys in one page.
    for (int64_t i = first; i < std::min(end, first + width); ++i)
      row[i % width] = pages[next++];
  }
  problem->layout.tableStride = width;
}

void ProblemBuilder::addInterleavedPools(std::vector<int64_t> shape,
                                         std::vector<int64_t> strides) {
  // One tensor; its axis of two says which plane. The types may differ, so
  // that what is dumped is bits.
  add("keys_values", stringifyElementKind(kernel.getKeys().getElement()).data(),
      std::move(shape), std::move(strides));
}

void ProblemBuilder::addPools() {
  KernelArgs &args = problem->layout;
  int64_t row = dim * 2, page = pageSize();
  PageOrderKind order = kernel.getPaging().getOrder();
  bool byPages = testCase.interleave == Interleave::Pages;
  bool bySlots = testCase.interleave == Interleave::Slots;
  int64_t slot = kernel.getSlotStride(kernel.getKeys(), dim);
  int64_t pageBytes = page * kvHeads * row;
  std::vector<int64_t> shape;
  int64_t head = row, stride = byPages || bySlots ? 2 * pageBytes : pageBytes;
  problem->valueOffset = byPages ? pageBytes : bySlots ? kvHeads * row : 0;
  switch (order) {
  case PageOrderKind::PageMajor:
    head = page * row;
    shape = {poolPages, kvHeads, page, dim};
    break;
  case PageOrderKind::HeadMajor:
    head = poolPages * page * row;
    stride = page * row;
    shape = {kvHeads, poolPages, page, dim};
    break;
  case PageOrderKind::NHD:
    shape = {poolPages, page, kvHeads, dim};
    break;
  case PageOrderKind::Contiguous:
    stride = 0;
    shape = {poolPages, kvHeads, dim};
    break;
  }
  args.keyPageStride = args.valuePageStride = stride;
  args.keyHeadStride = args.valueHeadStride = head;
  keySlotStride = valueSlotStride = slot;
  args.poolPages = isContiguous() ? 0 : int32_t(poolPages);
  if (byPages) {
    shape.insert(shape.begin() + 1, 2);
    return addInterleavedPools(shape, {});
  }
  if (bySlots) {
    shape.insert(shape.begin() + 2, 2);
    return addInterleavedPools(shape, {});
  }
  add("keys", stringifyElementKind(kernel.getKeys().getElement()).data(),
      shape);
  add("values", stringifyElementKind(kernel.getValues().getElement()).data(),
      shape);
}

uint8_t *ProblemBuilder::rowOf(bool isKey, int32_t request, int32_t key,
                               int64_t head) {
  const KernelArgs &args = problem->layout;
  if (key >= storedKeys(request)) {
    HostTensor &block =
        problem->getTensor(isKey ? "block_keys" : "block_values");
    int64_t token = firstTokenOf(request) + key - testCase.contexts[request];
    return block.data() + (token * kvHeads + head) * dim * 2;
  }
  bool shared = problem->valueOffset != 0;
  uint8_t *pool =
      problem->getTensor(shared  ? "keys_values"
                         : isKey ? "keys"
                                 : "values")
          .data() +
      (isKey ? 0 : problem->valueOffset) + head * args.keyHeadStride;
  if (isContiguous()) {
    auto *offsets = reinterpret_cast<const int32_t *>(
        problem->getTensor("key_offsets").data());
    return pool + (offsets[request] + key) * keySlotStride;
  }
  auto *table =
      reinterpret_cast<const int32_t *>(problem->getTensor("table").data());
  int64_t entry = key / pageSize() % args.tableStride;
  int64_t page = table[request * args.tableStride + entry];
  return pool + page * args.keyPageStride + key % pageSize() * keySlotStride;
}

} // namespace tokentile
