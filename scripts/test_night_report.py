# SPDX-License-Identifier: BSD-3-Clause
"""Tests what a night leaves: a comparison, a line for a chat, and no more than the last nights."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from page_runs import QCTS, real_run, verdict, write_run

REPORT = Path(__file__).resolve().parent / "night_report.py"


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """A history of two nights, the second with a new failure, and the report of the second."""
    folder = tmp_path_factory.mktemp("nights")
    head, schemes = real_run(folder / "real")
    right = [verdict(i, schemes) | {"status": "pass", "reason": ""} for i in range(40)]
    wrong = [right[0] | {"status": "fail", "reason": "y: row 0, column 1: want 1, got 2"}, *right[1:]]
    for number, verdicts in enumerate((right, wrong)):
        write_run(folder / f"part{number}", head | {"started": f"2026-01-0{number + 1}T00:00:00Z"}, verdicts)
        words = ["merge", folder / f"part{number}", "--out", folder / f"night{number}", "--history", folder / "h.sqlite"]
        subprocess.run([QCTS, *words], capture_output=True, timeout=300, check=False)
    return folder


def report(nights, code, *words):
    command = [sys.executable, REPORT, str(code), nights / "night1", "--history", nights / "h.sqlite", "--nights", nights / "kept", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_a_new_failure_is_said_in_one_line(nights):
    done = report(nights, 0, "--date", "20260102")
    assert done.returncode == 1, done.stdout + done.stderr
    line = json.loads(done.stdout)
    assert line == json.loads((nights / "kept/last.json").read_text())
    assert "night of 20260102: FAILED" in line["text"] and "WORSE: 1 newly failing" in line["text"] and "1 fail" in line["text"]
    assert "newly failing (1)" in (nights / "kept/20260102/night1/compare.md").read_text()
    assert (nights / "kept/20260102/night1/report.html").exists()


def test_the_code_of_the_night_stays(nights):
    assert report(nights, 5, "--date", "20260102").returncode == 5


def test_only_the_last_nights_are_kept(nights):
    (nights / "kept").mkdir(exist_ok=True)
    (nights / "kept/notes").mkdir(exist_ok=True)
    for day in (3, 4, 5):
        report(nights, 0, "--date", f"2026010{day}", "--keep", "2")
    kept = sorted(path.name for path in (nights / "kept").iterdir())
    assert kept == ["20260104", "20260105", "last.json", "notes"], "a folder whose name is not a date is not deleted"


def test_a_first_night_has_nothing_to_compare_with(nights, tmp_path):
    command = [sys.executable, REPORT, "0", nights / "night0", "--history", nights / "h.sqlite", "--nights", tmp_path / "kept"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "no earlier run" in json.loads(done.stdout)["text"], done.stdout + done.stderr


def test_no_history_is_no_reason_to_say_nothing(nights, tmp_path):
    command = [sys.executable, REPORT, "0", nights / "night0", "--history", tmp_path / "none", "--nights", tmp_path / "kept"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "night0" in json.loads(done.stdout)["text"], done.stdout + done.stderr
