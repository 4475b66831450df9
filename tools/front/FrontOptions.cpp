//===- FrontOptions.cpp - The options, and files --------------------------===//

#include "tools/front/Front.h"

#include <CLI/CLI.hpp>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

using namespace tokentile;

static void addShape(CLI::App &app, FrontOptions &options) {
  const char *group = "Kernel";
  auto add = [&](const char *name, auto &value, const char *text) {
    return app.add_option(name, value, text)->group(group);
  };
  add("spec", options.specFile, "A spec file (.mlir), instead of --model");
  add("--model", options.model,
      "A published model, such as qwen3.6-27b, or the path of a config.json");
  add("--kernel", options.kernel, "verify or draft (default: the model's)");
  add("--tokens", options.tokens,
      "Query tokens of one request (default: the model's block)")
      ->delimiter(',')
      ->allow_extra_args(false);
  add("--kv", options.keys, "Stored keys and values: bf16 (default) or fp16");
  add("--values", options.values, "Stored values, where they differ");
  add("--page", options.page, "Keys of one page (default: 64)");
  add("--layout", options.layout,
      "page_major (default), head_major, nhd or contiguous");
  add("--window", options.window,
      "Sliding window in keys, 0 for none "
      "(default: the model's)");
  add("--block", options.block,
      "The block's keys: in_pages (default) or dense");
  add("--split", options.split, "auto (default), count:N, keys:N or pieces:N");
}

static void addSchedule(CLI::App &app, FrontOptions &options) {
  const char *group = "Schedule (each is chosen unless given)";
  auto add = [&](const char *name, auto &value, const char *text) {
    app.add_option(name, value, text)->group(group);
  };
  add("--lowering", options.lowering,
      "auto (default), mma or, on sm_90a, wgmma");
  add("--key-tile", options.keyTile, "Keys of one tile");
  add("--stages", options.stages, "Tiles in flight");
  add("--row-warps", options.rowWarps, "Warps that divide the rows");
  add("--key-warps", options.keyWarps, "Warps that divide a tile's keys");
  add("--row-blocks", options.rowBlocks, "Blocks that divide the rows");
  add("--max-sweeps", options.maxSweeps,
      "Sweeps over the keys that are allowed (default: 1)");
  app.add_flag("--invariant", options.invariant,
               "A row's bits depend neither on --tokens nor on the batch")
      ->group(group);
}

void tokentile::addFrontOptions(CLI::App &app, FrontOptions &options,
                                bool withChip) {
  addShape(app, options);
  addSchedule(app, options);
  if (withChip)
    app.add_option("--chip", options.chip,
                   "Target: host, sm_80, sm_86, sm_89, sm_90a, sm_100a, "
                   "sm_120a or sm_121a");
}

StatusOr<std::string> tokentile::readText(const std::string &path,
                                          const char *what) {
  std::ostringstream text;
  if (path == "-") {
    text << std::cin.rdbuf();
    return text.str();
  }
  std::ifstream in(path, std::ios::binary);
  text << in.rdbuf();
  std::error_code ignored;
  if (!in || std::filesystem::is_directory(path, ignored))
    return Status(StatusCode::NotFound, std::string(what) + " '" + path +
                                            "' cannot be read; give the path "
                                            "of a file");
  return text.str();
}

static Status write(const std::string &path, const std::string &text,
                    std::ios::openmode mode) {
  if (path.empty() || path == "-") {
    std::cout << text << std::flush;
    return Status();
  }
  std::ofstream out(path, std::ios::binary | mode);
  out << text;
  out.close();
  if (!out)
    return Status(StatusCode::NotFound, "file '" + path +
                                            "' cannot be written; give a "
                                            "path in a folder that exists");
  return Status();
}

Status tokentile::writeText(const std::string &path, const std::string &text) {
  return write(path, text, std::ios::trunc);
}

Status tokentile::appendText(const std::string &path, const std::string &text) {
  return write(path, text, std::ios::app);
}
