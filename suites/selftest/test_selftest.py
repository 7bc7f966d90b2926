"""The judge judged from its command line: `qcts selftest kill` fails where a planted fault lives, `qcts selftest alarms` where one
that is right is accused; `qcts shrink` keeps a failing input in a small file that `qcts replay` puts to any provider again.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("QCTS_BUILD", ROOT / "build/release"))
QCTS = os.environ.get("QCTS_BIN", str(BUILD / "bin/qcts"))
MUTANTS = BUILD / "lib/selftest/qcts_mutants.so"
ATEN = BUILD / "lib/plugins/libqcts_aten.so"


def qcts(*words, fault="", code):
    environment = dict(os.environ, QCTS_MUTANT=fault) if fault else os.environ
    done = subprocess.run([QCTS, *map(str, words)], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def test_kill_tells_who_died_where(tmp_path):
    done = qcts("selftest", "kill", "--plan", "quick", "--mutant", "q8_*", "--mutant", "m_*", "--json", tmp_path / "kill.json", code=0)
    report = json.loads((tmp_path / "kill.json").read_text())
    assert report["killed"] == report["mutants"] - report["equivalent"] == len(report["rows"]) == 21
    for row in report["rows"]:
        assert row["first_killer"] and 0 < row["to_kill_s"] <= row["wall_s"], row
    assert "21 of 21 mutants killed" in done.stdout and "found by q8_nan_becomes_minus_128" in done.stdout


def test_kill_fails_where_a_fault_lives():
    done = qcts("selftest", "kill", "--mutant", "l_nan_to_zero", "--case", "numerics.linear/int8_row/exact_sums_m1_*", code=1)
    assert "0 of 1 mutants killed" in done.stdout and "lives: l_nan_to_zero" in done.stdout


def test_a_mutant_without_a_case_lives():
    done = qcts("selftest", "kill", "--mutant", "u4_*", "--case", "numerics.linear/int8_row/noise_m1_*", code=1)
    assert "no case of this plan asks anything of it" in done.stdout


def test_no_mutant_proves_nothing():
    assert "no mutant was selected" in qcts("selftest", "kill", "--mutant", "zz_*", code=3).stderr


def test_the_whole_matrix_gives_the_fewest_cases():
    words = ["--plan", "quick", "--mutant", "d8_rows_contiguous", "--mutant", "q8_half_up", "--all", "--jobs", "2", "--cover"]
    cover = [line for line in qcts("selftest", "kill", *words, code=0).stdout.splitlines() if line.startswith('    "')]
    assert len(cover) == 2 and {line.split("/")[0].split(".")[1] for line in cover} == {"dequantize", "quantize"}


@pytest.mark.parametrize("provider", ["builtin", pytest.param(ATEN, marks=pytest.mark.skipif(not ATEN.exists(), reason="no LibTorch"))])
def test_who_is_right_is_not_accused(provider):
    assert "0 false alarms" in qcts("selftest", "alarms", "--seeds", "1", "--provider", provider, code=0).stdout


def test_the_table_of_explanations():
    lines = qcts("selftest", "explain", code=0).stdout.splitlines()
    assert lines[-1] == "34 of 34 faults named; 0 of 10 pairs explained wrongly"
    assert sum(line.startswith("  right ") for line in lines) == len(lines) - 1 == 44


def test_alarms_are_told():
    done = qcts("selftest", "alarms", "--seeds", "1", "--provider", MUTANTS, fault="l_last_k_dropped", code=1)
    assert "rerun: " in done.stdout and " 0 false alarms" not in done.stdout


SHRUNK = {
    "l4_nibbles_swapped": "numerics.linear/int4_tinygemm_g32/noise_m5_n40_k96_bf16",
    "l8_scale_as_bf16": "numerics.linear/int8_row/noise_m5_n37_k216_f32",
    "l_last_k_dropped": "numerics.linear/fp8_row/noise_m5_n37_k216_bf16",
    "l_bias_dropped_in_batches": "numerics.linear/int8_row/noise_m5_n37_k216_bf16",
    "q4_half_away": "numerics.quantize/int4_tinygemm_g32/halfway_n40_k96_bf16",
    "qf8_no_clamp": "numerics.quantize/fp8_row/extremes_n37_k216_bf16",
    "d4_group_late": "numerics.dequantize/int4_tinygemm_g128/noise_n40_k384_bf16",
    "d8_tail_unwritten": "numerics.dequantize/int8_row/all_codes_n7_k13_bf16",
}


@pytest.mark.parametrize("fault", SHRUNK)
def test_a_failure_shrinks_and_comes_again(fault, tmp_path):
    file = tmp_path / "small.json"
    done = qcts("shrink", SHRUNK[fault], "--provider", MUTANTS, "-o", file, fault=fault, code=0)
    assert file.stat().st_size < 4096, done.stdout
    small = json.loads(file.read_text())
    assert small["case"] == SHRUNK[fault] and f"replay {file}" in done.stdout
    assert "fail" in qcts("replay", file, "--provider", MUTANTS, fault=fault, code=1).stdout
    assert "pass" in qcts("replay", file, "--provider", MUTANTS, code=0).stdout
    assert "pass" in qcts("replay", file, code=0).stdout, "the builtin kernels are right on it"


def test_what_passes_cannot_be_shrunk(tmp_path):
    done = qcts("shrink", SHRUNK["l4_nibbles_swapped"], "-o", tmp_path / "x.json", code=3)
    assert "does not fail here" in done.stderr and not (tmp_path / "x.json").exists()


def test_a_wrong_id_gets_the_nearest(tmp_path):
    done = qcts("shrink", "numerics.linear/int8_row/noise_m5_n37_k261_bf16", "-o", tmp_path / "x.json", code=2)
    assert "noise_m5_n37_k216_bf16" in done.stderr


@pytest.mark.parametrize("field, value", [("k", 97), ("scheme", "int5"), ("x", []), ("qcts_replay", 2), ("m", -1), ("planes", {})])
def test_a_spoilt_replay_is_refused(field, value, tmp_path):
    file = tmp_path / "small.json"
    case = SHRUNK["d4_group_late"] if field != "x" else SHRUNK["l4_nibbles_swapped"]
    fault = "d4_group_late" if field != "x" else "l4_nibbles_swapped"
    qcts("shrink", case, "--provider", MUTANTS, "--budget", 20, "-o", file, fault=fault, code=0)
    file.write_text(json.dumps(json.loads(file.read_text()) | {field: value}))
    assert "no replay" in qcts("replay", file, code=5).stderr
