# SPDX-License-Identifier: BSD-3-Clause
"""Tests that scripts/format finds, names and fixes what the pinned tools would change."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LOOSE = "int  twice( int a ){return 2*a;}\n"
TIDY = "int twice(int a) { return 2 * a; }\n"


def run(*words):
    return subprocess.run(["bash", ROOT / "scripts/format", *words], capture_output=True, text=True, cwd=ROOT)


@pytest.mark.parametrize("suffix", [".h", ".cc", ".c", ".cu", ".cuh"])
def test_a_loose_source_is_named_and_put_right(tmp_path, suffix):
    (tmp_path / "a").mkdir()
    loose, tidy = tmp_path / f"a/loose{suffix}", tmp_path / f"a/tidy{suffix}"
    loose.write_text(LOOSE)
    tidy.write_text(TIDY)
    done = run("--check", tmp_path)
    assert done.returncode == 1 and f"{loose}:1: scripts/format would change it" in done.stdout, done.stderr
    assert "tidy" not in done.stdout
    assert loose.read_text() == LOOSE, "--check changes nothing"
    assert run(tmp_path).returncode == 0
    assert loose.read_text() == tidy.read_text() == TIDY
    assert run("--check", tmp_path).returncode == 0


def test_loose_python_is_named_and_put_right(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("import sys\nimport os\n\nprint(os.name, sys.path)\n")
    done = run("--check", tmp_path)
    assert done.returncode == 1 and "a.py:1:1: I001" in done.stdout, done.stdout
    assert run(tmp_path).returncode == 0
    assert path.read_text().startswith("import os\nimport sys\n")
    assert run("--check", tmp_path).returncode == 0


def test_what_ruff_cannot_put_right_is_a_failure(tmp_path):
    (tmp_path / "a.py").write_text("print(nowhere)\n")
    done = run(tmp_path)
    assert done.returncode == 1 and "F821" in done.stdout


def test_a_file_that_cannot_be_read_is_no_success(tmp_path):
    """Other errors of clang-format are shown and never treated as "nothing to change"."""
    (tmp_path / "a.cc").write_bytes(b"\xff\xfe" + LOOSE.encode("utf-16-le"))
    done = run("--check", tmp_path)
    assert done.returncode == 1 and "a.cc" in done.stdout + done.stderr


@pytest.mark.parametrize("text", ["QCTS_KERNEL(a,  b)\nQCTS_KERNEL(ab, c)\n"])
def test_tables_stay_as_they_are(tmp_path, text):
    path = tmp_path / "kernels.inc"
    path.write_text(text)
    assert run(tmp_path).returncode == 0
    assert path.read_text() == text
    assert run("--check", tmp_path).returncode == 0


@pytest.mark.parametrize("words", [["--chek"], ["no_such_folder"]])
def test_a_wrong_argument_is_refused(words):
    assert run(*words).returncode == 2


def test_python_without_a_suffix_is_checked_too():
    """Every Python script without a suffix is in ruff's extend-include."""
    extra = (ROOT / "pyproject.toml").read_text()
    for path in (ROOT / "scripts").iterdir():
        if path.is_file() and not path.suffix and path.read_text().startswith("#!/usr/bin/env python"):
            assert f'"scripts/{path.name}"' in extra


def test_the_tree_holds():
    done = run("--check")
    assert done.returncode == 0, done.stdout + done.stderr
