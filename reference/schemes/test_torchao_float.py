# SPDX-License-Identifier: BSD-3-Clause
"""Tests the float and block-scaled schemes against the real torchao on random weights: codes, scales, swizzled scales
and dequantized values, bit for bit.

As in test_torchao.py, `qcts quantize` must write what torchao makes, and `qcts dequantize` what dequantize() returns.
torchao reads both containers back.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchao", minversion="0.18.0", reason="needs torchao 0.18.0, see fixtures/make/requirements.txt")
safetensors_torch = pytest.importorskip("safetensors.torch")

from torchao.prototype.mx_formats import NVFP4WeightOnlyConfig  # noqa: E402, F401 (registers the classes for torch.load)
from torchao.prototype.mx_formats.config import ScaleCalculationMode  # noqa: E402
from torchao.prototype.mx_formats.mx_tensor import MXTensor  # noqa: E402
from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, per_tensor_amax_to_scale  # noqa: E402
from torchao.prototype.safetensors.safetensors_support import (  # noqa: E402
    flatten_tensor_state_dict,
    unflatten_tensor_state_dict,
)
from torchao.quantization import Float8Tensor  # noqa: E402
from torchao.quantization.granularity import PerBlock, PerGroup, PerRow, PerTensor  # noqa: E402
from torchao.quantization.quantize_.workflows.nf4.nf4_tensor import to_nf4  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(ROOT / "fixtures/make/shared"))
from test_torchao import KINDS, same_bits, weight  # noqa: E402

torch.set_num_threads(1)

# Twenty shapes and more with odd sides; a scheme takes those that its blocks divide.
SHAPES = [
    *[(1, 1), (3, 7), (5, 33), (17, 129), (64, 30), (33, 300)],
    *[(1, 16), (3, 48), (7, 80), (37, 112), (130, 16)],
    *[(1, 32), (2, 64), (5, 96), (17, 160), (33, 224), (129, 32), (40, 288), (64, 352)],
    *[(3, 128), (19, 256), (131, 384), (128, 128), (256, 128), (128, 384)],
]
NF4_SHAPES = [(128, 128), (64, 256), (1, 16384), (16384, 1), (48, 1024), (192, 256), (256, 192), (3, 16384), (80, 1024)]
F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16
E4M3, E5M2, E2M1 = torch.float8_e4m3fn, torch.float8_e5m2, torch.float4_e2m1fn_x2


def fp8(dtype, granularity):
    return lambda w: Float8Tensor.from_hp(w, float8_dtype=dtype, granularity=granularity)


def mx(element, mode, swizzled):
    return lambda w: MXTensor.to_mx(w, element, 32, ScaleCalculationMode(mode), is_swizzled_scales=swizzled)


def nvfp4(levels, swizzled):
    def quantize(w):
        scale = per_tensor_amax_to_scale(torch.max(torch.abs(w))) if levels == "two" else None
        return NVFP4Tensor.to_nvfp4(w, per_tensor_scale=scale, is_swizzled_scales=swizzled)

    return quantize


def schemes():
    """Returns scheme/layout -> (quantizer, accepted shapes, dtypes)."""
    groups = {"tensor": (PerTensor(), 1, 1), "block128": (PerBlock([128, 128]), 128, 128)}
    groups |= {f"g{g}": (PerGroup(g), 1, g) for g in (32, 64, 128)}
    for word, dtype in (("e4m3", E4M3), ("e5m2", E5M2)):
        if dtype is E5M2:
            yield "fp8_e5m2_row/plain", fp8(dtype, PerRow()), (1, 1), [F32, F16, BF16]
        for name, (granularity, rows, cols) in groups.items():
            yield f"fp8_{word}_{name}/plain", fp8(dtype, granularity), (rows, cols), [F32, F16, BF16]
    elements = {
        "mxfp8_e4m3": E4M3,
        "mxfp8_e5m2": E5M2,
        "mxfp6_e2m3": "fp6_e2m3",
        "mxfp6_e3m2": "fp6_e3m2",
        "mxfp4": E2M1,
    }
    for word, element in elements.items():
        for mode in ("floor", "ceil", "even", "rceil"):
            for layout in ("plain", "swizzled"):
                yield f"{word}_{mode}/{layout}", mx(element, mode, layout == "swizzled"), (1, 32), [F32, BF16]
    for levels in ("one", "two"):
        for layout in ("plain", "swizzled"):
            yield f"nvfp4_{levels}_level/{layout}", nvfp4(levels, layout == "swizzled"), (1, 16), [F32, BF16]


SCHEMES = {name: (quantize, blocks, dtypes) for name, quantize, blocks, dtypes in schemes()}


def weights(blocks, dtypes):
    """Returns noise in every shape, and the difficult kinds in four of them."""
    shapes = [(n, k) for n, k in SHAPES if n % blocks[0] == 0 and k % blocks[1] == 0]
    few = {shapes[i * (len(shapes) - 1) // 3] for i in range(4)}
    cases = [
        (dtype, kind, shape) for dtype in dtypes for kind in KINDS for shape in shapes if kind == "noise" or shape in few
    ]
    made = {
        f"{str(dtype)[6:]}_{kind}_{shape[0]}x{shape[1]}.weight": weight(kind, shape, dtype, 7000 + seed)
        for seed, (dtype, kind, shape) in enumerate(cases)
    }
    assert len(made) >= 90
    return made


def run(*arguments):
    done = subprocess.run([QCTS, *map(str, arguments)], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return done


def bits_of(tensor):
    """Returns what same_bits compares: e8m0 as integers."""
    return tensor.view(torch.uint8) if tensor.dtype == torch.float8_e8m0fnu else tensor


def differences(want, got):
    assert type(want) is type(got)
    names, _ = want.__tensor_flatten__()
    assert names == got.__tensor_flatten__()[0]
    return [name for name in names if not same_bits(bits_of(getattr(want, name)), bits_of(getattr(got, name)))]


@pytest.mark.parametrize("name", SCHEMES)
def test_quantize_makes_what_torchao_makes(name, tmp_path):
    scheme, layout = name.split("/")
    quantize, blocks, dtypes = SCHEMES[name]
    dense = weights(blocks, dtypes)
    torch.save(dense, tmp_path / "in.pt")
    run("quantize", "--scheme", scheme, "--layout", layout, tmp_path / "in.pt", tmp_path / "out.pt")
    got = torch.load(tmp_path / "out.pt", weights_only=True)
    assert list(got) == list(dense)
    wrong = {}
    for key, w in dense.items():
        want = quantize(w)
        wrong[key] = differences(want, got[key])
        # The bits of a NaN over the whole tensor are an accident of the instruction set that takes the maximum: the
        # codes under such a scale mean nothing.
        if getattr(want, "per_tensor_scale", None) is not None and want.per_tensor_scale.isnan():
            wrong[key] = [part for part in wrong[key] if part != "qdata"]
    assert not {key: parts for key, parts in wrong.items() if parts}


@pytest.mark.parametrize("name", SCHEMES)
def test_dequantize_gives_what_torchao_gives(name, tmp_path):
    quantize, blocks, dtypes = SCHEMES[name]
    quantized = {name: quantize(w) for name, w in weights(blocks, dtypes).items()}
    torch.save(quantized, tmp_path / "in.pt")
    run("dequantize", tmp_path / "in.pt", tmp_path / "out.safetensors")
    got = safetensors_torch.load_file(tmp_path / "out.safetensors")
    assert not [name for name, w in quantized.items() if not same_bits(w.dequantize(), got[name])]


@pytest.mark.parametrize("name", ["fp8_e5m2_tensor/plain", "mxfp4_rceil/swizzled", "mxfp6_e3m2_floor/plain", "nvfp4_two_level/swizzled"])
def test_torchao_reads_the_safetensors(name, tmp_path):
    """The metadata equals torchao's, key by key, and its reader returns the tensors."""
    scheme, layout = name.split("/")
    quantize, _, _ = SCHEMES[name]
    dense = {f"layer{i}.weight": weight("noise", (40, 128), BF16, 9000 + i) for i in range(3)}
    torch.save(dense, tmp_path / "in.pt")
    run("quantize", "--scheme", scheme, "--layout", layout, tmp_path / "in.pt", tmp_path / "out.safetensors")
    with safetensors_torch.safe_open(tmp_path / "out.safetensors", "pt") as file:
        data, metadata = {key: file.get_tensor(key) for key in file.keys()}, file.metadata()
    got, left = unflatten_tensor_state_dict(data, metadata)
    assert not left and list(got) == list(dense)
    assert not [key for key, w in dense.items() if differences(quantize(w), got[key])]
    assert flatten_tensor_state_dict(got)[1] == metadata


