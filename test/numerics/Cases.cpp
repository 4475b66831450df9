//===- Cases.cpp - Seeded (spec, problem) pairs ---------------------------===//

#include "test/numerics/Cases.h"
#include "test/numerics/Random.h"

#include <algorithm>
#include <cstdio>

namespace tokentile {

namespace {

/// Draws one case, axis by axis.
class CaseMaker {
public:
  CaseMaker(uint64_t seed, int index, Size size)
      : random(seed, uint64_t(index)), small(size == Size::Small) {}

  Case make(uint64_t seed, int index, int batch) {
    drawShape();
    std::string sees = drawSees();
    std::string keys = random.pick({"bf16", "fp16"});
    std::string values = random.pick({"bf16", "fp16"});
    dense = random.oneIn(3);
    std::string paging = drawPaging();
    std::string query = drawQuery();
    std::string output = drawOutput();
    std::string scale = drawScale();
    result.specText =
        "attn.kernel @numerics heads<" + std::to_string(group * kv) + " over " +
        std::to_string(kv) + ", dim " + std::to_string(dim) + "> tokens<" +
        std::to_string(tokens) + "> sees<" + sees + "> keys<" + keys +
        "> values<" + values + "> paging<" + paging + "> block<" +
        (dense ? "dense" : "in_pages") + "> query<" + query + "> output<" +
        output + ">" + scale + (random.oneIn(3) ? " sink" : "") + " split<" +
        drawSplit() + ">";
    if (batch > 0) {
      random = Random(seed + uint64_t(batch) * 0x100000001, uint64_t(index));
      drawPositions();
      drawRowGap();
    }
    drawNumbers();
    drawBatch();
    return std::move(result);
  }

private:
  void drawShape();
  std::string drawSees();
  std::string drawPaging();
  std::string drawQuery();
  std::string drawOutput();
  std::string drawScale();
  std::string drawSplit();
  void drawPositions();
  void drawRowGap();
  void drawNumbers();
  void drawBatch();
  void addRequest(int32_t count);
  int32_t drawContext(int32_t columns);

