//===- CheckpointTest.cpp - Safetensors, whole and damaged ----------------===//

#include "test/reference/TinyCheckpoint.h"

#include <cstring>

using namespace tokentile;

namespace {

class CheckpointTest : public FolderTest {
protected:
  std::string openError() {
    StatusOr<Checkpoint> opened = Checkpoint::open(folder);
    EXPECT_FALSE(opened.ok());
    return opened.status().message();
  }
  std::string file(const std::string &name = "model.safetensors") {
    return "file '" + folder + "/" + name + "' ";
  }
};

TEST_F(CheckpointTest, ReadsOneFile) {
  write("model.safetensors", tinySafetensors({{"a", {2, 3}}, {"b", {4}}}));
  StatusOr<Checkpoint> opened = Checkpoint::open(folder);
  ASSERT_TRUE(opened.ok()) << opened.status().toString();
  StatusOr<const uint16_t *> a = opened->find("a", {2, 3});
  ASSERT_TRUE(a.ok()) << a.status().toString();
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ((*a)[i], 0x3f80);
  EXPECT_TRUE(opened->has("b"));
  EXPECT_FALSE(opened->has("c"));
}

TEST_F(CheckpointTest, ReadsShards) {
  write("one.safetensors", tinySafetensors({{"a", {2}}}));
  write("two.safetensors", tinySafetensors({{"b", {3}}}));
  write("model.safetensors.index.json",
        R"({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}})");
  StatusOr<Checkpoint> opened = Checkpoint::open(folder);
  ASSERT_TRUE(opened.ok()) << opened.status().toString();
  EXPECT_TRUE(opened->find("a", {2}).ok());
  EXPECT_TRUE(opened->find("b", {3}).ok());
}

TEST_F(CheckpointTest, NamesAMissingTensorAndAWrongShapeOrType) {
  write("model.safetensors",
        tinySafetensors({{"a", {2, 3}}, {"f", {2}, "F32"}}));
  StatusOr<Checkpoint> opened = Checkpoint::open(folder);
  ASSERT_TRUE(opened.ok()) << opened.status().toString();
  std::string prefix = "checkpoint '" + folder + "' ";
  EXPECT_EQ(opened->find("c", {1}).status().message(),
            prefix + "lacks tensor 'c' of shape [1]");
  EXPECT_EQ(opened->find("a", {3, 2}).status().message(),
            prefix + "has tensor 'a' of shape [2, 3]; its config.json implies "
                     "[3, 2]");
  EXPECT_EQ(opened->find("f", {2}).status().message(),
            prefix + "has tensor 'f' of type F32; BF16 works");
}

TEST_F(CheckpointTest, NamesATensorThatNobodyUses) {
  write("model.safetensors", tinySafetensors({{"a", {2}}, {"sinks", {3}}}));
  StatusOr<Checkpoint> opened = Checkpoint::open(folder);
  ASSERT_TRUE(opened.ok()) << opened.status().toString();
  EXPECT_TRUE(opened->checkOnly({"a", "b", "sinks"}).ok());
  EXPECT_EQ(opened->checkOnly({"a"}).message(),
            "checkpoint '" + folder +
                "' has tensor 'sinks' of shape [3], "
                "which is not covered");
}

TEST_F(CheckpointTest, NamesMissingFiles) {
  EXPECT_EQ(openError(), "folder '" + folder +
                             "' has neither 'model.safetensors' nor "
                             "'model.safetensors.index.json'");
  write("model.safetensors.index.json",
        R"({"weight_map": {"a": "gone.safetensors"}})");
  EXPECT_EQ(openError(), file("gone.safetensors") + "cannot be read");
  write("model.safetensors.index.json", "{}");
  EXPECT_EQ(openError(), file("model.safetensors.index.json") +
                             "has no object 'weight_map'");
}

TEST_F(CheckpointTest, NamesWhereAFileIsTruncated) {
  std::string whole = tinySafetensors({{"a", {2, 3}}});
  write("model.safetensors", whole.substr(0, whole.size() - 1));
  EXPECT_EQ(openError(), file() + "is truncated: tensor 'a' ends at byte 12 of "
                                  "its data, which has 11");
  write("model.safetensors", whole.substr(0, 40));
  EXPECT_EQ(openError(), file() +
                             "is truncated or no safetensors file: its "
                             "header has " +
                             std::to_string(whole.size() - 8 - 12) +
                             " bytes, the file 32 beyond the length");
  write("model.safetensors", "short");
  EXPECT_EQ(openError(), file() + "is truncated: it has 5 bytes and a header "
                                  "starts with 8");
  write("model.safetensors", "");
  EXPECT_EQ(openError(), file() + "has 0 bytes and cannot be mapped");
}

TEST_F(CheckpointTest, RefusesAHeaderThatDoesNotFitItself) {
  auto with = [&](std::string header) {
    uint64_t length = header.size();
    write("model.safetensors",
          std::string(reinterpret_cast<const char *>(&length), 8) + header +
              "12345678");
  };
  with("[1]");
  EXPECT_EQ(openError(), file() + "has a header that is not a JSON object");
  for (const char *header :
       {R"({"a": 1})", R"({"a": {"dtype": "BF16", "shape": [-1],
          "data_offsets": [0, 2]}})",
        R"({"a": {"dtype": "BF16", "shape": [1], "data_offsets": [2, 0]}})"}) {
    with(header);
    EXPECT_EQ(openError(),
              file() + "has no type, shape or offsets for tensor 'a'");
  }
  with(R"({"a": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 2]}})");
  EXPECT_EQ(openError(), file() + "stores 2 bytes for tensor 'a', whose shape "
                                  "[2] takes 4");
  with(R"({"a": {"dtype": "BF16", "shape": [4294967296, 4294967296],
         "data_offsets": [0, 2]}})");
  EXPECT_EQ(openError(), file() + "has a shape beyond 64 bits for tensor 'a'");
}

} // namespace
