# SPDX-License-Identifier: BSD-3-Clause
"""Tests `qcts compare`, `history` and `export` on records of real runs: exit codes, schemas, and a history whose writer is killed."""

import csv
import gzip
import io
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import jsonschema
import pytest

ROOT = Path(__file__).resolve().parents[2]
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))
FAULTY = Path(os.environ.get("QCTS_BUILD", str(ROOT / "build/release"))) / "lib/selftest"
# Three float32 inputs; a faulty provider strikes at the second, k = 13.
SELECTION = ["--kind", "numerics", "--filter", "numerics.dequantize/int8_row/noise_n*_f32"]
SELECTION += ["--filter", "numerics.dequantize/int8_row/torchao_0_18_0_odd_17x64_f32_0"]
STRUCK = "numerics.dequantize/int8_row/noise_n7_k13_f32/faulty_scalar"


def qcts(*words, **more):
    return subprocess.run([QCTS, *map(str, words)], capture_output=True, text=True, timeout=600, **more)


def run(out, fault, *words):
    return qcts("run", "--no-progress", "--out", out, "--provider", FAULTY / f"qcts_faulty_{fault}.so", *SELECTION, *words)


def valid(text, schema):
    document, schema = json.loads(text), json.loads((ROOT / f"reports/{schema}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema, cls=jsonschema.Draft202012Validator)
    return document


def record_of(out):
    """Returns the lines of a record, compressed or not."""
    plain = out / "run.jsonl"
    text = plain.read_text() if plain.exists() else gzip.decompress((out / "run.jsonl.gz").read_bytes()).decode()
    return list(map(json.loads, text.splitlines()))


def write_record(out, lines):
    out.mkdir()
    (out / "run.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return out


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for fault, code in (("none", 0), ("wrong", 1), ("aborts", 1), ("declines", 3)):
        assert run(folder / fault, fault).returncode == code
    return folder


@pytest.fixture(scope="module")
def timed(tmp_path_factory):
    """A record with latency: one that a run wrote, on a plan of four cases."""
    folder = tmp_path_factory.mktemp("timed")
    plan = json.loads((ROOT / "suites/plans/latency_quick.json").read_text()) | {"latency_budget_s": 1, "latency_schemes": ["int8_row"]}
    (folder / "short.json").write_text(json.dumps(plan))
    result = qcts("run", "--no-progress", "--plan", folder / "short.json", "--provider", "builtin", "--out", folder / "out")
    assert result.returncode == 0, result.stdout + result.stderr
    return folder / "out"


@pytest.mark.parametrize(
    ("before", "after", "code", "found"),
    [
        ("none", "none", 0, {}),
        ("none", "wrong", 1, {"newly_failing": {STRUCK}}),
        ("none", "aborts", 1, {"newly_failing": {STRUCK}}),
        ("wrong", "none", 0, {"fixed": {STRUCK}}),
        ("wrong", "aborts", 0, {}),
        ("declines", "none", 0, {"newly_supported": 3}),
        ("none", "declines", 1, {"newly_not_supported": 3}),
        ("wrong", "declines", 1, {"newly_not_supported": 3}),
    ],
)
def test_a_planted_fault_is_named_and_nothing_else(runs, before, after, code, found):
    result = qcts("compare", "--json", runs / before, runs / after)
    comparison = valid(result.stdout, "comparison")
    assert result.returncode == comparison["exit_code"] == code
    lists = ("newly_failing", "gone", "newly_not_supported", "newly_inconclusive", "newly_robustness", "fixed", "newly_supported", "new")
    for name in lists:
        named = {change["id"] for change in comparison[name]}
        assert (len(named) if isinstance(found.get(name), int) else named) == found.get(name, set())
    assert comparison["environment"] == []  # the faults are in copies of one library
    for words in ([], ["--markdown"], ["--all"]):
        assert qcts("compare", *words, runs / before, runs / after).returncode == code


def test_a_compressed_record_is_the_same(runs, tmp_path):
    lines = record_of(runs / "none")
    (tmp_path / "packed").mkdir()
    with gzip.open(tmp_path / "packed/run.jsonl.gz", "wt") as out:
        out.write("".join(json.dumps(line) + "\n" for line in lines))
    for given in (tmp_path / "packed", tmp_path / "packed/run.jsonl.gz"):
        result = qcts("compare", "--json", given, runs / "wrong")
        assert (result.returncode, len(json.loads(result.stdout)["newly_failing"])) == (1, 1)
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "run.jsonl.gz").write_bytes((tmp_path / "packed/run.jsonl.gz").read_bytes()[:-20])
    result = qcts("compare", damaged, runs / "none")
    assert (result.returncode, "damaged/run.jsonl.gz: " in result.stderr) == (2, True)


def test_cases_that_are_gone_or_new(runs, tmp_path):
    lines = record_of(runs / "none")
    fewer = write_record(tmp_path / "fewer", [lines[0] | {"cases": 2, "all_cases": 2}, *lines[1:3]])
    assert qcts("compare", runs / "none", fewer).returncode == 1
    result = qcts("compare", "--json", fewer, runs / "none")
    assert (result.returncode, len(json.loads(result.stdout)["new"])) == (0, 1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"plan": "other"}, "another plan"),
        ({"selection": ["--kind size"]}, "another selection"),
        ({"shard": 2, "shards": 2}, "another shard"),
    ],
)
def test_other_runs_are_not_comparable(runs, tmp_path, change, words):
    lines = record_of(runs / "none")
    other = write_record(tmp_path / "other", [lines[0] | change, *lines[1:]])
    result = qcts("compare", "--json", runs / "none", other)
    assert result.returncode == 3
    assert words in valid(result.stdout, "comparison")["not_comparable"]


