# SPDX-License-Identifier: BSD-3-Clause
"""Tests what report.html says about speed, and what changed from run to run, in a real browser."""

import json
import random
import shutil
import subprocess

import browser
import pytest
import run_record
from page_runs import CONTRASTS, HOSTILE, QCTS, real_run, text, verdict, write_run

pytestmark = pytest.mark.skipif(browser.program() is None, reason="no Chromium (Debian: chromium)")


@pytest.fixture(scope="module")
def head(tmp_path_factory):
    return real_run(tmp_path_factory.mktemp("real") / "out")[0]


def claim(subject, against, ratio, status, text, required=True):
    return {"claim": "faster", "subject": subject, "against": against, "ratio": ratio, "low": ratio - 0.1, "high": ratio + 0.1,
            "samples": 40, "at_least": 1.01, "required": required, "status": status, "text": text}  # fmt: skip


def claimed(name, provider, speed, **more):
    measures = [{"name": "median_us", "unit": "us", "value": 12.5}]
    more |= {"case_id": f"latency.linear/int8_row/{name}", "provider": provider, "variant": "avx2", "status": "pass"}
    return verdict(0, ["int8_row"]) | more | {"reason": speed["text"], "measures": measures, "speed": [speed]}


def test_claims_about_speed_stand_worst_first(head, tmp_path):
    """Of the run, of `qcts block` and of generate; a peer's say that they do not gate."""
    slower = claim(f"int8_row {HOSTILE}", "dense bfloat16 (aten_aten)", 0.5, "fail", f"int8_row {HOSTILE}: slower than dense")
    faster = claim("int8_row m=1", "dense bfloat16 (aten_aten)", 2.1, "pass", "int8_row m=1: 2.10x [2.00, 2.20] faster than dense")
    rows = [claimed("m1_cold", "acme", faster), claimed("m2_cold", "peer", slower, peer=True)]
    write_run(tmp_path / "part", head | {"selection": ["--plan latency"], "gate_latency": True}, rows)
    subprocess.run([QCTS, "merge", tmp_path / "part", "--out", tmp_path], capture_output=True, timeout=300, check=False)
    us = {"value": 50.0, "samples": 9}
    block = {"scheme": "int8_row", "m": 1, "linear": "builtin_avx2", "status": "pass", "dense_us": us, "before_us": us, "after_us": us,
             "speed": [claim("block", "before saving", 1.0, "inconclusive", "block after loading: not shown to be as fast")]}  # fmt: skip
    (tmp_path / "block.json").write_text(json.dumps({"gate_latency": False, "rows": [block]}))
    generate = {"tokens_equal": True, "tokens_as_dense": 30, "new_tokens": 32, "rows": [], "compiled": "not compiled: no compiler",
                "speed": [faster | {"text": "generate: 2.10x faster"}]}  # fmt: skip
    (tmp_path / "generate.json").write_text(json.dumps(generate))
    done = subprocess.run([QCTS, "report", tmp_path], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    with browser.Browser() as tab:
        tab.open(tmp_path / "report.html")
        tab.go("#/speed")
        seen = tab.evaluate("""[...document.querySelectorAll("[aria-label='claims about speed'] .row")].map(e => e.innerText)""")
        assert [one.split("\n")[0] for one in seen] == ["slower (peer)", "inconclusive", "pass", "pass"], seen
        assert HOSTILE in seen[0] and "no: a peer" in seen[0] and "no: --gate latency" in seen[1]
        assert "not compiled: no compiler" in text(tab) and "One decoder block" in text(tab)
        assert tab.errors == [] and tab.evaluate("typeof hacked") == "undefined"


NIGHTS, STEP, SLOWER = 24, 15, 1.08


def timed(i, us):
    """A latency case whose fastest call takes `us`; its roof takes 10 us."""
    numbers = {"median_us": (us * 1.1, "us"), "fastest_us": (us, "us"), "fastest_of_roof": (us / 10, "x"), "alarm": (0, "x")}
    measures = [
        {"name": name, "unit": unit, "value": value, "low": value * 0.995, "high": value, "samples": 90}
        for name, (value, unit) in numbers.items()
    ]
    return verdict(0, ["int8_row"]) | {
        "case_id": f"latency.linear/int8_row/noise_m{i}_bf16_cold",
        "variant": "avx2",
        "status": "pass",
        "reason": "",
        "measures": measures,
        "evidence": [],
    }


def night(head, number):
    """The head and verdicts of a night: case 3 is slower from STEP on, case 5 fails every fourth night, case 7 is not timed once."""
    chance = random.Random(number)
    slower = [SLOWER if i == 3 and number >= STEP else 1 for i in range(10)]
    verdicts = [timed(i, 20 * slower[i] * (1 + 0.002 * chance.gauss(0, 1))) for i in range(10)]
    failing = verdicts[5]
    failing |= {"case_id": "numerics.linear/int8_row/noise_m5_bf16", "measures": []}
    if number % 4 == 1:
        failing |= {"status": "fail", "reason": HOSTILE}
    if number == 9:
        verdicts[7] |= {"status": "inconclusive", "reason": "no time", "measures": []}
    return head | {"started": f"2026-01-{number + 1:02}T00:00:00Z", "suite_commit": f"c{number}"}, verdicts


@pytest.fixture(scope="module")
def trended(head, tmp_path_factory):
    """The folder of the last of NIGHTS nights, and the history of all."""
    folder = tmp_path_factory.mktemp("trend")
    for number in range(NIGHTS):
        head, verdicts = night(head, number)
        part = folder / str(number)
        write_run(part, head, verdicts)
        last = number == NIGHTS - 1
        words = ["merge", part, "--out", folder / "out", "--history", folder / "h.sqlite"]
        words = words if last else ["history", folder / "h.sqlite", "--add", part]
        done = subprocess.run([QCTS, *words], capture_output=True, text=True, timeout=300)
        assert done.returncode in (0, 1, 3), done.stdout + done.stderr
    return folder


@pytest.mark.parametrize(("width", "dark"), [(1400, False), (1400, True), (390, False)], ids=["wide", "dark", "phone"])
def test_the_trend_shows_steps_flips_and_counts(trended, width, dark):
    with browser.Browser() as tab:
        tab.resize(width, 844)
        tab.media(dark=dark)
        tab.open(trended / "out/report.html", "#/trend")
        shown = text(tab)
        for words in (f"{NIGHTS} nights", "Latency: 9 cases, 1 with a step", "Cases whose status changed: 2"):
            assert words in shown
        lines = tab.evaluate("""[...document.querySelectorAll('[aria-label="latency by night"] .row')].map(row =>
          [row.innerText, row.querySelectorAll(".step.slower").length, row.querySelector("path").getAttribute("d").match(/M/g).length])""")
        assert "noise_m3_" in lines[0][0] and lines[0][1] == 1 and "+8" in lines[0][0], lines[0]
        assert sum(steps for _, steps, _ in lines) == 1
        assert next(pieces for words, _, pieces in lines if "noise_m7_" in words) == 2, "a night without a time parts the line"
        bars = [number for number in range(NIGHTS) if number % 4 == 1 or number == 9]
        assert tab.evaluate("document.querySelectorAll('svg .other').length") == len(bars)
        family = tab.evaluate("""[...document.querySelectorAll('svg.nights a')].map(row =>
          [row.getAttribute("aria-label"), row.querySelector(".night-fail")?.getAttribute("d").match(/M/g).length || 0])""")
        shown = 20 if width == 390 else NIGHTS
        failed = [number for number in range(1, NIGHTS, 4) if number >= NIGHTS - shown]
        assert family == [[f"int8_row: failures on {len(failed)} nights, the last on 2026-01-{failed[-1] + 1:02}", len(failed)]]
        assert tab.evaluate("document.querySelectorAll('*').length") < browser.ELEMENTS
        assert tab.evaluate("document.documentElement.scrollWidth") <= width and tab.evaluate(CONTRASTS) == []
        assert tab.evaluate("typeof hacked") == "undefined" and tab.errors == []
        tab.evaluate("document.querySelector('[aria-label=\"latency by night\"] a').focus()")
        tab.send("Input.dispatchKeyEvent", type="rawKeyDown", key="Enter", code="Enter", windowsVirtualKeyCode=13)
        tab.send("Input.dispatchKeyEvent", type="char", key="Enter", text="\r")
        tab.evaluate("new Promise(done => setTimeout(done, 200))")
        assert tab.evaluate("location.hash").startswith("#/case/latency")


def report_again(folder, *words):
    return subprocess.run([QCTS, "report", folder, *words], capture_output=True, text=True, timeout=300)


def turned(folder):
    changes = json.loads((folder / "report.json").read_text())["changes"]
    counts = {one["list"]: one["count"] for one in changes["lists"]}
    return changes["before"]["commit"], counts, [one["id"] for one in changes["latency"]["slower"]]


def test_what_changed_comes_from_the_history_or_from_before(trended, tmp_path):
    """A folder without an earlier run: the history's last one, until --before names another."""
    out = shutil.copytree(trended / "out", tmp_path / "out")
    slow = "latency.linear/int8_row/noise_m3_bf16_cold/acme_avx2"
    assert turned(out) == (f"c{NIGHTS - 2}", {}, [])
    assert report_again(out, "--before", trended / "13").returncode == 0
    assert turned(out) == ("c13", {"fixed": 1}, [slow])
    for page in (out / "report.html", out / "summary.md"):
        assert page.exists()
    with browser.Browser() as tab:
        tab.open(out / "report.html")
        assert "1 slower" in text(tab) and "c13" in text(tab)
    assert report_again(out, "--history", trended / "h.sqlite").returncode == 0
    assert turned(out)[0] == "c13", "what --before named stays"


def test_another_question_is_not_the_run_before(trended, tmp_path):
    out = shutil.copytree(trended / "out", tmp_path / "out")
    other = tmp_path / "other"
    other.mkdir()
    head, *verdicts = run_record.lines(trended / "13")
    (other / "run.jsonl").write_text("\n".join([json.dumps(json.loads(head) | {"plan": "mine"}), *verdicts]) + "\n")
    done = report_again(out, "--before", other)
    assert done.returncode == 2 and "another plan" in done.stderr and done.stderr.count("\n") == 1
    assert report_again(out, "--history", tmp_path / "none").returncode == 2
    assert (out / "report.json").read_bytes() == (trended / "out/report.json").read_bytes()


def test_a_new_run_forgets_the_trend_of_the_one_before(trended, tmp_path):
    out = shutil.copytree(trended / "out", tmp_path / "out")
    done = subprocess.run([QCTS, "merge", trended / str(NIGHTS - 1), "--out", out], capture_output=True, timeout=300)
    assert done.returncode in (0, 1, 3) and not (out / "trend.json").exists()
