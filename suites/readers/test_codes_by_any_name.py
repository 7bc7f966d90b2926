# SPDX-License-Identifier: BSD-3-Clause
"""Integers and bools of two dimensions next to a float of the same stem are codes, whatever their width, name and container: `check`
does not judge them, and `dequantize` does not write them. Integers that select, count or mask are none."""

import pytest
from dialect_files import write_safetensors
from foreign_samples import entry
from qcts_program import inspect, qcts

WIDTHS = ["BOOL", "I8", "U8", "I16", "U16", "I32", "U32", "I64", "U64"]
M = "model.layers.0.mlp.down_proj"
# The codes, and the floats that go with them.
CODES = {
    "packed_experts": ("experts.gate_up_proj", ["experts.gate_up_proj_scale"]),
    "scale_below": (f"{M}", [f"{M}.scale"]),
    "other_endings": (f"{M}_q", [f"{M}_s"]),
    "weight": (f"{M}.weight", [f"{M}.step"]),
    "qweight": (f"{M}.qweight", [f"{M}.scales"]),
    "any_name": (f"{M}.blob", [f"{M}.alpha"]),
    "signs": (f"{M}.sign", [f"{M}.alpha", f"{M}.bias"]),
    "no_module": ("blob", ["alpha"]),
    "indices_of_a_codebook": (f"{M}.indices", [f"{M}.codebook"]),
    "dicts_side_by_side": ("codes.fc.weight", ["scales.fc.weight"]),
    "beside_a_float_weight": (f"{M}.weight_int8", [f"{M}.weight", f"{M}.weight_int8_scale"]),
}