NF4_KINDS = [kind for kind in KINDS if kind != "special"]


@pytest.mark.parametrize("dtype", [F32, F16, BF16], ids=str)
def test_nf4(dtype, tmp_path):
    """Decoding is exact. Encoding: the codes are exact; the rest too if the library's mean of the scalers equals the
    exact sum's.
    """
    dense = {
        f"{kind}_{n}x{k}.weight": weight(kind, (n, k), dtype, 8000 + i)
        for i, (kind, (n, k)) in enumerate((kind, shape) for kind in NF4_KINDS for shape in NF4_SHAPES)
    }
    want = {name: to_nf4(w) for name, w in dense.items()}
    torch.save(want, tmp_path / "torchao.pt")
    run("dequantize", tmp_path / "torchao.pt", tmp_path / "dense.safetensors")
    decoded = safetensors_torch.load_file(tmp_path / "dense.safetensors")
    assert not [name for name, w in want.items() if not same_bits(w.get_original_weight(), decoded[name])]
    torch.save(dense, tmp_path / "in.pt")
    run("quantize", "--scheme", "nf4_b64_s256", tmp_path / "in.pt", tmp_path / "out.pt")
    got = torch.load(tmp_path / "out.pt", weights_only=True)
    equal_means = 0
    for name, w in want.items():
        wrong = differences(w, got[name])
        assert "quantized_data" not in wrong and "nf4" not in wrong, name
        mean, ours = w.scaler_mean.double(), got[name].scaler_mean.double()
        if same_bits(w.scaler_mean, got[name].scaler_mean):
            assert not wrong, (name, wrong)
            equal_means += 1
        else:
            assert abs(mean - ours) <= 8 * torch.finfo(dtype).eps * abs(mean), name
    assert equal_means > len(want) / 2
