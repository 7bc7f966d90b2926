# SPDX-License-Identifier: BSD-3-Clause
"""`qcts quantize` chooses the weights of Linear layers and nothing else, and lists the choice before it writes."""

import json

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
from qcts_program import qcts  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

N, K = 8, 32


def tensor(*shape):
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape)


def linear(name, n=N, k=K, bias=True):
    return {f"{name}.weight": tensor(n, k)} | ({f"{name}.bias": tensor(n)} if bias else {})


def conv1d(name, n=N, k=K):
    return {f"{name}.weight": tensor(k, n), f"{name}.bias": tensor(n)}


def weight(name, *shape):
    return {f"{name}.weight": tensor(*(shape or (N, K)))}


def folder(path, state, **config):
    path.mkdir()
    save_file(state, path / "model.safetensors", metadata={"format": "pt"})
    (path / "config.json").write_text(json.dumps(config))
    return path


def choice(source, out, *words, scheme="int8_row", code=0):
    done = qcts("quantize", "--scheme", scheme, source, out, "--dry-run", "--json", *words, code=code)
    report = json.loads(done.stdout)
    assert not out.exists() and ("--dry-run" in done.stderr or code == 3)
    return report


GPT2 = (
    conv1d("transformer.h.0.attn.c_attn", 3 * K, K)
    | conv1d("transformer.h.0.attn.c_proj", K, K)
    | conv1d("transformer.h.0.mlp.c_fc", 4 * K, K)
    | conv1d("transformer.h.0.mlp.c_proj", K, 4 * K)
)
MIXTRAL = (
    linear("model.layers.0.self_attn.q_proj", bias=False)
    | weight("model.layers.0.block_sparse_moe.gate")
    | weight("model.layers.0.block_sparse_moe.experts.0.w1")
)
# name: config.json, tensors, the names that are chosen
FOLDERS = {
    "gpt2": ({"model_type": "gpt2"}, GPT2 | weight("transformer.wte") | linear("lm_head", bias=False), ["lm_head"]),
    "gpt2_without_biases": (
        {"model_type": "gpt2"},
        weight("transformer.h.0.attn.c_proj", K, K) | linear("lm_head"),
        ["lm_head"],
    ),
    "mixtral": ({"model_type": "mixtral"}, MIXTRAL, ["model.layers.0.self_attn.q_proj"]),
    "inside": (
        {"model_type": "llava", "text_config": {"model_type": "mixtral"}},
        MIXTRAL,
        ["model.layers.0.self_attn.q_proj"],
    ),
    "shared_gate": (
        {"model_type": "qwen2_moe"},
        linear("model.layers.0.mlp.shared_expert_gate", 1, K, bias=False)
        | weight("model.layers.0.mlp.gate")
        | linear("model.layers.0.mlp.shared_expert.gate_proj", bias=False),
        ["model.layers.0.mlp.shared_expert_gate", "model.layers.0.mlp.shared_expert.gate_proj"],
    ),
    "opt": (
        {"model_type": "opt"},
        weight("model.decoder.embed_tokens") | linear("model.decoder.layers.0.fc1") | linear("model.decoder.project_in"),
        ["model.decoder.layers.0.fc1", "model.decoder.project_in"],
    ),
    "gpt_neox_of_old": ({"model_type": "gpt_neox"}, weight("gpt_neox.embed_in") | weight("embed_out"), ["embed_out"]),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_an_architecture_decides(name, tmp_path):
    config, state, chosen = FOLDERS[name]
    report = choice(folder(tmp_path / "in", state, **config), tmp_path / "out.pt")
    assert sorted(report["quantized"]) == sorted(f"{module}.weight" for module in chosen)
    assert report["chosen_by"].startswith("architecture " + config["model_type"])


# name: tensors of a state dict without a config, the names that are chosen, a reason for one that is not
STATES = {
    "conv1d": (GPT2 | linear("head"), ["head"], "Conv1D: its bias belongs to the columns"),
    "linear_of_the_same_name": (
        linear("h.0.attn.c_attn", 3 * K, K) | linear("h.0.attn.c_proj", K, K),
        ["h.0.attn.c_attn", "h.0.attn.c_proj"],
        None,
    ),
    "layer_norm": (
        {"norm.weight": tensor(N, K), "norm.bias": tensor(N, K)} | linear("fc"),
        ["fc"],
        "named like a norm",
    ),
    "shape_of_a_layer_norm": (
        {"scale.weight": tensor(N, K), "scale.bias": tensor(N, K)} | linear("fc"),
        ["fc"],
        "its bias is 2-D",
    ),
    "norms": (weight("norms.0") | weight("ln_2") | weight("q_norm") | linear("norm1.linear"), ["norm1.linear"], "named like a norm"),
    "tables": (
        weight("vq.codebook") | weight("lookup") | weight("rows_table") | linear("codebook_proj"),
        ["codebook_proj"],
        "named like a codebook or a lookup table",
    ),
    "embeddings": (
        weight("tok_emb") | weight("wte") | weight("embed.0") | weight("mask_tokens") | linear("time_embed.linear_1"),
        ["time_embed.linear_1"],
        "named like an embedding",
    ),
    "linear_that_embeds": (
        linear("patch_embedding") | linear("embed_action") | weight("embed_token"),
        ["patch_embedding", "embed_action"],
        None,
    ),
    "experts_of_ones_own": (weight("moe.gate") | weight("moe.experts.0.w1"), ["moe.gate", "moe.experts.0.w1"], None),
    "attention": (
        {"attn.in_proj_weight": tensor(3 * K, K)} | linear("attn.out_proj", K, K) | linear("other.out_proj", K, K),
        ["other.out_proj"],
        "the projection of nn.MultiheadAttention, which torchao leaves",
    ),
    "others": ({"w": tensor(N, K), "weight": tensor(N, K), "conv.weight": tensor(2, 2, 4)} | linear("fc"), ["fc"], "not named *.weight"),
}


@pytest.mark.parametrize("name", STATES)
def test_names_and_shapes_decide_where_no_architecture_does(name, tmp_path):
    state, chosen, reason = STATES[name]
    torch.save(state, tmp_path / "in.pt")
    report = choice(tmp_path / "in.pt", tmp_path / "out.pt")
    assert sorted(report["quantized"]) == sorted(f"{module}.weight" for module in chosen)
    assert report["chosen_by"] == "names and shapes (no config.json)"
    assert reason is None or reason in [left["reason"] for left in report["left"]]


def test_an_unknown_architecture_says_so(tmp_path):
    source = folder(tmp_path / "in", linear("fc"), model_type="mine")
    assert choice(source, tmp_path / "out.pt")["chosen_by"] == "names and shapes (architecture mine is not in the table)"
    source = folder(tmp_path / "in2", linear("fc"), architectures=["Mine"])
    assert choice(source, tmp_path / "out.pt")["chosen_by"] == "names and shapes (config.json has no model_type)"


def test_a_users_words_win(tmp_path):
    torch.save(GPT2 | linear("head"), tmp_path / "in.pt")
    report = choice(tmp_path / "in.pt", tmp_path / "out.pt", "--include", "c_attn")
    assert report["quantized"] == ["transformer.h.0.attn.c_attn.weight"] and report["chosen_by"] == "--include"
    report = choice(tmp_path / "in.pt", tmp_path / "out.pt", "--exclude", "head", code=3)
    assert report["quantized"] == []


def test_the_choice_is_listed_before_the_output_is_written(tmp_path):
    torch.save(linear("fc") | weight("lookup"), tmp_path / "in.pt")
    done = qcts("quantize", "--scheme", "int8_row", tmp_path / "in.pt", tmp_path / "none/out.pt", code=5)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("layers chosen by names and shapes (no config.json)")
    assert "quantized   fc.weight" in lines and any(line.startswith("left float  lookup.weight: ") for line in lines)
    assert " tensors are " not in done.stdout


@pytest.mark.parametrize(("scheme", "shape"), [("tinyq_w8a32", []), ("tinyq_w8a16", [1])])
def test_tinyqs_layer_with_one_output(scheme, shape, tmp_path):
    """W8A32LinearLayer squeezes its scales and makes zero points like them; W8A16LinearLayer takes the rows' maxima."""
    torch.save(linear("one", 1, K) | linear("two", 2, K), tmp_path / "in.pt")
    qcts("quantize", "--scheme", scheme, tmp_path / "in.pt", tmp_path / "out.pth")
    got = torch.load(tmp_path / "out.pth", weights_only=True)
    row_values = ["scales", "zero_points"] if scheme == "tinyq_w8a32" else ["scales"]
    for name in row_values:
        assert list(got[f"one.{name}"].shape) == shape and list(got[f"two.{name}"].shape) == [2]
    qcts("check", tmp_path / "out.pth")
    qcts("dequantize", tmp_path / "out.pth", tmp_path / "dense.safetensors")
