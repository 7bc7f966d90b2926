# SPDX-License-Identifier: BSD-3-Clause
"""Tests scripts/common.sh."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(("words", "folder"), [
    ([], "out"), (["--plan", "quick"], "out"), (["--out", "a b"], "a b"), (["--out=x", "--filter", "y"], "x"),
    (["--out", "x", "--out=y"], "y"),
])
def test_the_report_is_looked_for_where_the_run_puts_it(words, folder):
    """Protects: the last --out counts, as in `qcts run`."""
    command = ["bash", "-c", 'source scripts/common.sh; out_of out "$@"', "-", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == folder + "\n"


def test_an_out_without_a_folder_ends_the_script():
    command = ["bash", "-c", "source scripts/common.sh; out=$(out_of out --out); echo on"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode != 0 and "--out needs a folder" in done.stderr and not done.stdout
