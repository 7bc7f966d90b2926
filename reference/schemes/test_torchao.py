# SPDX-License-Identifier: BSD-3-Clause
"""Tests the schemes against the real torchao on random weights: codes, scales, packed bytes and dequantized values,
bit for bit.

Uses the program: `qcts quantize` must write what quantize_ makes, `qcts dequantize` what dequantize() returns.
Weights are noise by seed plus difficult ones: zero and constant rows, halfway codes, subnormals, the largest values,
negative-only groups, arbitrary bit patterns; 15 kinds in three dtypes, each in seven of 24 shapes.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchao", minversion="0.18.0", reason="needs torchao 0.18.0, see fixtures/make/requirements.txt")
safetensors_torch = pytest.importorskip("safetensors.torch")

from safetensors import safe_open  # noqa: E402
from torchao.prototype.quantization.int4 import Int4OpaqueTensor  # noqa: E402
from torchao.prototype.safetensors.safetensors_support import unflatten_tensor_state_dict  # noqa: E402
from torchao.quantization import Float8Tensor, Int8Tensor, IntxUnpackedToInt8Tensor  # noqa: E402
from torchao.quantization.granularity import PerGroup, PerRow, PerTensor  # noqa: E402
from torchao.quantization.quant_api import _adjust_scale_dtype_in_intx_unpacked_tensor  # noqa: E402
from torchao.quantization.quant_primitives import MappingType  # noqa: E402
from torchao.quantization.quantize_.workflows.int8.int8_tensor import QuantizeTensorToInt8Kwargs  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))
sys.path.insert(0, str(ROOT / "fixtures/make/shared"))
from noise import noise  # noqa: E402

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
KINDS = (
    "noise zero_rows constant_rows constant_groups half_steps half_codes subnormal tiny huge negative positive outlier integers "
    "any_bits special"
).split()
torch.set_num_threads(1)
ROW_SHAPES = [
    (1, 1), (3, 7), (5, 33), (16, 64), (17, 129), (64, 32), (33, 300), (2, 3), (7, 5), (11, 13), (1, 257), (31, 31),
    (8, 96), (23, 47), (40, 41), (3, 640), (13, 100), (9, 18), (27, 81), (50, 10), (6, 127), (19, 63), (4, 200), (37, 74),
]  # fmt: skip
GROUP_SHAPES = [(16 * n, 128 * k) for n in (1, 3, 5, 6, 7, 9) for k in (1, 2, 3, 5)]
ODD_GROUP_SHAPES = [(n, 256 * k) for n in (1, 2, 3, 5, 7, 11, 13, 17) for k in (2, 3, 5)]
SHAPES_A_KIND = 7
CPU_LAYOUT = {"DEFAULT": "cpu_default", "NO AVX": "cpu_default", "AVX2": "cpu_avx2", "AVX512": "cpu_avx512"}


def any_bits(rng, shape, dtype):
    """Returns finite values whose bit patterns are equally likely."""
    width = np.uint32 if dtype == torch.float32 else np.uint16
    patterns = rng.integers(0, np.iinfo(width).max, shape, dtype=width, endpoint=True)
    values = torch.from_numpy(patterns.view(np.int32 if dtype == torch.float32 else np.int16)).view(dtype)
    return torch.where(torch.isfinite(values), values, torch.zeros_like(values))


def weight(kind, shape, dtype, seed):
    n, k = shape
    rng = np.random.default_rng(seed)
    w = torch.from_numpy(noise(seed, n * k, 2.0**-4).copy()).reshape(n, k)
    limits = torch.finfo(dtype)
    match kind:
        case "zero_rows":
            w[::3] = 0
        case "constant_rows":
            w[:] = w[:, :1].clone()
        case "constant_groups":
            for first in range(0, k, 32):
                w[:, first : first + 32] = w[:, first : first + 1].clone()
        case "half_steps":  # scale 1: every odd multiple of one half lies between two int8 codes
            w = torch.from_numpy(rng.integers(-255, 256, (n, k)) * 0.5).float()
            w[:, 0] = 127.5
        case "half_codes":  # scale 1: the same for int4
            w = torch.from_numpy(rng.integers(0, 31, (n, k)) * 0.5).float()
            w[:, 0::32], w[:, 1::32] = 0, 15
        case "subnormal":
            w *= limits.smallest_normal
        case "tiny":
            w *= 2.0**-30
        case "huge":
            w = w.sign() * (w.abs().double() * limits.max * 2).clamp(max=limits.max).float()
        case "negative":
            w = -w.abs() - 1
        case "positive":
            w = w.abs() + 3
        case "outlier":
            w[:, min(3, k - 1)] = 1000
        case "integers":
            w = torch.from_numpy(rng.integers(-128, 128, (n, k))).float()
        case "any_bits":
            return any_bits(rng, shape, dtype)
        case "special":
            w[0, 0], w[min(1, n - 1), k - 1], w[min(2, n - 1), 0] = float("nan"), float("inf"), float("-inf")
            w[n - 1] = -0.0
    return w.to(dtype)


def weights(shapes, dtypes=DTYPES):
    cases = [
        (dtype, kind, shapes[(7 * which + number) % len(shapes)])
        for dtype in dtypes
        for which, kind in enumerate(KINDS)
        for number in range(SHAPES_A_KIND)
    ]
    return {
        f"{str(dtype)[6:]}_{kind}_{shape[0]}x{shape[1]}.weight": weight(kind, shape, dtype, 4000 + seed)
        for seed, (dtype, kind, shape) in enumerate(cases)
    }


def run(*arguments):
    done = subprocess.run([QCTS, *map(str, arguments)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done


def same_bits(a, b):
    """Compares bits, but any NaN equals any other."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    a, b = a.contiguous(), b.contiguous()
    integer = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[a.element_size()]
    equal = a.view(integer) == b.view(integer)
    if a.is_floating_point():
        equal |= a.float().isnan() & b.float().isnan()
    return bool(equal.all())


