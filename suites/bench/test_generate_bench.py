# SPDX-License-Identifier: BSD-3-Clause
"""generate_bench.py runs if transformers and torchao are installed, and reports the same int4 tokens after saving."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))


def test_int4_gives_the_same_tokens_after_saving(tmp_path):
    pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("torchao", reason="torchao is not installed")
    words = ["--qcts", QCTS, "--width", "128", "--layers", "1", "--turns", "10", "--least-s", "0.01", "--no-compile"]
    words += ["--out", tmp_path / "generate.json"]
    program = [sys.executable, ROOT / "suites/bench/generate_bench.py", *map(str, words)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "generate.json").read_text())
    assert report["tokens_equal"] and {row["model"] for row in report["rows"]} == {"dense", "int4", "int4_reloaded"}
    assert all(row["tokens_per_s"] > 0 for row in report["rows"])
    assert [claim["claim"] for claim in report["speed"]] == ["faster", "faster", "as_fast"] and not report["gate_latency"]
    assert all(claim["text"] in done.stdout and claim["low"] <= claim["ratio"] <= claim["high"] for claim in report["speed"])
    assert report["compiled"] == "not compiled: --no-compile" and report["compiled"] in done.stdout
