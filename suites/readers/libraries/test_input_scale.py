# SPDX-License-Identifier: BSD-3-Clause
"""A scale of x belongs to the layer: `--error` measures the weight that the layer applies, `diff` sees it in E1, `dequantize` says
that OUT has no place for it, and `convert` keeps it or refuses."""

import json
import sys
import types

import numpy as np
import pytest
from dialect_files import read_safetensors
from qcts_program import inspect, pinned, qcts

torch = pinned("torch", "2.13")
pinned("torchao", "0.18")

from torchao.quantization import Int8Tensor  # noqa: E402
from torchao.quantization.granularity import PerRow  # noqa: E402

N, K = 8, 64
OLD = "torchao.quantization.linear_activation_scale"


def factors():
    return torch.linspace(0.01, 8, K)


def weight():
    return torch.sin(torch.arange(float(N * K))).reshape(N, K) * 0.1


def smooth():
    """As torchao 0.18.0, prototype/smoothquant/api.py: weight * s is quantized, x * (1 / s) is multiplied."""
    quantized = Int8Tensor.from_hp(weight() * factors(), PerRow())
    quantized.act_pre_scale = 1.0 / factors()
    return quantized, quantized.dequantize() * quantized.act_pre_scale


def smooth_of_the_first_generation(monkeypatch):
    """As torchao 0.9.0, prototype/smoothquant/api.py: x / scale is multiplied."""
    module = types.ModuleType(OLD)

    class WeightTensorWithLinearActivationScaleMetadata(torch.Tensor):
        @staticmethod
        def __new__(cls, inside, scale):
            return torch.Tensor._make_wrapper_subclass(cls, inside.shape, dtype=inside.dtype)

        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            raise NotImplementedError(str(function))

        def __init__(self, inside, scale):
            self.original_weight_tensor, self.scale = inside, scale

    cls = WeightTensorWithLinearActivationScaleMetadata
    cls.__module__, cls.__qualname__ = OLD, cls.__name__
    setattr(module, cls.__name__, cls)
    monkeypatch.setitem(sys.modules, OLD, module)
    inside = Int8Tensor.from_hp(weight() * factors(), PerRow())
    return cls(inside, factors()), inside.dequantize() / factors()


@pytest.fixture(params=["smoothquant", "first_generation"])
def files(request, tmp_path, monkeypatch):
    first = request.param == "first_generation"
    quantized, effective = smooth_of_the_first_generation(monkeypatch) if first else smooth()
    torch.save({"0.weight": weight(), "0.bias": torch.zeros(N)}, tmp_path / "dense.pt")
    torch.save({"0.weight": quantized, "0.bias": torch.zeros(N)}, tmp_path / "smooth.pt")
    return tmp_path, effective.double().numpy(), f"0.weight.{'scale' if first else 'act_pre_scale'}"


def test_the_error_is_that_of_the_weight_which_the_layer_applies(files):
    folder, effective, _ = files
    w = weight().double().numpy()
    sqnr = 10 * np.log10((w**2).sum() / ((w - effective) ** 2).sum())
    for words in (
        ["diff", folder / "dense.pt", folder / "smooth.pt", "--error"],
        ["check", folder / "smooth.pt", "--original", folder / "dense.pt"],
    ):
        document = json.loads(qcts(*words, "--json").stdout)
        (layer,) = document.get("error", document)["layers"]
        assert sqnr > 15 and layer["sqnr_db"] == pytest.approx(sqnr, abs=1e-3) and layer["scales_input"]
        assert "the scale of x is part of the weight: 0.weight" in qcts(*words).stdout


def test_dequantize_names_what_out_cannot_hold(files):
    folder, _, part = files
    out = folder / "out.safetensors"
    done = qcts("dequantize", folder / "smooth.pt", out, "--json")
    assert json.loads(done.stdout)["input_parts"] == [part]
    assert f"OUT cannot store the parts that act on x: {part}" in done.stderr and "OUT leaves out the scale of x" in done.stderr
    assert read_safetensors(out)["0.weight"][1] == [N, K]
    e1 = json.loads(qcts("diff", folder / "smooth.pt", out, "--json", code=1).stdout)["e1"]
    assert (e1["differing"], e1["first"]["field"]) == (1, "scale of x")


def test_convert_keeps_it_or_refuses(files):
    folder, effective, part = files
    out = folder / "out.safetensors"
    if part.endswith(".scale"):
        assert "cannot store the class" in qcts("convert", folder / "smooth.pt", out, code=1).stderr and not out.exists()
        return
    qcts("convert", folder / "smooth.pt", out)
    assert "act_pre_scale" in [p["name"] for p in inspect(out)["tensors"][0]["payload"]]
    (layer,) = json.loads(qcts("diff", folder / "dense.pt", out, "--error", "--json").stdout)["layers"]
    assert layer["sqnr_db"] > 15


def test_a_scale_of_another_shape_is_not_compared(tmp_path):
    quantized, _ = smooth()
    quantized.act_pre_scale = torch.ones(K - 1)
    torch.save({"0.weight": weight()}, tmp_path / "dense.pt")
    torch.save({"0.weight": quantized}, tmp_path / "smooth.pt")
    document = json.loads(qcts("diff", tmp_path / "dense.pt", tmp_path / "smooth.pt", "--error", "--json", code=3).stdout)
    assert "the scale of its x is float32 [63]" in document["not_compared"][0]


def test_a_static_scale_of_x_is_named(tmp_path):
    quantized = Int8Tensor.from_hp(weight(), PerRow())
    quantized.act_quant_scale = torch.tensor([[0.5]])
    torch.save({"0.weight": quantized}, tmp_path / "static.pt")
    done = qcts("dequantize", tmp_path / "static.pt", tmp_path / "out.safetensors")
    assert "act on x: 0.weight.act_quant_scale" in done.stderr and "multiplied" not in done.stderr
