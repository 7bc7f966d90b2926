# SPDX-License-Identifier: BSD-3-Clause
"""Tests `qcts convert --as torchao_v2`: files of torchao's first generation in the classes of today, with the same planes."""

import json
import subprocess

import pytest
from dialect_files import FIXTURES, GOLDENS
from qcts_program import BIN, inspect, qcts

CONVERTED = {
    "torchao_0_9_0/int8_weight_only": "Int8Tensor",
    "torchao_0_9_0/int8wo_g32": "Int8Tensor",
    "torchao_0_5_0/int8wo": "Int8Tensor",
    "torchao_0_9_0/fp8wo": "Float8Tensor",
    "torchao_0_13_0/fp8wo": "Float8Tensor",
    "torchao_0_13_0/fp8dq": "Float8Tensor",
    "torchao_0_13_0/fp8dq_row": "Float8Tensor",
    "torchao_0_9_0/int4_weight_only": "Int4TilePackedTo4dTensor",
    "torchao_0_13_0/intx4": "IntxUnpackedToInt8Tensor",
}
REFUSED = {
    "torchao_0_9_0/int8dq": "no class for int8_row in the layout 'plain' under the policy 'dyn_row_sym_127'",
    "torchao_0_13_0/int8da_int4w": "no class for intx_b4_g32_sym in the layout 'plain' under the policy 'dyn_token_asym_s32'",
    "torchao_0_9_0/fp8dq": "under the policy 'dyn_tensor_recip'",
    "torchao_0_9_0/int4wo": "does not say which CPU packed it",
    "torchao_0_9_0/uintx7": "no class of torchao 0.18.0 holds the planes of this AffineQuantizedTensor",
}


@pytest.mark.parametrize("ending", ["pt", "safetensors"])
@pytest.mark.parametrize("id", CONVERTED)
def test_a_class_of_today_holds_the_same_planes(id, ending, tmp_path):
    """The codes byte for byte, and the values that dequantize gives."""
    old, new = FIXTURES / GOLDENS[id]["file"], tmp_path / f"new.{ending}"
    qcts("convert", "--as", "torchao_v2", old, new)
    (before,), (after,) = inspect(old)["tensors"], inspect(new)["tensors"]
    assert after["type"] == CONVERTED[id]
    assert before["payload"][0]["sha256"] == after["payload"][0]["sha256"]
    said = json.loads(subprocess.run([BIN, "diff", old, new, "--json"], capture_output=True, text=True).stdout)
    assert said["e1"]["equal"], said["e1"]
    for path, name in ((old, "old"), (new, "new")):
        qcts("dequantize", path, tmp_path / f"{name}.values.safetensors")
    assert (tmp_path / "old.values.safetensors").read_bytes() == (tmp_path / "new.values.safetensors").read_bytes()


@pytest.mark.parametrize("id", CONVERTED)
def test_todays_torchao_loads_it(id, tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    torchao = pytest.importorskip("torchao", reason="torchao is not installed")
    if not torchao.__version__.startswith("0.18"):
        pytest.skip("torchao 0.18 is not installed")
    import torchao.quantization  # noqa: F401

    qcts("convert", "--as", "torchao_v2", FIXTURES / GOLDENS[id]["file"], tmp_path / "new.pt")
    ((_, tensor),) = torch.load(tmp_path / "new.pt", weights_only=True).items()
    assert type(tensor).__name__ == CONVERTED[id]


@pytest.mark.parametrize("id", REFUSED)
def test_what_no_class_of_today_holds_is_named(id, tmp_path):
    said = qcts("convert", "--as", "torchao_v2", FIXTURES / GOLDENS[id]["file"], tmp_path / "new.pt", code=1).stderr
    assert REFUSED[id] in said and "qcts dequantize, then qcts quantize" in said
    assert not list(tmp_path.iterdir())


def test_convert_says_what_to_do_with_an_old_file(tmp_path):
    old = FIXTURES / GOLDENS["torchao_0_9_0/int8wo"]["file"]
    said = qcts("convert", old, tmp_path / "new.safetensors", code=1).stderr
    assert "no place for the class AffineQuantizedTensor; qcts convert --as torchao_v2 writes its planes in a class of today" in said
