# SPDX-License-Identifier: BSD-3-Clause
"""torchao's quantized optimizer states are dequantized as their own dequantize() does."""

import pytest
from dialect_files import read_safetensors
from qcts_program import pinned, qcts

torch = pinned("torch", "2.13")
pinned("torchao", "0.18")

from torch_samples import CONTAINERS, raw  # noqa: E402
from torchao.optim.subclass_4bit import OptimState4bit  # noqa: E402
from torchao.optim.subclass_8bit import OptimState8bit  # noqa: E402
from torchao.optim.subclass_fp8 import OptimStateFp8  # noqa: E402


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
@pytest.mark.parametrize("shape", [(256,), (32, 64), (4, 8, 128)])
@pytest.mark.parametrize("kind", ["8bit", "8bit_unsigned", "4bit", "4bit_unsigned", "fp8"])
def test_states(kind, shape, dtype, container, tmp_path):
    signed = {"signed": not kind.endswith("unsigned")} if kind != "fp8" else {}
    cls = {"8": OptimState8bit, "4": OptimState4bit, "f": OptimStateFp8}[kind[0]]
    values = torch.linspace(-3, 5, torch.Size(shape).numel()).reshape(shape)
    values = (values if signed.get("signed", True) else values.abs()) * torch.linspace(0.001, 9, shape[-1])
    state = cls.zeros(shape, block_size=128, dtype=dtype, **signed).copy_(values)
    path, out = tmp_path / "a.pt", tmp_path / "o.safetensors"
    torch.save({"state": {0: {"exp_avg": state, "step": torch.tensor(3.0)}}}, path, **CONTAINERS[container])
    qcts("dequantize", path, out)
    assert read_safetensors(out)["state.0.exp_avg"][::2] == ("F32", raw(state.dequantize()))
    qcts("check", path)