@pytest.mark.parametrize("dtype", WIDTHS)
@pytest.mark.parametrize("case", CODES)
def test_codes_are_found_by_the_float_beside_them(case, dtype, tmp_path):
    codes, floats = CODES[case]
    tensors = {codes: entry(dtype, 16, 8), "model.norm.weight": entry("BF16", 8)} | {name: entry("F32", 16, 1) for name in floats}
    path = write_safetensors(tmp_path / "x.safetensors", tensors)
    told = {tensor["name"]: tensor.get("foreign") for tensor in inspect(path)["tensors"]}
    assert told[codes] and told["model.norm.weight"] is None
    checked = qcts("check", path, code=3)
    assert checked.stdout.startswith("not judged: ") and codes in checked.stdout.replace("\n  ", " ")
    refused = qcts("dequantize", path, tmp_path / "out.safetensors", code=1)
    assert codes in refused.stderr and not (tmp_path / "out.safetensors").exists()


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", "bool"])
@pytest.mark.parametrize("container", ["tuple", "list", "dict", "nested"])
def test_leaves_of_containers_are_neighbours(container, dtype, tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    codes, scale = torch.ones(16, 8, dtype=getattr(torch, dtype)), torch.ones(16, 1)
    value = {
        "tuple": {"fc": (codes, scale)},
        "list": [codes, scale],
        "dict": {"fc": {"a": codes, "b": scale}},
        "nested": {"fc": {"weight": (codes, {"by_row": scale}), "weight_scale": scale}},
    }[container]
    torch.save(value, tmp_path / "x.pt")
    qcts("check", tmp_path / "x.pt", code=3)
    qcts("dequantize", tmp_path / "x.pt", tmp_path / "out.safetensors", code=1)


FLAT = [("qweight", "scales"), ("packed", "absmax"), ("quantized", "step_size"), ("codes", "codebook")]


@pytest.mark.parametrize("dtype", ["I8", "U8", "I32", "I64"])
@pytest.mark.parametrize("codes, scale", FLAT)
def test_flattened_codes_are_codes_by_their_name(codes, scale, dtype, tmp_path):
    tensors = {f"{M}.{codes}": entry(dtype, 512), f"{M}.{scale}": entry("F32", 32)}
    path = write_safetensors(tmp_path / "x.safetensors", tensors)
    assert "not judged: " in qcts("check", path, code=3).stdout
    qcts("dequantize", path, tmp_path / "out.safetensors", code=1)
    without_scale = write_safetensors(tmp_path / "y.safetensors", {"zip.codes": entry(dtype, 512), "fc.weight": entry("F32", 4, 4)})
    qcts("check", without_scale)


GPTQ = ["I8", "I16", "I32", "I64"]


@pytest.mark.parametrize("dtype", GPTQ)
def test_gptq_words_of_any_width_are_named(dtype, tmp_path):
    parts = {"qweight": entry(dtype, 32, 64), "qzeros": entry(dtype, 4, 16), "g_idx": entry("I32", 128), "scales": entry("F16", 4, 64)}
    path = write_safetensors(tmp_path / "x.safetensors", {f"{M}.{name}": part for name, part in parts.items()})
    assert inspect(path)["dialect"] == "gptq"
    assert "not judged: gptq (GPTQ" in qcts("check", path, code=3).stdout


# Buffers of published architectures, next to the floats of their modules.
NO_CODES = {
    "clip": {"embeddings.position_ids": entry("I64", 1, 77), "embeddings.class_embedding": entry("F32", 64),
             "embeddings.position_embedding.weight": entry("F32", 77, 64)},
    "bert": {"embeddings.token_type_ids": entry("I64", 1, 8), "embeddings.scale": entry("F32", 1)},
    "gpt2": {"attn.bias": entry("BOOL", 1, 1, 8, 8), "attn.masked_bias": entry("F32"), "attn.c_attn.weight": entry("F32", 8, 24)},
    "gpt_neox": {"attention.bias": entry("BOOL", 1, 1, 8, 8), "attention.rotary_emb.inv_freq": entry("F32", 4),
                 "attention.dense.weight": entry("F32", 8, 8)},
    "codegen": {"attn.causal_mask": entry("BOOL", 1, 1, 8, 8), "attn.scale_attn": entry("F32", 1)},
    "swin": {"attn.relative_position_index": entry("I64", 49, 49), "attn.relative_position_bias_table": entry("F32", 169, 4)},
    "swin_v2": {"attn.relative_position_index": entry("I64", 64, 64), "attn.logit_scale": entry("F32", 4, 1, 1)},
    "levit": {"attn.attention_bias_idxs": entry("I64", 16, 16), "attn.attention_biases": entry("F32", 4, 16)},
    "batch_norm": {"bn.num_batches_tracked": entry("I64"), "bn.weight": entry("F32", 8), "bn.running_mean": entry("F32", 8)},
    "hash_router": {"mlp.gate.tid2eid": entry("I64", 128, 2), "mlp.gate.weight": entry("F32", 8, 64)},
    "graphormer": {"bias.spatial_pos": entry("I64", 8, 8), "bias.virtual_distance": entry("F32", 1, 4)},
    "layoutlm": {"visual_bbox": entry("I64", 50, 4), "cls_token": entry("F32", 1, 1, 8)},
    "token_table": {"embed.token_table": entry("I64", 100, 4), "embed.weight": entry("F32", 100, 8)},
    "pruning_mask": {"fc.weight_mask": entry("BOOL", 8, 8), "fc.weight_orig": entry("F32", 8, 8)},
    "active": {"fc.active": entry("BOOL", 8, 8), "fc.weight": entry("F32", 8, 8)},
    "one_dimension": {"levels.num_points": entry("I64", 4), "levels.num_points_scale": entry("F32", 4)},
    "far_apart": {"a.table": entry("I64", 8, 8), "b.scale": entry("F32", 8)},
    "complex": {"dft.dft_mat_hidden": entry("F32", 8, 8), "rope.freqs": entry("F32", 8, 8)},
}  # fmt: skip


@pytest.mark.parametrize("case", NO_CODES)
def test_integers_of_float_models_are_no_codes(case, tmp_path):
    path = write_safetensors(tmp_path / "x.safetensors", NO_CODES[case])
    told = inspect(path)
    assert told["dialect"] == "plain" and not any("foreign" in tensor for tensor in told["tensors"])
    qcts("check", path)
    qcts("dequantize", path, tmp_path / "out.safetensors")


def test_a_training_checkpoint_is_no_quantized_one(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    model = torch.nn.Sequential(torch.nn.Embedding(10, 4), torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(model.parameters())
    model[2](model[1](model[0](torch.arange(8)))).sum().backward()
    optimizer.step()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state(), "step": 3}
    torch.save(state, tmp_path / "x.pt")
    assert inspect(tmp_path / "x.pt")["dialect"] == "plain"
    qcts("check", tmp_path / "x.pt")
