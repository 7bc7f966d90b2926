# SPDX-License-Identifier: BSD-3-Clause
"""Tests the judge's commands: `qcts selftest kill` fails if a planted fault survives, `qcts selftest alarms` if a correct provider
fails; `qcts shrink` saves a failing input in a small file, which `qcts replay` runs on any provider.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
import run_record

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("QCTS_BUILD", ROOT / "build/release"))
QCTS = os.environ.get("QCTS_BIN", str(BUILD / "bin/qcts"))
MUTANTS = BUILD / "lib/selftest/qcts_mutants.so"
ATEN = BUILD / "lib/plugins/libqcts_aten.so"


def qcts(*words, fault="", code, timeout=300):
    environment = dict(os.environ, COLUMNS="1000") | ({"QCTS_MUTANT": fault} if fault else {})
    done = subprocess.run([QCTS, *map(str, words)], env=environment, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def test_kill_tells_who_died_where(tmp_path):
    words = ["--plan", "quick", "--kind", "kernel", "--kind", "merge", "--mutant", "q8_*", "--mutant", "m_*"]
    words += ["--case", "numerics.quantize/*"]
    done = qcts("selftest", "kill", *words, "--out", tmp_path / "kill.json", code=0)
    report = json.loads((tmp_path / "kill.json").read_text())
    assert report["killed"] == report["mutants"] - report["equivalent"] == len(report["rows"]) == 21
    for row in report["rows"]:
        assert row["first_killer"] and 0 < row["to_kill_s"] <= row["wall_s"], row
    assert "21 of 21 mutants killed" in done.stdout and "gap found by q8_nan_becomes_minus_128" in done.stdout


BESIDE_ELEMENTS = {  # mutant: the end of a path that it changes
    "f_numbers_plus_one": ".version",
    "f_flags_flipped": ".nesterov",
    "f_gradients_flipped": "requires_grad",
    "f_strings_lengthened": ".tag",
    "f_lists_and_tuples_swapped": "type",
    "f_own_metadata_lost": "__metadata__.format",
    "f_storages_untied": "storage",
    "f_device_moved": "device",
    "f_object_number_changed": ".dim",
}


def test_what_is_lost_beside_the_elements_is_seen_in_every_file(tmp_path):
    """Where the claim to keep bytes shows that a file was changed, E2 sees it without the claim, and names the path."""
    mutants = [word for mutant in BESIDE_ELEMENTS for word in ("--mutant", mutant)]
    words = ["selftest", "kill", *mutants, "--case", "round_trip*", "--all", "--jobs", "2", "--out", tmp_path / "kill.json"]
    qcts(*words, code=0, timeout=900)
    for row in json.loads((tmp_path / "kill.json").read_text())["rows"]:
        claimed, free = ({k["case"] for k in row[name]} for name in ("killers", "killers_without_claim"))
        assert claimed and claimed == free, row["mutant"]
        seen = [k for k in row["killers_without_claim"] if "reader refuses" not in k["reason"]]
        assert all(k["where"] and "(E2)" in k["reason"] for k in seen)
        assert any(k["where"].endswith(BESIDE_ELEMENTS[row["mutant"]]) for k in seen), row["mutant"]


def test_only_bytes_need_the_claim(tmp_path):
    words = ["--mutant", "f_entries_sorted", "--mutant", "f_stride_lost", "--case", "round_trip*"]
    done = qcts("selftest", "kill", "--plan", "quick_files", *words, "--out", tmp_path / "kill.json", code=0)
    stride, entries = json.loads((tmp_path / "kill.json").read_text())["rows"]
    assert stride["killers_without_claim"] and not stride["bytes_alone"]
    assert entries["killed"] and entries["bytes_alone"] and not entries["killers_without_claim"]
    assert "without its claim: right, but for its bytes" in done.stdout


def test_kill_fails_where_a_fault_lives():
    done = qcts("selftest", "kill", "--mutant", "l_nan_to_zero", "--case", "numerics.linear/int8_row/exact_sums_m1_*", code=1)
    assert "0 of 1 mutants killed" in done.stdout and "survived: l_nan_to_zero" in done.stdout


def test_a_mutant_without_a_case_lives():
    done = qcts("selftest", "kill", "--mutant", "u4_*", "--case", "numerics.linear/int8_row/noise_m1_*", code=1)
    assert "no case of this plan tests it" in done.stdout


def test_no_mutant_proves_nothing():
    assert "no mutant was selected" in qcts("selftest", "kill", "--mutant", "zz_*", code=3).stderr


def test_the_whole_matrix_gives_the_fewest_cases():
    words = ["--plan", "quick", "--mutant", "d8_rows_contiguous", "--mutant", "q8_half_up", "--all", "--jobs", "2", "--cover"]
    words += ["--case", "numerics.quantize/*", "--case", "numerics.dequantize/*"]
    cover = [line for line in qcts("selftest", "kill", *words, code=0).stdout.splitlines() if line.startswith('    "')]
    assert len(cover) == 2 and {line.split("/")[0].split(".")[1] for line in cover} == {"dequantize", "quantize"}


def test_who_is_right_is_not_accused(tmp_path):
    """A small part of the plan; Alarms.NoneOverTheFirstSeed judges all of it."""
    plan = json.loads((ROOT / "suites/plans/seeds.json").read_text()) | {"kinds": ["numerics"], "schemes_per_input": 1}
    (tmp_path / "few.json").write_text(json.dumps(plan))
    words = ["--seeds", "1", "--plan", tmp_path / "few.json", "--provider", "builtin"]
    assert "0 false alarms" in qcts("selftest", "alarms", *words, code=0).stdout


@pytest.mark.skipif(not ATEN.exists(), reason="no LibTorch")
def test_a_library_that_is_right_is_not_accused():
    assert "0 false alarms" in qcts("selftest", "alarms", "--seeds", "1", "--provider", ATEN, code=0).stdout


def test_the_table_of_explanations():
    lines = qcts("selftest", "explain", code=0).stdout.splitlines()
    assert lines[-1] == "43 of 43 faults named; 0 of 10 pairs explained wrongly"
    assert sum(line.startswith("  right ") for line in lines) == len(lines) - 1 == 53


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
    assert "not a replay" in qcts("replay", file, code=5).stderr


STRUCK = "numerics.dequantize/int8_row/noise_n7_k13_f32"
EVERY_INPUT = {
    "description": "",
    "kinds": ["numerics"],
    "all_variants": True,
    "all_inputs": True,
    "case_timeout_s": 2,
    "latency_budget_s": 0,
    "latency_m": [],
    "latency_shapes": [],
}
# Faults of a provider that end or hang its process, and the expected reasons.
DEADLY = {
    "aborts": ("crash", "SIGABRT"),
    "exits": ("crash", "exit code 0"),
    "hangs": ("timeout", "no verdict within"),
}


def faulty(fault):
    return BUILD / f"lib/selftest/qcts_faulty_{fault}.so"


@pytest.fixture
def every_input(tmp_path):
    (tmp_path / "plan.json").write_text(json.dumps(EVERY_INPUT))
    return tmp_path / "plan.json"


@pytest.mark.parametrize("fault", DEADLY)
def test_a_run_survives_its_provider(fault, every_input, tmp_path):
    status, reason = DEADLY[fault]
    words = ["--no-progress", "--plan", every_input, "--filter", "/noise_n*_f32", "--out", tmp_path / "out"]
    qcts("run", "--provider", faulty(fault), *words, code=1)
    cases = {case["case_id"]: case for case in run_record.verdicts(tmp_path / "out")}
    assert cases[STRUCK]["status"] == status and reason in cases[STRUCK]["reason"]
    assert len(cases) > 1 and all(case["status"] == "pass" for case_id, case in cases.items() if case_id != STRUCK)


@pytest.mark.parametrize("fault", DEADLY)
def test_shrink_and_replay_survive_their_provider(fault, tmp_path):
    status, reason = DEADLY[fault]
    file = tmp_path / "small.json"
    words = ["--provider", faulty(fault), "--timeout", 2]
    done = qcts("shrink", STRUCK, *words, "--budget", 4 if fault == "hangs" else 4000, "-o", file, code=0)
    small = json.loads(file.read_text())
    assert f"{status}: " in done.stdout and reason in done.stdout
    assert (small["n"], small["k"]) == (1, 13), "no longer the smallest that still ends its process"
    done = qcts("replay", file, *words, code=1)
    assert f"faulty_scalar: {status}: " in done.stdout and reason in done.stdout
    assert "faulty_scalar: pass" in qcts("replay", file, "--provider", faulty("none"), code=0).stdout


@pytest.mark.parametrize("fault, reason", [("throws", "threw across the C ABI"), ("writes_past_end", "wrote outside its buffers")])
def test_a_broken_contract_fails_a_replay(fault, reason, tmp_path):
    file = tmp_path / "small.json"
    assert reason in qcts("shrink", STRUCK, "--provider", faulty(fault), "-o", file, code=0).stdout
    assert "faulty_scalar: fail: " in qcts("replay", file, "--provider", faulty(fault), code=1).stdout


def test_a_replay_asks_the_kernels_of_its_policy(tmp_path):
    file = tmp_path / "small.json"
    fault = "l8_scale_as_bf16"
    qcts("shrink", SHRUNK[fault], "--provider", MUTANTS, "--budget", 5, "-o", file, fault=fault, code=0)
    file.write_text(json.dumps(json.loads(file.read_text()) | {"activation": "dyn_row_sym"}))
    assert "builtin_scalar: pass" in qcts("replay", file, code=0).stdout


def test_a_provider_that_changes_its_host_fails_a_replay(tmp_path):
    file = tmp_path / "small.json"
    words = ["--provider", faulty("sets_ftz_at_load")]
    assert "changed the floating-point control state" in qcts("shrink", STRUCK, *words, "-o", file, code=0).stdout
    assert "changed the floating-point control state" in qcts("replay", file, *words, code=1).stdout


@pytest.mark.parametrize("fault", DEADLY)
def test_alarms_survive_their_provider(fault, every_input):
    status, reason = DEADLY[fault]
    done = qcts("selftest", "alarms", "--plan", every_input, "--seeds", 2, "--provider", faulty(fault), code=1)
    alarms = [line.strip() for line in done.stdout.splitlines() if line.startswith(f"    {status} ")]
    assert len(alarms) > 1 and all("k13_" in line and reason in line for line in alarms), done.stdout
    assert f"--seed 1 --provider {faulty(fault)}" in done.stdout and f"--seed 2 --provider {faulty(fault)}" in done.stdout


def test_one_worker_serves_every_seed(every_input):
    def alarms(first, last):
        words = ["--plan", every_input, "--first", first, "--seeds", last, "--provider", faulty("wrong")]
        return [line for line in qcts("selftest", "alarms", *words, code=1).stdout.splitlines() if line.startswith("    ")]

    one, two = alarms(1, 1), alarms(2, 2)
    assert one != two and alarms(1, 2) == one + two
