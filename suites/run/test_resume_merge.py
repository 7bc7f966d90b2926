# SPDX-License-Identifier: BSD-3-Clause
"""Tests that resumed and merged runs give the report of an undisturbed run, and that parts of other runs are refused."""

import json
import os
import random
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
import run_record

ROOT = Path(__file__).resolve().parents[2]
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))
SELECTION = ["--plan", "quick", "--scheme", "int8_row", "--kind", "numerics", "--kind", "size"]
SELECTION += ["--provider", "builtin", "--provider", "qcts"]
KILLS = 10


def environment(**more):
    shards = ("SHARD", "SLURM_ARRAY", "CI_NODE", "JOB_COMPLETION")
    return {name: value for name, value in os.environ.items() if not any(word in name for word in shards)} | more


def run(out, *words, **more):
    command = [QCTS, "run", "--no-progress", "--out", str(out), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment(**more))


def merge(out, *parts):
    return subprocess.run([QCTS, "merge", "--out", str(out), *map(str, parts)], capture_output=True, text=True, timeout=300)


def without_times(value):
    """Removes from a report, or part of one, the values that differ between runs."""
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key not in ("wall_us", "wall_s", "started")}
    if isinstance(value, list):
        return [without_times(item) for item in value]
    return value


def report_of(out):
    return without_times(json.loads((out / "report.json").read_text()))


def lines_of(out):
    return [line.encode() for line in run_record.lines(out)] + [b""]


def start_over(whole, out, lines=None):
    """Makes a folder with an unfinished record: that of another run, or given lines."""
    out.mkdir()
    (out / "run.jsonl").write_bytes(b"\n".join(lines_of(whole) if lines is None else lines))
    return (out / "run.jsonl").read_bytes()


def lines_so_far(out):
    return (out / "run.jsonl").read_bytes().count(b"\n") if (out / "run.jsonl").exists() else 0


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "out"
    result = run(out, *SELECTION)
    assert result.returncode == 0, result.stdout + result.stderr
    return out


def verdicts_of(out):
    """Returns the verdicts of run.jsonl, sorted. Coverage lists only values that are new in the worker's process, so after a
    kill it is in other verdicts; the union in the report is the same.
    """
    verdicts = without_times(list(map(json.loads, filter(None, lines_of(out)[1:]))))
    return sorted(({**verdict, "coverage": None} for verdict in verdicts), key=str)


def comparable(report, out):
    """The command line names a folder; the rest must be equal."""
    words = [word for word in report["run"]["arguments"] if word != "--resume"]
    folder = words.index("--out") + 1
    report["run"]["arguments"] = words[:folder] + words[folder + 1 :]
    return report


def test_the_report_holds_the_command_line(whole):
    arguments = json.loads((whole / "report.json").read_text())["run"]["arguments"]
    assert arguments == ["run", "--no-progress", "--out", str(whole), *SELECTION]


