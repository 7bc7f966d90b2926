# SPDX-License-Identifier: BSD-3-Clause
"""torchao's tensors in shapes and block sizes that no scheme has, against their algebra in float32."""

import json
import subprocess

import pytest
from qcts_program import BIN, pinned, qcts

torch = pytest.importorskip("torch", reason="torch is not installed")
pinned("torchao", "0.18")

from safetensors.torch import load_file  # noqa: E402
from test_files_torchao import noise, raw  # noqa: E402
from torchao.prototype.mx_formats.mx_tensor import MXTensor  # noqa: E402
from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor  # noqa: E402
from torchao.quantization import Float8Tensor, Int8Tensor, IntxUnpackedToInt8Tensor  # noqa: E402
from torchao.quantization.quantize_.workflows.nf4.nf4_tensor import NF4Tensor  # noqa: E402

FLOATS = [torch.float32, torch.bfloat16, torch.float16]
E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E2M1 = torch.cat([E2M1, -E2M1])


def draws(shape, low, high, seed):
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed))


def scales(shape, seed, dtype=torch.float32):
    return ((draws(shape, 1, 4096, seed) + 0.37) * 2.0**-17).to(dtype)


def spread(blocks, shape):
    """Repeats each block's value over its elements."""
    for d, size in enumerate(shape):
        blocks = blocks.repeat_interleave(size // blocks.shape[d], d)
    return blocks


def pairs(packed):
    return torch.stack([packed & 15, packed >> 4], -1).flatten(-2)


def dequantized(value, tmp_path):
    torch.save({"w": value}, tmp_path / "in.pt")
    qcts("dequantize", tmp_path / "in.pt", tmp_path / "out.safetensors")
    # Values drawn at random, such as zero points with symmetric codes, are not among those that a recipe writes.
    done = subprocess.run([BIN, "check", tmp_path / "in.pt", "--json"], capture_output=True, text=True)
    failed = [v["case_id"] for v in json.loads(done.stdout)["verdicts"] if v["status"] not in ("pass", "not_supported")]
    assert failed in ([], ["values.file/any/file"])
    return load_file(tmp_path / "out.safetensors")["w"]


def assert_bits(value, want, tmp_path):
    got = dequantized(value, tmp_path)
    assert got.dtype == want.dtype == value.dtype and got.shape == want.shape == value.shape
    assert raw(got) == raw(want)
    assert raw(got) == raw(value.dequantize()), "the class itself"


SHAPES = [
    ((48, 192), (1, 16)),
    ((48, 192), (1, 96)),
    ((48, 192), (16, 64)),
    ((48, 192), (48, 1)),
    ((48, 192), (48, 192)),
    ((3, 64, 128), (1, 64, 1)),
    ((3, 64, 128), (1, 16, 32)),
    ((3, 64, 128), (1, 1, 16)),
    ((4, 6, 32), (2, 3, 16)),
]


def grid(shape, block):
    return [size // one for size, one in zip(shape, block, strict=True)]


@pytest.mark.parametrize("shape, block", SHAPES)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("code", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_float8(shape, block, dtype, code, tmp_path):
    qdata = (noise(shape, 1, torch.float32) * 100).to(code)
    scale = scales(grid(shape, block), 2)
    value = Float8Tensor(qdata, scale, block_size=list(block), dtype=dtype)
    assert_bits(value, (qdata.float() * spread(scale, shape)).to(dtype), tmp_path)


@pytest.mark.parametrize("shape, block", [((64, 128), (1, 128)), ((64, 128), (16, 32)), ((64, 128), (1, 8))])
def test_transposed_float8(shape, block, tmp_path):
    qdata = (noise(shape, 3, torch.float32) * 100).to(torch.float8_e4m3fn)
    scale = scales(grid(shape, block), 4)
    value = Float8Tensor(qdata.t(), scale.t(), block_size=list(block[::-1]), dtype=torch.bfloat16)
    assert_bits(value, (qdata.float() * spread(scale, shape)).bfloat16().t(), tmp_path)


@pytest.mark.parametrize("shape, block", SHAPES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_int8(shape, block, dtype, tmp_path):
    qdata = draws(shape, -128, 128, 5).to(torch.int8)
    scale = scales(grid(shape, block), 6)
    zero = draws(grid(shape, block), -128, 128, 7).to(torch.int8)
    value = Int8Tensor(qdata, scale, list(block), dtype, zero_point=zero)
    exact = qdata.float() - spread(zero, shape).float()
    assert_bits(value, (exact * spread(scale, shape)).to(dtype), tmp_path)


@pytest.mark.parametrize("shape, block", SHAPES)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("scale_dtype", [torch.float32, torch.bfloat16])
def test_intx(shape, block, dtype, scale_dtype, tmp_path):
    qdata = draws(shape, -8, 8, 8).to(torch.int8)
    scale = scales(grid(shape, block), 9, scale_dtype)
    zero = draws(grid(shape, block), -8, 8, 10).to(torch.int8)
    value = IntxUnpackedToInt8Tensor(qdata, scale, zero, torch.int4, block, dtype, None)
    exact = qdata.float() - spread(zero, shape).float()
    assert_bits(value, (exact * spread(scale.float(), shape)).to(dtype), tmp_path)


@pytest.mark.parametrize("shape", [(48, 192), (3, 64, 128)])
@pytest.mark.parametrize("block", [16, 32, 64])
@pytest.mark.parametrize("element", [torch.float8_e4m3fn, torch.float8_e5m2, torch.float4_e2m1fn_x2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_mx(shape, block, element, dtype, tmp_path):
    value = MXTensor.to_mx(noise(shape, 11, dtype), element, block)
    codes = E2M1[pairs(value.qdata).int()] if element == torch.float4_e2m1fn_x2 else value.qdata.float()
    powers = torch.exp2(value.scale.view(torch.uint8).float() - 127)
    assert_bits(value, (codes * spread(powers, shape)).to(dtype), tmp_path)


@pytest.mark.parametrize(
    "shape, levels",
    [((48, 192), "one"), ((48, 192), "two"), ((3, 64, 128), "one"), ((3, 64, 128), "two"), ((3, 64, 128), "by expert")],
)
@pytest.mark.parametrize("swizzled", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_nvfp4(shape, levels, swizzled, dtype, tmp_path):
    if swizzled:
        shape = (*shape[:-2], 128, shape[-1])  # whole tiles for each expert
    weight = noise(shape, 12, dtype)
    outer = {"one": None, "two": torch.tensor(0.0123), "by expert": scales((3, 1, 1), 13)}[levels]
    value = NVFP4Tensor.to_nvfp4(weight, per_tensor_scale=outer, is_swizzled_scales=swizzled)
    plain = NVFP4Tensor.to_nvfp4(weight, per_tensor_scale=outer).scale.float()
    scale = plain if outer is None else outer * plain
    want = (E2M1[pairs(value.qdata).int()] * spread(scale, shape)).to(dtype)
    assert_bits(value, want, tmp_path)


@pytest.mark.parametrize("code", [torch.float8_e4m3fnuz, torch.float8_e5m2fnuz])
@pytest.mark.parametrize("dtype", FLOATS)
def test_float8_without_negative_zero(code, dtype, tmp_path):
    bytes_ = torch.arange(256, dtype=torch.uint8)
    bytes_[0x80] = 1  # the only NaN
    qdata, scale = bytes_.repeat(16).view(16, 256).view(code), scales((16, 1), 14)
    value = Float8Tensor(qdata, scale, block_size=[1, 256], dtype=dtype)
    mantissa = 3 if code == torch.float8_e4m3fnuz else 2
    numbers = torch.arange(256)
    field, fraction = numbers % 128 >> mantissa, (numbers % (1 << mantissa)) / (1 << mantissa)
    bias = 8 if mantissa == 3 else 16
    exact = torch.where(field > 0, (1 + fraction) * 2.0 ** (field - bias), fraction * 2.0 ** (1 - bias))
    exact = torch.where(numbers > 127, -exact, exact)[bytes_.long()].repeat(16).view(16, 256)
    assert_bits(value, (exact * scale).to(dtype), tmp_path)


@pytest.mark.parametrize("shape", [(64, 256), (16384,)])
@pytest.mark.parametrize("block, scaler_block", [(64, 16), (32, 64), (128, 2), (64, 128)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_nf4(shape, block, scaler_block, dtype, tmp_path):
    value = NF4Tensor.from_tensor(noise(shape, 15, dtype), block, scaler_block)
    factors = value.quantization_factor.repeat_interleave(scaler_block)
    scalers = (value.quantized_scalers.float() / factors.float()).to(dtype)
    scalers = (scalers.float() + value.scaler_mean.float()).to(dtype)
    codes = pairs(value.quantized_data).view(-1, 2).flip(1).flatten().int()
    want = value.nf4.float()[codes] * scalers.repeat_interleave(block).float()
    got = dequantized(value, tmp_path)
    assert got.dtype == dtype and got.shape == value.shape
    assert raw(got) == raw(want.to(dtype)) == raw(value.get_original_weight())


def test_nf4_chunk(tmp_path):
    """torch.split() leaves n_blocks as it was. FSDP shards weights that way."""
    whole = NF4Tensor.from_tensor(noise((64, 256), 15, torch.bfloat16), 64, 16)
    for chunk in torch.split(whole, 16):
        assert chunk.n_blocks == whole.n_blocks
        assert raw(dequantized(chunk, tmp_path)) == raw(chunk.get_original_weight())
