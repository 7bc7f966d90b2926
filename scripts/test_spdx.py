# SPDX-License-Identifier: BSD-3-Clause
"""Tests that a missing licence line is found in every kind of source file, and that --fix adds it in the right place."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import spdx

SLASHES = "// SPDX-License-Identifier: BSD-3-Clause\n"
HASHES = "# SPDX-License-Identifier: BSD-3-Clause\n"


def run(folder, *words):
    script = Path(__file__).resolve().parent / "spdx.py"
    return subprocess.run([sys.executable, script, *words, folder], capture_output=True, text=True)


def plant(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(("name", "without", "fixed"), [
    *[(f"kernels/a{suffix}", "int a;\n", SLASHES + "int a;\n") for suffix in (".h", ".cc", ".c", ".cu", ".cuh", ".inc")],
    ("scripts/a.py", '"""A."""\n', HASHES + '"""A."""\n'),
    ("scripts/a.sh", "say a\n", HASHES + "say a\n"),
    ("suites/CMakeLists.txt", "add_library(a)\n", HASHES + "add_library(a)\n"),
    ("cmake/a.cmake", "set(a b)\n", HASHES + "set(a b)\n"),
    ("scripts/a", "#!/usr/bin/env bash\nsay a\n", "#!/usr/bin/env bash\n" + HASHES + "say a\n"),
    (".ci/a", "#!/bin/sh\n", "#!/bin/sh\n" + HASHES),
    ("suites/empty.py", "", HASHES),
])
def test_a_missing_line_is_named_and_added(tmp_path, name, without, fixed):
    path = plant(tmp_path, name, without)
    done = run(tmp_path)
    assert done.returncode == 1 and done.stdout.startswith(f"{name}: no line '")
    assert path.read_text() == without
    assert run(tmp_path, "--fix").returncode == 0
    assert path.read_text() == fixed
    again = run(tmp_path)
    assert (again.returncode, again.stdout) == (0, "")


@pytest.mark.parametrize("text", [
    "int a;\n" + SLASHES,
    "/* SPDX-License-Identifier: BSD-3-Clause */\n",
    SLASHES.replace("BSD-3-Clause", "MIT"),
    SLASHES.replace("BSD-3-Clause", "BSD-3-Clause OR MIT"),
])
def test_another_line_or_place_does_not_count(tmp_path, text):
    path = plant(tmp_path, "a.cc", text)
    assert list(spdx.missing(tmp_path)) == [path]


@pytest.mark.parametrize("name", [
    "a.json", "a.txt", "README", "README.md", "fixtures/golden/a.py", "fixtures/malformed/a.h",
    "build/a.cc", "out/a.cc", ".git/a.py",
])
def test_what_is_no_source_file_needs_none(tmp_path, name):
    plant(tmp_path, name, "a\n")
    assert list(spdx.missing(tmp_path)) == []


def test_a_fixed_script_can_still_be_run(tmp_path):
    path = plant(tmp_path, "a", "#!/bin/sh\n")
    path.chmod(0o755)
    spdx.fix(path)
    assert path.stat().st_mode & 0o777 == 0o755


def test_the_tree_holds():
    assert [str(path) for path in spdx.missing()] == []
