# SPDX-License-Identifier: BSD-3-Clause
"""Weights that other libraries quantized: read bit for bit as their own CPU code reads them, or refused by name."""

import copy
import json

import pytest
from dialect_files import GOLDENS, read_safetensors
from joined_model import (
    Model,
    changed,
    dense_of,
    extra_part,
    folder_of,
    lone_file,
    require_bits,
    require_finding,
    require_refused_by_name,
    saying,
    without,
)
from qcts_program import inspect, qcts

PEERS = [id for id, golden in GOLDENS.items() if "peer" in golden["flags"]]
INTEGERS = "compressed_tensors_0_20_0/integers_fp16"
GPTQ = "gptqmodel_7_7_0/int4_g32_act_order"
AWQ = "autoawq_0_2_9/int4_g32"
BLOCKS = "transformers_5_24_0_peers/fp8_blocks"
MODELOPT = "modelopt_0_47_0/nvfp4"
EXPERTS = "transformers_5_24_0_peers/gpt_oss"


@pytest.mark.parametrize("id", PEERS)
def test_dequantize_gives_the_bits_of_the_producer(id, tmp_path):
    """Protects: the meaning of every format that is read, and that no weight of a golden is left out."""
    require_bits(folder_of(id), dense_of(id), tmp_path / "out.safetensors")


@pytest.mark.parametrize("id", PEERS)
def test_a_file_in_its_folder_is_judged_as_the_folder_is(id):
    """Protects: the copy that check saves and reads again finds the configuration next to the file."""
    for file in [*folder_of(id).glob("*.safetensors"), *folder_of(id).glob("*.bin")]:
        qcts("check", file)


@pytest.mark.parametrize("id", PEERS)
def test_the_file_is_judged_and_saved_again_byte_for_byte(id, tmp_path):
    """Protects: sizes by the format's formula, logical shapes, and an unchanged payload."""
    folder = folder_of(id)
    qcts("check", folder)
    qcts("resave", folder, tmp_path / "again")
    files = [*folder.glob("*.safetensors"), *folder.glob("*.bin")]
    assert files
    for file in files:
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes()
    told = inspect(folder)
    assert told["dense_bytes"] == GOLDENS[id]["dense_bytes"] and not told["findings"]
    assert {tensor["name"] for tensor in told["tensors"] if tensor["scheme"]} == dense_of(id).keys()


def of_groups(**words):
    def change(model):
        for group in model.said["config_groups"].values():
            group["weights"].update(words)

    return change


def of_formats(format):
    def change(model):
        for group in model.said["config_groups"].values():
            group["format"] = format

    return change


def of_algorithm(word):
    def change(model):
        model.said["quant_algo"] = word
        (model.folder / "hf_quant_config.json").unlink()

    return change


def two_groups(model):
    groups = model.said["config_groups"]
    groups["other"] = copy.deepcopy(groups["group_0"])
    groups["other"]["weights"]["symmetric"] = not groups["other"]["weights"]["symmetric"]


def zero_point_of_zero(model):
    model.said["sym"] = False
    model.change("model.0.qzeros", 0, 0x7F)


