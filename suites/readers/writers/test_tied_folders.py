# SPDX-License-Identifier: BSD-3-Clause
"""Tests that a model's folder becomes what state_dict() holds before layers are chosen: save_pretrained stores tied weights once."""

import json

import pytest
from qcts_program import inspect, qcts

torch = pytest.importorskip("torch", reason="torch is not installed")

from safetensors.torch import load_file, save_file  # noqa: E402

# Architecture -> its config.json, the stored weights, and the pairs that it ties.
MODELS = {
    "OPTForCausalLM": (
        {"model_type": "opt"},  # ties by default
        {"model.decoder.embed_tokens.weight": (96, 64), "model.decoder.layers.0.fc1.weight": (128, 64)},
        {"lm_head.weight": "model.decoder.embed_tokens.weight"},
    ),
    "GPT2LMHeadModel": (
        {"model_type": "gpt2", "tie_word_embeddings": True},
        {"transformer.wte.weight": (96, 64), "transformer.h.0.attn.c_attn.weight": (64, 192), "transformer.h.0.attn.c_attn.bias": (192,)},
        {"lm_head.weight": "transformer.wte.weight"},
    ),
    "LlamaForCausalLM": (
        {"model_type": "llama", "tie_word_embeddings": True},
        {"model.embed_tokens.weight": (96, 64), "model.layers.0.mlp.up_proj.weight": (128, 64)},
        {"lm_head.weight": "model.embed_tokens.weight"},
    ),
    "LlavaForConditionalGeneration": (
        {"model_type": "llava", "text_config": {"model_type": "llama", "tie_word_embeddings": True}},
        {"model.language_model.embed_tokens.weight": (96, 64), "model.language_model.layers.0.mlp.up_proj.weight": (128, 64)},
        {"lm_head.weight": "model.language_model.embed_tokens.weight"},
    ),
    "T5ForConditionalGeneration": (
        {"model_type": "t5", "tie_word_embeddings": True},
        {"shared.weight": (96, 64), "encoder.block.0.layer.1.DenseReluDense.wi.weight": (128, 64)},
        {name: "shared.weight" for name in ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")},
    ),
}  # fmt: skip


def folder_of(architecture, path, dtype=torch.float32, **more):
    """Writes the folder and, next to it, float.pt, the state dict. Returns both."""
    config, shapes, ties = MODELS[architecture]
    torch.manual_seed(1)
    stored = {name: torch.randn(shape).to(dtype) for name, shape in shapes.items()}
    (path / "in").mkdir()
    (path / "in/config.json").write_text(json.dumps({"architectures": [architecture], **config, **more}))
    save_file(stored, path / "in/model.safetensors", {"format": "pt"})
    torch.save(stored | {name: stored[source] for name, source in ties.items()}, path / "float.pt")
    return path / "in", path / "float.pt"


def bits(tensor):
    return tensor.dtype, tensor.shape, tensor.contiguous().flatten().view(torch.uint8).tolist()


def same_tensors(a, b):
    one, two = torch.load(a, weights_only=True), torch.load(b, weights_only=True)
    return one.keys() == two.keys() and all(bits(one[name]) == bits(two[name]) for name in one)


@pytest.mark.parametrize("scheme", ["tinyq_w8a32", "tinyq_w8a16"])
@pytest.mark.parametrize("architecture", ["OPTForCausalLM", "GPT2LMHeadModel", "LlamaForCausalLM"])
def test_tinyq_from_a_folder_is_tinyq_from_its_state_dict(architecture, scheme, tmp_path):
    """The head too, as TinyQ's replacement of modules leaves it; without it load_state_dict misses keys."""
    folder, state = folder_of(architecture, tmp_path, torch.float32 if scheme == "tinyq_w8a32" else torch.float16)
    said = qcts("quantize", "--scheme", scheme, folder, tmp_path / "q.pt").stdout
    source = MODELS[architecture][2]["lm_head.weight"]
    assert f"lm_head.weight: config.json ties it to {source}" in " ".join(said.split())
    chosen = [word for name in torch.load(tmp_path / "q.pt", weights_only=True) if name.endswith("int8_weights")
              for word in ("--include", name.removesuffix(".int8_weights"))]  # fmt: skip
    assert "lm_head" in chosen
    qcts("quantize", "--scheme", scheme, *chosen, state, tmp_path / "own.pt")
    assert same_tensors(tmp_path / "q.pt", tmp_path / "own.pt")


def test_an_excluded_head_stays_in_the_file(tmp_path):
    folder, _ = folder_of("OPTForCausalLM", tmp_path)
    qcts("quantize", "--scheme", "tinyq_w8a32", "--exclude", "lm_head", folder, tmp_path / "q.pt")
    state = torch.load(tmp_path / "q.pt", weights_only=True)
    embedding = state["model.decoder.embed_tokens.weight"]
    assert torch.equal(state["lm_head.weight"], embedding) and state["lm_head.weight"].data_ptr() == embedding.data_ptr()


def test_the_tied_name_can_be_included(tmp_path):
    folder, _ = folder_of("GPT2LMHeadModel", tmp_path)
    qcts("quantize", "--scheme", "int8_row", "--include", "lm_head.weight", "--strict", folder, tmp_path / "q.pt")
    types = {tensor["name"]: tensor["type"] for tensor in inspect(tmp_path / "q.pt")["tensors"]}
    assert (types["lm_head.weight"], types["transformer.wte.weight"]) == ("Int8Tensor", "Tensor")


@pytest.mark.parametrize("architecture", MODELS)
def test_every_state_dict_has_the_tied_names(architecture, tmp_path):
    """For torchao's pickles and safetensors too."""
    folder, state = folder_of(architecture, tmp_path)
    for out in ("q.pt", "q.safetensors"):
        told = json.loads(qcts("quantize", "--scheme", "int8_row", folder, tmp_path / out, "--json").stdout)
        assert {added["name"]: added["tied_to"] for added in told["added"]} == MODELS[architecture][2]
        assert {tensor["name"] for tensor in inspect(tmp_path / out)["tensors"]} == set(torch.load(state, weights_only=True))


def test_the_other_of_a_pair_may_be_stored(tmp_path):
    folder, _ = folder_of("LlamaForCausalLM", tmp_path)
    stored = load_file(folder / "model.safetensors")
    stored["lm_head.weight"] = stored.pop("model.embed_tokens.weight")
    save_file(stored, folder / "model.safetensors")
    qcts("quantize", "--scheme", "tinyq_w8a32", folder, tmp_path / "q.pt")
    names = set(torch.load(tmp_path / "q.pt", weights_only=True))
    assert "model.embed_tokens.weight" in names and "lm_head.int8_weights" in names


@pytest.mark.parametrize(
    "config",
    [{"tie_word_embeddings": False}, {"architectures": ["UnknownModel"], "tie_word_embeddings": False}, {"architectures": ["LlamaModel"]}],
)
def test_nothing_is_added_without_a_tie(config, tmp_path):
    folder, _ = folder_of("LlamaForCausalLM", tmp_path, **({"tie_word_embeddings": False} | config))
    told = json.loads(qcts("quantize", "--scheme", "tinyq_w8a32", folder, tmp_path / "q.pt", "--json").stdout)
    assert told["added"] == [] and "lm_head.int8_weights" not in torch.load(tmp_path / "q.pt", weights_only=True)


def test_an_unknown_architecture_is_named(tmp_path):
    folder, _ = folder_of("LlamaForCausalLM", tmp_path, architectures=["UnknownModel"])
    done = qcts("quantize", "--scheme", "tinyq_w8a32", folder, tmp_path / "q.pt")
    assert "config.json ties weights, but qcts does not know which ones UnknownModel ties" in done.stdout + done.stderr


def test_a_folder_for_transformers_stores_ties_once(tmp_path):
    folder, _ = folder_of("LlamaForCausalLM", tmp_path)
    qcts("quantize", "--scheme", "int8_row", folder, tmp_path / "out")
    assert "lm_head.weight" not in {tensor["name"] for tensor in inspect(tmp_path / "out")["tensors"]}
