# SPDX-License-Identifier: BSD-3-Clause
"""Weights quantized by other libraries' formats: named by their config and keys, never judged, never written as floats."""

import json

import pytest
from dialect_files import write_safetensors
from foreign_samples import FORMATS, M, entry, named
from qcts_program import inspect, qcts


def directory(tmp_path, method, tensors, config=None):
    folder = tmp_path / "model"
    folder.mkdir()
    write_safetensors(folder / "model.safetensors", tensors)
    config = config or ({"quantization_config": {"quant_method": method}} if method else {})
    (folder / "config.json").write_text(json.dumps(config))
    return folder


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
    assert f"dialect {dialect} (qcts cannot read it)" in table.stdout and "plain" not in table.stdout
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
    assert {t["name"] for t in inspect(out)["tensors"]} == {"model.norm.weight"}
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


def named_by_inspect(tmp_path, tensors):
    path = write_safetensors(tmp_path / "x.safetensors", tensors)
    return {t["name"]: t.get("foreign") for t in inspect(path)["tensors"]}


BESIDE = ["step", "delta", "w_s", "sf", "alpha", "quant_step", "weight_zero_point", "qparams", "gamma", "scale_and_zero"]


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize("dtype", ["I8", "U8", "I16", "U16", "I32", "U32"])
@pytest.mark.parametrize("codes", ["weight", "qdata", "packed_codes"])
def test_an_integer_weight_beside_a_float_is_a_quantized_layer(codes, dtype, name, tmp_path):
    """Whatever the float is called; a layer's bias is not a scale, and stays."""
    tensors = {f"{M}.{codes}": entry(dtype, 64, 16), f"{M}.{name}": entry("F32", 64, 1), M + ".bias": entry("F32", 64)}
    found = named_by_inspect(tmp_path, tensors)
    assert found[f"{M}.{codes}"] and found[f"{M}.{name}"] and found[M + ".bias"] is None
    qcts("check", tmp_path / "x.safetensors", code=3)
    qcts("dequantize", tmp_path / "x.safetensors", tmp_path / "out.safetensors", code=1)


MODULES = ["weight_quantizer", "weight_fake_quant", "quantizer.0", "meta", "qparams", "parametrizations.weight", "pre_ops.0"]


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("dtype", ["I8", "U8", "F8_E4M3", "I32"])
def test_a_scale_in_a_module_of_the_layer_is_the_layers(dtype, module, tmp_path):
    layer = {M + ".weight": entry(dtype, 64, 16), f"{M}.{module}.scale": entry("F32", 64), f"{M}.{module}.numbers": entry("I64", 2)}
    others = {
        M + ".bias": entry("F32", 64),
        M + ".lora_A.weight": entry("BF16", 4, 64),
        M + ".norm.weight": entry("BF16", 64),
        "model.head.weight": entry("BF16", 8, 8),
    }
    found = named_by_inspect(tmp_path, layer | others)
    assert all(found[name] for name in layer) and not any(found[name] for name in others)
    done = qcts("dequantize", "--partial", tmp_path / "x.safetensors", tmp_path / "out.safetensors")
    assert {t["name"] for t in inspect(tmp_path / "out.safetensors")["tensors"]} == set(others), done.stderr


@pytest.mark.parametrize("dtype", ["I8", "U8", "I16", "I32", "U32"])
def test_an_integer_weight_alone_is_plain_with_a_note(dtype, tmp_path):
    path = write_safetensors(tmp_path / "x.safetensors", {"a.weight": entry(dtype, 8, 8), "b.weight": entry("BF16", 8)})
    done = qcts("inspect", path, "--json")
    assert json.loads(done.stdout)["dialect"] == "plain"
    assert "a.weight: " in done.stderr and "without a scale, read as plain numbers" in done.stderr
    qcts("check", path)


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


FLOATS = {
    "cache_alone": {
        "quant_method": "compressed-tensors", "format": "dense", "config_groups": {}, "kv_cache_scheme": {"num_bits": 8},
        "quantization_status": "compressed",
    },
    "dense": {"quant_method": "compressed-tensors", "format": "dense", "config_groups": {"group_0": {}}},
    "frozen": {"quant_method": "compressed-tensors", "quantization_status": "frozen", "config_groups": {"group_0": {}}},
    "bitnet_online": {"quant_method": "bitnet", "quantization_mode": "online", "linear_class": "autobitlinear"},
    "fp_quant_pseudo": {"quant_method": "fp_quant", "pseudoquantization": True},
    "bnb_off": {"quant_method": "bitsandbytes", "load_in_4bit": False, "load_in_8bit": False},
    "modelopt_cache": {"quant_method": "modelopt", "quant_algo": None, "kv_cache_quant_algo": "FP8"},
}  # fmt: skip


