# SPDX-License-Identifier: BSD-3-Clause
"""What config.json says about single modules is found, whatever prefix their tensors have; what fits none is a finding."""

import json

import pytest
from dialect_files import GOLDENS, read_safetensors
from joined_model import Model, changed, folder_of, of_layers, require_finding
from qcts_program import inspect, qcts

PEERS = [
    id for id, golden in GOLDENS.items() if "peer" in golden["flags"] and (folder_of(id) / "model.safetensors").is_file()
]
MLX, COMPRESSED, MODELOPT = "mlx_0_32_4/affine_bf16", "compressed_tensors_0_20_0/integers_bf16", "modelopt_0_47_0/nvfp4"
AWQ, BLOCKS = "autoawq_0_2_9/int4_g32", "transformers_5_24_0_peers/fp8_blocks"
PLAIN = "model.6"  # of MLX: 4 bits in groups of 64, in the same shapes as 8 bits in groups of 32


def renamed(model, rename):
    model.tensors = {rename(name): part for name, part in model.tensors.items()}


def below_adapter(name):
    """The name in a model of peft: base_model.model.fc.base_layer.weight."""
    module, dot, part = name.partition(".weight") if ".weight" in name else name.rpartition(".")
    return f"base_model.model.{module}.base_layer{dot}{part}"


WRAPPED = {
    "language_model": lambda name: "language_model." + name,
    "module": lambda name: "module._orig_mod." + name,
    "adapter": below_adapter,
}


def dequantized(folder, out):
    qcts("dequantize", folder, out)
    return read_safetensors(out)


@pytest.mark.parametrize("id", PEERS)
@pytest.mark.parametrize("rename", WRAPPED)
def test_a_prefix_changes_no_number(id, rename, tmp_path):
    """Protects: a wrapped model is read by what config.json says about its modules, not about the whole model."""
    expected = dequantized(folder_of(id), tmp_path / "expected.safetensors")
    model = Model(id, tmp_path)
    renamed(model, WRAPPED[rename])
    folder = model.write()
    qcts("check", folder)
    written = dequantized(folder, tmp_path / "out.safetensors")
    assert written == {WRAPPED[rename](name): tensor for name, tensor in expected.items()}


def bits_of_plain(model, word=PLAIN, bits=8, group_size=32):
    of_layers({word: {"bits": bits, "group_size": group_size}})(model)


def scheme_of(folder, name):
    return {tensor["name"]: tensor["scheme"] for tensor in inspect(folder)["tensors"]}[name]


@pytest.mark.parametrize("tensors, word", [("", ""), ("language_model.", ""), ("", "language_model.")])
def test_own_bits_behind_a_prefix(tensors, word, tmp_path):
    model = Model(MLX, tmp_path)
    bits_of_plain(model, word + PLAIN)
    renamed(model, lambda name: tensors + name)
    assert scheme_of(model.write(), tensors + PLAIN + ".weight") == "mlx_int8_g32"


def another_wrapper(model):
    bits_of_plain(model, "language_model." + PLAIN)
    renamed(model, lambda name: "module." + name)


def twice(model):
    tensors = dict(model.tensors)
    renamed(model, lambda name: "a." + name)
    model.tensors.update({"b." + name: part for name, part in tensors.items()})


def two_words(model):
    bits_of_plain(model, "x." + PLAIN)
    bits_of_plain(model, "y." + PLAIN, 4, 64)


def of_no_module(model):
    bits_of_plain(model, "model.9")


def of_a_float(model):
    model.tensors["model.norm.weight"] = "BF16", [3, 40], bytes(240)
    bits_of_plain(model, "model.norm")


def false_behind_prefix(model):
    of_layers({PLAIN: False})(model)
    renamed(model, lambda name: "language_model." + name)


def copies_differ(model):
    model.config["quantization"][PLAIN] = {"bits": 8, "group_size": 32}


def targets(group, *words):
    def change(model):
        groups = model.said["config_groups"]
        groups[group] = dict(groups.get(group) or groups["group_0"], targets=list(words))

    return change


def left_out(key, word, prefix=""):
    def change(model):
        model.said[key] = ["lm_head", word]
        renamed(model, lambda name: prefix + name)

    return change