def differences(want, got):
    """Returns the names of inner tensors that differ between two quantized weights."""
    assert type(want) is type(got)
    names, _ = want.__tensor_flatten__()
    assert names == got.__tensor_flatten__()[0]
    return [name for name in names if not same_bits(getattr(want, name), getattr(got, name))]


def int4(group):
    return lambda w: Int4OpaqueTensor.from_hp(w, [1, group])


def intx(bits, group, mapping):
    mappings = {"sym": "SYMMETRIC", "symnc": "SYMMETRIC_NO_CLIPPING_ERR", "asym": "ASYMMETRIC"}
    return lambda w: IntxUnpackedToInt8Tensor.from_hp(
        w,
        (1, group or w.shape[1]),
        getattr(torch, f"int{bits}"),
        mapping_type=MappingType[mappings[mapping]],
    )


def wide(bits, group, mapping):
    """scale_dtype=torch.float32"""

    def quantize(w):
        weight = intx(bits, group, mapping)(w)
        if w.dtype != torch.float32:
            _adjust_scale_dtype_in_intx_unpacked_tensor(weight, w, torch.float32)
        return weight

    return quantize


INTX = {
    f"intx_b{bits}_{f'g{group}' if group else 'axis'}_{mapping}": (
        intx(bits, group, mapping),
        ODD_GROUP_SHAPES if group else ROW_SHAPES,
    )
    for bits in range(1, 9)
    for group, mapping in ((0, ("sym", "asym")[bits % 2]), (32, ("asym", "sym")[bits % 2]), (64, "symnc"))
}
WIDE = {
    "intx_b4_g32_s32_asym": (wide(4, 32, "asym"), ODD_GROUP_SHAPES),
    "intx_b6_axis_s32_sym": (wide(6, 0, "sym"), ROW_SHAPES),
}
SCHEMES = {
    "int8_row": (lambda w: Int8Tensor.from_hp(w, PerRow()), ROW_SHAPES),
    "int8_tensor": (lambda w: Int8Tensor.from_hp(w, PerTensor()), ROW_SHAPES),
    "int8_row_reduced": (lambda w: Int8Tensor.from_hp(w, PerRow(), reduce_range=True), ROW_SHAPES),
    "int8_tensor_reduced": (lambda w: Int8Tensor.from_hp(w, PerTensor(), reduce_range=True), ROW_SHAPES),
    "int8_g32": (lambda w: Int8Tensor.from_hp(w, PerGroup(32)), ODD_GROUP_SHAPES),
    "int8_g128": (lambda w: Int8Tensor.from_hp(w, PerGroup(128)), ODD_GROUP_SHAPES),
    **INTX,
    **WIDE,
    "fp8_row": (Float8Tensor.from_hp, ROW_SHAPES),
    "int4_tinygemm_g32": (int4(32), GROUP_SHAPES),
    "int4_tinygemm_g64": (int4(64), GROUP_SHAPES),
    "int4_tinygemm_g128": (int4(128), GROUP_SHAPES),
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_quantize_makes_what_torchao_makes(scheme, tmp_path):
    quantize, shapes = SCHEMES[scheme]
    dense = weights(shapes, DTYPES[1:] if scheme in WIDE else DTYPES)
    torch.save(dense, tmp_path / "in.pt")
    layout = ["--layout", CPU_LAYOUT[torch.backends.cpu.get_cpu_capability()]] if scheme.startswith("int4") else []
    run("quantize", "--scheme", scheme, *layout, tmp_path / "in.pt", tmp_path / "out.pt")
    got = torch.load(tmp_path / "out.pt", weights_only=True)
    assert list(got) == list(dense)
    wrong = {name: differences(quantize(w), got[name]) for name, w in dense.items()}
    assert not {name: parts for name, parts in wrong.items() if parts}


@pytest.mark.parametrize("scheme", [name for name in SCHEMES if not name.startswith("int4")])
def test_dequantize_gives_what_torchao_gives(scheme, tmp_path):
    quantize, shapes = SCHEMES[scheme]
    quantized = {name: quantize(w) for name, w in weights(shapes, DTYPES[1:] if scheme in WIDE else DTYPES).items()}
    torch.save(quantized, tmp_path / "in.pt")
    run("dequantize", tmp_path / "in.pt", tmp_path / "out.safetensors")
    got = safetensors_torch.load_file(tmp_path / "out.safetensors")
    assert not [name for name, w in quantized.items() if not same_bits(w.dequantize(), got[name])]


def policy_weights():
    """Returns a few weights, for tests that do not depend on the values."""
    return {f"{str(dtype)[6:]}.weight": weight("noise", (17, 96), dtype, 77) for dtype in DTYPES}


def int8_kwargs(granularity, mapping, reduced=False):
    return QuantizeTensorToInt8Kwargs(granularity, MappingType[mapping], reduced)


# scheme, policy: what torchao's own config makes of a weight
POLICIES = {
    ("int8_row", "dyn_row_sym"): lambda w: Int8Tensor.from_hp(
        w, PerRow(), act_quant_kwargs=int8_kwargs(PerRow(), "SYMMETRIC")
    ),
    ("int8_row", "dyn_tensor_asym"): lambda w: Int8Tensor.from_hp(
        w, PerRow(), act_quant_kwargs=int8_kwargs(PerTensor(), "ASYMMETRIC")
    ),
    ("int8_tensor_reduced", "dyn_row_asym"): lambda w: Int8Tensor.from_hp(
        w, PerTensor(), act_quant_kwargs=int8_kwargs(PerRow(), "ASYMMETRIC", True), reduce_range=True
    ),
    ("int8_g32", "weight_only"): lambda w: Int8Tensor.from_hp(w, PerGroup(32)),
    ("intx_b4_g32_sym", "dyn_token_asym"): lambda w: IntxUnpackedToInt8Tensor.from_hp(
        w, (1, 32), torch.int4, activation_quantization="int8_asym_per_token"
    ),
    ("intx_b3_axis_asym", "weight_only"): lambda w: IntxUnpackedToInt8Tensor.from_hp(
        w, (1, 96), torch.int3, mapping_type=MappingType.ASYMMETRIC
    ),
}


def read_safetensors(path):
    data, metadata = {}, {}
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
        data = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    state, left = unflatten_tensor_state_dict(data, metadata)
    assert not left
    return state


@pytest.mark.parametrize("container", [".pt", ".safetensors"])
@pytest.mark.parametrize(("scheme", "policy"), POLICIES)
def test_torchao_reads_what_quantize_wrote(scheme, policy, container, tmp_path):
    dense = policy_weights()
    torch.save(dense, tmp_path / "in.pt")
    out = tmp_path / f"out{container}"
    run("quantize", "--scheme", scheme, "--activation", policy, tmp_path / "in.pt", out)
    got = torch.load(out, weights_only=True) if container == ".pt" else read_safetensors(out)
    for name, w in dense.items():
        want = POLICIES[scheme, policy](w)
        assert not differences(want, got[name])
        wanted, read = want.__tensor_flatten__()[1], got[name].__tensor_flatten__()[1]
        if container == ".safetensors":  # which has no tuples
            wanted, read = ({k: list(v) if k == "block_size" else v for k, v in a.items()} for a in (wanted, read))
        assert wanted == read
        x = weight("noise", (3, 96), w.dtype, 78)
        assert torch.equal(torch.nn.functional.linear(x, want), torch.nn.functional.linear(x, got[name]))


def test_a_static_policy_is_not_written_without_its_scales(tmp_path):
    torch.save(policy_weights(), tmp_path / "in.pt")
    words = ["quantize", "--scheme", "int8_row", "--activation", "static_tensor_sym"]
    done = subprocess.run(
        [QCTS, *words, tmp_path / "in.pt", tmp_path / "out.pt"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert "calibration" in done.stderr
    assert not (tmp_path / "out.pt").exists()
