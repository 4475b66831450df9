//===- ManifestTest.cpp - Shipped kernels and their facts -----------------===//

#include "runtime/Manifest.h"
#include "TestKernel.h"
#include "runtime/Sha256.h"

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace tokentile;
using namespace tokentile::test;

namespace {

/// Facts in which every field differs from its default.
KernelInfo fullInfo() {
  KernelInfo info = testInfo();
  info.chip = "sm_90a";
  info.spec = "attn.kernel @verify \"quoted\"\n";
  info.queryElement = Element::Float16;
  info.outputElement = Element::Float16;
  info.keyElement = Element::Float16;
  info.valueElement = Element::Float16;
  info.queryHeadMajor = info.outputHeadMajor = true;
  info.pageOrder = PageOrder::TokenMajor;
  info.keySlotStride = int64_t(1) << 40;
  info.columns = Columns::Packed;
  info.denseBlock = info.positionsGiven = true;
  info.lengthsTotal = info.logSumExp = info.sink = true;
  info.tensorMaps = true;
  info.ring = 2112;
  info.window = 2048;
  info.rowBlocks = 2;
  info.sweeps = 2;
  info.splitPolicy = SplitPolicy::Keys;
  info.splitValue = 512;
  info.threads = 384;
  info.mergeThreads = 128;
  info.mergeSlices = 2;
  info.mergeBlocksPerSm = 4;
  info.sharedBytes = 200000;
  return info;
}

class ManifestTest : public testing::Test {
protected:
  void SetUp() override {
    const auto *test = testing::UnitTest::GetInstance()->current_test_info();
    directory = std::filesystem::path(testing::TempDir()) /
                (std::string("tokentile-") + test->name());
    std::filesystem::create_directories(directory);
  }
  void TearDown() override { std::filesystem::remove_all(directory); }

  std::string path(const std::string &file) { return (directory / file); }

  void writeFile(const std::string &file, const std::string &text) {
    std::ofstream(path(file)) << text;
  }
  std::string readText(const std::string &file) {
    std::ostringstream text;
    text << std::ifstream(path(file)).rdbuf();
    return text.str();
  }

  ManifestEntry ship(const std::string &chip, const std::string &ptx) {
    ManifestEntry entry;
    entry.info = fullInfo();
    entry.info.chip = chip;
    entry.file = chip + ".ptx";
    entry.sha256 = sha256(ptx);
    entry.ptxVersion = "8.6";
    entry.llvmVersion = "22.1.8";
    writeFile(entry.file, ptx);
    return entry;
  }

  std::filesystem::path directory;
};

} // namespace

