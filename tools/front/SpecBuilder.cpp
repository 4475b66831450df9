//===- SpecBuilder.cpp - The text of a spec from options ------------------===//

#include "tools/front/Front.h"
#include "tools/front/ModelZoo.h"

using namespace tokentile;

namespace {

Status unknown(const char *option, const std::string &value,
               const char *works) {
  return Status(StatusCode::InvalidArgument, std::string(option) + " '" +
                                                 value + "' is unknown; " +
                                                 works + " work");
}

bool isOneOf(const std::string &value,
             std::initializer_list<const char *> known) {
  for (const char *name : known)
    if (value == name)
      return true;
  return false;
}

std::string orElse(const std::string &value, const char *otherwise) {
  return value.empty() ? otherwise : value;
}

/// What a spec is built from, every default filled in.
struct Resolved {
  ModelGeometry model;
  bool isDraft = false;
  int64_t tokens = 0;
  int64_t window = 0;
  int64_t page = 64;
  std::string keys, values, layout, block, split;
};

StatusOr<ModelGeometry> resolveModel(const FrontOptions &options) {
  StatusOr<ModelGeometry> model = findModel(options.model);
  if (!model.ok() || options.kernel.empty())
    return model;
  bool wantsDraft = options.kernel == "draft";
  if (!wantsDraft && options.kernel != "verify")
    return unknown("--kernel", options.kernel, "verify and draft");
  if (wantsDraft == model->isDraft)
    return model;
  if (!wantsDraft)
    return Status(StatusCode::InvalidArgument,
                  "--kernel 'verify' does not fit model '" + model->name +
                      "', which is a draft; draft works");
  if (model->draft.empty())
    return Status(StatusCode::NotFound,
                  "model '" + model->name +
                      "' has no published draft; give the draft's own "
                      "config.json as --model");
  return findModel(model->draft);
}

/// "auto", "count:N", "keys:N" or "pieces:N" as the dialect writes it.
StatusOr<std::string> resolveSplit(const std::string &split) {
  if (split.empty() || split == "auto")
    return std::string("auto");
  size_t colon = split.find(':');
  std::string kind = split.substr(0, colon);
  std::string value = colon == std::string::npos ? "" : split.substr(colon + 1);
  bool isNumber = !value.empty() && value.size() < 10 &&
                  value.find_first_not_of("0123456789") == std::string::npos &&
                  std::stoi(value) > 0;
  if (!isOneOf(kind, {"count", "keys", "pieces"}) || !isNumber)
    return unknown("--split", split, "auto, count:N, keys:N and pieces:N");
  return kind + " of " + value;
}

StatusOr<Resolved> resolve(const FrontOptions &options) {
  Resolved all;
  StatusOr<ModelGeometry> model = resolveModel(options);
  if (!model.ok())
    return model.status();
  all.model = *model;
  all.isDraft = all.model.isDraft;
  if (options.tokens.size() > 1)
    return Status(StatusCode::InvalidArgument,
                  "--tokens has " + std::to_string(options.tokens.size()) +
                      " values; one works here");
  all.tokens = options.tokens.empty() ? all.model.block : options.tokens[0];
  if (all.tokens < 1)
    return Status(StatusCode::InvalidArgument,
                  "--tokens " + std::to_string(all.tokens) +
                      " does not fit; at least 1 works");
  all.window = options.window < 0 ? all.model.window : options.window;
  all.page = options.page ? options.page : 64;
  all.keys = orElse(options.keys, "bf16");
  all.values = orElse(options.values, all.keys.c_str());
  all.layout = orElse(options.layout, "page_major");
  all.block = orElse(options.block, "in_pages");
  for (auto [option, value] :
       {std::pair("--kv", &all.keys), std::pair("--values", &all.values)})
    if (!isOneOf(*value, {"bf16", "fp16"}))
      return unknown(option, *value, "bf16 and fp16");
  if (!isOneOf(all.layout, {"page_major", "head_major", "nhd", "contiguous"}))
    return unknown("--layout", all.layout,
                   "page_major, head_major, nhd and contiguous");
  if (!isOneOf(all.block, {"in_pages", "dense"}))
    return unknown("--block", all.block, "in_pages and dense");
  StatusOr<std::string> split = resolveSplit(options.split);
  if (!split.ok())
    return split.status();
  all.split = *split;
  return all;
}

/// A symbol that tells the kernel apart; what is usual is left out.
std::string symbolOf(const Resolved &all) {
  auto number = [](int64_t value) { return std::to_string(value); };
  std::string name = all.isDraft ? "draft" : "verify";
  name += "_q" + number(all.model.queryHeads) + "_kv" +
          number(all.model.kvHeads) + "_d" + number(all.model.headDim) + "_t" +
          number(all.tokens);
  if (all.window)
    name += "_w" + number(all.window);
  if (all.keys != "bf16" || all.values != "bf16")
    name += "_" + all.keys + "_" + all.values;
  if (all.layout != "page_major")
    name += "_" + all.layout;
  if (all.layout != "contiguous" && all.page != 64)
    name += "_p" + number(all.page);
  if (all.block == "dense")
    name += "_dense";
  return name;
}

/// The first option that shapes a spec and was given, or null.
const char *shapingOption(const FrontOptions &options) {
  const std::pair<const char *, bool> given[] = {
      {"--model", !options.model.empty()},
      {"--kernel", !options.kernel.empty()},
      {"--tokens", !options.tokens.empty()},
      {"--kv", !options.keys.empty()},
      {"--values", !options.values.empty()},
      {"--page", options.page != 0},
      {"--layout", !options.layout.empty()},
      {"--window", options.window >= 0},
      {"--block", !options.block.empty()},
      {"--split", !options.split.empty()},
      {"--lowering", !options.lowering.empty()},
      {"--key-tile", options.keyTile != 0},
      {"--stages", options.stages != 0},
      {"--row-warps", options.rowWarps != 0},
      {"--key-warps", options.keyWarps != 0},
      {"--row-blocks", options.rowBlocks != 0},
      {"--max-sweeps", options.maxSweeps != 0},
      {"--invariant", options.invariant},
  };
  for (auto [name, isGiven] : given)
    if (isGiven)
      return name;
  return nullptr;
}

std::string specText(const Resolved &all, const std::string &schedule) {
  auto number = [](int64_t value) { return std::to_string(value); };
  // A draft's rows all see the whole block, and its band is symmetric; a
  // target's window reaches back from each row.
  std::string prefix = all.window == 0 ? "all"
                       : all.isDraft   ? "symmetric within "
                                       : "left within ";
  if (all.window)
    prefix += number(all.window);
  std::string paging = all.layout;
  if (all.layout != "contiguous")
    paging += " page " + number(all.page);
  std::string text =
      "attn.kernel @" + symbolOf(all) + " heads<" +
      number(all.model.queryHeads) + " over " + number(all.model.kvHeads) +
      ", dim " + number(all.model.headDim) + "> tokens<" + number(all.tokens) +
      ">\n    sees<prefix " + prefix + ", suffix " +
      (all.isDraft ? "bidirectional" : "causal") + ">\n    keys<" + all.keys +
      "> values<" + all.values + "> paging<" + paging + ">";
  if (all.block == "dense")
    text += " block<dense>";
  text += "\n    split<" + all.split + ">";
  if (!schedule.empty())
    text += "\n    " + schedule;
  text += "\n";
  return text;
}

} // namespace

