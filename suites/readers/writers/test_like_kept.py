# SPDX-License-Identifier: BSD-3-Clause
"""What `quantize --like` does not keep of its file is named: attributes, and codes that a recipe made which no file records."""

import pytest
from dialect_files import FIXTURES, GOLDENS
from qcts_program import qcts

LIKE = {
    "torchao_0_13_0/int8dq_decode": "not as in --like: its input_quant_func is",
    "torchao_0_18_0/intx_b4_g32_sym/hqq_9x64": "--like has other codes for the same weights in 1 of its tensors",
}


def quantized_like(golden, folder):
    like = FIXTURES / GOLDENS[golden]["file"]
    qcts("dequantize", like, folder / "in.safetensors")
    return qcts("quantize", "--like", like, folder / "in.safetensors", folder / "out.pt").stderr


@pytest.mark.parametrize("golden", LIKE)
def test_what_is_not_kept_is_named(golden, tmp_path):
    assert LIKE[golden] in quantized_like(golden, tmp_path)


def test_nothing_is_said_where_all_is_kept(tmp_path):
    """The second time, --like is what this recipe makes of the weights."""
    quantized_like("torchao_0_18_0/intx_b4_g32_sym/hqq_9x64", tmp_path)
    done = qcts("quantize", "--like", tmp_path / "out.pt", tmp_path / "in.safetensors", tmp_path / "again.pt")
    assert "--like" not in done.stderr
