# SPDX-License-Identifier: BSD-3-Clause
"""MLX weights: read as config.json's `quantization` says, and refused by name if the parts differ from that."""

import json
import struct

import pytest
from joined_model import Model, changed, extra_part, folder_of, lacking, lone_file, of_layers, require_finding
from qcts_program import inspect, qcts

AFFINE, FLOATS, EXPERTS = "mlx_0_32_4/affine_bf16", "mlx_0_32_4/floats", "mlx_0_32_4/experts"
PLAIN, OWN = "model.6", "model.0"  # of AFFINE: a layer as the whole model, and one of 2 bits in groups of 32


def saying(**words):
    return of_layers(words)


def of_layer(name, value):
    return of_layers({name: value})


def retyped(name, dtype):
    def change(model):
        _, shape, data = model.tensors[name]
        model.tensors[name] = dtype, shape, data

    return change


def shorter_rows(name, size):
    """Drops the last `size` bytes of each row."""

    def change(model):
        dtype, (rows, columns), data = model.tensors[name]
        width = len(data) // rows
        parts = [data[row * width : (row + 1) * width - size] for row in range(rows)]
        model.tensors[name] = dtype, [rows, columns * (width - size) // width], b"".join(parts)

    return change


def with_method(model):
    said = model.config.pop("quantization")
    model.config["quantization_config"] = said | {"quant_method": "metal"}


def scale_of_no_number(model):
    model.change("model.0.scales", 1, 255)


# what is changed -> golden, change, a word of the refusal
NOT_READ = {
    "bits": (AFFINE, saying(bits=7), "7 bits"),
    "bits_of_text": (AFFINE, saying(bits="4"), "no number for bits"),
    "group": (AFFINE, saying(group_size=48), "groups of 48"),
    "mode": (AFFINE, saying(mode="trellis"), "mode trellis"),
    "own_word": (AFFINE, of_layer(OWN, {"bits": 2, "group_size": 32, "rotation": True}), "rotation"),
    "own_text": (AFFINE, of_layer(OWN, "skip"), "that qcts knows"),
    "no_scales": (AFFINE, lacking(PLAIN + ".scales"), "no part scales"),
    "no_biases": (AFFINE, lacking(PLAIN + ".biases"), "no part biases"),
    "bytes_as_scales": (AFFINE, retyped(PLAIN + ".scales", "I16"), "scales is int16"),
    "unknown_part": (AFFINE, extra_part(PLAIN + ".rotation"), "rotation"),
    "biases_of_floats": (FLOATS, extra_part("model.0.biases"), "biases"),
    "global_scale": (FLOATS, extra_part("model.2.global_scale"), "global_scale"),
    "transformers": (AFFINE, with_method, "MLX itself"),
}  # fmt: skip
CONTRADICTIONS = {
    "not_quantized": (AFFINE, of_layer(PLAIN, False), "not quantized"),
    "other_bits": (AFFINE, saying(bits=8), "8 bits in groups of 64"),
    "other_group": (AFFINE, saying(group_size=32), "groups of 32"),
    "own_bits": (AFFINE, of_layer(OWN, {"bits": 4, "group_size": 32}), "4 bits in groups of 32"),
    "own_default": (AFFINE, of_layer(OWN, {"bits": 2}), "groups of 64"),
    "other_biases": (AFFINE, retyped(PLAIN + ".biases", "F16"), "do not match its scales"),
    "fewer_biases": (AFFINE, shorter_rows(PLAIN + ".biases", 2), "do not match its scales"),
    "fewer_scales": (AFFINE, shorter_rows(PLAIN + ".scales", 2), "other scales"),
    "fewer_words": (AFFINE, shorter_rows(PLAIN + ".weight", 4), "other scales"),
    "whole_codes": (AFFINE, shorter_rows("model.1.weight", 4), "a whole number of 3-bit codes"),
    "bits_of_floats": (FLOATS, of_layer("model.0", {"mode": "mxfp4", "bits": 8, "group_size": 32}), "mxfp4 with bits or groups"),
    "mode_of_floats": (FLOATS, of_layer("model.0", {"mode": "mxfp8", "bits": 8, "group_size": 32}), "other scales"),
    "scale_of_floats": (FLOATS, scale_of_no_number, "255"),
}


@pytest.mark.parametrize("case", [*NOT_READ, *CONTRADICTIONS])
def test_what_is_not_understood_or_contradicts_itself_is_refused_by_name(case, tmp_path):
    """Protects: bits, groups and modes that the tensors do not have never become wrong weights with exit code 0."""
    id, change, word = (NOT_READ | CONTRADICTIONS)[case]
    code = 1 if case in CONTRADICTIONS else 3
    require_finding(changed(id, change, tmp_path), word, tmp_path / "out.safetensors", code)


@pytest.mark.parametrize("id", [AFFINE, FLOATS, EXPERTS])
def test_a_file_alone_needs_its_configuration(id, tmp_path):
    """Protects: words of 4 bits in groups of 64 and of 8 bits in groups of 32 have the same shapes; nothing is guessed."""
    lone = lone_file(id, tmp_path)
    assert inspect(lone)["dialect"] == "mlx"
    qcts("check", lone, code=3)
    qcts("dequantize", lone, tmp_path / "out.safetensors", code=1)
    qcts("check", lone, "--config", folder_of(id) / "config.json")


def test_a_layer_without_scales_is_plain(tmp_path):
    """Protects: MLX leaves layers whose columns no group divides in floats, and says nothing about them."""
    model = Model(AFFINE, tmp_path)
    model.tensors["model.norm.weight"] = "BF16", [3, 40], bytes(240)
    folder = model.write()
    qcts("check", folder)
    tensors = {tensor["name"]: tensor["scheme"] for tensor in inspect(folder)["tensors"]}
    assert tensors["model.norm.weight"] is None and tensors["model.6.weight"] == "mlx_int4_g64"


@pytest.mark.parametrize("part, rule", [("scales", "scale"), ("biases", "not_a_number")])
def test_scales_and_biases_are_finite(part, rule, tmp_path):
    model = Model(AFFINE, tmp_path)
    dtype, shape, data = model.tensors[f"{PLAIN}.{part}"]
    model.tensors[f"{PLAIN}.{part}"] = dtype, shape, struct.pack("<H", 0x7FC0) + data[2:]
    report = json.loads(qcts("check", model.write(), "--json", code=1).stdout)
    assert [finding["rule"] for finding in report["values"]["findings"]] == [rule]


def test_negative_scales_are_what_mlx_writes(tmp_path):
    model = Model(AFFINE, tmp_path)
    dtype, shape, data = model.tensors[PLAIN + ".scales"]
    model.tensors[PLAIN + ".scales"] = dtype, shape, data[:1] + bytes([data[1] ^ 0x80]) + data[2:]
    qcts("check", model.write())
