//===- SpecPrompts.cpp - What requests start from -------------------------===//

#include "tools/ninfer-spec/SpecPrompts.h"

#include "tools/front/Front.h"

#include <random>
#include <sstream>

using namespace tokentile;

TokenRows tokentile::drawPrompts(uint64_t seed, int32_t count,
                                 const std::vector<int32_t> &lengths,
                                 int32_t vocabulary) {
  std::mt19937_64 random(seed);
  TokenRows prompts(static_cast<size_t>(count));
  for (size_t i = 0; i < prompts.size(); ++i)
    for (int32_t j = 0; j < lengths[i % lengths.size()]; ++j)
      prompts[i].push_back(int32_t(random() % uint64_t(vocabulary)));
  return prompts;
}

StatusOr<TokenRows> tokentile::readPrompts(const std::string &path,
                                           int32_t count, int32_t vocabulary) {
  StatusOr<std::string> text = readText(path, "prompts");
  if (!text.ok())
    return text.status();
  TokenRows lines;
  std::istringstream in(*text);
  for (std::string line; std::getline(in, line);) {
    std::vector<int32_t> &tokens = lines.emplace_back();
    std::istringstream words(line);
    auto fail = [&](const std::string &cause) {
      return Status(StatusCode::DataError, "prompts '" + path + "' line " +
                                               std::to_string(lines.size()) +
                                               " " + cause);
    };
    for (std::string word; words >> word;) {
      bool isNumber = word.size() < 10 &&
                      word.find_first_not_of("0123456789") == std::string::npos;
      if (!isNumber || std::stoi(word) >= vocabulary)
        return fail("has '" + word + "'; token ids from 0 to " +
                    std::to_string(vocabulary - 1) + " work");
      tokens.push_back(std::stoi(word));
    }
    if (tokens.empty())
      return fail("is empty; at least one token id works");
  }
  if (lines.empty())
    return Status(StatusCode::DataError, "prompts '" + path + "' has no line");
  TokenRows prompts;
  for (int32_t i = 0; i < count; ++i)
    prompts.push_back(lines[size_t(i) % lines.size()]);
  return prompts;
}

std::string tokentile::toLines(const TokenRows &rows) {
  std::string text;
  for (const std::vector<int32_t> &row : rows) {
    for (size_t i = 0; i < row.size(); ++i)
      text += (i ? " " : "") + std::to_string(row[i]);
    text += "\n";
  }
  return text;
}
