# SPDX-License-Identifier: BSD-3-Clause
"""A killed save leaves the old file or the new one, whenever it is killed."""

import json
import os
import random
import shutil
import signal
import subprocess
import time

import pytest
from qcts_program import BIN, qcts

torch = pytest.importorskip("torch", reason="torch is not installed")

from safetensors.torch import save_file  # noqa: E402

KILLS = 60
WRITERS = {
    "zip": lambda state, path: torch.save(state, path),
    "legacy": lambda state, path: torch.save(state, path, _use_new_zipfile_serialization=False),
    "safetensors": lambda state, path: save_file(state, path),
}


def duration(source, target):
    start = time.monotonic()
    qcts("resave", source, target)
    return 1.2 * (time.monotonic() - start)


def killed(process, draw, horizon, hit):
    """Kills the save at a random time before `horizon` seconds; appends to `hit` if it was still running. Returns the next horizon."""
    time.sleep(draw.uniform(0, horizon))
    os.kill(process.pid, signal.SIGKILL)
    if process.wait() == -signal.SIGKILL:
        hit.append(process.pid)
        return horizon * 1.1
    return max(horizon * 0.8, 0.002)


@pytest.mark.parametrize("kind", WRITERS)
def test_killed_saves_leave_the_old_file_or_the_new_one(kind, tmp_path):
    """Each format gets a third of the kills. Delays range from zero to past the end of a save, whose length
    depends on the machine's load: a kill that comes too late does not count and shortens the range.
    """
    ending = ".safetensors" if kind == "safetensors" else ".pt"
    source, target = tmp_path / f"source{ending}", tmp_path / f"target{ending}"
    WRITERS[kind]({f"t{i}": torch.full((1 << 17,), float(i)) for i in range(16)}, source)
    WRITERS[kind]({"old": torch.arange(1000.0)}, target)
    old, new = target.read_bytes(), source.read_bytes()
    horizon = duration(source, tmp_path / f"whole{ending}")
    draw, hits, found = random.Random(kind), 0, {"old": 0, "new": 0}
    deadline = time.monotonic() + 60
    while hits < KILLS // len(WRITERS):
        assert time.monotonic() < deadline, "the kills come too late"
        if target.read_bytes() != old:
            target.write_bytes(old)
        process = subprocess.Popen([BIN, "resave", source, target], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        horizon = killed(process, draw, horizon, hit := [])
        hits += len(hit)
        data = target.read_bytes()
        assert data in (old, new), f"torn: {len(data)} bytes"
        found["old" if data == old else "new"] += 1
    assert found["old"], found
    left = {path.name for path in tmp_path.iterdir()} - {source.name, target.name, f"whole{ending}"}
    assert all(name.startswith(target.name + ".tmp") for name in left), left
    qcts("resave", source, target)
    assert target.read_bytes() == new, "a save after the kills is whole"


def test_killed_copies_of_a_directory_are_whole_or_not_there(tmp_path):
    source = tmp_path / "model"
    source.mkdir()
    names = {f"t{i}": f"model-{i + 1:05}-of-00004.safetensors" for i in range(4)}
    for index, (key, name) in enumerate(names.items()):
        save_file({key: torch.full((1 << 19,), float(index))}, source / name)
    (source / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": names}))
    (source / "config.json").write_text("{}")
    horizon = duration(source, tmp_path / "whole")
    draw, hits, absent = random.Random("directory"), 0, 0
    deadline = time.monotonic() + 60
    while hits < KILLS // 4:
        assert time.monotonic() < deadline, "the kills come too late"
        target = tmp_path / f"copy{hits}"
        shutil.rmtree(target, ignore_errors=True)
        process = subprocess.Popen([BIN, "resave", source, target], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        horizon = killed(process, draw, horizon, hit := [])
        hits += len(hit)
        absent += not target.exists()
        if target.exists():
            assert {file.name: file.read_bytes() for file in target.iterdir()} == {
                file.name: file.read_bytes() for file in source.iterdir()
            }
    assert absent
