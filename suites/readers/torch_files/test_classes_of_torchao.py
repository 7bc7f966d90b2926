# SPDX-License-Identifier: BSD-3-Clause
"""Tests `qcts dequantize` on tensors of torchao 0.18.0's classes with random shapes, blocks, dtypes and views: the bits
must be those of the library's own dequantize(). `scripts/blind --classes N` does the same with other seeds.
"""

import sys

import pytest
from qcts_program import BIN, ROOT, pinned

pinned("torch", "2.13")
pinned("torchao", "0.18")

sys.path.insert(0, str(ROOT / "scripts"))
import library_bits  # noqa: E402

COUNT = 100


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    out = tmp_path_factory.mktemp("classes")
    script = ROOT / "fixtures/make/blind/blind_classes.py"
    return out, library_bits.make(sys.executable, "", script, out, 20261126, COUNT)[0]


def test_the_draw_covers_every_kind(drawn):
    kinds = {file["kind"] for file in drawn[1]}
    assert len(drawn[1]) >= COUNT and len(kinds) >= 12, kinds


def test_bits_are_the_librarys_own(drawn):
    out, files = drawn
    wrong = {file["file"]: (file["text"], found) for file in files if (found := library_bits.compare(BIN, out, file["file"]))}
    assert not wrong


def test_the_comparison_can_fail(drawn):
    """The test can tell a wrong bit, another shape and NaN apart."""
    assert library_bits.same_floats(b"\x00\x7fAB", b"\x00\x7fAB", "BF16")
    assert not library_bits.same_floats(b"\x00\x40", b"\x01\x40", "BF16")
    assert library_bits.same_floats(b"\xc0\x7f", b"\xc1\xff", "BF16")
    assert not library_bits.same_floats(b"\x80\x7f", b"\x80\xff", "BF16")  # infinities of two signs
    assert not library_bits.same_floats(b"\x00\x40", b"\x00\x40\x00\x40", "BF16")
    out, files = drawn
    file = out / f"{files[0]['file']}.right.safetensors"
    right = file.read_bytes()
    file.write_bytes(right[:-1] + bytes([right[-1] ^ 1]))
    assert library_bits.compare(BIN, out, files[0]["file"]) == "other bits"
    file.write_bytes(right)
