# SPDX-License-Identifier: BSD-3-Clause
"""Tests how the commands find out which CPU packed int4 weights. Every pack is written by `qcts quantize`, so the right
answer is known on any machine.
"""

import json
import random
import struct

import pytest
from qcts_program import inspect, qcts

PACKS = ("avx512", "avx2", "default")


def float_weight(path, rows, columns, seed=1):
    """Writes a float32 weight of normal noise as safetensors, without any library."""
    generator = random.Random(seed)
    data = struct.pack(f"<{rows * columns}f", *(generator.gauss(0, 1) for _ in range(rows * columns)))
    header = {"layer.weight": {"dtype": "F32", "shape": [rows, columns], "data_offsets": [0, len(data)]}}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def packed(folder, pack, rows, columns, group=64):
    source = float_weight(folder / "float.safetensors", rows, columns)
    target = folder / f"{pack}.pt"
    qcts("quantize", "--scheme", f"int4_tinygemm_g{group}", "--layout", f"cpu_{pack}", source, target)
    return target


@pytest.mark.parametrize("pack", PACKS)
def test_codes_show_the_pack(pack, tmp_path):
    """The right pack is used without --cpu-pack, with a note, whatever machine this is."""
    file = packed(tmp_path, pack, 128, 1024)
    found = inspect(file)["cpu_pack"]
    assert found["decided"] == f"cpu_{pack}" and found["chance"] < 1e-9 and found["why_not"] is None
    assert found["groups"] == 128 * 1024 // 64 == found["both_ends"][f"cpu_{pack}"]
    assert "both ends" in qcts("inspect", file).stdout
    done = qcts("dequantize", file, tmp_path / "a.safetensors")
    assert f"its codes show cpu_{pack}" in done.stderr and "--cpu-pack overrides" in done.stderr
    qcts("dequantize", file, tmp_path / "b.safetensors", "--cpu-pack", pack)
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    qcts("check", file)
    qcts("diff", file, file)


@pytest.mark.parametrize("pack", PACKS)
def test_a_small_weight_needs_the_flag(pack, tmp_path):
    """No command guesses from a few groups."""
    file = packed(tmp_path, pack, 48, 128, group=128)
    assert inspect(file)["cpu_pack"]["decided"] is None
    assert "undecided: " in qcts("inspect", file).stdout
    out = tmp_path / "out.safetensors"
    for words in (["dequantize", file, out], ["check", file]):
        refused = qcts(*words, code=2).stderr
        assert "--cpu-pack avx512|avx2|default" in refused and "by chance" in refused
        qcts(*words, "--cpu-pack", pack)
    out.unlink()
    qcts("dequantize", file, out, code=2)
    assert not out.exists()


@pytest.mark.parametrize("other", PACKS)
def test_equal_bytes_of_an_unknown_pack_are_equal(other, tmp_path):
    """Protects: a file equals itself whatever CPU packed it, and one of other codes does not."""
    first, second = packed(tmp_path, "avx2", 48, 128, group=128), packed(tmp_path, other, 48, 128, group=128)
    same = other == "avx2"
    done = qcts("diff", first, second, code=0 if same else 1)
    assert ("E1 meaning  equal" if same else "E1 meaning  undecided") in done.stdout
    assert "--cpu-pack avx512|avx2|default" in done.stderr
    assert "E1 meaning  equal" in qcts("diff", first, second, "--cpu-pack", "avx2", "--cpu-pack-b", other, code=int(not same)).stdout
    refused = qcts("diff", tmp_path / "float.safetensors", first, "--error", code=2).stderr
    assert "--cpu-pack avx512|avx2|default" in refused


def test_packs_that_agree_need_no_flag(tmp_path):
    """16 rows are packed alike on every CPU."""
    file = packed(tmp_path, "avx2", 16, 128)
    qcts("dequantize", file, tmp_path / "out.safetensors")


def test_other_files_have_no_pack(tmp_path):
    source = float_weight(tmp_path / "float.safetensors", 16, 64)
    assert "cpu_pack" not in inspect(source)
    assert "CPU layout" not in qcts("inspect", source).stdout
