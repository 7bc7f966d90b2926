# SPDX-License-Identifier: BSD-3-Clause
"""`qcts compare --digests`: outputs of our CUDA kernels on a device are those of the executor bit for bit, and one that is not is named.

The device is the fake one, which runs the same executor below a driver, a stream and device memory."""

import gzip
import json
import os
import subprocess
from pathlib import Path

import pytest
import run_record

ROOT = Path(__file__).resolve().parents[2]
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))
DRIVER = Path(os.environ.get("QCTS_BUILD", ROOT / "build/release")) / "lib/libqcts_fakecuda.so"
CASES = ["--plan", "quick_cuda", "--scheme", "int8_row", "--kind", "numerics", "--no-progress"]


def qcts(*words, code=0, **more):
    done = subprocess.run([QCTS, *map(str, words)], capture_output=True, text=True, timeout=600, env=os.environ | more)
    assert done.returncode == code, (words, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run on a fake Ampere GPU, one on a fake Hopper GPU, and one of the executor on the host."""
    folder = tmp_path_factory.mktemp("runs")
    for name, capability in (("ampere", "80"), ("hopper", "90")):
        words = ["run", "--device", "cuda", *CASES, "--out", folder / name]
        qcts(*words, QCTS_CUDA_DRIVER=str(DRIVER), QCTS_FAKECUDA_CAPABILITY=capability)
    qcts("run", "--provider", "cudaemu", *CASES, "--out", folder / "executor")
    return folder


def verdicts(run):
    return [json.loads(line) for line in run_record.lines(run)][1:]


def changed(run, folder, change):
    lines = [json.loads(line) for line in run_record.lines(run)]
    change(lines)
    folder.mkdir()
    with gzip.open(folder / "run.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    return folder


def said(*words, code=0):
    return qcts("compare", "--digests", *words, code=code).stdout.strip()


def test_every_output_is_that_of_the_executor(runs):
    passed = [verdict for verdict in verdicts(runs / "ampere") if verdict["status"] == "pass"]
    assert len(passed) > 30 and all("output_hash" in verdict for verdict in passed)
    assert said(runs / "ampere", runs / "executor") == f"digests: {len(passed)} equal, 0 differ"


def test_a_linear_of_another_architecture_is_not_compared(runs):
    linear = [verdict for verdict in verdicts(runs / "hopper") if ".linear/" in verdict["case_id"] and verdict["variant"] == "sm80"]
    text = said(runs / "hopper", runs / "executor")
    assert text.endswith(f"; {len(linear)} of linear not compared: sums of another architecture") and ", 0 differ; " in text


def test_a_difference_is_named(runs, tmp_path):
    def change(lines):
        lines[3]["output_hash"] = "0" * 16

    other = changed(runs / "ampere", tmp_path / "other", change)
    struck = verdicts(other)[2]
    text = said(other, runs / "executor", code=1)
    assert f" 1 differs, first {struck['case_id']}, {struck['variant']}: {'0' * 16} on the device, " in text


@pytest.mark.parametrize(
    "order, text",
    [(("executor", "ampere"), "it was not judged on a device"), (("ampere", "none"), "there is no record of a run")],
)
def test_what_cannot_be_compared_is_said(runs, order, text):
    assert text in qcts("compare", "--digests", *(runs / name for name in order), code=2).stderr


def test_runs_of_other_inputs_are_refused(runs, tmp_path):
    other = changed(runs / "ampere", tmp_path / "other", lambda lines: lines[0].update(seed=7))
    assert "seed is 7 on the device, and 0 in the executor" in qcts("compare", "--digests", other, runs / "executor", code=2).stderr


def test_runs_without_a_hash_prove_nothing(runs, tmp_path):
    other = changed(runs / "ampere", tmp_path / "other", lambda lines: [line.pop("output_hash", None) for line in lines])
    assert "no digest could be compared" in qcts("compare", "--digests", other, runs / "executor", code=3).stderr
