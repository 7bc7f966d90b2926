# SPDX-License-Identifier: BSD-3-Clause
"""Time grows with the number of tensors and no faster: models of experts have 100,000 and more."""

import json
import os
import re
import resource
import subprocess
from pathlib import Path

import pytest
from dialect_files import write_safetensors
from qcts_program import BIN, ROOT, qcts

BUILD = Path(os.environ.get("QCTS_BUILD", ROOT / "build/release"))
SANITIZED = re.search(r"^QCTS_SANITIZE:\w+=\S", (BUILD / "CMakeCache.txt").read_text(), re.M) is not None
pytestmark = pytest.mark.skipif(SANITIZED, reason="the bounds are those of a release build")

TENSORS, SHARDS = 100_000, 100


@pytest.fixture(scope="module")
def sharded(tmp_path_factory):
    folder, places = tmp_path_factory.mktemp("many"), {}
    for shard in range(SHARDS):
        name = f"model-{shard + 1:05}-of-{SHARDS:05}.safetensors"
        names = [f"model.layers.{shard}.mlp.experts.{i}.down_proj.weight" for i in range(TENSORS // SHARDS)]
        write_safetensors(folder / name, dict.fromkeys(names, ("F32", [16], bytes(64))))
        places |= dict.fromkeys(names, name)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    return folder


def cpu_s(*words):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([BIN, *map(str, words)], check=True, capture_output=True, timeout=300)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


# About three times what a Zen 5 core takes, in the fastest of several runs: others may use the cores' caches.
@pytest.mark.parametrize("command, bound_s", [("inspect", 3), ("check", 20), ("diff", 6)])
def test_a_hundred_thousand_tensors_in_shards(command, bound_s, sharded):
    words = [sharded, sharded] if command == "diff" else [sharded]
    assert any(cpu_s(command, *words) < bound_s for _ in range(4))


@pytest.mark.parametrize("name", ["{}", "t{}", "model.layers.{}.mlp.experts.0.down_proj.weight"])
def test_two_hundred_thousand_tensors_in_one_file(name, tmp_path):
    """Protects: the bound on memory grants what this many names take, even short ones."""
    entries = {name.format(i): ("U8", [1], b"\1") for i in range(200_000)}
    path = write_safetensors(tmp_path / "x.safetensors", entries)
    assert "200000 tensors" in qcts("inspect", path).stdout
    assert cpu_s("check", path) < 40
