# SPDX-License-Identifier: BSD-3-Clause
"""Protects the options by which a developer steers a run, and that no run is lost: an unfinished record is never overwritten unasked."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
import run_record

ROOT = Path(__file__).resolve().parents[3]
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))
SMALL = ["--plan", "quick", "--scheme", "int8_row", "--kind", "numerics", "--provider", "builtin"]


def run(out, *words):
    wide = os.environ | {"COLUMNS": "200"}
    return subprocess.run([QCTS, "run", "--out", str(out), *words], capture_output=True, text=True, timeout=600, env=wide)


def verdicts(out):
    return [json.loads(line) for line in run_record.lines(out)[1:]]


def failed_ids(out):
    return [f"{v['case_id']}/{v['provider']}_{v['variant']}" for v in verdicts(out) if v["status"] == "fail"]


def library_with(folder, old, new):
    """Compiles the sample provider with one line changed."""
    source = (ROOT / "suites/selftest/minimal/minimal.c").read_text()
    assert source.count(old) >= 1
    (folder / "acme.c").write_text(source.replace(old, new).replace("#include <string.h>", "#include <string.h>\n#include <unistd.h>"))
    words = ["cc", "-std=gnu11", "-O2", "-shared", "-fPIC", "-I", str(ROOT / "kernels/abi"), "-o", "acme.so", "acme.c"]
    subprocess.run(words, check=True, cwd=folder)
    return str(folder / "acme.so")


NUMERICS = ["--plan", "nightly", "--filter", "numerics.*/int8_row/*_f32"]


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    changed = library_with(tmp_path_factory.mktemp("acme"), "float_at(w.scale, n);", "float_at(w.scale, n > 0 ? n - 1 : 0);")
    return [*NUMERICS, "--provider", changed]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "out"
    assert run(out, *SMALL).returncode == 0
    return run_record.lines(out)


def unfinished(out, lines, count):
    """Makes a folder with the record of a run that judged `count` cases."""
    out.mkdir()
    (out / "run.jsonl").write_text("\n".join(lines[: 1 + count]) + "\n")
    return (out / "run.jsonl").read_bytes()


def test_an_unfinished_run_is_not_overwritten(whole, tmp_path):
    before = unfinished(tmp_path / "out", whole, 5)
    result = run(tmp_path / "out", *SMALL)
    assert result.returncode == 2 and (tmp_path / "out/run.jsonl").read_bytes() == before
    assert f"has an unfinished run, of 5 of {len(whole) - 1} cases: --resume continues it, --restart sets it aside" in result.stderr


def test_it_is_resumed_or_discarded_when_asked(whole, tmp_path):
    unfinished(tmp_path / "out", whole, 5)
    result = run(tmp_path / "out", *SMALL, "--resume")
    assert result.returncode == 0 and f"continues after 5 of {len(whole) - 1} cases" in result.stderr
    before = unfinished(tmp_path / "other", whole, 5)
    assert run(tmp_path / "other", *SMALL, "--restart").returncode == 0
    assert (tmp_path / "other/unfinished.jsonl").read_bytes() == before
    assert len(verdicts(tmp_path / "out")) == len(verdicts(tmp_path / "other")) == len(whole) - 1


def test_resuming_where_nothing_is_says_so(tmp_path):
    result = run(tmp_path / "typo", *SMALL, "--resume")
    assert result.returncode == 0 and f"nothing to resume in {tmp_path}/typo: starts from the beginning" in result.stderr


@pytest.mark.parametrize("name", ["HUP", "INT", "TERM"])
def test_a_signal_leaves_a_run_that_can_be_resumed(name, tmp_path):
    words = ["--plan", "default", "--kind", "numerics", "--provider", "builtin"]
    process = subprocess.Popen([QCTS, "run", "--out", str(tmp_path), *words], stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not ((tmp_path / "run.jsonl").exists() and (tmp_path / "run.jsonl").read_bytes().count(b"\n") > 20):
        time.sleep(0.01)
    process.send_signal(getattr(signal, "SIG" + name))
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 5 and "interrupted after" in said and "continue with --resume" in said
    assert len(verdicts(tmp_path)) > 10


@pytest.mark.parametrize("words, count", [(["--fail-fast"], 1), (["--fail-fast=3"], 3), (["--fail-fast", "3"], 3)])
def test_fail_fast_stops_and_keeps_the_record(words, count, wrong, tmp_path):
    result = run(tmp_path, *wrong, "--jobs", "1", *words)
    assert result.returncode == 1 and "STOPPED by --fail-fast after" in result.stdout
    assert len(failed_ids(tmp_path)) == count and not (tmp_path / "report.json").exists()
    assert run(tmp_path, *wrong, "--resume").returncode == 1
    assert (tmp_path / "report.json").exists() and len(failed_ids(tmp_path)) > count


def test_the_last_failures_are_judged_again(wrong, tmp_path):
    assert run(tmp_path, *wrong).returncode == 1
    failed = failed_ids(tmp_path)
    result = run(tmp_path, "--last-failed")
    assert result.returncode == 1 and sorted(failed_ids(tmp_path)) == sorted(failed) and len(verdicts(tmp_path)) == len(failed)


def test_there_must_be_failures(whole, tmp_path):
    result = run(tmp_path / "out", *SMALL, "--last-failed")
    assert result.returncode == 2 and "has no run" in result.stderr
    unfinished(tmp_path / "out", whole, len(whole) - 1)
    result = run(tmp_path / "out", *SMALL, "--last-failed")
    assert result.returncode == 3 and "no case failed" in result.stderr


def test_excluded_cases_are_left_out(tmp_path):
    assert run(tmp_path, *SMALL, "--exclude", "*_bf16*", "--exclude", "linear").returncode == 0
    judged = [v["case_id"] for v in verdicts(tmp_path)]
    assert judged and not any("_bf16" in case or "linear" in case for case in judged)
    assert "--exclude linear" in json.loads((tmp_path / "report.json").read_text())["run"]["selection"]


def test_the_slowest_cases_are_named(tmp_path):
    said = run(tmp_path, *SMALL, "--durations", "3").stdout.splitlines()
    first = said.index("  slowest")
    times = [float(line.split()[0]) for line in said[first + 1 : first + 4]]
    assert times == sorted(times, reverse=True) and all("numerics." in line for line in said[first + 1 : first + 4])


def test_repeats_find_a_kernel_that_is_wrong_now_and_then(tmp_path):
    begin = "static qcts_status linear(const qcts_problem* p) {\n"
    library = library_with(tmp_path, begin, begin + "  static int calls;\n  if (++calls % 60 == 0) return QCTS_OK;\n")
    case = ["--filter", "numerics.linear/int8_row/noise_m1_n37_k216_f32/*", "--provider", library]
    assert run(tmp_path / "once", *case).returncode == 0
    assert run(tmp_path / "often", *case, "--repeat", "60").returncode == 1
    (verdict,) = verdicts(tmp_path / "often")
    assert verdict["status"] == "fail" and " of 60)" in verdict["reason"]


def test_a_provider_that_always_hangs_is_stopped(tmp_path):
    begin = "static qcts_status dequantize(const qcts_problem* p) {\n"
    library = library_with(tmp_path, begin, begin + "  pause();\n")
    words = ["--plan", "nightly", "--filter", "numerics.dequantize/int8_row/*_f32", "--provider", library, "--timeout", "1"]
    start = time.monotonic()
    result = run(tmp_path / "out", *words)
    found = verdicts(tmp_path / "out")
    late = [v for v in found if v["reason"].startswith("no verdict within 1 s")]
    rest = [v for v in found if v["reason"].startswith("not asked: ")]
    assert result.returncode == 1 and {v["status"] for v in late + rest} == {"timeout"}, result.stdout
    assert 3 <= len(late) <= 4 and rest and time.monotonic() - start < 30
    assert "timed out 3 times in a row (--keep-going continues)" in rest[0]["reason"]
