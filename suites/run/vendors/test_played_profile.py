# SPDX-License-Identifier: BSD-3-Clause
"""A profile plays options of the ledger: who promises it is judged by them, and everybody else by the schemes' own."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))
sys.path.append(str(Path(__file__).resolve().parent))

from vendor import vendor  # noqa: E402

FLOOR = ("numerics.*quantize*/mxfp4_floor/*", "numerics.*quantize*/mxfp8_e4m3_floor/*")
RCEIL = ("numerics.*quantize*/mxfp8_e4m3_rceil/*",)


def judged(tmp_path, filters, code, profile=None, **macros):
    """Returns what a run of plan nightly says about the conversions, and report.json."""
    promised = {} if profile is None else {"PROFILE": f'"{profile}"'}
    library = vendor(tmp_path / "lib", source="mx.c", **promised, **macros)
    words = [word for each in filters for word in ("--filter", each)]
    command = [QCTS, "run", "--no-progress", "--plan", "nightly", "--out", tmp_path / "out", "--provider", library, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == code, done.stdout[-3000:] + done.stderr
    file = tmp_path / "out/report.json"
    return " ".join(done.stdout.split()) + done.stderr, json.loads(file.read_text()) if file.exists() else None


def titles(report):
    return " | ".join(group["title"] for group in report["groups"] if group["blocks"])


@pytest.mark.parametrize(
    ("filters", "profile", "options"),
    [
        (FLOOR, "ocp_mx_1_0", ["mx_non_finite_any", "mx_scale_exact"]),
        (RCEIL, "nvidia_rceil", ["mx_non_finite_any", "mx_rceil_bits"]),
        (FLOOR + RCEIL, "nvidia_rceil ocp_mx_1_0", ["mx_non_finite_any", "mx_rceil_bits", "mx_scale_exact"]),
    ],
)
def test_who_promises_is_judged_by_the_options(tmp_path, filters, profile, options):
    _, report = judged(tmp_path, filters, 0, profile)
    assert report["counts"]["by_status"]["pass"] > 60 and report["providers"][0]["options"] == options
    head = re.search(r'<p class="soft">(acme 1, .*)</p>', (tmp_path / "out/report.html").read_text()).group(1)
    assert head == f"acme 1, sha256 {report['providers'][0]['sha256']}, profile {profile} with {' '.join(options)}"


def test_another_provider_is_judged_by_the_schemes_own(tmp_path):
    """And told which option it follows."""
    _, report = judged(tmp_path, FLOOR + RCEIL, 1)
    assert "options" not in report["providers"][0]
    assert "mxfp4_floor by mx_scale_exact" in titles(report) and "mxfp8_e4m3_rceil by mx_rceil_bits" in titles(report)


def test_the_schemes_own_recipe_does_not_serve_the_profile(tmp_path):
    """torchao divides a block whose scale byte is 0 by 2^-126."""
    _, report = judged(tmp_path, FLOOR, 1, "ocp_mx_1_0", LEAST_SCALE="0x1p-126")
    assert "mxfp4_floor without the options of the promised profile" in titles(report)


def test_a_wrong_code_fails_under_the_profile(tmp_path):
    _, report = judged(tmp_path, ("numerics.quantize*/mxfp4_floor/noise*",), 1, "ocp_mx_1_0", WRONG=True)
    counts = report["counts"]["by_status"]
    assert counts["fail"] > 5 and counts["pass"] == 0, counts


@pytest.mark.parametrize(
    ("profile", "both"),
    [("ocp_mx_1_0 mx", "ocp_mx_1_0 and mx"), ("torchao_0_18 nvidia_rceil", "torchao_0_18 and nvidia_rceil")],
)
def test_profiles_that_contradict_each_other_are_refused(tmp_path, profile, both):
    said, report = judged(tmp_path, FLOOR, 2, profile)
    assert f"promises what cannot be judged here: {both} set different options for mxf" in said and report is None
