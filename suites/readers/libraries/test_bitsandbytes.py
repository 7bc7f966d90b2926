# SPDX-License-Identifier: BSD-3-Clause
"""bitsandbytes weights: read by their own parts, and refused by name if a part or config.json contradicts them."""

import json
import struct

import pytest
from dialect_files import read_safetensors
from joined_model import (
    Model,
    changed,
    dense_of,
    extra_part,
    folder_of,
    lacking,
    lone_file,
    require_bits,
    require_finding,
    saying,
    without,
)
from qcts_program import inspect, qcts

NF4, FP4 = "bitsandbytes_0_50_2/nf4", "bitsandbytes_0_50_2/fp4"
TWICE, INT8 = "bitsandbytes_0_50_2/nf4_twice", "bitsandbytes_0_50_2/int8_bf16"
W = "model.0.weight"
STATE = W + ".quant_state.bitsandbytes__"


def state_of(model, type):
    return json.loads(model.tensors[STATE + type][2])


def put_state(model, type, text):
    data = text if isinstance(text, bytes) else text.encode()
    model.tensors[STATE + type] = "U8", [len(data)], data


def state_saying(type, **words):
    return lambda model: put_state(model, type, json.dumps(state_of(model, type) | words))


def state_without(type, key):
    return lambda model: put_state(model, type, json.dumps({k: v for k, v in state_of(model, type).items() if k != key}))


def state_text(type, text):
    return lambda model: put_state(model, type, text)


def reshaped(name, shape):
    def change(model):
        dtype, _, data = model.tensors[name]
        model.tensors[name] = dtype, shape, data

    return change


