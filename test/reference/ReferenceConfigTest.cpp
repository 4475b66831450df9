//===- ReferenceConfigTest.cpp - What a config.json says ------------------===//

#include "tools/reference-model/ReferenceConfig.h"

#include <gtest/gtest.h>

using namespace tokentile;

namespace {

const char *const targetText = R"({
  "model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288,
  "num_hidden_layers": 36, "num_attention_heads": 32,
  "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
  "rms_norm_eps": 1e-06, "rope_theta": 1000000, "rope_scaling": null,
  "sliding_window": null, "use_sliding_window": false,
  "tie_word_embeddings": false})";

const char *const draftText = R"({
  "architectures": ["DFlashDraftModel"], "hidden_size": 4096,
  "intermediate_size": 12288, "num_hidden_layers": 2,
  "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
  "vocab_size": 151936, "block_size": 16, "num_target_layers": 36,
  "sliding_window": 2048,
  "layer_types": ["sliding_attention", "full_attention"],
  "dflash_config": {"mask_token_id": 151669,
                    "target_layer_ids": [1, 9, 17, 25, 33]}})";

/// `text` with the first `from` replaced.
std::string with(std::string text, const std::string &from,
                 const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string targetError(const std::string &text) {
  return readTargetConfig(text, "t").status().message();
}
std::string draftError(const std::string &text) {
  return readDraftConfig(text, "d").status().message();
}

TEST(ReferenceConfig, ReadsAQwen3Target) {
  StatusOr<TargetConfig> config = readTargetConfig(targetText, "t");
  ASSERT_TRUE(config.ok()) << config.status().toString();
  EXPECT_EQ(config->hidden, 4096);
  EXPECT_EQ(config->inner, 12288);
  EXPECT_EQ(config->queryHeads, 32);
  EXPECT_EQ(config->kvHeads, 8);
  EXPECT_EQ(config->headDim, 128);
  EXPECT_EQ(config->vocabulary, 151936);
  EXPECT_EQ(config->layers, std::vector<LayerKind>(36, LayerKind::Full));
  EXPECT_FLOAT_EQ(config->ropeTheta, 1e6f);
  EXPECT_FALSE(config->tiedHead);
}

TEST(ReferenceConfig, ReadsADFlashDraft) {
  StatusOr<DraftConfig> config = readDraftConfig(draftText, "d");
  ASSERT_TRUE(config.ok()) << config.status().toString();
  EXPECT_EQ(config->block, 16);
  EXPECT_EQ(config->maskToken, 151669);
  EXPECT_EQ(config->taps, (std::vector<int32_t>{1, 9, 17, 25, 33}));
  EXPECT_EQ(config->window, 2048);
  EXPECT_EQ(config->layers,
            (std::vector<LayerKind>{LayerKind::Sliding, LayerKind::Full}));
  EXPECT_TRUE(checkPair(*readTargetConfig(targetText, "t"), *config, 15).ok());
}

TEST(ReferenceConfig, NamesTheFieldThatIsMissingOrNotCovered) {
  EXPECT_EQ(targetError("[]"), "model file 't' is not a JSON object");
  EXPECT_EQ(targetError(with(targetText, "\"vocab_size\": 151936,", "")),
            "model file 't' lacks 'vocab_size', a positive number");
  EXPECT_EQ(targetError(with(targetText, "4096", "4100")),
            "model file 't' has 'hidden_size' 4100; a multiple of 32 works");
  EXPECT_EQ(targetError(with(targetText, "36", "-1")),
            "model file 't' has 'num_hidden_layers' -1; a positive number "
            "works");
  EXPECT_EQ(targetError(with(targetText, "\"rope_scaling\": null",
                             "\"rope_scaling\": {\"type\": \"yarn\"}")),
            "model file 't' has 'rope_scaling', which is not covered");
  EXPECT_EQ(targetError(with(targetText, "\"tie_word_embeddings\": false",
                             "\"hidden_act\": \"gelu\"")),
            "model file 't' has 'hidden_act' \"gelu\", which is not covered; "
            "\"silu\" works");
  EXPECT_EQ(targetError(with(targetText, "\"tie_word_embeddings\": false",
                             "\"rope_parameters\": {\"rope_type\": "
                             "\"yarn\"}")),
            "model file 't' has 'rope_type' \"yarn\", which is not covered; "
            "\"default\" works");
  EXPECT_EQ(draftError(with(draftText, "\"mask_token_id\"",
                            "\"attention_sink_bias\": true, "
                            "\"mask_token_id\"")),
            "model file 'd' has 'attention_sink_bias' true, which is not "
            "covered; false works");
  EXPECT_EQ(draftError(with(draftText, "\"block_size\"",
                            "\"draft_vocab_size\": 32000, \"block_size\"")),
            "model file 'd' has draft_vocab_size 32000, which is not covered; "
            "vocab_size 151936 works");
  EXPECT_EQ(draftError(with(draftText, "full_attention", "chunked")),
            "model file 'd' has layer_types \"chunked\"; full_attention, "
            "sliding_attention and linear_attention work");
  EXPECT_EQ(draftError(with(draftText, "\"num_hidden_layers\": 2",
                            "\"num_hidden_layers\": 3")),
            "model file 'd' has 2 layer_types for num_hidden_layers 3");
  EXPECT_EQ(draftError(with(draftText, "\"block_size\": 16,", "")),
            "model file 'd' lacks 'block_size', a positive number");
  EXPECT_EQ(draftError(with(draftText, "151669", "151936")),
            "model file 'd' has mask_token_id 151936 in a vocabulary of "
            "151936");
  EXPECT_EQ(draftError(with(draftText, "[1, 9, 17, 25, 33]", "[]")),
            "model file 'd' lacks 'target_layer_ids' in 'dflash_config'");
  EXPECT_EQ(draftError(with(draftText, "\"block_size\"",
                            "\"is_causal\": true, \"block_size\"")),
            "model file 'd' has 'is_causal' true; the blocks of this draft "
            "are not causal");
  EXPECT_EQ(draftError(with(draftText, "\"mask_token_id\"",
                            "\"selector_rank\": 256, \"mask_token_id\"")),
            "model file 'd' has 'selector_rank', a part of DFlash2 that is "
            "not covered");
}

TEST(ReferenceConfig, LayersSlideFromMaxWindowLayersOn) {
  std::string text = with(targetText, "\"use_sliding_window\": false",
                          "\"use_sliding_window\": true, "
                          "\"sliding_window\": 512, "
                          "\"max_window_layers\": 30");
  StatusOr<TargetConfig> config = readTargetConfig(text, "t");
  ASSERT_TRUE(config.ok()) << config.status().toString();
  std::vector<LayerKind> layers(36, LayerKind::Full);
  std::fill(layers.begin() + 30, layers.end(), LayerKind::Sliding);
  EXPECT_EQ(config->layers, layers);
  EXPECT_EQ(config->window, 512);
}

TEST(ReferenceConfig, ADraftMustFitItsTarget) {
  TargetConfig target = *readTargetConfig(targetText, "t");
  auto error = [&](const std::string &from, const std::string &to,
                   int32_t drafts = 15) {
    return checkPair(target, *readDraftConfig(with(draftText, from, to), "d"),
                     drafts)
        .message();
  };
  EXPECT_EQ(error("\"vocab_size\": 151936", "\"vocab_size\": 151935"),
            "draft 'd' has vocab_size 151935 and target 't' 151936");
  EXPECT_EQ(error("\"hidden_size\": 4096", "\"hidden_size\": 2048"),
            "draft 'd' has target_hidden_size 2048 and target 't' 4096");
  EXPECT_EQ(error("\"num_target_layers\": 36", "\"num_target_layers\": 32"),
            "draft 'd' has num_target_layers 32 and target 't' 36");
  target.layers.resize(33);
  EXPECT_EQ(error("\"num_target_layers\": 36,", ""),
            "draft 'd' taps layer 33 and target 't' has 33 layers");
  target.layers.resize(36, LayerKind::Full);
  EXPECT_EQ(error("", "", 16),
            "width 16 needs a block of 17 rows and draft 'd' has block_size "
            "16");
}

} // namespace