TEST(Sha256, KnownDigests) {
  EXPECT_EQ(sha256(""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(KernelInfoJson, RoundTrip) {
  std::string text = kernelInfoToJson(fullInfo());
  StatusOr<KernelInfo> read = kernelInfoFromJson(text);
  ASSERT_OK(read.status());
  EXPECT_EQ(kernelInfoToJson(*read), text);
  EXPECT_EQ(read->spec, fullInfo().spec);
  EXPECT_EQ(read->keySlotStride, fullInfo().keySlotStride);
  EXPECT_EQ(read->pageOrder, PageOrder::TokenMajor);
  EXPECT_EQ(read->columns, Columns::Packed);
  EXPECT_EQ(read->splitPolicy, SplitPolicy::Keys);
  EXPECT_EQ(read->keyElement, Element::Float16);
  EXPECT_TRUE(read->logSumExp);
  EXPECT_TRUE(read->sink);
  EXPECT_TRUE(read->tensorMaps);
  EXPECT_EQ(read->ring, 2112);
}

TEST(KernelInfoJson, DamagedFields) {
  auto damage = [](const std::string &from, const std::string &to) {
    std::string text = kernelInfoToJson(fullInfo());
    text.replace(text.find(from), from.size(), to);
    return kernelInfoFromJson(text).status();
  };
  expectError(damage("\"window\"", "\"widow\""), StatusCode::DataError,
              "field 'window' is missing");
  expectError(damage("\"token_major\"", "\"page\""), StatusCode::DataError,
              "field 'pageOrder' cannot be \"page\"");
  expectError(damage("2048", "2048.5"), StatusCode::DataError,
              "field 'window' cannot be 2048.5");
  expectError(damage("2048", "4294967296"), StatusCode::DataError,
              "field 'window' cannot be 4294967296");
  expectError(damage("true", "1"), StatusCode::DataError,
              "field 'queryHeadMajor' cannot be 1");
  expectError(kernelInfoFromJson("[]").status(), StatusCode::DataError,
              "not a JSON object");
}

TEST_F(ManifestTest, RoundTrip) {
  Manifest manifest;
  manifest.kernels = {ship("sm_80", "a"), ship("sm_90a", "b")};
  ASSERT_OK(writeManifest(path(manifestFileName), manifest));
  StatusOr<Manifest> read = readManifest(path(manifestFileName));
  ASSERT_OK(read.status());
  ASSERT_EQ(read->kernels.size(), 2u);
  const ManifestEntry &entry = read->kernels[1];
  EXPECT_EQ(entry.file, "sm_90a.ptx");
  EXPECT_EQ(entry.sha256, sha256("b"));
  EXPECT_EQ(entry.ptxVersion, "8.6");
  EXPECT_EQ(entry.llvmVersion, "22.1.8");
  EXPECT_EQ(kernelInfoToJson(entry.info), kernelInfoToJson(fullInfo()));
  // Only the manifest and the two files remain.
  auto files = std::filesystem::directory_iterator(directory);
  EXPECT_EQ(std::distance(begin(files), end(files)), 3);
}

TEST_F(ManifestTest, AbsentFile) {
  expectError(readManifest(path("none.json")).status(), StatusCode::NotFound,
              "none.json' cannot be read");
}

TEST_F(ManifestTest, UnwritableFile) {
  expectError(writeManifest(path("no/such/folder.json"), Manifest()),
              StatusCode::NotFound, "cannot be written");
}

TEST_F(ManifestTest, DamagedFiles) {
  const std::pair<const char *, const char *> cases[] = {
      {"", "it is not a JSON object"},
      {"{\"format\": 6, \"ker", "it is not a JSON object"},
      {"[1]", "it is not a JSON object"},
      {"{}", "field 'format' is missing"},
      {"{\"format\": 5}", "it has format 5, and this version reads format 6"},
      {"{\"format\": 6}", "field 'kernels' is not a list"},
      {"{\"format\": 6, \"kernels\": [3]}",
       "kernel 0: it is not a JSON object"},
      {"{\"format\": 6, \"kernels\": [{\"file\": 3}]}",
       "kernel 0: field 'file' cannot be 3"},
  };
  for (auto [text, message] : cases) {
    writeFile("damaged.json", text);
    expectError(readManifest(path("damaged.json")).status(),
                StatusCode::DataError,
                std::string("damaged.json' is damaged: ") + message);
  }
}

TEST_F(ManifestTest, TruncationNeverPasses) {
  Manifest manifest;
  manifest.kernels = {ship("sm_90a", "b")};
  ASSERT_OK(writeManifest(path("whole.json"), manifest));
  std::string text = readText("whole.json");
  // The last two characters are the closing brace and the newline.
  for (size_t bytes = 0; bytes + 2 < text.size(); bytes += 7) {
    writeFile("part.json", text.substr(0, bytes));
    EXPECT_EQ(readManifest(path("part.json")).status().code(),
              StatusCode::DataError);
  }
}

TEST_F(ManifestTest, LoadsWhatSuitsTheChip) {
  Manifest manifest;
  manifest.kernels = {ship("sm_80", "for 80"), ship("sm_86", "for 86"),
                      ship("sm_90a", "for 90a")};
  ASSERT_OK(writeManifest(path(manifestFileName), manifest));
  auto ptxFor = [&](const char *chip) {
    StatusOr<CompiledKernel> kernel =
        loadShippedKernel(directory, "verify", chip);
    return kernel.ok() ? kernel->ptx : kernel.status().toString();
  };
  EXPECT_EQ(ptxFor("sm_80"), "for 80");
  EXPECT_EQ(ptxFor("sm_86"), "for 86");
  EXPECT_EQ(ptxFor("sm_90a"), "for 90a");
  EXPECT_EQ(ptxFor("sm_120a"), "for 86");
  expectError(loadShippedKernel(directory, "verify", "sm_75").status(),
              StatusCode::NotFound, "chips shipped: sm_80, sm_86, sm_90a");
  expectError(loadShippedKernel(directory, "other", "sm_80").status(),
              StatusCode::NotFound, "chips shipped: none");
}

TEST_F(ManifestTest, ChangedPtxIsRefused) {
  Manifest manifest;
  manifest.kernels = {ship("sm_80", "good")};
  ASSERT_OK(writeManifest(path(manifestFileName), manifest));
  writeFile("sm_80.ptx", "evil");
  expectError(loadShippedKernel(directory, "verify", "sm_80").status(),
              StatusCode::DataError, "does not match its hash");
  std::filesystem::remove(path("sm_80.ptx"));
  expectError(loadShippedKernel(directory, "verify", "sm_80").status(),
              StatusCode::NotFound, "sm_80.ptx' cannot be read");
}
