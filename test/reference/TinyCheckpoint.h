//===- TinyCheckpoint.h - Safetensors written by tests ----------*- C++ -*-===//

#ifndef TOKENTILE_TEST_REFERENCE_TINYCHECKPOINT_H
#define TOKENTILE_TEST_REFERENCE_TINYCHECKPOINT_H

#include "tools/reference-model/Checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace tokentile {

/// A tensor to write: its elements count up from `first`.
struct TinyTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::string type = "BF16";

  int64_t bytes() const {
    int64_t count = type == "F32" ? 4 : 2;
    for (int64_t extent : shape)
      count *= extent;
    return count;
  }
};

/// The text of a safetensors file; every element is 1.0 in bf16.
inline std::string tinySafetensors(const std::vector<TinyTensor> &tensors) {
  std::string header = "{\"__metadata__\": {\"format\": \"pt\"}", data;
  for (const TinyTensor &tensor : tensors) {
    int64_t end = int64_t(data.size()) + tensor.bytes();
    header += ", \"" + tensor.name + "\": {\"dtype\": \"" + tensor.type +
              "\", \"shape\": " + shapeText(tensor.shape) +
              ", \"data_offsets\": [" + std::to_string(data.size()) + ", " +
              std::to_string(end) + "]}";
    for (int64_t i = 0; i < tensor.bytes(); i += 2)
      data += std::string("\x80\x3f", 2);
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  uint64_t length = header.size();
  return std::string(reinterpret_cast<const char *>(&length), 8) + header +
         data;
}

/// A folder of its own, removed at the end.
class FolderTest : public testing::Test {
protected:
  void SetUp() override {
    const testing::TestInfo *info =
        testing::UnitTest::GetInstance()->current_test_info();
    folder = testing::TempDir() + "tokentile-" + info->test_suite_name() + "-" +
             info->name();
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  void write(const std::string &name, const std::string &text) {
    std::ofstream(folder + "/" + name, std::ios::binary) << text;
  }

  std::string folder;
};

} // namespace tokentile

#endif // TOKENTILE_TEST_REFERENCE_TINYCHECKPOINT_H
