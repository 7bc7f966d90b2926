# SPDX-License-Identifier: BSD-3-Clause
"""Runs libFuzzer on every target for a limited time, built by preset fuzz with both sanitizers.

QCTS_FUZZ_SECONDS sets the time per target (10 by default).
"""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import fuzzing  # noqa: E402

SECONDS = int(os.environ.get("QCTS_FUZZ_SECONDS", "10"))
TARGETS = [
    line.split("(")[1].split(",")[0]
    for line in (Path(__file__).parent / "targets.inc").read_text().splitlines()
    if line.startswith("QCTS_FUZZ_TARGET(")
]


@pytest.fixture(scope="module")
def program():
    compiler, why = fuzzing.find_clang()
    if not compiler:
        pytest.skip(why)
    return fuzzing.build(str(fuzzing.ROOT / "build/fuzz"), compiler)


@pytest.fixture(scope="module")
def folder(program, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    fuzzing.write_seeds(program, folder / "seeds")
    return folder


@pytest.mark.parametrize("target", TARGETS)
def test_a_bounded_run_finds_nothing(target, program, folder):
    for seconds in (SECONDS, 6 * SECONDS):  # on a busy machine the seeds may take all of the first
        result = fuzzing.fuzz(program, target, fuzzing.target_lengths(program)[target], folder, seconds)
        assert not result.error and not result.findings, (result.error, result.findings)
        if result.corpus_files > 10:
            break
    # There are over a hundred seeds: fewer executions mean that nothing was fuzzed.
    assert result.executions > 500 and result.corpus_files > 10 and result.covered_edges > 100, result


def test_the_log_of_a_finding_is_read():
    result = fuzzing.Result("zip")
    fuzzing.read_log(
        "INFO: Loaded 1 modules   (5 inline 8-bit counters): 5\n#9\tNEW    cov: 3 ft: 4\n", result
    )
    assert (result.executions, result.covered_edges, result.known_edges) == (9, 3, 5)


def test_executions_of_one_program_add_up(tmp_path):
    program, totals = tmp_path / "program", tmp_path / "totals.json"
    program.write_bytes(b"first")
    ran = [fuzzing.Result("zip", executions=5), fuzzing.Result("pickle", executions=2)]
    fuzzing.add_up(ran, program, totals)
    assert fuzzing.add_up(ran[:1], program, totals) == {"zip": 10, "pickle": 2}
    program.write_bytes(b"second")  # another build of the readers: earlier runs prove nothing about it
    assert fuzzing.add_up(ran[:1], program, totals) == {"zip": 5}