def shorter(name, size):
    def change(model):
        dtype, _, data = model.tensors[name]
        data = data[: len(data) - size]
        model.tensors[name] = dtype, [len(data) // size], data

    return change


def other_type(model):
    model.tensors[STATE + "fp4"] = model.tensors.pop(STATE + "nf4")


def both_types(model):
    put_state(model, "fp4", json.dumps(state_of(model, "nf4") | {"quant_type": "fp4"}))


def other_table(model):
    model.change(W + ".quant_map", 4, 0x55)


def double_of_float(model):
    state_saying("nf4", nested_offset=0.5)(model)


# what is changed -> golden, change, a word of the refusal
NOT_READ = {
    "no_quant_state": (NF4, lacking(STATE + "nf4"), "quant_state"),
    "no_absmax": (NF4, lacking(W + ".absmax"), "absmax"),
    "no_quant_map": (NF4, lacking(W + ".quant_map"), "quant_map"),
    "no_nested_absmax": (TWICE, lacking(W + ".nested_absmax"), "nested_absmax"),
    "no_nested_map": (TWICE, lacking(W + ".nested_quant_map"), "nested_quant_map"),
    "unknown_key": (NF4, state_saying("nf4", rotation=1), "rotation"),
    "unknown_part": (NF4, extra_part(W + ".rotation"), "rotation"),
    "unknown_part_of_the_layer": (NF4, extra_part("model.0.pre_scale"), "pre_scale"),
    "blocksize": (NF4, state_saying("nf4", blocksize=48), "blocksize"),
    "no_blocksize": (NF4, state_without("nf4", "blocksize"), "blocksize"),
    "dtype": (NF4, state_saying("nf4", dtype="float64"), "float64"),
    "nested_dtype": (TWICE, state_saying("nf4", nested_dtype="float16"), "nested_dtype"),
    "transposed": (NF4, reshaped(W, [1, 410]), "one row"),
    "int8_columns": (INT8, lambda model: model.tensors.update({"model.0.weight_format": ("U8", [], b"\x01")}), "weight_format"),
    "int8_no_flag": (INT8, without("load_in_8bit", "_load_in_8bit"), "load_in_8bit"),
    "int8_no_scale": (INT8, lacking("model.0.SCB"), "without a scale"),
    "int8_unknown_part": (INT8, extra_part("model.0.weight_outliers"), "weight_outliers"),
}


CONTRADICTIONS = {
    "no_json": (NF4, state_text("nf4", "nf4"), "not a JSON object"),
    "broken_json": (NF4, state_text("nf4", b'{"quant_type": "nf4", \xff'), "not a JSON object"),
    "a_list": (NF4, state_text("nf4", "[]"), "not a JSON object"),
    "nested_json": (NF4, state_text("nf4", "[" * 4000), "not a JSON object"),
    "long_json": (NF4, state_text("nf4", "{" + " " * 5000 + "}"), "too long"),
    "key_twice": (NF4, lambda model: put_state(model, "nf4", model.tensors[STATE + "nf4"][2][:-1] + b', "dtype": "float16"}'), "twice"),
    "other_name": (NF4, other_type, "another quant_type"),
    "two_states": (NF4, both_types, "one of fp4"),
    "table": (NF4, other_table, "quant_map"),
    "table_of_fp4": (FP4, other_table, "quant_map"),
    "shape": (NF4, state_saying("nf4", shape=[13, 64]), "bytes"),
    "no_shape": (NF4, state_saying("nf4", shape=None), "shape"),
    "negative_shape": (NF4, state_saying("nf4", shape=[-13, -63]), "shape"),
    "huge_shape": (NF4, state_saying("nf4", shape=[2**40, 2**40]), "shape"),
    "other_blocks": (NF4, state_saying("nf4", blocksize=32), "scales hold"),
    "fewer_blocks": (NF4, shorter(W + ".absmax", 4), "scales hold"),
    "fewer_words": (NF4, shorter(W, 1), "bytes"),
    "fewer_nested": (TWICE, shorter(W + ".nested_absmax", 4), "blocks of 256"),
    "short_nested_map": (TWICE, shorter(W + ".nested_quant_map", 4), "256 values"),
    "no_offset": (TWICE, state_without("nf4", "nested_offset"), "nested_offset"),
    "no_nested_block": (TWICE, state_saying("nf4", nested_blocksize=0), "nested_blocksize"),
    "half_nested": (NF4, double_of_float, "double quantization"),
    "config_type": (NF4, saying(bnb_4bit_quant_type="fp4"), "config.json says fp4"),
    "config_twice": (NF4, saying(bnb_4bit_use_double_quant=True), "bnb_4bit_use_double_quant"),
    "config_8bit": (NF4, saying(load_in_4bit=False, load_in_8bit=True), "load_in_4bit"),
    "config_4bit": (INT8, saying(load_in_4bit=True, load_in_8bit=False), "load_in_4bit"),
    "int8_scales": (INT8, shorter("model.0.SCB", 4), "scales hold"),
}  # fmt: skip


# A missing part is a contradiction where nothing else says what the words are.
MISSING = {"no_absmax", "int8_no_scale"}


@pytest.mark.parametrize("case", [*NOT_READ, *CONTRADICTIONS])
def test_what_is_not_understood_or_contradicts_itself_is_refused_by_name(case, tmp_path):
    """Protects: a missing part, another variant or a broken file never becomes wrong weights with exit code 0."""
    id, change, word = (NOT_READ | CONTRADICTIONS)[case]
    code = 1 if case in CONTRADICTIONS or case in MISSING else 3
    require_finding(changed(id, change, tmp_path), word, tmp_path / "out.safetensors", code)


@pytest.mark.parametrize("id", [NF4, FP4, TWICE, "bitsandbytes_0_50_2/llama_nf4"])
def test_four_bits_need_no_configuration(id, tmp_path):
    """Protects: a file of diffusers or ComfyUI, which has no config.json, is read by its quant_state."""
    lone = lone_file(id, tmp_path)
    qcts("check", lone)
    require_bits(lone, dense_of(id), tmp_path / "out.safetensors")


def test_int8_alone_is_named_and_not_read(tmp_path):
    lone = lone_file(INT8, tmp_path)
    assert inspect(lone)["dialect"] == "bitsandbytes"
    qcts("check", lone, code=3)
    qcts("check", lone, "--config", folder_of(INT8) / "config.json")


def test_experts_keep_their_shape_and_name(tmp_path):
    """Protects: weights of three dimensions, whose names do not end in weight."""
    model = Model(TWICE, tmp_path)
    state_saying("nf4", shape=[4, 9, 230])(model)
    before = dense_of(TWICE)[W]
    parts = {name: tensor for name, tensor in model.tensors.items() if name.startswith(W)}
    model.tensors = {"model.experts.gate_up_proj" + name.removeprefix(W): tensor for name, tensor in parts.items()}
    folder = model.write()
    told = {tensor["name"]: tensor for tensor in inspect(folder)["tensors"]}["model.experts.gate_up_proj"]
    assert told["shape"] == [4, 9, 230] and told["scheme"] == "bnb_nf4_b32_dq"
    qcts("check", folder)
    qcts("dequantize", folder, tmp_path / "out.safetensors")
    written = read_safetensors(tmp_path / "out.safetensors")["model.experts.gate_up_proj"]
    assert written == ("BF16", [4, 9, 230], before[2])


def test_one_changed_code_changes_one_element(tmp_path):
    model = Model(NF4, tmp_path)
    before = dense_of(NF4)[W][2]
    model.change(W, 5, model.tensors[W][2][5] ^ 0x10)
    qcts("dequantize", model.write(), tmp_path / "out.safetensors")
    after = read_safetensors(tmp_path / "out.safetensors")[W][2]
    assert [i for i in range(len(before) // 4) if before[4 * i : 4 * i + 4] != after[4 * i : 4 * i + 4]] == [10]


NO_SCALES = [(NF4, W + ".absmax", -1.0), (NF4, W + ".absmax", float("nan")), (INT8, "model.0.SCB", float("inf"))]


@pytest.mark.parametrize("id, name, value", NO_SCALES)
def test_scales_that_no_weight_has_are_findings(id, name, value, tmp_path):
    model = Model(id, tmp_path)
    dtype, shape, data = model.tensors[name]
    model.tensors[name] = dtype, shape, struct.pack("<f", value) + data[4:]
    report = json.loads(qcts("check", model.write(), "--json", code=1).stdout)
    assert [finding["rule"] for finding in report["values"]["findings"]] == ["scale"]


def test_parts_may_lie_in_different_files(tmp_path):
    require_bits(Model(TWICE, tmp_path).spread(), dense_of(TWICE), tmp_path / "out.safetensors")
