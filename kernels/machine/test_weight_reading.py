# SPDX-License-Identifier: BSD-3-Clause
"""Answers must not depend on how a machine reads weights (weight_reading.h): this runs all of those loops."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("QCTS_BUILD", ROOT / "build/release"))
QCTS = os.environ.get("QCTS_BIN", str(BUILD / "bin/qcts"))
FAMILIES = {"int8_row", "int8_row_dyn_row_sym", "int4_tinygemm", "int4_plain", "intx_dyn_token_asym", "tinyq"}


@pytest.mark.parametrize("way", ["prefetched", "followed", "side_by_side"])
def test_one_row_and_one_of_many_agree(way):
    names = [f"*RowsAndThreadsHaveNoInfluence/linear_{family}_builtin_avx*" for family in sorted(FAMILIES)]
    done = subprocess.run(
        [BUILD / "bin/qcts_tests", "--gtest_filter=" + ":".join(names)],
        env={**os.environ, "QCTS_WEIGHT_READING": way}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    if "needs avx2" in done.stdout:
        pytest.skip("a machine without AVX2")
    assert done.returncode == 0, done.stdout[-2000:]
    assert set(re.findall(r"\[       OK \] \S*/linear_(\w+)_builtin_avx2 ", done.stdout)) == FAMILIES


def test_a_way_that_nobody_knows_is_refused(tmp_path):
    done = subprocess.run(
        [QCTS, "run", "--filter", "none", "--out", tmp_path / "out"],
        env={**os.environ, "QCTS_WEIGHT_READING": "fast"}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert "QCTS_WEIGHT_READING=fast is unknown; known are prefetched, followed, side_by_side" in done.stderr
