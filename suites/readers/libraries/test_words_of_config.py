# SPDX-License-Identifier: BSD-3-Clause
"""Flags of config.json that the tensors contradict: widths of bitsandbytes, the head of GPTQ, static scales of x."""

import copy

import pytest
from joined_model import Model, changed, require_finding, saying
from qcts_program import inspect, qcts

NF4, INT8 = "bitsandbytes_0_50_2/llama_nf4", "bitsandbytes_0_50_2/llama_int8"
GPTQ, COMPRESSED = "gptqmodel_7_7_0/int4_g32_act_order", "compressed_tensors_0_20_0/bytes_bf16"
BLOCKS, STATIC = "transformers_5_24_0_peers/fp8_blocks", "transformers_5_24_0_peers/fp8_tensor"
MODELOPT, MODELOPT_FP4 = "modelopt_0_47_0/fp8", "modelopt_0_47_0/nvfp4"


def widths(four, eight):
    return saying(load_in_4bit=four, load_in_8bit=eight)


def floats_as_head(model):
    model.said["lm_head"] = True
    model.tensors["lm_head.weight"] = "F16", [4, 4], bytes(32)


def codes_as_head(model):
    model.said["lm_head"] = False
    model.tensors |= {n.replace("model.0", "model.lm_head"): t for n, t in model.tensors.items() if "model.0" in n}


def lacking(ending):
    def change(model):
        name = next(name for name in model.tensors if name.endswith(ending))
        del model.tensors[name]

    return change


def scales_of_x(dynamic):
    def change(model):
        model.said["config_groups"]["group_5"]["input_activations"]["dynamic"] = dynamic

    return change


# what is changed -> golden, change, exit code of check, a word of the finding
FAULTS = {
    "nf4_neither": (NF4, widths(False, False), 1, "does not say load_in_4bit"),
    "int8_neither": (INT8, widths(False, False), 1, "load_in_8bit false"),
    "nf4_both": (NF4, widths(True, True), 1, "both load_in_4bit and load_in_8bit"),
    "int8_both": (INT8, widths(True, True), 1, "both load_in_4bit and load_in_8bit"),
    "text": (NF4, widths("true", False), 3, "load_in_4bit of config.json is neither true nor false"),
    "no_head": (GPTQ, saying(lm_head=True), 1, "lm_head, which it does not hold"),
    "float_head": (GPTQ, floats_as_head, 1, "lm_head true of it, but it is float16"),
    "head_of_codes": (GPTQ, codes_as_head, 1, "lm_head false, but it holds codes"),
    "static": (BLOCKS, saying(activation_scheme="static"), 1, "has no activation_scale"),
    "one_scale_of_x": (STATIC, lacking(".activation_scale"), 1, "has no activation_scale"),
    "dynamic": (STATIC, saying(activation_scheme="dynamic"), 1, "dynamic, but it has a scale of x"),
    "neither": (BLOCKS, saying(activation_scheme="token"), 3, "neither static nor dynamic"),
    "modelopt": (MODELOPT, lacking(".input_scale"), 1, "has no input_scale"),
    "modelopt_nvfp4": (MODELOPT_FP4, lacking(".input_scale"), 1, "has no input_scale"),
    "compressed": (COMPRESSED, scales_of_x(False), 1, "has no input_scale"),
    "compressed_local": (COMPRESSED, scales_of_x("local"), 1, "has no input_global_scale"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_flags_that_the_tensors_contradict(case, tmp_path):
    id, change, code, word = FAULTS[case]
    require_finding(changed(id, change, tmp_path), word, tmp_path / "out.safetensors", code)


@pytest.mark.parametrize("id, ending", [(STATIC, ".activation_scale"), (MODELOPT, ".input_scale")])
def test_another_shard_may_hold_the_scale_of_x(id, ending, tmp_path):
    model = Model(id, tmp_path)
    lacking(ending)(model)
    folder = model.write()
    shard = (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    qcts("check", shard, code=3)


def two_heads(model):
    model.said["lm_head"] = True
    model.tensors |= {n.replace("model.0", "lm_head"): copy.copy(t) for n, t in model.tensors.items() if "model.0" in n}


def floats_alone(model):
    widths(False, False)(model)
    of_codes = [name for name, (dtype, _, _) in model.tensors.items() if dtype in ("I8", "U8") or name.endswith("SCB")]
    for name in of_codes:
        del model.tensors[name]


GOOD = {
    "head": (GPTQ, two_heads),
    "floats": (INT8, floats_alone),
    "dynamic": (BLOCKS, saying(activation_scheme="dynamic")),
    "scale_of_x": (COMPRESSED, scales_of_x(True)),
}


@pytest.mark.parametrize("case", GOOD)
def test_flags_that_fit(case, tmp_path):
    id, change = GOOD[case]
    assert not inspect(changed(id, change, tmp_path))["findings"]