# what is changed -> golden, change, a word of the refusal
NOT_READ = {
    "ct_transform": (INTEGERS, saying(transform_config={"config_groups": {"u": {}}}), "transform_config"),
    "ct_sparsity": (INTEGERS, saying(sparsity_config={"format": "sparse-24-bitmask"}), "sparsity_config"),
    "ct_marlin": (INTEGERS, of_formats("marlin-24"), "marlin-24"),
    "ct_strategy": (INTEGERS, of_groups(strategy="attn_head"), "attn_head"),
    "ct_no_groups": (INTEGERS, without("config_groups"), "config_groups"),
    "ct_two_groups": (INTEGERS, two_groups, "two groups"),
    "ct_two_weights": (INTEGERS, extra_part("int4_g32.weight"), "part weight is not known"),
    "ct_extra_part": (INTEGERS, extra_part("int4_g32.weight_secret"), "weight_secret"),
    "gptq_no_bits": (GPTQ, without("bits"), "bits"),
    "gptq_text": (GPTQ, saying(bits="4"), "bits of config.json is not an integer"),
    "gptq_no_group": (GPTQ, saying(group_size=0), "group_size 0"),
    "gptq_no_text": (GPTQ, saying(checkpoint_format=False), "checkpoint_format of config.json is not a string"),
    "gptq_no_method": (GPTQ, without("quant_method"), "no config.json says how it is quantized"),
    "gptq_other_method": (GPTQ, saying(quant_method="gpt_q"), "gpt_q, which qcts does not know"),
    "awq_text": (AWQ, saying(bits="4"), "bits of config.json is not an integer"),
    "gptq_5_bits": (GPTQ, saying(bits=5), "5 bits"),
    "gptq_marlin": (GPTQ, saying(checkpoint_format="marlin"), "marlin"),
    "gptq_no_order": (GPTQ, lambda model: model.tensors.pop("model.0.g_idx"), "no g_idx"),
    "gptq_marlin_method": (GPTQ, saying(quant_method="gptq_marlin"), "marlin"),
    "awq_marlin_method": (AWQ, saying(quant_method="awq_marlin"), "marlin"),
    "gptq_dynamic": (GPTQ, saying(dynamic=["model.0"]), "dynamic of config.json is not an object"),
    "gptq_zero": (GPTQ, zero_point_of_zero, "readers interpret differently"),
    "awq_gemv": (AWQ, saying(version="gemv"), "gemv"),
    "awq_no_version": (AWQ, without("version"), "version"),
    "awq_llm_awq": (AWQ, saying(backend="llm-awq"), "llm-awq"),
    "modelopt_mixed": (MODELOPT, of_algorithm("MIXED_PRECISION"), "has no quantized_layers"),
    "modelopt_awq": (MODELOPT, of_algorithm("W4A16_AWQ"), "W4A16_AWQ"),
    "modelopt_pre_scale": (MODELOPT, extra_part("model.layers.0.mlp.up_proj.pre_quant_scale"), "pre_quant_scale"),
    "fp8_no_block": (BLOCKS, without("weight_block_size"), "weight_block_size"),
    "fp8_extra_part": (BLOCKS, extra_part("model.0.pre_scale"), "pre_scale"),
}


@pytest.mark.parametrize("case", NOT_READ)
def test_what_is_not_understood_is_refused_by_name(case, tmp_path):
    """Protects: a variant of a format never becomes wrong weights with exit code 0."""
    id, change, word = NOT_READ[case]
    require_refused_by_name(changed(id, change, tmp_path), word, tmp_path / "out.safetensors")


def mislabelled(model):
    model.said["checkpoint_format"] = "gptq_v2"


def by_its_former_name(model):
    del model.said["checkpoint_format"]
    model.said["format"] = "gptq_v2"


def group_of_nvfp4(model):
    for group in model.said["config_groups"].values():
        group["weights"]["group_size"] = 32


def group_out_of_range(model):
    model.change("model.0.g_idx", 0, 250)


def scale_of_no_number(model):
    model.change("model.layers.0.mlp.experts.gate_up_proj_scales", 5, 255)


def other_shape(model):
    model.change("int4_g32.weight_shape", 8, 96)