def test_killed_at_random_moments_and_resumed_it_says_the_same(whole, tmp_path):
    out, command = tmp_path / "out", [*SELECTION, "--resume"]
    total = len(lines_of(whole)) - 2
    chance = random.Random(os.urandom(8))
    kills = moments = 0
    for _ in range(5 * KILLS):
        if kills == KILLS:
            break
        have = lines_so_far(out)
        wanted = have + chance.randint(0, max(1, (total - have) // (KILLS - kills + 1)))
        process = subprocess.Popen([QCTS, "run", "--no-progress", "--out", str(out), *command], stderr=subprocess.PIPE, env=environment())
        while process.poll() is None and (not (out / "run.jsonl").exists() or lines_so_far(out) < wanted):
            time.sleep(0.002)
        time.sleep(chance.random() * 0.02)
        process.kill()
        if process.wait() == -9:
            kills += 1
            moments += lines_so_far(out)
        else:
            assert process.returncode == 0, process.stderr.read()
            shutil.rmtree(out)  # it was faster than the kill
    assert kills == KILLS and moments > 0
    result = run(out, *command)
    assert result.returncode == 0, result.stderr
    assert comparable(report_of(out), out) == comparable(report_of(whole), whole)
    assert verdicts_of(out) == verdicts_of(whole)


@pytest.mark.parametrize("cut", [1, 40, None], ids=["line_feed", "half_a_line", "no_verdict_at_all"])
def test_a_torn_last_line_is_dropped(whole, tmp_path, cut):
    out = tmp_path / "out"
    text = start_over(whole, out)
    (out / "run.jsonl").write_bytes(text[:-cut] if cut else text.split(b"\n")[0] + b"\n")
    assert run(out, *SELECTION, "--resume").returncode == 0
    assert comparable(report_of(out), out) == comparable(report_of(whole), whole) or not cut
    assert len(lines_of(out)) == len(lines_of(whole))


def test_a_finished_run_is_not_judged_again(whole, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    shutil.copy(whole / "run.jsonl.gz", out)
    assert run(out, *SELECTION, "--resume").returncode == 0
    assert (out / "run.jsonl.gz").read_bytes() == (whole / "run.jsonl.gz").read_bytes() and not (out / "run.jsonl").exists()


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--seed", "7"], "seed"),
        (["--threads", "2"], "threads"),
        (["--filter", "*noise*"], "selection"),
        (["--memory-limit", "99"], "memory"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_another_run_is_not_resumed(whole, tmp_path, words, named):
    out = tmp_path / "out"
    before = start_over(whole, out)
    result = run(out, *SELECTION, *words, "--resume")
    assert result.returncode == 2 and named in result.stderr, result.stderr
    assert (out / "run.jsonl").read_bytes() == before
    (out / "run.jsonl").unlink()
    shutil.copy(whole / "run.jsonl.gz", out)
    assert run(out, *SELECTION, *words, "--resume").returncode == 2
    assert [file.name for file in out.glob("*.jsonl*")] == ["run.jsonl.gz"]


def test_a_damaged_record_is_not_resumed(whole, tmp_path):
    out, lines = tmp_path / "out", lines_of(whole)
    lines[3] = lines[3][:50]
    start_over(whole, out, lines)
    result = run(out, *SELECTION, "--resume")
    assert result.returncode == 2 and "line 4" in result.stderr


@pytest.fixture(scope="module")
def shards(whole, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    engines = [
        {"SLURM_ARRAY_TASK_ID": "1", "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_COUNT": "3"},
        {"JOB_COMPLETION_INDEX": "1", "QCTS_SHARDS": "3"},
        {"GTEST_SHARD_INDEX": "2", "GTEST_TOTAL_SHARDS": "3", "GTEST_SHARD_STATUS_FILE": str(folder / "touched")},
    ]
    for i, engine in enumerate(engines, 1):
        result = run(folder / str(i), *SELECTION, **engine)
        assert result.returncode == 0, result.stderr
        assert json.loads((folder / str(i) / "report.json").read_text())["run"]["shard"] == f"{i}/3"
    assert (folder / "touched").exists()
    return folder


def test_merged_shards_say_what_the_whole_says(whole, shards, tmp_path):
    result = merge(tmp_path / "out", shards / "3", shards / "1" / "run.jsonl.gz", shards / "2")
    assert result.returncode == 0, result.stderr
    merged, want = report_of(tmp_path / "out"), report_of(whole)
    assert merged["run"].pop("arguments")[0] == "merge" and want["run"].pop("arguments")
    assert merged == want


def altered(shards, tmp_path, number, change):
    """Copies one shard and changes its record."""
    folder = tmp_path / f"altered{number}"
    folder.mkdir()
    lines = [json.loads(line) for line in filter(None, lines_of(shards / str(number)))]
    change(lines)
    (folder / "run.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def other_hash(lines):
    lines[0]["providers"][0]["sha256"] = "0" * 64


def other_case(lines):
    lines[-1]["case_id"] += "x"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda lines: lines[0].update(suite_version="0.0.9"), "suite_version"),
        (lambda lines: lines[0].update(plan_sha256="0" * 64), "plan_sha256"),
        (lambda lines: lines[0].update(fixtures_sha256="0" * 64), "fixtures_sha256"),
        (lambda lines: lines[0].update(selection=[]), "selection"),
        (lambda lines: lines[0]["environment"].update(cpu_model="another"), "cpu_model"),
        (lambda lines: lines[0]["environment"].update(cpu_family=0), "cpu_family"),
        (lambda lines: lines[0]["environment"].update(weight_reading="another"), "weight_reading"),
        (lambda lines: lines[0].pop("seed"), "seed"),
        (lambda lines: lines[0].update(shard=1), "both shard 1/3"),
        (lambda lines: lines.pop(), "unfinished"),
        (lambda lines: lines.append(lines[1]), "a second verdict"),
        (other_hash, "provider"),
        (other_case, "cases other than the run's"),
    ],
    ids=lambda value: value.replace(" ", "_").replace("/", "_") if isinstance(value, str) else "",
)
def test_merge_refuses_what_is_not_one_run(shards, tmp_path, change, why):
    result = merge(tmp_path / "out", shards / "1", shards / "2", altered(shards, tmp_path, 3, change))
    assert result.returncode == 2 and why in result.stderr, result.stderr
    assert not (tmp_path / "out" / "report.json").exists()


def test_merge_refuses_gaps_and_overlaps(shards, tmp_path):
    gap = merge(tmp_path / "out", shards / "1", shards / "3")
    assert gap.returncode == 2 and "missing: 2" in gap.stderr
    twice = merge(tmp_path / "out", shards / "1", shards / "2", shards / "3", shards / "2")
    assert twice.returncode == 2 and "both shard 2/3" in twice.stderr

    def take_from_first(lines):
        lines[1] = json.loads(lines_of(shards / "1")[1])

    overlap = merge(tmp_path / "out", shards / "1", shards / "2", altered(shards, tmp_path, 3, take_from_first))
    assert overlap.returncode == 2 and "is judged by" in overlap.stderr
    nowhere = merge(tmp_path / "out", tmp_path / "nothing")
    assert nowhere.returncode == 2


def test_an_empty_shard_proves_nothing_and_merges(tmp_path):
    one = ["--filter", "numerics.dequantize/int8_row/noise_n7_k13_f32/builtin_scalar", "--provider", "builtin"]
    assert [run(tmp_path / str(i), *one, "--shard", f"{i}/2").returncode for i in (1, 2)] == [0, 3]
    assert not (tmp_path / "2" / "report.json").exists()
    assert merge(tmp_path / "out", tmp_path / "1", tmp_path / "2").returncode == 0
    assert report_of(tmp_path / "out")["counts"]["total"] == 1


def test_an_engine_that_contradicts_itself_is_refused(tmp_path):
    result = run(tmp_path / "out", *SELECTION, CI_NODE_INDEX="4", CI_NODE_TOTAL="3")
    assert result.returncode == 2 and "CI_NODE_INDEX" in result.stderr
    assert run(tmp_path / "out", *SELECTION, "--list", "--shard", "1/1", CI_NODE_INDEX="4", CI_NODE_TOTAL="3").returncode == 0


@pytest.fixture
def waiving_root(tmp_path):
    """The repository's lists and fixtures, with other waivers."""
    root = tmp_path / "root"
    (root / "suites").mkdir(parents=True)
    (root / "fixtures").symlink_to(ROOT / "fixtures")
    for name in ("plans", "mustpass", "targets"):
        (root / "suites" / name).symlink_to(ROOT / "suites" / name)

    def write(*waivers):
        fields = ("case", "provider", "issue", "added", "expires")
        entries = [dict(zip(fields, waiver, strict=True)) for waiver in waivers]
        (root / "suites/waivers.json").write_text(json.dumps({"schema": 1, "waivers": entries}))
        return root

    return write


FAULTY = Path(QCTS).resolve().parent.parent / "lib/selftest/qcts_faulty_wrong.so"
STRUCK, SPARED = "numerics.dequantize/int8_row/noise_n7_k13_f32", "numerics.dequantize/int8_row/noise_n37_k216_f32"


@pytest.mark.parametrize(
    ("waivers", "code", "statuses"),
    [
        ([(STRUCK, "faulty", "https://example.org/1", "2026-01-01", "9999-12-31")], 0, ["pass", "waived"]),
        ([(STRUCK, "faulty", "https://example.org/1", "2020-01-01", "2020-12-31")], 1, ["pass", "fail"]),
        ([(STRUCK, "another", "https://example.org/1", "2026-01-01", "9999-12-31")], 1, ["pass", "fail"]),
        ([("numerics.*", "faulty", "https://example.org/1", "2026-01-01", "9999-12-31")], 1, ["xpass", "waived"]),
    ],
    ids=["waived", "expired", "of_another_provider", "xpass"],
)
def test_waivers_decide_a_run_and_a_resumed_one_alike(waiving_root, tmp_path, waivers, code, statuses):
    root = waiving_root(*waivers)
    words = ["--provider", str(FAULTY), "--filter", STRUCK, "--filter", SPARED]
    first = run(tmp_path / "out", *words, QCTS_ROOT=str(root))
    assert first.returncode == code, first.stdout + first.stderr
    report = report_of(tmp_path / "out")
    assert sorted(Counter(report["counts"]["by_status"]).elements()) == sorted(statuses)
    assert run(tmp_path / "out", *words, "--resume", QCTS_ROOT=str(root)).returncode == code
    assert report_of(tmp_path / "out") == report


def test_a_second_run_is_compared_with_the_first(tmp_path):
    """The record of the previous run stays; another selection is another run."""
    words = ["--provider", str(FAULTY), "--filter", STRUCK, "--filter", SPARED]
    assert run(tmp_path / "out", *words).returncode == 1
    assert report_of(tmp_path / "out")["changes"] is None
    first = (tmp_path / "out/run.jsonl.gz").read_bytes()
    assert run(tmp_path / "out", *words).returncode == 1
    changes = report_of(tmp_path / "out")["changes"]
    assert (changes["unchanged"] + changes["still_failing"], changes["lists"]) == (2, []), changes
    assert (tmp_path / "out/before.jsonl.gz").read_bytes() == first
    assert run(tmp_path / "out", *words[:4]).returncode == 1
    assert report_of(tmp_path / "out")["changes"] is None
    (tmp_path / "out/run.jsonl.gz").write_bytes(b"\x1f\x8bdamaged")
    result = run(tmp_path / "out", *words[:4])
    assert result.returncode == 1 and "could not compare with the previous run" in result.stderr
    assert report_of(tmp_path / "out")["changes"] is None
