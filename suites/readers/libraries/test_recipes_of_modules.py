# SPDX-License-Identifier: BSD-3-Clause
"""Models whose modules have their own recipes: GPTQModel's `dynamic` and ModelOpt's MIXED_PRECISION."""

import pytest
from joined_model import Model, changed, dense_of, require_bits, require_finding, require_refused_by_name, saying
from qcts_program import qcts

GPTQ = "gptqmodel_7_7_0/int4_g32_act_order"
OTHER_GPTQ = "gptqmodel_7_7_0/int8_g64_sym"
MODELOPT = "modelopt_0_47_0/nvfp4"
ROWS = "modelopt_0_47_0/fp8_row"


def mixed(algorithm, but="", **words):
    """Gives one recipe to every module whose name does not end in `but`."""

    def change(model):
        (model.folder / "hf_quant_config.json").unlink(missing_ok=True)
        modules = [name.removesuffix(".weight_scale") for name in model.tensors if name.endswith(".weight_scale")]
        kept = [module for module in modules if not but or not module.endswith(but)]
        layers = {module: {"quant_algo": algorithm, **words} for module in kept}
        model.said.update(quant_algo="MIXED_PRECISION", quantized_layers=layers)
        model.said["config_groups"] = {"group_0": {"targets": kept, "input_activations": {"dynamic": False}, "weights": {}}}

    return change


def joined(first, second, folder):
    """Returns a model of the tensors of two, and the dense weights of both. Those of `second` are below `other`."""
    model, other = Model(first, folder), Model(second, folder / "second")
    model.tensors |= {f"other.{name}": tensor for name, tensor in other.tensors.items()}
    dense = {}
    for id, prefix in ((first, ""), (second, "other.")):
        dense |= {prefix + name: tensor for name, tensor in dense_of(id).items()}
    return model, dense


def require_read(folder, dense, out):
    qcts("check", folder)
    require_bits(folder, dense, out)


RULES = ["+:other\\.model\\.0", "other.*", "^other\\.", "+:.*her\\.model\\.[0-9]$"]


@pytest.mark.parametrize("rule", RULES)
def test_the_first_rule_that_fits_a_module_gives_its_recipe(rule, tmp_path):
    """Protects: modules with other bits, groups and order than config.json gives for the whole model."""
    model, dense = joined(GPTQ, OTHER_GPTQ, tmp_path)
    own = {"bits": 8, "group_size": 64, "desc_act": False, "mse": 0.1}
    model.said["dynamic"] = {"+:model\\.7$": {"bits": 2}, rule: own, ".*other.*": {"bits": 3}}
    require_read(model.write(), dense, tmp_path / "out.safetensors")


def test_a_name_in_full_is_no_beginning_of_one(tmp_path):
    """Protects: a rule without operators of a pattern is about one module, as GPTQModel 7.7.0 reads it."""
    model = Model(GPTQ, tmp_path)
    model.said["dynamic"] = {"-:model": {}, "+:model\\.": {"bits": 8}}
    qcts("check", model.write())


def test_modules_of_several_recipes_of_modelopt(tmp_path):
    model, dense = joined(MODELOPT, ROWS, tmp_path)
    mixed("NVFP4", group_size=16)(model)
    layers = model.said["quantized_layers"]
    rows = [name for name in layers if name.startswith("other.")]
    layers.update({name: {"quant_algo": "FP8_PER_CHANNEL_PER_TOKEN"} for name in rows})
    groups = model.said["config_groups"]
    groups["group_0"]["targets"] = [name for name in layers if name not in rows]
    groups["group_1"] = {"targets": rows, "input_activations": {"dynamic": False}, "weights": {"num_bits": 8}}
    require_read(model.write(), dense, tmp_path / "out.safetensors")


NOT_READ = {
    "gptq_word": (GPTQ, saying(dynamic={".*": {"adapter": {}}}), "says adapter, which is not supported"),
    "gptq_bits": (GPTQ, saying(dynamic={".*": {"bits": 5}}), "5 bits"),
    "gptq_text": (GPTQ, saying(dynamic={".*": {"bits": "4"}}), "bits of config.json is not an integer"),
    "gptq_pattern": (GPTQ, saying(dynamic={"(?P<x>.*)": {"bits": 4}}), "not understood"),
    "gptq_no_object": (GPTQ, saying(dynamic={".*": 4}), "is not an object"),
    "modelopt_awq": (MODELOPT, mixed("W4A16_AWQ"), "W4A16_AWQ"),
}


@pytest.mark.parametrize("case", NOT_READ)
def test_a_recipe_that_is_not_understood_is_refused_by_name(case, tmp_path):
    id, change, word = NOT_READ[case]
    require_refused_by_name(changed(id, change, tmp_path), word, tmp_path / "out.safetensors")


