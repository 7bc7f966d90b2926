"""Kernels with one planted fault each (mutants/mutants.inc) against the quick plan: the judge has to tell each of them from
the right one.
"""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("QCTS_BUILD", ROOT / "build/release"))
QCTS = os.environ.get("QCTS_BIN", str(BUILD / "bin/qcts"))
LIBRARY = BUILD / "lib/self/qcts_mutants.so"
LIST = re.findall(r"^QCTS_MUTANT\((\w+), (\w+),", (ROOT / "suites/self/mutants/mutants.inc").read_text(), re.M)
KERNELS = [id for kind, id in LIST if kind == "kernel"]
# What a mutant strikes, by how its id begins.
STRIKES = {
    "q8_": "quantize/int8_row",
    "q4_": "quantize/int4_tinygemm",
    "qf8_": "quantize/fp8_row",
    "d8_": "dequantize/int8_row",
    "d4_": "dequantize/int4_tinygemm",
    "df8_": "dequantize/fp8_row",
    "p4_": "pack/int4_tinygemm",
    "u4_": "unpack/int4_tinygemm",
    "l8_": "linear/int8_row",
    "l4_": "linear/int4_tinygemm",
    "lf8_": "linear/fp8_row",
    "l_": "linear/",
}
# Faults that no input of the quick plan brings to light yet.
SURVIVORS = {
    "q8_absmax_skips_nan",
    "q8_absmax_drops_tail",
    "q8_nan_becomes_minus_128",
    "d8_zero_point_ignored",
    "d8_difference_wraps",
    "d8_tail_unwritten",
    "d8_writes_whole_vectors",
    "d_flushes_subnormals",
    "l8_zero_point_ignored",
    "l8_tiny_scale_flushed",
    "l8_difference_wraps",
    "l_flushes_subnormals",
    "l_saturates",
    "l_reads_past_row",
    "l_batch_reverses_k",
}
# Found or not by chance: when threads meet, in one call of many.
BY_CHANCE = {"l_race", "l_sporadic"}


def statuses(mutant, place, out):
    environment = dict(os.environ, QCTS_MUTANT=mutant) if mutant else os.environ
    words = [QCTS, "run", "--plan", "quick", "--provider", LIBRARY, "--no-progress", "--jobs", "1", "--out", out]
    for kind in ("numerics", "determinism"):
        words += ["--filter", f"{kind}.{place}*"]
    done = subprocess.run(list(map(str, words)), env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    counts = json.loads((out / "report.json").read_text())["counts"]["by_status"]
    return {status for status, count in counts.items() if count} - {"not_supported"}


@pytest.mark.parametrize("place", sorted(set(STRIKES.values())))
def test_without_a_fault_everything_passes(place, tmp_path):
    assert statuses("", place, tmp_path) == {"pass"}


@pytest.mark.parametrize("mutant", [id for id in KERNELS if id not in SURVIVORS | BY_CHANCE])
def test_a_planted_fault_is_found(mutant, tmp_path):
    place = next(place for prefix, place in STRIKES.items() if mutant.startswith(prefix))
    assert statuses(mutant, place, tmp_path) != {"pass"}


def test_lists_name_mutants():
    assert set(KERNELS) >= SURVIVORS | BY_CHANCE
