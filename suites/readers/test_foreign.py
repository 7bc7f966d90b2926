# SPDX-License-Identifier: BSD-3-Clause
"""Weights quantized by other libraries' formats: named by their config and keys, never judged, never written as floats."""

import json

import pytest
from dialect_files import write_safetensors
from qcts_program import inspect, qcts

SIZES = {"I16": 2, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "BF16": 2, "F16": 2, "I32": 4, "U32": 4, "F32": 4, "I64": 8}


def entry(dtype, *shape):
    count = 1
    for size in shape:
        count *= size
    return dtype, list(shape), bytes(count * SIZES[dtype])


M = "model.layers.0.mlp.down_proj"
# name -> (quant_method of config.json or None, the dialect that is named, parts: ending, dtype and shape)
FORMATS = {
    "gptq": ("gptq", "gptq", ".qweight:I32:8x64 .qzeros:I32:2x8 .scales:F16:2x64 .g_idx:I32:64"),
    "gptq_by_keys": (None, "gptq", ".qweight:I32:8x64 .qzeros:I32:2x8 .scales:F16:2x64 .g_idx:I32:64"),
    "gptq_by_shape": (None, "gptq", ".qweight:I32:8x64 .qzeros:I32:2x8 .scales:F16:2x64"),
    "awq": ("awq", "awq", ".qweight:I32:64x8 .qzeros:I32:2x8 .scales:F16:2x64"),
    "awq_by_shape": (None, "awq", ".qweight:I32:64x8 .qzeros:I32:2x8 .scales:F16:2x64"),
    "packed": (
        "compressed-tensors", "compressed-tensors",
        ".weight_packed:I32:64x8 .weight_scale:BF16:64x1 .weight_shape:I64:2",
    ),
    "packed_by_keys": (
        None, "compressed-tensors",
        ".weight_packed:U8:64x32 .weight_scale:F8_E4M3:64x4 .weight_global_scale:F32:1",
    ),
    "int8": ("compressed-tensors", "compressed-tensors", ".weight:I8:64x64 .weight_scale:BF16:64x1"),
    "float8": (None, "weight_scale", ".weight:F8_E4M3:64x64 .weight_scale:F32:64x1"),
    "float8_blocks": ("fp8", "fp8", ".weight:F8_E4M3:200x160 .weight_scale_inv:F32:2x2"),
    "float8_blocks_by_keys": (None, "fp8", ".weight:F8_E4M3:200x160 .weight_scale_inv:F32:2x2"),
    "float8_experts": (None, "fp8", ".gate_up_proj:F8_E4M3:2x64x64 .gate_up_proj_scale_inv:F32:2x1x1"),
    "float8_dot_scale": (None, "fp8", ".weight:F8_E4M3:64x64 .scale:F32:1x1"),
    "comfy": (None, "comfy_fp8", ".weight:F8_E4M3:64x64 .scale_weight:F32:"),
    "modelopt": (
        "modelopt", "modelopt",
        ".weight:U8:64x32 .weight_scale:F8_E4M3:64x4 .weight_scale_2:F32: .input_scale:F32:",
    ),
    "modelopt_by_keys": (None, "modelopt", ".weight:U8:64x32 .weight_scale:F8_E4M3:64x4 .weight_scale_2:F32:"),
    "gpt_oss": ("mxfp4", "mxfp4", ".experts.gate_up_proj_blocks:U8:2x64x2x16 .experts.gate_up_proj_scales:U8:2x64x2"),
    "gpt_oss_by_keys": (None, "mxfp4", ".experts.down_proj_blocks:U8:2x64x2x16 .experts.down_proj_scales:U8:2x64x2"),
    "bnb_int8": ("bitsandbytes", "bitsandbytes", ".weight:I8:64x64 .SCB:F32:64"),
    "bnb_nf4": (
        None, "bitsandbytes",
        ".weight:U8:2048x1 .weight.absmax:F32:64 .weight.quant_map:F32:16 "
        ".weight.quant_state.bitsandbytes__nf4:U8:90",
    ),
    "hqq": (None, "hqq", ".W_q:U8:32x64 .scale:F16:64x1 .zero:F16:64x1"),
    "quanto": (None, "quanto", ".weight._data:I8:64x64 .weight._scale:BF16:64x1"),
    "mlx": (None, "mlx", ".weight:U32:64x8 .scales:F16:64x1 .biases:F16:64x1"),
    "group_codes": (None, "group_codes", ".weight:I8:64x64 .scales:F32:64x2 .zeros:F32:64x2"),
    "unknown_method": ("brand_new", "scaled_codes", ".codes_of_mine:U8:64x32 .my_scale_table:F32:64"),
    "hqq_of_a_pickle": (None, "hqq", ".W_q:U8:32x64 .meta.scale:F16:64x1 .meta.zero:F16:64x1"),
    "marlin24": (None, "compressed-tensors", ".weight_packed:I32:2x128 .scale_packed:F16:1x64 .meta:I16:2x16"),
    "vptq": (None, "vptq", ".indices:I32:1x4x8 .centroids.weight:F16:1x2048 .weight_scale:F16:64"),
    "tensorrt_llm": (None, "scaled_codes", ".weight:F8_E4M3:64x64 .weights_scaling_factor:F32:1 .activation_scaling_factor:F32:1"),
    "lookup_table": (None, "scaled_codes", ".weight_codes:U8:64x64 .weight_lut:F16:16"),
    "palette": (None, "scaled_codes", ".indices:U8:64x64 .palette:F16:16"),
    "unknown_keys": (None, "scaled_codes", ".kernel:I8:64x64 .kernel_absmax:F32:64"),
}


