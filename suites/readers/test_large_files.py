# SPDX-License-Identifier: BSD-3-Clause
"""Large files are hashed and dequantized in the memory of one tensor: pages are given back, and floats are made as they are written."""

import json
import os
import struct

import pytest
from hostile_gguf import gguf
from measured import measured
from qcts_program import BIN
from test_bounds import SANITIZED

pytestmark = pytest.mark.skipif(SANITIZED, reason="the bounds are those of a release build: sanitizers multiply memory")

LAYERS, ROWS, COLUMNS = 32, 1024, 4096
Q8_0, BLOCK_BYTES, BLOCK = 8, 34, 32
MEMORY_BOUND = 256 << 20  # bytes; both files are larger by far


@pytest.fixture(scope="module")
def codes(tmp_path_factory):
    """136 MiB of GGUF, which are 512 MiB of floats; the disk holds the descriptions alone."""
    path = tmp_path_factory.mktemp("large") / "model.gguf"
    layer_bytes = ROWS * COLUMNS // BLOCK * BLOCK_BYTES
    tensors = [
        gguf.tensor(f"blk.{i}.ffn_up.weight", dims=(COLUMNS, ROWS), type=Q8_0, offset=i * layer_bytes) for i in range(LAYERS)
    ]
    path.write_bytes(gguf.file_of(tensors=tensors, data=b""))
    os.truncate(path, path.stat().st_size + LAYERS * layer_bytes)
    return path


@pytest.fixture(scope="module")
def floats(tmp_path_factory):
    """512 MiB of safetensors."""
    path = tmp_path_factory.mktemp("large") / "model.safetensors"
    size = 2 * ROWS * 2 * COLUMNS
    header = {
        f"blk.{i}.weight": {"dtype": "BF16", "shape": [ROWS * 2, COLUMNS], "data_offsets": [i * size, (i + 1) * size]}
        for i in range(LAYERS)
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text)
    os.truncate(path, path.stat().st_size + LAYERS * size)
    return path


def test_hashes_take_the_memory_of_few_tensors(floats):
    assert measured(BIN, "inspect", "--json", floats)[1] <= MEMORY_BOUND


def test_floats_are_written_one_tensor_at_a_time(codes, tmp_path):
    out = tmp_path / "out.safetensors"
    assert measured(BIN, "dequantize", codes, out)[1] <= MEMORY_BOUND
    assert out.stat().st_size > LAYERS * ROWS * COLUMNS * 4


def test_plain_tensors_are_copied_out_of_the_file(floats, tmp_path):
    out = tmp_path / "out.safetensors"
    _, memory = measured(BIN, "dequantize", floats, out)
    assert memory <= MEMORY_BOUND and out.stat().st_size > LAYERS * 2 * ROWS * 2 * COLUMNS, memory