StatusOr<std::string> tokentile::buildSpec(const FrontOptions &options) {
  if (!options.specFile.empty()) {
    if (const char *option = shapingOption(options))
      return Status(StatusCode::InvalidArgument,
                    std::string(option) +
                        " does not go with a spec file; say it in '" +
                        options.specFile + "'");
    return readText(options.specFile, "spec");
  }
  if (options.model.empty())
    return Status(StatusCode::InvalidArgument,
                  "no kernel is named; give a spec file or --model=NAME, such "
                  "as --model=qwen3.6-27b");
  StatusOr<Resolved> all = resolve(options);
  if (!all.ok())
    return all.status();
  StatusOr<std::string> schedule = scheduleClause(options);
  if (!schedule.ok())
    return schedule.status();
  return specText(*all, *schedule);
}

StatusOr<std::string> tokentile::scheduleClause(const FrontOptions &options) {
  std::string lowering = orElse(options.lowering, "auto");
  if (!isOneOf(lowering, {"auto", "mma", "wgmma"}))
    return unknown("--lowering", lowering, "auto, mma and wgmma");
  std::string text;
  auto add = [&](const char *name, int64_t value) {
    if (value)
      text += std::string(" ") + name + " " + std::to_string(value);
  };
  add("key_tile", options.keyTile);
  add("row_warps", options.rowWarps);
  add("key_warps", options.keyWarps);
  add("stages", options.stages);
  add("row_blocks", options.rowBlocks);
  add("max_sweeps", options.maxSweeps);
  if (options.invariant)
    text += " invariant";
  if (text.empty() && lowering == "auto")
    return std::string();
  return "schedule<" + lowering + text + ">";
}

const char *tokentile::kernelOption(const FrontOptions &options) {
  return options.specFile.empty() ? shapingOption(options) : "a spec file";
}

std::string tokentile::specName(const FrontOptions &options) {
  return options.specFile.empty() ? "spec" : options.specFile;
}
