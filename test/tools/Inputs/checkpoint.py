"""Writes a folder as Hugging Face has it: checkpoint.py FOLDER [--draft]
[--shards] [--vocabulary=N] [--poison=N]. Weights are drawn; names and shapes
are those of a Qwen3 target or of a DFlash draft. The embedding of the poisoned
token is NaN, and the target then has a head of its own."""

import json
import os
import random
import struct
import sys

folder = sys.argv[1]
options = sys.argv[2:]
is_draft = "--draft" in options
vocabulary = 64
poison = -1
for option in options:
    if option.startswith("--vocabulary="):
        vocabulary = int(option.split("=")[1])
    if option.startswith("--poison="):
        poison = int(option.split("=")[1])

hidden, inner, heads, kv_heads, dim, layers = 64, 96, 2, 1, 64, 2
config = {
    "architectures": ["DFlashDraftModel" if is_draft else "Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": hidden,
    "intermediate_size": inner,
    "num_attention_heads": heads,
    "num_key_value_heads": kv_heads,
    "head_dim": dim,
    "num_hidden_layers": layers,
    "vocab_size": vocabulary,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000,
    "tie_word_embeddings": poison < 0,
}
if is_draft:
    config["block_size"] = 8
    config["num_target_layers"] = 2
    config["dflash_config"] = {"mask_token_id": 63, "target_layer_ids": [0, 1]}

shapes = {}
root = "" if is_draft else "model."
for layer in range(layers):
    at = f"{root}layers.{layer}."
    shapes[at + "input_layernorm.weight"] = [hidden]
    shapes[at + "post_attention_layernorm.weight"] = [hidden]
    shapes[at + "self_attn.q_proj.weight"] = [heads * dim, hidden]
    shapes[at + "self_attn.k_proj.weight"] = [kv_heads * dim, hidden]
    shapes[at + "self_attn.v_proj.weight"] = [kv_heads * dim, hidden]
    shapes[at + "self_attn.o_proj.weight"] = [hidden, heads * dim]
    shapes[at + "self_attn.q_norm.weight"] = [dim]
    shapes[at + "self_attn.k_norm.weight"] = [dim]
    shapes[at + "mlp.gate_proj.weight"] = [inner, hidden]
    shapes[at + "mlp.up_proj.weight"] = [inner, hidden]
    shapes[at + "mlp.down_proj.weight"] = [hidden, inner]
shapes[root + "norm.weight"] = [hidden]
if is_draft:
    shapes["fc.weight"] = [hidden, 2 * hidden]
    shapes["hidden_norm.weight"] = [hidden]
else:
    shapes["model.embed_tokens.weight"] = [vocabulary, hidden]
    if poison >= 0:
        shapes["lm_head.weight"] = [vocabulary, hidden]


def bf16(value):
    return struct.pack("<f", value)[2:]


def write(path, names):
    header, data = {}, bytearray()
    for name in names:
        count, start = 1, len(data)
        for extent in shapes[name]:
            count *= extent
        middle, reach = (1, 0.1) if len(shapes[name]) == 1 else (0, 0.2)
        for _ in range(count):
            data += bf16(middle + reach * (2 * random.random() - 1))
        if name == "model.embed_tokens.weight" and poison >= 0:
            row = start + poison * hidden * 2
            data[row : row + hidden * 2] = bf16(float("nan")) * hidden
        header[name] = {
            "dtype": "BF16",
            "shape": shapes[name],
            "data_offsets": [start, len(data)],
        }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


random.seed(2 if is_draft else 1)
os.makedirs(folder, exist_ok=True)
with open(f"{folder}/config.json", "w") as file:
    json.dump(config, file)
names = list(shapes)
if "--shards" in options:
    half = len(names) // 2
    parts = {"one.safetensors": names[:half], "two.safetensors": names[half:]}
    for part, some in parts.items():
        write(f"{folder}/{part}", some)
    weight_map = {name: part for part, some in parts.items() for name in some}
    with open(f"{folder}/model.safetensors.index.json", "w") as file:
        json.dump({"weight_map": weight_map}, file)
else:
    write(f"{folder}/model.safetensors", names)