@pytest.mark.parametrize(
    ("spoil", "code", "words"),
    [
        (lambda lines: [lines[0] | {"schema": 99}, *lines[1:]], 2, "schema"),
        (lambda lines: [*lines, lines[-1]], 2, "second verdict"),
        (lambda lines: lines[:-1], 3, "unfinished: 2 of 3"),
        (lambda lines: [lines[0] | {"cases": 0}], 3, "no case"),
        (lambda lines: [lines[0], {"case_id": "x"}], 2, "line 2"),
        (lambda lines: [lines[0] | {"environment": {}}, *lines[1:]], 2, "does not describe a machine"),
    ],
    ids=["schema", "twice", "unfinished", "empty", "verdict", "environment"],
)
def test_a_record_that_is_no_finished_run_is_refused(runs, tmp_path, spoil, code, words):
    spoilt = write_record(tmp_path / "spoilt", spoil(record_of(runs / "none")))
    for pair in ((spoilt, runs / "none"), (runs / "none", spoilt)):
        result = qcts("compare", *pair)
        assert result.returncode == code
        assert words in result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert qcts("history", tmp_path / "h.sqlite", "--add", spoilt).returncode == code


@pytest.mark.parametrize(
    "words", [["one"], ["one", "two", "three"], ["one", "two", "--history", "h"], ["one", "two", "--json", "--markdown"]]
)
def test_wrong_words_are_usage_errors(words):
    assert qcts("compare", *words).returncode == 2


def calm_record_of(out):
    """Returns a run's record with the intervals, calls and drift of a quiet machine: what a comparison can see depends on these."""
    lines = record_of(out)
    for line in lines[1:]:
        for measure in line["measures"]:
            if measure["name"] in ("fastest_us", "fastest_of_roof"):
                measure.update(low=measure["value"] / 1.005, high=measure["value"] * 1.005, samples=200)
            if measure["name"] == "fastest_us":
                line["samples_us"] = [measure["value"] * (1 + 0.001 * (call % 10)) for call in range(200)]
            elif measure["name"] in ("alarm", "canary_drift"):
                measure["value"] = {"alarm": 0, "canary_drift": 1}[measure["name"]]
    return lines