@pytest.mark.parametrize("case", FLOATS)
@pytest.mark.parametrize("nested", [None, "text_config", "thinker_config"])
def test_a_config_that_leaves_the_weights_in_floats_promises_nothing(case, nested, tmp_path):
    said = {"quantization_config": FLOATS[case]}
    tensors = {M + ".weight": entry("BF16", 8, 8), M + ".k_scale": entry("F32", 1), M + ".weight_scale": entry("BF16", 8, 1)}
    folder = directory(tmp_path, None, tensors, {nested: said} if nested else said)
    assert inspect(folder)["dialect"] == "plain"
    qcts("check", folder)
    qcts("dequantize", folder, tmp_path / "out.safetensors")


@pytest.mark.parametrize("spelling", ["GPTQ", "QuantizationMethod.GPTQ"])
@pytest.mark.parametrize("part", ["text_config", "language_config", "thinker_config.text_config", "decoder", "encoder", "generator"])
def test_a_method_is_found_in_every_part_of_a_config(spelling, part, tmp_path):
    said = {"quantization_config": {"quant_method": spelling}}
    for name in reversed(part.split(".")):
        said = {name: said}
    tensors = named(FORMATS["gptq"][2])
    assert inspect(directory(tmp_path, None, tensors, said))["dialect"] == "gptq"


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
    assert "no c.weight_scale next to it" in qcts("check", needed, code=1).stdout


SHARDED = ["packed_by_keys", "gpt_oss_by_keys", "hqq", "bnb_nf4", "quanto", "exl3", "packed_experts"]


@pytest.mark.parametrize("case", SHARDED)
def test_a_shard_of_several_may_lack_the_parts_that_are_in_another(case, tmp_path):
    """Protects: a good shard that is named alone is not judged, and does not fail; in their folder the parts meet."""
    _, dialect, parts = FORMATS[case]
    tensors = named(parts)
    shard = write_safetensors(tmp_path / "model-00002-of-00007.safetensors", dict([*tensors.items()][:2]))
    checked = qcts("check", shard, code=0 if inspect(shard)["dialect"] == "plain" else 3)
    assert "next to it, which" not in checked.stdout
    folder = tmp_path / "parted"
    folder.mkdir()
    places = {name: f"model-{number}.safetensors" for number, name in enumerate(tensors)}
    for name, tensor in tensors.items():
        write_safetensors(folder / places[name], {name: tensor})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    assert inspect(folder)["dialect"] == dialect
    qcts("check", folder, code=3)


TORCH = {"F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "BF16": "bfloat16", "F16": "float16", "F32": "float32", "I8": "int8",
         "U8": "uint8", "I16": "int16", "U16": "uint16", "I32": "int32", "U32": "uint32", "I64": "int64"}  # fmt: skip


def in_modules(state):
    """{"model": {"norm": {"weight": ...}}}, or None where a part is named below the codes."""
    root = {}
    for name, tensor in state.items():
        *modules, last = name.split(".")
        inner = root
        for module in modules:
            inner = inner.setdefault(module, {}) if isinstance(inner, dict) else None
        if not isinstance(inner, dict) or last in inner:
            return None
        inner[last] = tensor
    return root


BY_KEYS = [case for case in FORMATS if FORMATS[case][0] is None]
NESTED = [case for case in BY_KEYS if in_modules(named(FORMATS[case][2]))]


@pytest.mark.parametrize("case, nested", [*((case, False) for case in BY_KEYS), *((case, True) for case in NESTED)])
def test_pickles_are_named_as_safetensors_are(case, nested, tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    _, dialect, parts = FORMATS[case]
    state = {name: torch.zeros(shape, dtype=getattr(torch, TORCH[dtype])) for name, (dtype, shape, _) in named(parts).items()}
    torch.save(in_modules(state) if nested else state, tmp_path / "x.pt")
    assert inspect(tmp_path / "x.pt")["dialect"] == dialect
    qcts("check", tmp_path / "x.pt", code=3)


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
    "placeholder_of_comfy": {"q.weight": entry("BF16", 8, 8), "q.comfy_quant": entry("U8", 30)},
    "attention_scale": {"a.in_proj_weight": entry("F8_E4M3", 8, 8), "a.q_norm.scale": entry("F32", 8)},
    "float8_everywhere": {"q.weight": entry("F8_E4M3", 8, 8), "q.bias": entry("F8_E4M3", 8), "n.weight": entry("F8_E4M3", 8)},
    "scale_of_the_model": {"logit_scale": entry("F32"), "table.codes": entry("U8", 8, 8), "a.weight": entry("F32", 8, 8)},
    "extra_state": {"q.weight": entry("BF16", 8, 8), "q._extra_state": entry("U8", 1000)},
    "cache_scales": {"q.weight": entry("BF16", 8, 8), "q.k_scale": entry("F32", 1), "q.v_scale": entry("F32", 1)},
}


@pytest.mark.parametrize("case", INNOCENT)
def test_integers_of_float_models_are_plain(case, tmp_path):
    path = write_safetensors(tmp_path / "x.safetensors", INNOCENT[case])
    assert inspect(path)["dialect"] == "plain"
    qcts("check", path)
