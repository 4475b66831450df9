//===- NpyTest.cpp - Dumps of problems ------------------------------------===//

#include "test/numerics/Npy.h"
#include "test/numerics/SpecText.h"

#include "mlir/IR/MLIRContext.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace tokentile;

namespace {

std::string read(const std::filesystem::path &path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

TEST(Npy, WritesTensorsAndWhatTheyAre) {
  Case testCase = makeCase(3, 0);
  mlir::MLIRContext context;
  SpecModule spec = parseSpec(context, testCase.specText);
  std::string error;
  auto problem = Problem::create(spec.kernel, testCase, error);
  ASSERT_TRUE(problem) << error;
  std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "tokentile-npy-test";
  ASSERT_TRUE(dumpProblem(*problem, folder.string(), error)) << error;

  auto json = nlohmann::json::parse(read(folder / "problem.json"));
  EXPECT_EQ(json["spec"], testCase.specText);
  EXPECT_EQ(json["tensors"]["query"]["shape"].size(), 3u);
  for (const HostTensor &tensor : problem->getTensors()) {
    std::string bytes = read(folder / (tensor.name + ".npy"));
    ASSERT_GE(bytes.size(), 64u) << tensor.name;
    EXPECT_EQ(bytes.substr(1, 5), "NUMPY");
    size_t header = 10 + uint8_t(bytes[8]) + 256 * uint8_t(bytes[9]);
    EXPECT_EQ(header % 64, 0u);
    int64_t size = tensor.strides.back();
    for (int64_t extent : tensor.shape)
      size *= extent;
    EXPECT_EQ(int64_t(bytes.size() - header), size) << tensor.name;
    bool bf16 = tensor.element == "bf16";
    EXPECT_EQ(bytes.find("'descr': '<u2'") != std::string::npos, bf16);
  }
  std::filesystem::remove_all(folder);
}

TEST(Npy, SaysWhatItCannotWrite) {
  Case testCase = makeCase(3, 1);
  mlir::MLIRContext context;
  SpecModule spec = parseSpec(context, testCase.specText);
  std::string error;
  auto problem = Problem::create(spec.kernel, testCase, error);
  ASSERT_TRUE(problem) << error;
  std::filesystem::path file =
      std::filesystem::path(testing::TempDir()) / "tokentile-npy-file";
  std::ofstream(file) << "not a folder";
  EXPECT_FALSE(dumpProblem(*problem, file.string(), error));
  EXPECT_NE(error, "");
  std::filesystem::remove(file);
}

} // namespace