def directory(tmp_path, method, tensors, config=None):
    folder = tmp_path / "model"
    folder.mkdir()
    write_safetensors(folder / "model.safetensors", tensors)
    config = config or ({"quantization_config": {"quant_method": method}} if method else {})
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def named(parts):
    tensors = {"model.norm.weight": entry("BF16", 64)}
    for part in parts.split():
        ending, dtype, shape = part.split(":")
        tensors[M + ending] = entry(dtype, *(int(size) for size in shape.split("x") if size))
    return tensors


def codes_of(parts):
    return M + parts.split(":")[0]


@pytest.mark.parametrize("case", FORMATS)
def test_a_foreign_format_is_named_and_neither_judged_nor_written(case, tmp_path):
    method, dialect, parts = FORMATS[case]
    folder, out = directory(tmp_path, method, named(parts)), tmp_path / "out.safetensors"
    told = inspect(folder)
    assert told["dialect"] == dialect and told["reduction"] is None
    codes = codes_of(parts)
    assert {t["name"]: t.get("foreign") for t in told["tensors"]}[codes] == dialect
    table = qcts("inspect", folder)
    assert f"dialect {dialect} (not read here)" in table.stdout and "plain" not in table.stdout
    checked = qcts("check", folder, code=3)
    assert checked.stdout.startswith("not judged: ") and codes in checked.stdout
    assert json.loads(qcts("check", folder, "--json", code=3).stdout)["passed"] is None
    refused = qcts("dequantize", folder, out, code=1)
    assert codes in refused.stderr and dialect in refused.stderr and not out.exists()
    qcts("quantize", "--scheme", "int8_row", folder, tmp_path / "out.pt", code=1)
    assert not (tmp_path / "out.pt").exists()


@pytest.mark.parametrize("case", FORMATS)
def test_partial_leaves_every_part_of_it_out(case, tmp_path):
    method, _, parts = FORMATS[case]
    out = tmp_path / "out.safetensors"
    done = qcts("dequantize", "--partial", directory(tmp_path, method, named(parts)), out)
    names = {t["name"] for t in inspect(out)["tensors"]}
    assert "model.norm.weight" in names and codes_of(parts) not in names
    assert "left out" in done.stderr


ROOTS = {
    "gptq": {"qweight": entry("I32", 8, 64), "qzeros": entry("I32", 2, 8), "scales": entry("F16", 2, 64)},
    "hqq": {"W_q": entry("U8", 32, 64), "scale": entry("F16", 64, 1), "zero": entry("F16", 64, 1)},
    "group_codes": {"weight": entry("I8", 64, 64), "scales": entry("F32", 64, 2)},
    "fp8": {"w": entry("F8_E4M3", 64, 64), "w_scale_inv": entry("F32", 1, 1)},
}


@pytest.mark.parametrize("dialect", ROOTS)
def test_a_layer_that_is_in_no_module_is_named_too(dialect, tmp_path):
    assert inspect(write_safetensors(tmp_path / "x.safetensors", ROOTS[dialect]))["dialect"] == dialect