CONTRADICTIONS = {
    "ct_bits": (INTEGERS, of_groups(num_bits=7), "7 bits"),
    "ct_group": (INTEGERS, of_groups(group_size=16), "scales"),
    "ct_ignored": (INTEGERS, saying(ignore=["int4_g32"]), "ignores it"),
    "ct_order": (INTEGERS, of_groups(actorder="group"), "actorder"),
    "gptq_excluded": (GPTQ, saying(dynamic={"-:.*\\.0": {}}), "excludes it"),
    "gptq_not_converted": (GPTQ, saying(modules_to_not_convert=["model.1"]), "does not convert model.1"),
    "awq_not_converted": (AWQ, saying(modules_to_not_convert=["lm_head", "model"]), "does not convert model"),
    "fp8_not_converted": (BLOCKS, saying(modules_to_not_convert=["model.0"]), "does not convert model.0"),
    "fp8_ignored": (BLOCKS, saying(ignored_layers=["model.0"]), "does not convert model.0"),
    "ct_untargeted": (INTEGERS, lambda model: model.said["config_groups"].pop("group_0"), "no group"),
    "ct_shape": (INTEGERS, other_shape, "words"),
    "gptq_mislabelled": (GPTQ, mislabelled, "those of gptq"),
    "gptq_format": (GPTQ, by_its_former_name, "those of gptq"),
    "gptq_two_formats": (GPTQ, saying(format="gptq_v2"), "checkpoint_format gptq and format gptq_v2"),
    "awq_no_zero_points": (AWQ, saying(zero_point=False), "not all 8"),
    "awq_symmetric": (AWQ, saying(sym=True), "not all 8"),
    "fp8_fmt": (BLOCKS, saying(fmt="e5m2"), "says fmt e5m2"),
    "modelopt_group": (MODELOPT, group_of_nvfp4, "group_size 32"),
    "modelopt_ignored": (MODELOPT, saying(ignore=["model.layers.0.self_attn*"]), "leaves out model.layers.0.self_attn*"),
    "modelopt_excluded": (MODELOPT, saying(exclude_modules=["*q_pro?"]), "leaves out *q_pro?"),
    "gptq_order": (GPTQ, saying(desc_act=False), "out of order"),
    "gptq_groups": (GPTQ, group_out_of_range, "g_idx"),
    "gptq_bits": (GPTQ, saying(bits=8), "need"),
    "awq_group": (AWQ, saying(group_size=64), "groups of 64"),
    "fp8_block": (BLOCKS, saying(weight_block_size=[64, 64]), "blocks of 64"),
    "modelopt_codes": (MODELOPT, saying(quant_algo="FP8"), "not those of quant_algo"),
    "gpt_oss_scale": (EXPERTS, scale_of_no_number, "255"),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_a_configuration_that_contradicts_the_tensors_fails_the_check(case, tmp_path):
    """Protects: files that say one thing and hold another, such as gptq_v2's zero points under `gptq`."""
    id, change, word = CONTRADICTIONS[case]
    require_finding(changed(id, change, tmp_path), word, tmp_path / "out.safetensors")


OTHER_FILES = {
    "gptq_bits": (GPTQ, "quantize_config.json", {"bits": 8, "group_size": 32}, "bits 4, but quantize_config.json says 8"),
    "gptq_v2": (GPTQ, "quantize_config.json", {"bits": 4, "checkpoint_format": "gptq_v2"}, 'says "gptq_v2"'),
    "gptq_sym": (GPTQ, "quantize_config.json", {"bits": 4, "group_size": 32, "sym": False}, "sym true"),
    "awq": (AWQ, "quant_config.json", {"w_bit": 4, "q_group_size": 64, "zero_point": True}, "group_size 32"),
    "modelopt": (MODELOPT, "hf_quant_config.json", {"quantization": {"quant_algo": "FP8"}}, 'says "FP8"'),
}


@pytest.mark.parametrize("case", OTHER_FILES)
def test_two_files_that_say_different_things_fail_the_check(case, tmp_path):
    """Protects: readers that believe the library's own file, and others config.json."""
    id, name, said, word = OTHER_FILES[case]
    folder = Model(id, tmp_path).write()
    (folder / name).write_text(json.dumps(said))
    assert word in qcts("check", folder, code=1, COLUMNS="1000").stderr
    qcts("dequantize", folder, tmp_path / "out.safetensors", code=1)


SAME = {"bits": 4, "group_size": 32, "damp_percent": 0.01, "model_name_or_path": "x"}


@pytest.mark.parametrize("text", [json.dumps(SAME), json.dumps({"quant_method": "awq", "bits": 8}), "{", "[]"])
def test_another_file_that_contradicts_nothing(text, tmp_path):
    folder = Model(GPTQ, tmp_path).write()
    (folder / "quantize_config.json").write_text(text)
    qcts("check", folder)


LISTS = {"modules_to_not_convert": ["lm_head", "odel.0", "model.00", "0.weight"], "dynamic": {"-:.*gate": {}}}


@pytest.mark.parametrize("id", [GPTQ, AWQ, BLOCKS])
def test_a_list_of_other_modules_contradicts_nothing(id, tmp_path):
    model = Model(id, tmp_path)
    model.said.update(LISTS)
    qcts("check", model.write())


@pytest.mark.parametrize("id", [INTEGERS, GPTQ, AWQ, BLOCKS, MODELOPT, EXPERTS])
def test_a_part_that_is_missing_is_no_weight(id, tmp_path):
    model = Model(id, tmp_path)
    name = next(name for name in model.tensors if "scale" in name and "input" not in name)
    del model.tensors[name]
    folder = model.write()
    assert inspect(folder)["findings"]
    qcts("dequantize", folder, tmp_path / "out.safetensors", code=1)


def idle_bit(model):
    """Sets a bit above the five zero points of 3 bits that a word holds."""
    name = "int3_g32_asym.weight_zero_point"
    model.change(name, len(model.tensors[name][2]) - 1, 0x80)


def negative_scale(model):
    model.change("int4_g32.weight_scale", 1, 0xBC)


@pytest.mark.parametrize("change, rule", [(idle_bit, "idle_bits"), (negative_scale, "scale")])
def test_values_that_the_format_cannot_mean_are_findings(change, rule, tmp_path):
    model = Model(INTEGERS, tmp_path)
    change(model)
    report = json.loads(qcts("check", model.write(), "--json", code=1).stdout)
    assert [finding["rule"] for finding in report["values"]["findings"]] == [rule]


def test_one_changed_code_changes_one_element(tmp_path):
    """Protects: that the bits of the file are what is dequantized."""
    model = Model(GPTQ, tmp_path)
    before = dense_of(GPTQ)
    model.change("model.0.qweight", 0, model.tensors["model.0.qweight"][2][0] ^ 1)
    qcts("dequantize", model.write(), tmp_path / "out.safetensors")
    after = read_safetensors(tmp_path / "out.safetensors")
    elements = {
        name: sum(a[i : i + 2] != b[i : i + 2] for i in range(0, len(a), 2))
        for name, a, b in ((name, after[name][2], before[name][2]) for name in after)
    }
    assert elements == {"model.0.weight": 1, "model.1.weight": 0}


@pytest.mark.parametrize("id", [INTEGERS, GPTQ, AWQ, BLOCKS, MODELOPT, EXPERTS])
def test_parts_may_lie_in_different_files(id, tmp_path):
    require_bits(Model(id, tmp_path).spread(), dense_of(id), tmp_path / "out.safetensors")


@pytest.mark.parametrize("id", [INTEGERS, GPTQ, AWQ, BLOCKS, MODELOPT, EXPERTS])
def test_a_file_alone_needs_its_configuration(id, tmp_path):
    """Protects: the config.json next to a file or after --config is used, and nothing is guessed without one."""
    folder = folder_of(id)
    assert inspect(folder / "model.safetensors")["dialect"] == inspect(folder)["dialect"]
    qcts("check", folder / "model.safetensors")
    lone = lone_file(id, tmp_path)
    qcts("check", lone, code=3)
    qcts("check", lone, "--config", folder / "config.json")
    assert all(not tensor.get("foreign") for tensor in inspect(lone, "--config", folder / "config.json")["tensors"])
