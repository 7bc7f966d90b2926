# SPDX-License-Identifier: BSD-3-Clause
"""Runs load_bench.py on a small file: every series has samples, ratios have their peers, cold means cold, and
no files remain.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("QCTS_BUILD", ROOT / "build/release"))
sys.path.insert(0, str(ROOT / "suites/bench"))
sys.path.insert(0, str(ROOT / "scripts"))
import load_bench  # noqa: E402


def test_small_run_measures_every_lane(tmp_path):
    out = tmp_path / "load.json"
    words = [
        sys.executable,
        ROOT / "suites/bench/load_bench.py",
        "--build",
        BUILD,
        "--out",
        out,
        "--bytes",
        8 << 20,
        "--tensors",
        20,
    ]
    # Evicting the page cache needs a file system on disk: the build folder has one, a temporary folder may not.
    words += ["--folder", BUILD / "load_bench_test", "--rounds", 5, "--cold-rounds", 2]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr[-2000:]
    report = json.loads(out.read_text())
    assert report["bytes"] == 20 * 204 * 2048
    warm = {(r["group"], r["name"]) for r in report["rows"] if r["cache"] == "warm"}
    assert {t[:2] for t in load_bench.TARGETS} | {(t[0], t[2]) for t in load_bench.TARGETS if t[2]} <= warm
    for row in report["rows"]:
        rounds = 2 if row["cache"] == "cold" else 5 if row["group"] in ("save", "copy") else 15
        assert row["median_us"] > 0 and len(row["samples_us"]) == rounds, row
    assert {r["cache"] for r in report["rows"]} == {"warm", "cold"}
    assert [r["decision"] for r in report["ratios"] if r["cache"] == "cold" and r["kind"] == "ratio"] == [
        "undecided"
    ] * 3
    assert not (BUILD / "load_bench_test").exists()


def test_decisions_need_the_whole_interval():
    target = ("load", "a", "b", "ratio", 0.9)
    assert load_bench.decide(target, {"low": 0.91, "high": 0.99}) == "met"
    assert load_bench.decide(target, {"low": 0.85, "high": 0.95}) == "undecided"
    assert load_bench.decide(target, {"low": 0.7, "high": 0.89}) == "missed"
    assert load_bench.decide(target, {"low": None, "high": None}) == "undecided"
    assert load_bench.decide(("touch", "a", "b", "shown", None), {"low": 0.7, "high": 0.8}) == "shown"
