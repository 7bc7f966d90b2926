# SPDX-License-Identifier: BSD-3-Clause
"""Protects the way to a machine with a GPU and back: the archive of gpu_bundle, in an empty folder, judges kernels on the fake device."""

import gzip
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BUILD = os.environ.get("QCTS_BUILD", str(ROOT / "build/release"))


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpu")
    archive = folder / "gpu.tar.xz"
    environment = dict(os.environ, QCTS_BUILD=BUILD)
    made = subprocess.run([ROOT / "scripts/gpu_bundle", "--fake", archive], env=environment, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    subprocess.run(["tar", "xf", archive, "-C", folder], check=True)
    return folder / "qcts_gpu"


def confirm(unpacked, out, part, seconds):
    environment = dict(os.environ, QCTS_GPU_SECONDS=str(seconds))
    return subprocess.run([unpacked / "gpu_confirm", str(part), out], env=environment, capture_output=True, text=True, timeout=600)


def test_a_part_that_is_cut_off_goes_on(unpacked, tmp_path):
    out = tmp_path / "out"
    first = confirm(unpacked, out, 1, 20)
    assert "quick_cuda: exit code" in first.stderr, first.stderr
    before = sorted(path.name for path in out.iterdir())
    record = out / "quick_cuda.jsonl.gz"
    for _ in range(5):
        if not record.exists():
            again = confirm(unpacked, out, 1, 45)
    assert record.exists(), (before, again.stderr)
    lines = [json.loads(line) for line in gzip.open(record, "rt")]
    assert lines[0]["environment"]["device"]["fake"]
    statuses = {line["status"] for line in lines[1:] if "status" in line}
    assert "pass" in statuses and not statuses & {"fail", "crash", "timeout"}, statuses
    assert len(list(out.iterdir())) <= 8


def test_the_third_part_times_kernels(unpacked, tmp_path):
    out = tmp_path / "out"
    result = confirm(unpacked, out, 3, 120)
    assert result.returncode == 0, result.stderr
    lines = [json.loads(line) for line in gzip.open(out / "latency_fake.jsonl.gz", "rt")]
    timed = [line for line in lines[1:] if any(measure["name"] == "share_of_roof" for measure in line.get("measures", []))]
    assert timed and {line["variant"] for line in timed} <= {"sm80", "sm90a"}


def test_a_changed_archive_is_refused(unpacked, tmp_path):
    damaged = tmp_path / "qcts_gpu"
    shutil.copytree(unpacked, damaged)
    with (damaged / "suites/plans/quick_cuda.json").open("a") as plan:
        plan.write(" ")
    result = confirm(damaged, tmp_path / "out", 1, 20)
    assert result.returncode == 5 and "the archive is damaged" in result.stderr


def test_an_unknown_part_prints_help(unpacked, tmp_path):
    result = confirm(unpacked, tmp_path / "out", 9, 20)
    assert result.returncode == 2 and "gpu_confirm 1" in result.stdout