  Random random;
  Case result;
  int64_t group, tokens, kv, dim;
  int64_t page = 0, window = 0, ring = 0;
  bool small;
  bool dense = false, total = false, given = false;
  std::string columns;
};

void CaseMaker::drawShape() {
  group = random.pick({1, 2, 4, 5, 6, 7, 8, 16});
  tokens = random.range(1, std::min<int64_t>(17, 128 / group));
  kv = random.pick({1, 1, 2, small ? 2 : 3});
  dim = random.pick({64, 128, 256});
}

std::string CaseMaker::drawSees() {
  std::string prefix = random.pick({"all", "left", "symmetric"});
  std::string suffix = random.pick({"causal", "bidirectional"});
  if (prefix != "all") {
    window = random.pick({1, 2, 5, 16, 17, 63, 64, 100, 128, 300, 1024, 4096});
    prefix += " within " + std::to_string(window);
  }
  return "prefix " + prefix + ", suffix " + suffix;
}

std::string CaseMaker::drawPaging() {
  std::string order =
      random.pick({"page_major", "head_major", "nhd", "contiguous"});
  if (order == "contiguous")
    return order;
  page = random.pick({16, 32, 64, 128, 256});
  std::string text = order + " page " + std::to_string(page);
  if (order != "head_major" && random.oneIn(3))
    result.interleave = Interleave::Pages;
  if (order == "nhd" && random.oneIn(3)) {
    result.interleave = Interleave::Slots;
    text += " slot_stride " + std::to_string(2 * kv * dim * 2);
  }
  if (window && random.oneIn(2)) {
    int64_t held = window + (dense ? 0 : tokens);
    ring = (held + page - 1) / page * page + page * random.pick({0, 0, 1, 2});
    text += " ring " + std::to_string(ring);
  }
  return text;
}

std::string CaseMaker::drawQuery() {
  columns = random.pick({"uniform", "counted", "packed"});
  total = random.oneIn(2);
  std::string text = random.pick({"bf16", "fp16"});
  text += random.pick({" token_major", " head_major"});
  text += " columns " + columns;
  given = random.oneIn(2);
  text += given ? " positions given" : " positions from_lengths";
  drawPositions();
  return text + " lengths " + (total ? "total" : "context");
}

void CaseMaker::drawPositions() {
  if (!given)
    return;
  result.positionShift = random.pick({0, 0, 0, -3, 5, 600});
  // Earlier rows would see keys that a ring has overwritten.
  if (ring)
    result.positionShift = std::max(0, result.positionShift);
  result.positionStep = random.pick({1, 1, 2, 3});
}

std::string CaseMaker::drawOutput() {
  std::string text = random.pick({"bf16", "fp16"});
  text += random.pick({" token_major", " head_major"});
  if (random.oneIn(2))
    text += " with lse";
  text += random.pick({" empty zero", " empty nan"});
  drawRowGap();
  return text;
}

void CaseMaker::drawRowGap() { result.rowGap = random.pick({0, 0, 16, 32}); }

std::string CaseMaker::drawScale() {
  if (!random.oneIn(4))
    return "";
  char text[32];
  std::snprintf(text, sizeof(text), " scale<%.6f>",
                random.pick({0.5, 1.5, 2.0}) / std::sqrt(double(dim)));
  return text;
}

std::string CaseMaker::drawSplit() {
  switch (random.range(0, 4)) {
  case 0:
    return "count of " + std::to_string(random.pick({1, 2, 3, 4, 7}));
  case 1:
    return "keys of " + std::to_string(random.pick({64, 128, 256, 512}));
  case 2:
    return given ? "auto"
                 : "pieces of " + std::to_string(random.pick({4, 5, 33}));
  default:
    return "auto";
  }
}

void CaseMaker::drawNumbers() {
  result.numbers = random.pick(
      {Numbers::Normal, Numbers::Normal, Numbers::Sharp, Numbers::Sharp,
       Numbers::Mean, Numbers::Mean, Numbers::Growing, Numbers::Negative});
  result.seed = random.next();
}

/// Edges are put at the end of the context or at the end of the block.
int32_t CaseMaker::drawContext(int32_t columns) {
  int64_t end = random.oneIn(2) ? columns : 0;
  int64_t context = 0;
  switch (random.range(0, 7)) {
  case 0:
    context = 0;
    break;
  case 1:
    context = 1;
    break;
  case 2:
    context = random.range(2, 40);
    break;
  case 3:
  case 4:
    context = (page ? page : 16) * random.range(1, 3) + random.range(-1, 1);
    context -= end;
    break;
  case 5:
    context = random.pick({32, 64, 128}) * random.range(1, 4) +
              random.range(-1, 1) - end;
    break;
  case 6:
    context = random.range(41, 700);
    break;
  default:
    context = random.range(0, random.oneIn(8) ? 2500 : 300);
    break;
  }
  if (small && context > 200)
    context = random.range(100, 200);
  return int32_t(std::max<int64_t>(context, 0));
}

void CaseMaker::drawBatch() {
  result.batch = int32_t(random.range(1, small ? 3 : 5));
  for (int32_t b = 0; b < result.batch; ++b) {
    int32_t count = int32_t(tokens);
    if (columns != "uniform")
      count = random.oneIn(6)   ? 0
              : random.oneIn(4) ? int32_t(tokens)
                                : int32_t(random.range(1, tokens));
    addRequest(count);
  }
}

void CaseMaker::addRequest(int32_t count) {
  int32_t context = drawContext(count);
  bool padding = random.oneIn(10);
  // A total length may be shorter than the block.
  bool isShort = total && count > 1 && random.oneIn(10);
  // A length without the block says nothing of the block: such padding has
  // no columns.
  if (padding && !total && columns != "uniform")
    count = 0;
  if (isShort || (padding && (total || count == 0)))
    context = 0;
  int32_t length = total ? context + count : context;
  if (isShort)
    length = int32_t(random.range(1, count - 1));
  if (padding && total)
    length = 0;
  result.contexts.push_back(context);
  result.columns.push_back(count);
  result.lengths.push_back(length);
}

} // namespace

Case makeCase(uint64_t seed, int index, int batch, Size size) {
  return CaseMaker(seed, index, size).make(seed, index, batch);
}

Case makeCase(uint64_t seed, int index, int batch) {
  return makeCase(seed, index, batch, Size::Full);
}

std::vector<Case> makeCases(uint64_t seed, int count) {
  std::vector<Case> cases;
  for (int index = 0; index < count; ++index)
    cases.push_back(makeCase(seed, index));
  return cases;
}

} // namespace tokentile