@pytest.mark.parametrize("dtype", ["I8", "U8", "I32"])
def test_integers_that_a_config_calls_quantized_need_scales(dtype, tmp_path):
    tensors = named(FORMATS["int8"][2]) | {"b.weight": entry(dtype, 16, 16)}
    checked = qcts("check", directory(tmp_path, "compressed-tensors", tensors), code=1)
    assert "b.weight: config.json says compressed-tensors" in checked.stdout


def test_the_dialect_plain_is_a_wish_that_is_granted(tmp_path):
    path = write_safetensors(tmp_path / "x.safetensors", named(FORMATS["gptq"][2]))
    assert inspect(path, "--dialect", "plain")["dialect"] == "plain"
    qcts("dequantize", "--dialect", "plain", path, tmp_path / "out.safetensors")


CONFIGS = {
    "nested": {"text_config": {"quantization_config": {"quant_method": "gptq"}}},
    "algo": {"quantization_config": {"quant_algo": "NVFP4"}},
    "mlx": {"quantization": {"group_size": 64, "bits": 4}},
}


@pytest.mark.parametrize("case", CONFIGS)
def test_a_config_that_promises_codes_over_float_tensors_fails_the_check(case, tmp_path):
    folder = directory(tmp_path, None, {"a.weight": entry("BF16", 8, 8)}, CONFIGS[case])
    assert "no tensor is quantized" in qcts("check", folder, code=1, COLUMNS="1000").stdout
    assert "no tensor is quantized" in qcts("inspect", folder).stderr
    qcts("dequantize", folder, tmp_path / "out.safetensors", code=1)
    assert not (tmp_path / "out.safetensors").exists()


NEIGHBOURS = {
    "hf_quant_config.json": ({"quantization": {"quant_algo": "FP8"}}, "modelopt"),
    "quantize_config.json": ({"bits": 4, "group_size": 128}, "gptq"),
    "quant_config.json": ({"w_bit": 4, "q_group_size": 128}, "awq"),
}


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_the_configs_beside_config_json_name_the_method(name, tmp_path):
    config, dialect = NEIGHBOURS[name]
    folder = directory(tmp_path, None, named(".weight:I8:64x64 .weight_scale:F32:64"))
    (folder / name).write_text(json.dumps(config))
    assert inspect(folder)["dialect"] == dialect


@pytest.mark.parametrize("dtype", ["F8_E4M3", "F8_E5M2"])
def test_a_promised_scale_that_is_missing_fails_the_check_by_name(dtype, tmp_path):
    tensors = named(FORMATS["float8_blocks"][2]) | {"b.weight": entry(dtype, 16, 16)}
    folder = directory(tmp_path, "fp8", tensors)
    assert "b.weight: config.json says fp8" in qcts("check", folder, code=1).stdout
    assert "b.weight" in qcts("inspect", folder).stderr
    needed = write_safetensors(tmp_path / "x.safetensors", {"c.weight_packed": entry("I32", 8, 8)})
    assert "no c.weight_scale beside it" in qcts("check", needed, code=1).stdout


def test_float8_alone_is_plain_with_a_note(tmp_path):
    path = write_safetensors(tmp_path / "x.safetensors", {"a.weight": entry("F8_E4M3", 8, 8), "b.weight": entry("BF16", 8)})
    done = qcts("inspect", path, "--json")
    assert json.loads(done.stdout)["dialect"] == "plain" and "a.weight: float8 without a scale" in done.stderr
    qcts("check", path)
    qcts("dequantize", path, tmp_path / "out.safetensors")


INNOCENT = {
    "batch_norm": {"bn.weight": entry("F32", 8), "bn.num_batches_tracked": entry("I64")},
    "logit_scale": {"attn.logit_scale": entry("F32", 4), "attn.relative_position_index": entry("I64", 4, 4)},
    "mask": {"attn.bias": entry("U8", 1, 1, 8, 8), "attn.scale": entry("F32", 1)},
    "integers": {"table": entry("I8", 8, 8), "other.weight": entry("F32", 8)},
}


@pytest.mark.parametrize("case", INNOCENT)
def test_integers_of_float_models_are_plain(case, tmp_path):
    path = write_safetensors(tmp_path / "x.safetensors", INNOCENT[case])
    assert inspect(path)["dialect"] == "plain"
    qcts("check", path)