FAULTS = {
    "two_modules": (MLX, twice, "which may be a.model.0 or b.model.0"),
    "two_words": (MLX, two_words, "one thing about x.model.6 and another about y.model.6"),
    "no_module": (MLX, of_no_module, "of model.9, which it does not hold"),
    "another_wrapper": (MLX, another_wrapper, "of language_model.model.6, which it does not hold"),
    "float": (MLX, of_a_float, "bits and groups of it, but it is bfloat16"),
    "false": (MLX, false_behind_prefix, "it is not quantized"),
    "copies": (MLX, copies_differ, "another in quantization_config"),
    "target": (COMPRESSED, targets("group_3", "int4_g32", "int4_g99"), "config_groups.group_3 of int4_g99"),
    "pattern": (COMPRESSED, targets("other", "re:.*mlp.*"), "config_groups.other for modules that it does not hold"),
    "ignore": (COMPRESSED, left_out("ignore", "int4_g32", "x."), "it holds codes"),
    "ignore_longer": (COMPRESSED, left_out("ignore", "x.int4_g32"), "it holds codes"),
    "modelopt": (MODELOPT, left_out("ignore", "model.layers.0.mlp.up_proj", "x."), "it holds codes"),
    "modelopt_longer": (MODELOPT, left_out("exclude_modules", "x.model.layers.0.mlp.up_proj"), "it holds codes"),
    "awq": (AWQ, left_out("modules_to_not_convert", "x.model.0"), "it holds codes"),
    "fp8": (BLOCKS, left_out("modules_to_not_convert", "x.model.0"), "it holds codes"),
}  # fmt: skip


@pytest.mark.parametrize("case", FAULTS)
def test_words_about_no_module_or_several_are_found(case, tmp_path):
    id, change, word = FAULTS[case]
    require_finding(changed(id, change, tmp_path), word, tmp_path / "out.safetensors")


def test_a_pattern_fits_behind_a_prefix(tmp_path):
    """Protects: re.match of compressed-tensors begins at the start of a name, which a prefix moves."""
    model = Model(COMPRESSED, tmp_path)
    for group in model.said["config_groups"].values():
        group["targets"] = [f"re:{target}$" for target in group["targets"]]
    model.said["config_groups"]["whole"] = dict(model.said["config_groups"]["group_0"], targets=["Linear"])
    qcts("dequantize", model.write(), tmp_path / "expected.safetensors")
    renamed(model, lambda name: "module." + name)
    qcts("check", model.write())
    written = dequantized(model.folder, tmp_path / "out.safetensors")
    expected = read_safetensors(tmp_path / "expected.safetensors")
    assert written == {"module." + name: tensor for name, tensor in expected.items()}


GOOD = {
    "tied_head": (COMPRESSED, left_out("ignore", "lm_head")),
    "head_of_mlx": (MLX, of_layers({"lm_head": False})),
    "pattern_beside_others": (COMPRESSED, targets("group_3", "re:.*mlp.*", "int4_g32")),
    "class_beside_pattern": (COMPRESSED, targets("other", "re:.*mlp.*", "Linear")),
}


@pytest.mark.parametrize("case", GOOD)
def test_words_that_may_be_about_no_module(case, tmp_path):
    id, change = GOOD[case]
    folder = changed(id, change, tmp_path)
    qcts("check", folder)
    assert not inspect(folder)["findings"]


def test_a_shard_alone_cannot_tell(tmp_path):
    """Protects: the module of a word may be in another shard, so nothing is read below a prefix."""
    model = Model(MLX, tmp_path)
    renamed(model, lambda name: "language_model." + name)
    folder = model.write()
    shard = (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    qcts("check", shard, code=3)
    assert "which only the other shards show" in json.dumps(inspect(shard)["findings"])


def test_words_of_modules_and_a_weight_without_a_name(tmp_path):
    model = Model(MLX, tmp_path)
    model.tensors = {n.removeprefix(PLAIN + "."): t for n, t in model.tensors.items() if n.startswith(PLAIN)}
    folder = model.write()
    qcts("check", folder, code=3)
    assert "has no module name" in json.dumps(inspect(folder)["findings"])
