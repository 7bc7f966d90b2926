# SPDX-License-Identifier: BSD-3-Clause
"""A large GGUF file is opened without reading its weights: 4 GiB take at most 50 ms of CPU time and 64 MiB of memory."""

import json
import os

import pytest
from hostile_gguf import gguf
from measured import measured
from test_bounds import BUILD, SANITIZED

pytestmark = pytest.mark.skipif(SANITIZED, reason="the bounds are those of a release build: sanitizers multiply time and memory")

LAYERS, ROWS, COLUMNS = 240, 4096, 8192
Q4_0, BLOCK_BYTES, BLOCK = 2, 18, 32
LAYER_BYTES = ROWS * COLUMNS // BLOCK * BLOCK_BYTES


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A model of which the disk holds only the descriptions."""
    path = tmp_path_factory.mktemp("large") / "model.gguf"
    tensors = [
        gguf.tensor(f"blk.{i}.ffn_up.weight", dims=(COLUMNS, ROWS), type=Q4_0, offset=i * LAYER_BYTES) for i in range(LAYERS)
    ]
    path.write_bytes(gguf.file_of(tensors=tensors, data=b""))
    os.truncate(path, path.stat().st_size + LAYERS * LAYER_BYTES)
    assert path.stat().st_size > 4 << 30 and path.stat().st_blocks * 512 < 1 << 20
    return path


def cost_of_opening(path):
    """Opens the file strictly and leniently in one process. Returns CPU seconds of the slower of the two, and the largest
    resident set of the process in bytes."""
    said, memory_bytes = measured(BUILD / "bin/qcts_bounds", given=f"{path}\n")
    answer = json.loads(said)
    assert {cost["outcome"] for cost in answer.values()} == {"accepted"}, answer
    return max(cost["cpu_s"] for cost in answer.values()), memory_bytes


def test_four_gibibytes_open_in_little_time_and_memory(large):
    costs = [cost_of_opening(large) for _ in range(8)]  # other load only ever adds to the time
    assert min(cpu_s for cpu_s, _ in costs) <= 0.05, costs
    assert max(memory_bytes for _, memory_bytes in costs) <= 64 << 20, costs
