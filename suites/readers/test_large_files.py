# SPDX-License-Identifier: BSD-3-Clause
"""Large files are hashed, compared and dequantized in the memory of one tensor: pages are given back, and floats are made as they
are written. `check` holds one file of a checkpoint, which it writes again, and one weight.
"""

import json
import os
import struct

import pytest
from hostile_gguf import gguf
from measured import measured
from qcts_program import BIN, qcts
from test_bounds import SANITIZED

pytestmark = pytest.mark.skipif(SANITIZED, reason="the bounds are those of a release build: sanitizers multiply memory")

LAYERS, ROWS, COLUMNS = 32, 1024, 4096
Q8_0, BLOCK_BYTES, BLOCK = 8, 34, 32
MEMORY_BOUND = 256 << 20  # bytes; both files are larger by far


@pytest.fixture(scope="module")
def codes(tmp_path_factory):
    """136 MiB of GGUF, which are 512 MiB of floats; the disk holds only the descriptions."""
    path = tmp_path_factory.mktemp("large") / "model.gguf"
    layer_bytes = ROWS * COLUMNS // BLOCK * BLOCK_BYTES
    tensors = [
        gguf.tensor(f"blk.{i}.ffn_up.weight", dims=(COLUMNS, ROWS), type=Q8_0, offset=i * layer_bytes) for i in range(LAYERS)
    ]
    path.write_bytes(gguf.file_of(tensors=tensors, data=b""))
    os.truncate(path, path.stat().st_size + LAYERS * layer_bytes)
    return path


def zeros(path, layers, dtype, rows, columns, width):
    """Writes safetensors of zeros, of which the disk holds only the header."""
    size = rows * columns * width
    header = {
        f"blk.{i}.weight": {"dtype": dtype, "shape": [rows, columns], "data_offsets": [i * size, (i + 1) * size]}
        for i in range(layers)
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text)
    os.truncate(path, path.stat().st_size + layers * size)
    return path


@pytest.fixture(scope="module")
def floats(tmp_path_factory):
    """512 MiB of safetensors."""
    return zeros(tmp_path_factory.mktemp("large") / "model.safetensors", LAYERS, "BF16", 2 * ROWS, COLUMNS, 2)


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


def test_files_are_compared_one_tensor_at_a_time(floats, tmp_path):
    """Protects: a comparison of files that are larger than the memory, in meaning, content and bytes."""
    copy = zeros(tmp_path / "copy.safetensors", LAYERS, "BF16", 2 * ROWS, COLUMNS, 2)
    assert measured(BIN, "diff", floats, copy)[1] <= MEMORY_BOUND


def test_check_dequantizes_one_weight_at_a_time(tmp_path):
    """Protects: a check of weights whose floats are larger than the memory: here of 32 MiB that are 128 MiB of floats."""
    path = tmp_path / "codes.safetensors"
    qcts("quantize", "--scheme", "int8_row", zeros(tmp_path / "floats.safetensors", 8, "F32", ROWS, COLUMNS, 4), path)
    assert measured(BIN, "check", path)[1] <= 200 << 20


def test_check_holds_one_file_of_several(tmp_path):
    """Protects: a check of a folder whose shards are larger together than the memory: here of 4 that have 64 MiB each. The case
    `assign` maps and reads all of them, and one is written again.
    """
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    names = [f"model-0000{i}-of-00004.safetensors" for i in range(1, 5)]
    for number, name in enumerate(names):
        data = zeros(folder / "one", 1, "BF16", 4 * ROWS, 2 * COLUMNS, 2).read_bytes()
        (folder / name).write_bytes(data.replace(b"blk.0", f"blk.{number}".encode(), 1))
    (folder / "one").unlink()
    weights = {f"blk.{number}.weight": name for number, name in enumerate(names)}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weights}))
    assert measured(BIN, "check", folder)[1] <= MEMORY_BOUND + (80 << 20)