def test_a_slower_kernel_is_named(timed, tmp_path):
    """The same record with one kernel's time 30 % longer: the rest of it is equal, so that only this case may be named.

    If only its fastest call is 30 % longer, no case is named.
    """
    calm, lines = calm_record_of(timed), calm_record_of(timed)
    assert qcts("compare", timed, timed).returncode == 0
    names = [{measure["name"] for measure in line.get("measures", [])} for line in lines]
    index = next(i for i, found in enumerate(names) if "fastest_us" in found)
    for measure in lines[index]["measures"]:
        factor = {"fastest_us": 1.3, "fastest_of_roof": 1.3}.get(measure["name"], 1)
        measure.update({key: measure[key] * factor for key in ("value", "low", "high") if key in measure})
    calm, outlier = write_record(tmp_path / "calm", calm), write_record(tmp_path / "outlier", lines)
    assert qcts("compare", calm, outlier).returncode == 0
    lines[index]["samples_us"] = [1.3 * us for us in lines[index]["samples_us"]]
    slow = write_record(tmp_path / "slow", lines)
    result = qcts("compare", "--json", calm, slow)
    latency = valid(result.stdout, "comparison")["latency"]
    assert result.returncode == 1
    assert [change["id"].startswith(lines[index]["case_id"]) for change in latency["slower"]] == [True]
    assert latency["slower"][0]["ratio"]["low"] > 1.01
    assert qcts("compare", slow, calm).returncode == 0
    assert qcts("compare", "--no-latency", calm, slow).returncode == 0
    lines[0]["environment"]["cpu_family"] += 1
    result = qcts("compare", calm, write_record(tmp_path / "other", lines))
    assert (result.returncode, "another machine class" in result.stdout) == (3, True)


def test_history_of_runs(runs, tmp_path):
    history = tmp_path / "h.sqlite"
    for fault, code in (("none", 0), ("wrong", 1), ("none", 0)):
        result = run(tmp_path / "out", fault, "--history", history)
        assert (result.returncode, "of its series" in result.stderr) == (code, True), result.stderr
        time.sleep(0.6)  # so that the first and the last, which are the same but for this, start in different seconds
    shown = valid(qcts("history", history, "--json").stdout, "history")
    (series,) = shown["series"]
    assert [night["changed"] for night in series["runs"]] == [0, 1, 1]
    (flips,) = series["flips"]
    assert (flips["id"], [change["after"] for change in flips["changes"]]) == (STRUCK, ["fail", "pass"])
    assert STRUCK in qcts("history", history).stdout
    assert STRUCK not in qcts("history", history, "--filter", "size").stdout
    result = qcts("compare", "--json", tmp_path / "out", "--history", history)
    assert (result.returncode, [change["id"] for change in valid(result.stdout, "comparison")["fixed"]]) == (0, [STRUCK])
    assert qcts("compare", runs / "none", "--history", tmp_path / "missing").returncode == 2


def test_a_history_that_cannot_be_written_stops_the_run_before_it_begins(tmp_path):
    (tmp_path / "h.sqlite").write_text("no history" * 100)
    result = run(tmp_path / "out", "none", "--history", tmp_path / "h.sqlite")
    assert (result.returncode, (tmp_path / "out").exists()) == (2, False)
    assert run(tmp_path / "out", "none", "--history", tmp_path / "h2.sqlite", "--shard", "1/2").returncode == 2
    assert run(tmp_path / "out", "none", "--history", tmp_path / "no/folder/h.sqlite").returncode == 5


