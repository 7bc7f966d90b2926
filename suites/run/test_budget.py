# SPDX-License-Identifier: BSD-3-Clause
"""Tests qcts run --budget: what was judged in the time is a whole report, and what was not is counted."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import run_record

ROOT = Path(__file__).resolve().parents[2]
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))
CASES = ["--plan", "quick", "--provider", "builtin", "--kind", "numerics", "--scheme", "int8_row", "--variant", "scalar"]


def run(out, *words):
    command = [QCTS, "run", "--no-progress", "--jobs", "1", "--out", out, *CASES, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole")
    assert run(out).returncode == 0
    return out


@pytest.fixture(scope="module")
def cut(tmp_path_factory):
    """A run that had time only for its first cases."""
    out = tmp_path_factory.mktemp("cut")
    return out, run(out, "--budget", "0.2s")


def test_what_was_judged_is_a_report_and_the_rest_is_counted(whole, cut):
    out, done = cut
    report, all_ids = json.loads((out / "report.json").read_text()), {one["id"] for one in run_record.verdicts(whole)}
    judged = {one["id"] for one in run_record.verdicts(out)}
    left = sum(row["count"] for row in report["run"]["left_out"])
    assert judged and judged < all_ids and left == len(all_ids) - len(judged), done.stdout
    assert "left out for lack of time" in done.stdout and "narrowed" in done.stdout
    assert "--budget 0s" in report["run"]["selection"] and run_record.head(out)["cases"] == len(judged)


def test_the_first_questions_differ_most(cut):
    """No input family is asked twice before each was asked once."""
    out, _ = cut
    first = run_record.verdicts(out)[:4]
    assert len({(one["op"], one["input"].split("_m")[0].split("_n")[0]) for one in first}) == len(first)


def test_what_there_was_no_time_for_is_not_gone(whole, cut):
    out, _ = cut
    done = subprocess.run([QCTS, "compare", whole, out, "--json"], capture_output=True, text=True, timeout=300)
    comparison = json.loads(done.stdout)
    assert done.returncode == 0 and not comparison["gone"] and not comparison["new"], done.stdout
    assert comparison["unchanged"] > 0


def test_enough_time_changes_nothing(whole, tmp_path):
    assert run(tmp_path, "--budget", "2h").returncode == 0
    there, here = (json.loads((out / "report.json").read_text())["run"] for out in (whole, tmp_path))
    assert here["left_out"] == [] and here["selection"] == there["selection"]


@pytest.mark.parametrize(("words", "said"), [(["--budget", "20"], "unit"), (["--budget", "2h", "--shard", "1/2"], "whole run")])
def test_a_time_without_a_unit_and_a_shard_are_refused(tmp_path, words, said):
    done = run(tmp_path, *words)
    assert done.returncode == 2 and said in done.stderr, done.stderr
