# SPDX-License-Identifier: BSD-3-Clause
"""Tests that ctest knows every test: each suite of qcts_tests and each file of Python tests belongs to an entry."""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BUILD = Path(os.environ.get("QCTS_BUILD", str(ROOT / "build/release")))


@pytest.fixture(scope="module")
def entries():
    done = subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1"], capture_output=True, text=True, check=True)
    return {entry["name"]: entry for entry in json.loads(done.stdout)["tests"]}


def labels(entry):
    return next(set(one["value"]) for one in entry["properties"] if one["name"] == "LABELS")


def names_of(*words):
    """Returns the full names of the tests that qcts_tests would run."""
    done = subprocess.run([BUILD / "bin/qcts_tests", *words, "--gtest_list_tests"], capture_output=True, text=True, check=True)
    names, suite = set(), ""
    for line in done.stdout.splitlines():
        if line.startswith("  "):
            names.add(suite + line.split("#")[0].strip())
        else:
            suite = line.split("#")[0].strip()
    return names


def test_every_python_file_is_an_entry(entries):
    tops = ("reference", "kernels", "fixtures", "reports", "suites", "scripts")
    found = {path.relative_to(ROOT).as_posix() for top in tops for path in (ROOT / top).rglob("test_*.py")}
    listed = {name.removeprefix("python/") for name in entries if name.startswith("python/")}
    assert len(listed) > 70 and found == listed


def test_every_cpp_test_is_in_one_entry(entries):
    """Protects: rooms overlap nowhere and leave out nothing, and the kinds of cases are all there."""
    seen = []
    for name, entry in entries.items():
        if name.startswith("cpp/"):
            seen += names_of(*entry["command"][1:])
        if name.startswith("cases/"):
            kind = name.removeprefix("cases/")
            assert f"--gtest_filter={kind}.*" in entry["command"]
            seen.append(kind)
    every = names_of("--only", "*")
    cases = {name.split(".")[0] for name in names_of()} - {name.split(".")[0] for name in every}
    assert len(every) > 600 and len(cases) > 4
    assert sorted(seen) == sorted(every | cases)


def test_labels_name_rooms(entries):
    used = set().union(*(labels(entry) for entry in entries.values()))
    assert used >= {"reference", "kernels", "judge", "cli", "python", "cpp", "goldens", "cases", "formats", "scripts"}
    assert "judge" in labels(entries["cpp/suites/judge"]) and "cli" in labels(entries["python/suites/cli/test_readme.py"])
