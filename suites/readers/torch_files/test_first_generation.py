# SPDX-License-Identifier: BSD-3-Clause
"""Tests the readers on damaged files of torchao's first generation: what contradicts itself is refused by name, and
attributes of any kind are read or refused, in the classes of every version.
"""

import json
import re
import subprocess

import pytest
from dialect_files import FIXTURES, GOLDENS
from qcts_program import BIN, qcts

pytest.importorskip("torch", reason="torch is not installed")
from torch_samples import repacked  # noqa: E402


def changed(id, path, change):
    """Writes a golden with another pickle."""
    golden = (FIXTURES / GOLDENS[id]["file"]).read_bytes()
    path.write_bytes(repacked(golden, change=lambda name, body: change(body) if name == "data.pkl" else None))
    return path


# A part of a golden's pickle, as often as it occurs, and what its last occurrence becomes: a shape that
# contradicts the wrapper's.
SHAPES = {
    "torchao_0_5_0/int8wo": (b"K\x10K@\x86", b"K\x08K@\x86", "int_data"),
    "torchao_0_7_0/int8wo": (b"K\x10K@\x86", b"K\x08K@\x86", "int_data"),
    "torchao_0_5_0/fp8wo": (b"K\x10K@\x86", b"K\x08K@\x86", "float8_data"),
    "torchao_0_5_0/int4wo_tiles": (b"K\x20K\x10K\x02\x87", b"K\x20K\x08K\x02\x87", "scale_and_zero"),
    "torchao_0_9_0/int4wo": (b"K\x10K\x20\x86", b"K\x08K\x20\x86", "packed_weight"),
}


@pytest.mark.parametrize("id", SHAPES)
def test_parts_of_another_shape_are_refused_in_every_form(id, tmp_path):
    old, new, part = SHAPES[id]
    path = changed(id, tmp_path / "model.pt", lambda body: new.join(body.rsplit(old, 1)))
    refusal = json.loads(qcts("inspect", path, "--json", code=1).stdout)["refusal"]
    assert refusal["class"] == "SubclassSchema" and part in refusal["detail"], refusal


# An attribute in a golden's pickle.
ATTRIBUTES = {
    "torchao_0_5_0/int4wo_tiles": rb"ctorchao[a-z_.]*\nTensorCoreTiledLayoutType\nq.\)\x81q.}q.X\r\0{3}inner_k_tilesq.K\x08sb",
    "torchao_0_9_0/int4_weight_only": rb"ctorchao[a-z_.]*\nTensorCoreTiledLayout\nq.\)\x81q.}q.X\r\0{3}inner_k_tilesq.K\x08sb",
    "torchao_0_5_0/int8wo": rb"ctorchao[a-z_.]*\nZeroPointDomain\nq.K.\x85q.Rq.",
    "torchao_0_7_0/int8dq": rb"ctorchao[a-z_.]*\nZeroPointDomain\nq.K.\x85q.Rq.",
    "torchao_0_9_0/int4wo": rb"ctorchao[a-z_.]*\nZeroPointDomain\nq.K.\x85q.Rq.",
}
VALUES = {
    "a number": b"K\x05",
    "a list": b"]",
    "an object with arguments": b"ctorchao.dtypes.utils\nPlainLayout\nK\x05\x85\x81",
    "a dict with a type": b"}X\x05\0\0\0_typeK\x05s",
    "a dict with data": b"}X\x05\0\0\0_dataK\x05s",
    "a dict that looks like an object": b"}(X\x05\0\0\0_typeX\3\0\0\0intX\x05\0\0\0_dataK\x05u",
}


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("id", ATTRIBUTES)
def test_an_attribute_of_any_kind_is_read_or_refused(id, value, tmp_path):
    def change(body):
        made, count = re.subn(ATTRIBUTES[id], lambda _: VALUES[value], body, flags=re.DOTALL)
        assert count == 1
        return made

    path = changed(id, tmp_path / "model.pt", change)
    pack = ["--cpu-pack", "avx2"]
    for command, *words in (["inspect"], ["check", *pack], ["dequantize", tmp_path / "out.safetensors", *pack]):
        done = subprocess.run([BIN, command, path, *words], capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stderr
        assert "internal" not in done.stdout + done.stderr
