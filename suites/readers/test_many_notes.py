# SPDX-License-Identifier: BSD-3-Clause
"""Many notes of one kind become one line with their number; a few are printed one by one."""

import json

import pytest
from qcts_program import pinned, qcts

torch = pinned("torch", "2.13")


@pytest.mark.parametrize(("count", "lines"), [(3, 3), (8, 8), (9, 1), (3000, 1)])
def test_like_notes_are_one_line(count, lines, tmp_path):
    state = {f"l{i}.x{i % 7}.weight": torch.empty(i % 5 + 1, device="meta") for i in range(count)}
    torch.save(state | {"w": torch.ones(2)}, tmp_path / "a.pt")
    done = qcts("dequantize", "--partial", "--json", tmp_path / "a.pt", tmp_path / "o.safetensors")
    notes = [line for line in done.stderr.splitlines() if "left out: " in line]
    assert len(notes) == lines and (f"(and {count - 1:,} more notes like this)" in notes[0]) == (lines < count)
    assert len(json.loads(done.stdout)["left_out"]) == count
