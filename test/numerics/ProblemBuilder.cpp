//===- ProblemBuilder.cpp - Lays out the tensors of a problem -------------===//
//
// Pages and rows of keys are in ProblemPools.cpp, numbers in
// ProblemNumbers.cpp.
//
//===----------------------------------------------------------------------===//

#include "test/numerics/ProblemBuilder.h"

#include "dialect/ReferenceElements.h"

#include <algorithm>
#include <numeric>

using namespace tokentile::attn;

namespace tokentile {

ProblemBuilder::ProblemBuilder(KernelOp kernel, const Case &testCase)
    : kernel(kernel), testCase(testCase), problem(new Problem),
      random(testCase.seed), query(kernel.getQueryOrDefault()),
      output(kernel.getOutputOrDefault()),
      queryHeads(kernel.getHeads().getQuery()),
      kvHeads(kernel.getHeads().getKv()), dim(kernel.getHeads().getDim()) {}

bool ProblemBuilder::isDense() {
  return kernel.getBlockKind() == BlockKind::Dense;
}

bool ProblemBuilder::isContiguous() {
  return kernel.getPaging().getOrder() == PageOrderKind::Contiguous;
}

int64_t ProblemBuilder::pageSize() { return kernel.getPaging().getPage(); }

int32_t ProblemBuilder::lengthOf(int32_t request) {
  int32_t given = testCase.lengths[request];
  return query.getLengths() == LengthsKind::Total
             ? given
             : given + testCase.columns[request];
}

int32_t ProblemBuilder::storedKeys(int32_t request) {
  return isDense() ? std::min(testCase.contexts[request], lengthOf(request))
                   : lengthOf(request);
}

int32_t ProblemBuilder::firstTokenOf(int32_t request) {
  if (query.getColumns() != ColumnsKind::Packed)
    return request * int32_t(kernel.getTokens());
  return std::accumulate(testCase.columns.begin(),
                         testCase.columns.begin() + request, 0);
}

int32_t ProblemBuilder::positionOf(int32_t request, int32_t column) {
  int32_t context = testCase.contexts[request];
  if (query.getPositions() == PositionsKind::FromLengths)
    return context + column;
  return std::max(0, context + testCase.positionShift +
                         column / testCase.positionStep);
}

int32_t ProblemBuilder::oldestKeyOf(int32_t request) {
  SeesAttr sees = kernel.getSees();
  if (sees.getPrefix() == PrefixKind::All || !testCase.columns[request])
    return 0;
  // Positions do not fall along the block.
  int32_t reach = int32_t(sees.getWindow()) - 1;
  return std::max(0, positionOf(request, 0) - reach);
}

bool ProblemBuilder::checkFit(std::string &error) {
  size_t batch = size_t(testCase.batch);
  int32_t tokens = int32_t(kernel.getTokens());
  if (testCase.contexts.size() != batch || testCase.columns.size() != batch ||
      testCase.lengths.size() != batch)
    error = "the case has lists of another length than its batch";
  for (int32_t columns : testCase.columns)
    if (columns < 0 || columns > tokens ||
        (query.getColumns() == ColumnsKind::Uniform && columns != tokens))
      error = "the case has a request of " + std::to_string(columns) +
              " columns for a spec of " + std::to_string(tokens) + " tokens";
  if (!isHalfWidth(kernel.getKeys().getElement()) ||
      !isHalfWidth(kernel.getValues().getElement()))
    error = "problems are built for keys and values of bf16 or fp16";
  if (kernel.getValueDim() != dim || kernel.getLatent())
    error = "problems are built for values as wide as keys, and not latent";
  if (kernel.getPaging().getIds() != IndexKind::I32)
    error = "problems are built for 'ids i32'";
  if (kernel.getSees().getSuffix() == SuffixKind::Ancestors)
    error = "problems are built for 'suffix' causal and bidirectional";
  return error.empty();
}

HostTensor &ProblemBuilder::add(const char *name, const char *element,
                                std::vector<int64_t> shape,
                                std::vector<int64_t> strides, bool written) {
  int64_t size = element[0] == 'b' || element == std::string("fp16") ? 2 : 4;
  if (strides.empty()) {
    strides.assign(shape.size(), size);
    for (size_t i = shape.size() - 1; i > 0; --i)
      strides[i - 1] = strides[i] * shape[i];
  }
  HostTensor tensor;
  tensor.name = name;
  tensor.element = element;
  tensor.written = written;
  for (size_t i = 0; i < shape.size(); ++i)
    tensor.bytes = std::max(tensor.bytes, shape[i] * strides[i]);
  tensor.shape = std::move(shape);
  tensor.strides = std::move(strides);
  tensor.storage.assign(tensor.bytes + 2 * guardBytes + 64,
                        written ? outputPoison : inputPoison);
  uintptr_t start = reinterpret_cast<uintptr_t>(tensor.storage.data());
  tensor.offset = int64_t((start + guardBytes + 63) / 64 * 64) - int64_t(start);
  problem->tensors.push_back(std::move(tensor));
  return problem->tensors.back();
}

void ProblemBuilder::addRows(const char *name, ElementKind element,
                             bool headMajor, int64_t width, bool written,
                             int64_t &tokenStride, int64_t &headStride) {
  int64_t row = width * 2;
  int64_t gap = testCase.rowGap;
  int64_t tokens = problem->tokens;
  // The gap lies behind the faster of the two axes' extent, so that neither
  // stride follows from the shape.
  if (headMajor) {
    tokenStride = row + gap;
    headStride = tokens * tokenStride + gap;
    add(name, stringifyElementKind(element).data(), {queryHeads, tokens, width},
        {headStride, tokenStride, 2}, written);
  } else {
    headStride = row + gap;
    tokenStride = queryHeads * headStride + gap;
    add(name, stringifyElementKind(element).data(), {tokens, queryHeads, width},
        {tokenStride, headStride, 2}, written);
  }
}

void ProblemBuilder::addMetadata() {
  auto fill = [&](const char *name, const std::vector<int32_t> &values) {
    HostTensor &tensor = add(name, "i32", {int64_t(values.size())});
    std::copy(values.begin(), values.end(),
              reinterpret_cast<int32_t *>(tensor.data()));
  };
  fill("lengths", testCase.lengths);
  if (query.getColumns() == ColumnsKind::Counted)
    fill("columns", testCase.columns);
  if (query.getColumns() == ColumnsKind::Packed) {
    std::vector<int32_t> offsets;
    for (int32_t request = 0; request <= testCase.batch; ++request)
      offsets.push_back(firstTokenOf(request));
    fill("columns", offsets);
  }
  if (query.getPositions() == PositionsKind::Given) {
    // Masked columns stand at a position that must not count.
    std::vector<int32_t> positions(problem->tokens, 2147480000);
    for (int32_t request = 0; request < testCase.batch; ++request)
      for (int32_t j = 0; j < testCase.columns[request]; ++j)
        positions[firstTokenOf(request) + j] = positionOf(request, j);
    fill("positions", positions);
  }
  if (isContiguous()) {
    // Rows between two requests belong to nobody.
    std::vector<int32_t> offsets = {int32_t(random.range(0, 3))};
    for (int32_t request = 0; request < testCase.batch; ++request)
      offsets.push_back(offsets.back() + storedKeys(request) +
                        int32_t(random.range(0, 2)));
    fill("key_offsets", offsets);
    poolPages = offsets.back() + 1;
  }
}

std::unique_ptr<Problem> ProblemBuilder::build(std::string &error) {
  if (!checkFit(error))
    return nullptr;
  KernelArgs &args = problem->layout;
  problem->testCase = testCase;
  problem->kernel = kernel;
  problem->tokens = query.getColumns() == ColumnsKind::Packed
                        ? firstTokenOf(testCase.batch)
                        : testCase.batch * int32_t(kernel.getTokens());
  problem->tensors.reserve(16);
  for (int32_t request = 0; request < testCase.batch; ++request)
    problem->maxKeys = std::max(problem->maxKeys, lengthOf(request));
  // The bound that was planned for is seldom met.
  problem->maxKeys += int32_t(random.pick({0, 1, 40, 300}));
  problem->maxKeys = std::max(problem->maxKeys, 1);
  args.batch = testCase.batch;
  args.items = args.batch;
  args.slots = 1;
  args.maxKeys = problem->maxKeys;

  addMetadata();
  if (!isContiguous())
    addTable();
  addPools();
  addRows("query", query.getElement(), query.getOrder() == RowOrder::HeadMajor,
          dim, false, args.queryTokenStride, args.queryHeadStride);
  if (isDense()) {
    std::vector<int64_t> shape = {problem->tokens, kvHeads, dim};
    add("block_keys",
        stringifyElementKind(kernel.getKeys().getElement()).data(), shape);
    add("block_values",
        stringifyElementKind(kernel.getValues().getElement()).data(), shape);
  }
  addRows("output", output.getElement(),
          output.getOrder() == RowOrder::HeadMajor, dim, true,
          args.outputTokenStride, args.outputHeadStride);
  if (kernel.getSink())
    addSinks();
  if (output.getExtra() == ExtraResult::LogSumExp)
    add("lse", "fp32", {problem->tokens, queryHeads}, {}, true);
  problem->keySlotStride = keySlotStride;
  problem->valueSlotStride = valueSlotStride;
  fillQuery();
  fillKeysAndValues();

  double unit = roundingUnit(kernel.getValues().getElement());
  problem->precision = {roundingUnit(output.getElement()),
                        testCase.numbers == Numbers::Mean ? 0.0 : unit,
                        output.getElement() == ElementKind::FP16 ? 0x1p-24
                                                                 : 0x1p-126};
  return std::move(problem);
}

} // namespace tokentile