CONTRADICTIONS = {
    "gptq_excluded": (GPTQ, saying(dynamic={"-:model\\.0": {}, "model.*": {}}), "excludes it"),
    "gptq_bits": (GPTQ, saying(dynamic={"+:model.1": {"bits": 8}}), "need"),
    "gptq_group": (GPTQ, saying(dynamic={"model.1": {"group_size": 64}}), "groups of 64"),
    "gptq_order": (GPTQ, saying(dynamic={"model.1": {"desc_act": False}}), "out of order"),
    "gptq_zeros": ("gptqmodel_7_7_0/int3_g32_asym", saying(dynamic={"model.0": {"sym": True}}), "not all alike"),
    "modelopt_codes": (MODELOPT, mixed("FP8"), "not those of quant_algo"),
    "modelopt_group": (MODELOPT, mixed("NVFP4", group_size=32), "group_size 32"),
    "modelopt_unnamed": (MODELOPT, mixed("NVFP4", but="q_proj"), "quantized_layers do not name it"),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_a_recipe_that_contradicts_the_tensors_fails_the_check(case, tmp_path):
    id, change, word = CONTRADICTIONS[case]
    require_finding(changed(id, change, tmp_path), word, tmp_path / "out.safetensors")


def test_a_module_that_quantized_layers_name_is_missed(tmp_path):
    """Protects: the loss of a whole layer of a model of several recipes."""
    model = Model(MODELOPT, tmp_path)
    mixed("NVFP4")(model)
    lost = next(iter(model.said["quantized_layers"]))
    model.tensors = {name: tensor for name, tensor in model.tensors.items() if not name.startswith(lost + ".")}
    assert lost in qcts("check", model.write(), code=1, COLUMNS="1000").stderr


def zeros_by_modelopt(model, values):
    """Makes a weight what ModelOpt 0.47.0 writes for zeros, part by part: each element of a part is the same."""
    for part, value in values.items():
        name = f"model.layers.0.mlp.up_proj.{part}"
        dtype, shape, data = model.tensors[name]
        model.tensors[name] = dtype, shape, value * (len(data) // len(value))


# golden -> the parts of zeros, and a part of which one element may not differ
ZEROS = {
    MODELOPT: ({"weight": b"\x77", "weight_scale": b"\x7f", "weight_scale_2": bytes(4)}, "weight_scale"),
    "modelopt_0_47_0/fp8": ({"weight": b"\xff", "weight_scale": bytes(4)}, "weight"),
    ROWS: ({"weight": b"\xff", "weight_scale": bytes(4)}, "weight"),
}


@pytest.mark.parametrize("other", [False, True])
@pytest.mark.parametrize("id", ZEROS)
def test_zeros_of_modelopt_are_noted(id, other, tmp_path):
    """Protects: NaN that the library itself writes is not a fault in the file, and is noted; any other NaN is a finding."""
    values, part = ZEROS[id]
    model = Model(id, tmp_path)
    zeros_by_modelopt(model, values)
    if other:
        model.change(f"model.layers.0.mlp.up_proj.{part}", 3, 0x38)
    said = qcts("check", model.write(), code=int(other), COLUMNS="1000").stderr
    assert ("finding: model.layers.0.mlp.up_proj" in said) == other
    assert other or "weights that dequantize to NaN, as the recipe writes them for zeros" in said


VERSIONS = {"0.9.4": "padded", "0.12.2": "padded", "0.17.1": "padded", "0.18.0": "dense", "0.20.1.a20260101": "dense", "1.2": "dense"}


@pytest.mark.parametrize("version", [*VERSIONS, "", "x", "0"])
def test_the_version_tells_how_words_of_either_packing_are_packed(version, tmp_path):
    """Protects: ten codes of three bits, which fill one word of either packing. compressed-tensors packs densely since 0.18."""
    model = Model("compressed_tensors_0_20_0/integers_bf16", tmp_path)
    module, rows = "int3_channel", 5
    words, groups = f"{module}.weight_packed", model.said["config_groups"]
    model.said["config_groups"] = {name: group for name, group in groups.items() if group["targets"] == [module]}
    word = sum(code << 3 * place for place, code in enumerate([1, 2, 3, 4, 5, 6, 7, 0, 1, 2])).to_bytes(4, "little")
    model.tensors = {
        words: ("I32", [rows, 1], word * rows),
        f"{module}.weight_shape": ("I64", [2], rows.to_bytes(8, "little") + (10).to_bytes(8, "little")),
        f"{module}.weight_scale": model.tensors[f"{module}.weight_scale"],
    }
    model.said["version"] = version
    folder = model.write()
    known = version in VERSIONS
    qcts("check", folder, code=0 if known else 3)
    model.change(words, 3, word[3] | 0x80)
    said = qcts("check", model.write(), code=1, COLUMNS="1000").stderr
    assert ("leaves idle" in said) == (VERSIONS.get(version) == "padded")
