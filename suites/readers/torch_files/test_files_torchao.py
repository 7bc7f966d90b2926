# SPDX-License-Identifier: BSD-3-Clause
"""Compares the commands on files with torchao 0.18.0: they read its files and write the same."""

import hashlib
import itertools
import json
import struct

import numpy as np
import pytest
from qcts_program import inspect, pinned, qcts

torch = pytest.importorskip("torch", reason="torch is not installed")
pinned("torchao", "0.18")

from safetensors.torch import load_file, save_file  # noqa: E402
from torchao.prototype.quantization.int4 import PrototypeInt4WeightOnlyConfig  # noqa: E402
from torchao.prototype.safetensors.safetensors_support import (  # noqa: E402
    flatten_tensor_state_dict,
    unflatten_tensor_state_dict,
)
from torchao.prototype.safetensors.safetensors_utils import TensorSubclassAttributeJSONEncoder  # noqa: E402
from torchao.quantization import (  # noqa: E402
    Float8WeightOnlyConfig,
    Int4WeightOnlyConfig,
    Int8DynamicActivationInt8WeightConfig,
    Int8WeightOnlyConfig,
    IntxWeightOnlyConfig,
    PerGroup,
    PerRow,
    PerTensor,
    quantize_,
)
from torchao.quantization.quant_primitives import (  # noqa: E402
    MappingType,
    _choose_qparams_affine_tinygemm,
    _quantize_affine_tinygemm,
)

INT8 = lambda: Int8WeightOnlyConfig(version=2)  # noqa: E731
FP8 = lambda: Float8WeightOnlyConfig(granularity=PerRow())  # noqa: E731
ROW_SCHEMES = {"int8_row": INT8, "fp8_row": FP8}
DTYPES = [torch.bfloat16, torch.float16, torch.float32]


def noise(shape, seed, dtype):
    """Returns sums of four uniform integers, which are exact on every machine."""
    draws = np.random.default_rng(seed).integers(0, 1 << 16, size=(4, *shape), dtype=np.int64).sum(0) - 131070
    return torch.from_numpy(draws.astype(np.float64) * 2.0**-18).to(dtype)


def model(dims=(64, 32, 64), dtype=torch.bfloat16, bias=True, zero_row=True):
    layers = [torch.nn.Linear(a, b, bias=bias, dtype=dtype) for a, b in itertools.pairwise(dims)]
    for i, layer in enumerate(layers):
        layer.weight = torch.nn.Parameter(noise(layer.weight.shape, i, dtype), requires_grad=False)
        if zero_row:
            with torch.no_grad():
                layer.weight[1] = 0
        if bias:
            layer.bias = torch.nn.Parameter(noise(layer.bias.shape, 100 + i, dtype), requires_grad=False)
    return torch.nn.Sequential(*layers)


def inner(value, prefix=""):
    if type(value) is torch.Tensor:
        return {prefix or "data": value}
    found = {}
    for name in value.__tensor_flatten__()[0]:
        found.update(inner(getattr(value, name), f"{prefix}.{name}" if prefix else name))
    return found


def raw(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def same_tensor(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride() and raw(a) == raw(b)


def assert_equal_state(got, want):
    assert list(got) == list(want) and type(got) is type(want)
    for name in want:
        assert type(got[name]) is type(want[name]), name
        left, right = inner(got[name]), inner(want[name])
        assert list(left) == list(right) and all(same_tensor(left[k], right[k]) for k in right), name
        if type(want[name]) is not torch.Tensor:
            assert got[name].__tensor_flatten__()[1] == want[name].__tensor_flatten__()[1], name
            assert got[name].shape == want[name].shape and got[name].dtype == want[name].dtype


def zeroes_break_fp8(scheme):
    return scheme != "fp8_row"


@pytest.mark.parametrize(
    "config",
    [
        INT8,
        FP8,
        lambda: Float8WeightOnlyConfig(granularity=PerTensor()),
        lambda: Int8WeightOnlyConfig(version=2, granularity=PerGroup(16)),
        lambda: Int8DynamicActivationInt8WeightConfig(version=2),
        lambda: IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)),
        lambda: PrototypeInt4WeightOnlyConfig(group_size=32),
    ],
)
@pytest.mark.parametrize("container", ["pt", "safetensors"])
def test_inspect_gives_the_hashes_and_attributes_of_python(config, container, tmp_path):
    net = model()
    quantize_(net, config())
    state = net.state_dict()
    path = tmp_path / f"x.{container}"
    opaque = any(type(v).__name__ == "Int4OpaqueTensor" for v in state.values())
    if container == "pt":
        torch.save(state, path)
    elif opaque:
        pytest.skip("torchao writes no Int4OpaqueTensor to safetensors")
    else:
        tensors, metadata = flatten_tensor_state_dict(state)
        save_file(tensors, path, metadata=metadata)
    seen = inspect(path)
    assert [t["name"] for t in seen["tensors"]] == list(state)
    payload = 0
    for entry, (name, value) in zip(seen["tensors"], state.items(), strict=True):
        parts = inner(value)
        assert entry["type"] == type(value).__name__ and entry["shape"] == list(value.shape), name
        assert entry["dtype"] == str(value.dtype).split(".")[1]
        assert [p["name"] for p in entry["payload"]] == list(parts)
        for got, tensor in zip(entry["payload"], parts.values(), strict=True):
            assert got["sha256"] == hashlib.sha256(raw(tensor)).hexdigest()
            assert got["dtype"] == str(tensor.dtype).split(".")[1]
            assert got["shape"] == list(tensor.shape) and got["stride"] == list(tensor.stride())
            assert got["storage_bytes"] == tensor.untyped_storage().nbytes() and got["offset"] == 0
            payload += got["storage_bytes"]
        if type(value) is torch.Tensor:
            assert entry["attributes"] == {} and entry["scheme"] is None
        elif not opaque:
            encoded = json.loads(json.dumps(value, cls=TensorSubclassAttributeJSONEncoder))["_data"]
            shown = entry["attributes"]
            if container == "pt" and isinstance(getattr(value, "block_size", None), tuple):
                assert shown["block_size"]["_type"] == "tuple"
                shown = {**shown, "block_size": shown["block_size"]["_data"]}
            assert shown == encoded and list(shown) == list(encoded)
    assert seen["payload_bytes"] == payload == sum(t["bytes"] for t in seen["tensors"])
    assert seen["dense_bytes"] == sum(v.numel() * v.dtype.itemsize for v in state.values())


