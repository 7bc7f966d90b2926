# SPDX-License-Identifier: BSD-3-Clause
"""Tests `qcts quantize` with the scales of static activations against torchao's files of the same weights."""

import pytest
from dialect_files import FIXTURES, GOLDENS
from qcts_program import inspect, pinned, qcts

torch = pytest.importorskip("torch", reason="torch is not installed")
pinned("torchao", "0.18")

from safetensors.torch import load_file, save_file  # noqa: E402
from torchao.prototype.quantization.float8_static_quant import prototype_float8_tensor  # noqa: E402, F401


def static_goldens():
    for id, entry in GOLDENS.items():
        if not id.startswith("torchao_0_18_0/"):  # the first generation's classes are read, not written
            continue
        policies = {tensor.get("activation", "weight_only") for tensor in entry["tensors"]}
        if any(policy.startswith("static_tensor") for policy in policies) and "nvfp4" not in id and entry["file"].endswith(".pt"):
            yield id


def scale_words(weight):
    words = ["--activation-scale", repr(float(weight.act_quant_scale))]
    if getattr(weight, "act_quant_zero_point", None) is not None:
        words += ["--activation-zero-point", str(int(weight.act_quant_zero_point))]
    if getattr(weight, "output_act_quant_scale", None) is not None:
        words += ["--output-scale", repr(float(weight.output_act_quant_scale))]
    return words


@pytest.mark.parametrize("id", list(static_goldens()))
def test_static_policies_are_written_as_torchao_writes_them(id, tmp_path):
    """Tests the class, attributes, order and every byte of a weight with static activations."""
    entry = GOLDENS[id]
    want = torch.load(FIXTURES / entry["file"], weights_only=True)
    expected = load_file(FIXTURES / entry["expected"])
    tensor = next(tensor for tensor in entry["tensors"] if tensor["scheme"])
    floats = {name: expected.get(f"{name}|w", value if type(value) is torch.Tensor else None) for name, value in want.items()}
    save_file(floats, tmp_path / "in.safetensors")
    words = scale_words(want[tensor["name"]])
    out = tmp_path / "model.pt"
    qcts("quantize", "--scheme", tensor["scheme"], "--activation", tensor["activation"], *words, tmp_path / "in.safetensors", out)
    got = torch.load(out, weights_only=True)
    assert sorted(got) == sorted(want)
    for name, value in want.items():
        assert type(got[name]) is type(value)
        if type(value) is torch.Tensor:
            assert torch.equal(got[name], value)
            continue
        assert list(vars(got[name])) == list(vars(value))
        names, attributes = value.__tensor_flatten__()
        assert (names, attributes) == got[name].__tensor_flatten__()
        for part in names:
            a, b = getattr(got[name], part), getattr(value, part)
            assert a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride(), part
            assert torch.equal(a.view(torch.uint8), b.view(torch.uint8)), part
    shown = next(found for found in inspect(out)["tensors"] if found["name"] == tensor["name"])
    assert shown["scheme"] == tensor["scheme"]


def test_goldens_of_both_families_are_there():
    families = {id.split("/")[1].split("_")[0] for id in static_goldens()}
    assert families == {"int8", "fp8"}


@pytest.mark.parametrize(
    "scheme, policy, words, said",
    [
        ("int8_row", "static_tensor_sym", [], "static_tensor_sym needs --activation-scale"),
        ("int8_row", "static_tensor_asym", ["--activation-scale", "0.1"], "needs --activation-zero-point"),
        ("fp8_e4m3_tensor", "static_tensor_out", ["--activation-scale", "0.1"], "needs --output-scale"),
        ("fp8_e4m3_tensor", "static_tensor", ["--activation-scale", "0"], "finite and above 0"),
        ("fp8_e4m3_tensor", "static_tensor", ["--activation-scale", "nan"], "finite and above 0"),
        ("int8_row", "static_tensor_asym", ["--activation-scale", "1", "--activation-zero-point", "128"], "-128 .. 127"),
        ("int8_row", "weight_only", ["--activation-scale", "0.1"], "does not use"),
        ("int8_row", "pre_weight_only", [], "needs act_pre_scale from a calibration"),
    ],
)
def test_scales_that_are_missing_or_wrong_are_a_usage_error(scheme, policy, words, said, tmp_path):
    save_file({"0.weight": torch.ones(16, 32)}, tmp_path / "in.safetensors")
    done = qcts("quantize", "--scheme", scheme, "--activation", policy, *words, tmp_path / "in.safetensors", tmp_path / "o.pt", code=2)
    assert said in done.stderr and not (tmp_path / "o.pt").exists()