def test_a_writer_that_is_killed_loses_its_own_run_only(runs, tmp_path):
    """Kills writers at once or at random moments of their work: the file is whole, has the nights before, and takes the next."""
    lines, history = record_of(runs / "none"), tmp_path / "h.sqlite"
    many = [
        line | {"case_id": line["case_id"] + str(number)} for number in range(6000) for line in lines[1:2]
    ]
    chance = random.Random(os.urandom(8))
    killed = 0
    for night in range(6):
        head = lines[0] | {"started": f"2026-01-{night + 1:02}T00:00:00Z", "cases": len(many), "all_cases": len(many)}
        status = "pass" if night % 2 else "not_supported"
        folder = write_record(tmp_path / str(night), [head, *(line | {"status": status, "reason": str(night)} for line in many)])
        before = nights_of(history)
        writer = subprocess.Popen([QCTS, "history", history, "--add", folder], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        start = time.monotonic()
        while writer.poll() is None and not history.with_name("h.sqlite-journal").exists() and time.monotonic() < start + 30:
            time.sleep(0.0005)
        time.sleep(night % 2 * chance.random() * 0.1)
        writer.send_signal(signal.SIGKILL)
        killed += writer.wait() == -signal.SIGKILL
        assert nights_of(history) in (before, before + 1)
        assert qcts("history", history, "--add", folder).returncode == 0
        assert nights_of(history) == before + 1
        with sqlite3.connect(history) as database:
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert database.execute("SELECT count(*) FROM case_state WHERE run NOT IN (SELECT id FROM run)").fetchone() == (0,)
        shutil.rmtree(folder)
    assert killed >= 2, "the writers were too fast to be killed"


def nights_of(history):
    result = qcts("history", history, "--json")
    if result.returncode == 2 and "there is no history" in result.stderr:
        return 0
    return sum(len(series["runs"]) for series in json.loads(result.stdout)["series"])


def test_export_for_google_benchmark(timed, runs, tmp_path):
    result = qcts("export", timed, "--format", "gbench", "--out", tmp_path / "bench.json")
    assert (result.returncode, result.stdout) == (0, "")
    exported = json.loads((tmp_path / "bench.json").read_text())
    verdicts = {f"{line['case_id']}/{line['provider']}_{line['variant']}": line for line in record_of(timed)[1:]}
    names = {entry["run_name"] for entry in exported["benchmarks"]}
    assert names == {name for name, line in verdicts.items() if line["status"] != "not_supported"}
    for name in names:
        entries = [entry for entry in exported["benchmarks"] if entry["run_name"] == name]
        repeated = [entry["real_time"] for entry in entries if entry["run_type"] == "iteration"]
        (median,) = (entry["real_time"] for entry in entries if entry.get("aggregate_name") == "median")
        samples = sorted(verdicts[name]["samples_us"])
        assert 1 <= len(repeated) <= 20
        assert samples[0] <= min(repeated) <= median <= max(repeated) <= samples[-1]
        assert {entry["time_unit"] for entry in entries} == {"us"}
    assert qcts("export", runs / "none", "--format", "gbench").returncode == 3


def test_export_as_csv(runs, timed):
    rows = list(csv.DictReader(io.StringIO(qcts("export", runs / "wrong", "--format", "csv").stdout)))
    lines = {f"{line['case_id']}/faulty_scalar": line for line in record_of(runs / "wrong")[1:]}
    assert {row["id"]: (row["status"], row["reason"]) for row in rows} == {
        name: (line["status"], line["reason"]) for name, line in lines.items()
    }
    for row in csv.DictReader(io.StringIO(qcts("export", timed, "--format", "csv").stdout)):
        if row["median_us"]:
            assert 0 < float(row["median_us"])


def test_export_as_markdown(runs):
    text = qcts("export", runs / "wrong", "--format", "markdown").stdout
    assert f"`{STRUCK}`" in text
    assert "| `int8_row` | | | | 2 / 3 **FAIL** |" in text


@pytest.mark.parametrize("words", [["--format", "xml"], []])
def test_export_wants_a_format(runs, words):
    assert qcts("export", runs / "none", *words).returncode == 2