@pytest.mark.parametrize("scheme", ROW_SCHEMES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("dims", [(64, 32, 64), (17, 5, 3), (320, 96)], ids=str)
def test_quantize_is_what_torchao_saves(scheme, dtype, dims, tmp_path):
    net = model(dims, dtype, zero_row=zeroes_break_fp8(scheme))
    source = tmp_path / "float.pt"
    torch.save(net.state_dict(), source)
    quantize_(net, ROW_SCHEMES[scheme]())
    want = net.state_dict()
    (tmp_path / "want").mkdir()
    torch.save(want, tmp_path / "want" / "out.pt")

    qcts("quantize", "--scheme", scheme, source, tmp_path / "out.pt")
    assert (tmp_path / "out.pt").read_bytes() == (tmp_path / "want" / "out.pt").read_bytes()
    assert_equal_state(torch.load(tmp_path / "out.pt", weights_only=True), want)

    qcts("quantize", "--scheme", scheme, source, tmp_path / "out.safetensors")
    tensors, metadata = flatten_tensor_state_dict(want)
    with open(tmp_path / "out.safetensors", "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    assert header["__metadata__"] == metadata
    flat = load_file(tmp_path / "out.safetensors")
    loaded, left = unflatten_tensor_state_dict(flat, header["__metadata__"])
    assert not left
    assert_equal_state({k: loaded[k] for k in want}, dict(want))


@pytest.mark.parametrize("scheme", ROW_SCHEMES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dequantize_is_bitwise_torchaos(scheme, dtype, tmp_path):
    net = model((96, 48, 17), dtype, zero_row=zeroes_break_fp8(scheme))
    quantize_(net, ROW_SCHEMES[scheme]())
    state = net.state_dict()
    torch.save(state, tmp_path / "x.pt")
    qcts("dequantize", tmp_path / "x.pt", tmp_path / "x.safetensors")
    dense = load_file(tmp_path / "x.safetensors")
    assert set(dense) == set(state)
    for name, value in state.items():
        want = value if type(value) is torch.Tensor else value.dequantize()
        assert same_tensor(dense[name], want.contiguous()), name


def tinygemm_codes(weight, group, eps):
    """Quantizes by the recipe that both int4 classes share, with torchao's own primitives."""
    extra = {} if eps is None else {"eps": eps}
    scale, zero = _choose_qparams_affine_tinygemm(
        weight, MappingType.ASYMMETRIC, (1, group), torch.int32, 0, 15, zero_point_dtype=weight.dtype, **extra
    )
    codes = _quantize_affine_tinygemm(weight, (1, group), scale, zero, torch.int32, 0, 15)
    return codes, scale.reshape(weight.shape[0], -1), zero.reshape(weight.shape[0], -1)


def fma_meaning(codes, scale, zero, group, dtype):
    """Returns round_once(fma(q - 8, scale, zero)): in extended precision products are exact, and sums nearly always."""
    wide = [t.double().numpy().astype(np.longdouble) for t in (codes - 8, scale, zero)]
    s, z = (np.repeat(t, group, axis=1) for t in wide[1:])
    exact = wide[0] * s + z
    if dtype == torch.float32:
        return torch.from_numpy(exact.astype(np.float32))
    return torch.from_numpy(exact.astype(np.float64)).to(dtype)


@pytest.mark.parametrize("group", [32, 64, 128])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_cpu_int4_is_torchaos_and_means_the_fma(group, dtype, tmp_path):
    """K = 96 is not a multiple of 64 or 128, so that layer stays float on both sides."""
    net = model((256, 96, 80), dtype)
    source = tmp_path / "float.pt"
    torch.save(net.state_dict(), source)
    weights = {n: p.detach().clone() for n, p in net.state_dict().items()}
    quantize_(net, PrototypeInt4WeightOnlyConfig(group_size=group))
    want = net.state_dict()
    (tmp_path / "want").mkdir()
    torch.save(want, tmp_path / "want" / "out.pt")
    capability = {"AVX512": "avx512", "AVX2": "avx2"}.get(torch.backends.cpu.get_cpu_capability(), "default")
    words = ["--scheme", f"int4_tinygemm_g{group}", "--layout", f"cpu_{capability}"]
    done = qcts("quantize", *words, source, tmp_path / "out.pt")
    assert "torchao.prototype.quantization.int4" in done.stdout
    assert (tmp_path / "out.pt").read_bytes() == (tmp_path / "want" / "out.pt").read_bytes()
    assert_equal_state(torch.load(tmp_path / "out.pt", weights_only=True), want)
    left_float = group != 32
    assert ("left float  1.weight" in done.stdout) == left_float
    qcts("quantize", "--strict", *words, source, tmp_path / "out.pt", code=1 if left_float else 0)

    qcts("dequantize", tmp_path / "out.pt", tmp_path / "d.safetensors", "--cpu-pack", capability)
    dense = load_file(tmp_path / "d.safetensors")
    for name, value in want.items():
        if type(value) is torch.Tensor:
            assert same_tensor(dense[name], value)
            continue
        codes, scale, zero = tinygemm_codes(weights[name], group, 1e-6)
        assert same_tensor(dense[name], fma_meaning(codes, scale, zero, group, dtype)), name


def pack_to_4d(packed, tiles):
    """Packs like aten::_convert_weight_to_int4pack, by its index map (cuda/int4mm.cu); even k is the high nibble."""
    codes = torch.stack([packed >> 4, packed & 15], -1).reshape(packed.shape[0], -1).to(torch.int64)
    n, k = codes.shape
    words = torch.zeros(n // 8, k // (16 * tiles), 32, tiles // 2, dtype=torch.int64)
    nt, ko, t, j = torch.meshgrid(*(torch.arange(s) for s in words.shape), indexing="ij")
    for p in range(8):
        i, h = p & 3, p >> 2
        column = 16 * (tiles * ko + 2 * j + (i >> 1)) + 2 * (t & 3) + 8 * (i & 1) + h
        words |= codes[8 * nt + t // 4, column] << (4 * p)
    return torch.where(words >= 1 << 31, words - (1 << 32), words).to(torch.int32)


@pytest.fixture(scope="module")
def emulated_tile_pack():
    library = torch.library.Library("aten", "IMPL")
    library.impl("_convert_weight_to_int4pack", pack_to_4d, "CPU")
    capability = torch.cuda.get_device_capability
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    yield
    torch.cuda.get_device_capability = capability


@pytest.mark.parametrize("group", [32, 128])
def test_tile_packed_int4_is_torchaos(group, emulated_tile_pack, tmp_path):
    net = model((1152, 20, 8))
    source = tmp_path / "float.pt"
    torch.save(net.state_dict(), source)
    weights = net.state_dict()["0.weight"].detach().clone()
    packing = {"group_size": group, "int4_packing_format": "tile_packed_to_4d"}
    quantize_(net, Int4WeightOnlyConfig(**packing))
    want = net.state_dict()
    (tmp_path / "want").mkdir()
    torch.save(want, tmp_path / "want" / "out.pt")
    qcts("quantize", "--scheme", f"int4_tinygemm_g{group}", source, tmp_path / "out.pt")
    assert (tmp_path / "out.pt").read_bytes() == (tmp_path / "want" / "out.pt").read_bytes()
    assert_equal_state(torch.load(tmp_path / "out.pt", weights_only=True), want)
    qcts("quantize", "--scheme", f"int4_tinygemm_g{group}", source, tmp_path / "out.safetensors")
    tensors, metadata = flatten_tensor_state_dict(want)
    loaded = load_file(tmp_path / "out.safetensors")
    assert set(loaded) == set(tensors) and all(same_tensor(loaded[k], tensors[k]) for k in tensors)
    qcts("dequantize", tmp_path / "out.safetensors", tmp_path / "d.safetensors")
    codes, scale, zero = tinygemm_codes(weights, group, None)
    dense = load_file(tmp_path / "d.safetensors")["0.weight"]
    assert same_tensor(dense, fma_meaning(codes, scale, zero, group, torch.bfloat16))
