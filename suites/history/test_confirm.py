# SPDX-License-Identifier: BSD-3-Clause
"""Protects `qcts confirm`: only records that are evidence become a ledger, and reports say what the ledger proves.

There is no GPU here: the records come from the fake device, and are changed to look like those of a GPU."""

import gzip
import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest
import run_record

ROOT = Path(__file__).resolve().parents[2]
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))
DRIVER = Path(os.environ.get("QCTS_BUILD", ROOT / "build/release")) / "lib/libqcts_fakecuda.so"
SELECTION = ["--device", "cuda", "--plan", "quick_cuda", "--filter", "numerics.*/int8_row/*"]


def qcts(*words, **more):
    return subprocess.run([QCTS, *map(str, words)], capture_output=True, text=True, timeout=600, env=os.environ | more)


@pytest.fixture(scope="module")
def fake_run(tmp_path_factory):
    out = tmp_path_factory.mktemp("fake") / "out"
    done = qcts("run", *SELECTION, "--no-progress", "--out", out, "--commit", "abc", QCTS_CUDA_DRIVER=str(DRIVER))
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture
def library(tmp_path):
    (tmp_path / "libqcts_cuda.so").write_bytes(b"machine code")
    return tmp_path / "libqcts_cuda.so"


def as_of_a_gpu(fake_run, library, folder, change=lambda lines: None):
    """Writes the record of the fake run as a GPU would have left it; `change` spoils it."""
    lines = [json.loads(line) for line in run_record.lines(fake_run)]
    device = lines[0]["environment"]["device"]
    device |= {"name": "NVIDIA H200", "uuid": "GPU-1", "fake": False, "driver_named": False}
    for provider in lines[0]["providers"]:
        provider["name"] = provider["name"].replace("cudaemu", "cuda")
        provider["sha256"] = hashlib.sha256(library.read_bytes()).hexdigest()
    for verdict in lines[1:]:
        verdict["provider"] = verdict["provider"].replace("cudaemu", "cuda")
    change(lines)
    folder.mkdir(exist_ok=True)
    with gzip.open(folder / "run.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    return folder


def spoiled_head(**more):
    return lambda lines: lines[0].update(more)


def spoiled_device(**more):
    return lambda lines: lines[0]["environment"]["device"].update(more)


@pytest.mark.parametrize(
    "spoil, text",
    [
        (lambda lines: lines[0]["environment"].pop("device"), "it was not judged on a device"),
        (spoiled_device(fake=True), "its device is the fake one"),
        (spoiled_device(driver_named=True), "the environment named its driver (QCTS_CUDA_DRIVER)"),
        (lambda lines: lines[0]["providers"][0].update(name="other"), "it has no provider cuda"),
        (lambda lines: lines[0]["providers"][0].update(isolation="not isolated: by choice"), "it was not isolated: by choice"),
        (lambda lines: lines[0]["providers"][0].update(sha256="0" * 64), "it judged another library"),
        (spoiled_head(suite_commit="unknown"), "its commit is unknown"),
        (spoiled_head(suite_commit="abc-dirty"), "its commit is abc-dirty"),
        (lambda lines: lines.pop(), "a part is missing"),
        (spoiled_head(shards=2), "a part is missing"),
    ],
)
def test_what_is_no_evidence_is_refused(fake_run, library, tmp_path, spoil, text):
    run = as_of_a_gpu(fake_run, library, tmp_path / "run", spoil)
    done = qcts("confirm", run, "--library", library, "--into", tmp_path / "ledger")
    assert done.returncode == 2 and "is not evidence: " + text in done.stderr, done.stderr
    assert not (tmp_path / "ledger").exists()


def test_the_fake_run_itself_is_refused(fake_run, library, tmp_path):
    done = qcts("confirm", fake_run, "--library", library, "--into", tmp_path / "ledger")
    assert done.returncode == 2 and "its device is the fake one" in done.stderr


@pytest.mark.parametrize(
    "spoil, text", [(spoiled_device(uuid="GPU-2"), "GPU NVIDIA H200"), (spoiled_head(suite_commit="def"), "commit def")]
)
def test_records_of_different_runs_are_not_joined(fake_run, library, tmp_path, spoil, text):
    runs = [as_of_a_gpu(fake_run, library, tmp_path / "a"), as_of_a_gpu(fake_run, library, tmp_path / "b", spoil)]
    done = qcts("confirm", *runs, "--library", library, "--into", tmp_path / "ledger")
    assert done.returncode == 2 and "is from another run" in done.stderr and text in done.stderr


def root_with(folder, ledger):
    """The repository with another suites/confirmed."""
    folder.mkdir()
    (folder / "suites").mkdir()
    for entry in ROOT.iterdir():
        if entry.name != "suites":
            (folder / entry.name).symlink_to(entry)
    for entry in (ROOT / "suites").iterdir():
        if entry.name != "confirmed":
            (folder / "suites" / entry.name).symlink_to(entry)
    (folder / "suites/confirmed").symlink_to(ledger)
    return folder


@pytest.mark.parametrize("complete, failing", [(False, False), (True, False), (False, True)])
def test_a_ledger_is_written_and_told(fake_run, library, tmp_path, complete, failing):
    def change(lines):
        if complete:
            kept = [word for word in lines[0]["selection"] if not word.startswith(("--plan ", "--filter "))]
            assert "--kind numerics" in kept and "--kind determinism" in kept
            lines[0] |= {"plan": "nightly", "selection": kept}
        if failing:
            lines[1]["status"] = "fail"

    run = as_of_a_gpu(fake_run, library, tmp_path / "run", change)
    done = qcts("confirm", run, "--library", library, "--into", tmp_path / "ledger")
    assert done.returncode == int(failing), done.stderr
    ledger = json.loads((tmp_path / "ledger/nvidia_h200.json").read_text())
    asked = sum(row["asked"] for row in ledger["rows"])
    assert asked == len(run_record.lines(run)) - 1 and ledger["complete"] == complete and ledger["commit"] == "abc"
    assert all(len(row["sources_sha256"]) == 64 for row in ledger["rows"])
    root = root_with(tmp_path / "root", tmp_path / "ledger")
    done = qcts("run", *SELECTION, "--no-progress", "--out", tmp_path / "again", QCTS_CUDA_DRIVER=str(DRIVER), QCTS_ROOT=str(root))
    assert done.returncode == 0, done.stdout + done.stderr
    (provider,) = json.loads((tmp_path / "again/report.json").read_text())["providers"]
    told = {(row["op"], row["scheme"].split(":")[0], row["variant"]): row["confirmed"] for row in provider["implementations"]}
    for row in ledger["rows"]:
        text = told[row["op"], row["scheme"], row["variant"]]
        if row["failed"]:
            assert text.startswith(f"failed {row['failed']} of {row['asked']} on NVIDIA H200"), text
        else:
            assert text.startswith("confirmed on NVIDIA H200, 20" if complete else f"confirmed in part ({row['passed']} of "), text


def rows_of(folder):
    return json.loads((folder / "ledger/nvidia_h200.json").read_text())["rows"]


def test_digests_join_the_ledger(fake_run, library, tmp_path):
    """The fake run is one of the executor, too."""
    run = as_of_a_gpu(fake_run, library, tmp_path / "run")
    into = ["--library", library, "--into", tmp_path / "ledger"]
    assert qcts("confirm", run, *into).returncode == 0
    assert all(row["equal_digests"] == row["differing_digests"] == 0 for row in rows_of(tmp_path)), "nothing was compared"
    done = qcts("confirm", run, *into, "--executor", fake_run)
    assert done.returncode == 0, done.stderr
    passed = sum(row["passed"] for row in rows_of(tmp_path))
    assert passed > 20 and f"digests: {passed} equal, 0 differ\n" in done.stdout
    assert all(row["equal_digests"] == row["passed"] and row["differing_digests"] == 0 for row in rows_of(tmp_path))


def test_another_output_than_the_executor_s_is_a_fault(fake_run, library, tmp_path):
    struck = []

    def change(lines):
        struck.append(next(line for line in lines[1:] if "output_hash" in line))
        struck[0]["output_hash"] = "0" * 16

    run = as_of_a_gpu(fake_run, library, tmp_path / "run", change)
    done = qcts("confirm", run, "--library", library, "--into", tmp_path / "ledger", "--executor", fake_run)
    assert done.returncode == 1 and ", 1 differ" in done.stdout, done.stdout + done.stderr
    assert f"first {struck[0]['case_id']}, {struck[0]['variant']}: {'0' * 16} on the device" in done.stdout
    assert sum(row["differing_digests"] for row in rows_of(tmp_path)) == 1


def test_one_kind_alone_is_a_part(fake_run, library, tmp_path):
    run = as_of_a_gpu(fake_run, library, tmp_path / "run", spoiled_head(plan="nightly", selection=["--kind numerics", "--device cuda:0"]))
    assert qcts("confirm", run, "--library", library, "--into", tmp_path / "ledger").returncode == 0
    assert not json.loads((tmp_path / "ledger/nvidia_h200.json").read_text())["complete"]


def test_without_a_ledger_kernels_are_emulated_only(fake_run):
    (provider,) = json.loads((fake_run / "report.json").read_text())["providers"]
    assert {row["confirmed"] for row in provider["implementations"]} == {"emulated only"}


def test_the_repository_s_ledgers_are_of_kernels_that_exist():
    rows = (ROOT / "kernels/kernels.inc").read_text()
    for file in (ROOT / "suites/confirmed").glob("*.json"):
        for row in json.loads(file.read_text())["rows"]:
            assert f"({row['op']}, {row['scheme']}, {row['variant']})" in rows, (file, row)
