# SPDX-License-Identifier: BSD-3-Clause
"""The last line of a vendor's complete run says what his kernels are: conformant with limits, partial, or nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

ROOT = Path(__file__).resolve().parents[3]
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))
sys.path.append(str(Path(__file__).resolve().parent))

from vendor import vendor  # noqa: E402

SCHEMA = json.loads((ROOT / "reports/report.schema.json").read_text())


def judged(tmp_path, library, *words):
    """Returns the exit code, the verdict without its line breaks, and report.json."""
    out = tmp_path / "out"
    words = words or ("--plan", "nightly")
    command = [QCTS, "run", "--no-progress", "--out", out, "--provider", library, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    report = json.loads((out / "report.json").read_text())
    jsonschema.validate(report, SCHEMA, cls=jsonschema.Draft202012Validator)
    last = done.stdout.rstrip().split("\n\n")[-1]
    return done.returncode, " ".join(last.split()), report


def test_a_kernel_that_serves_all_is_conformant(tmp_path):
    code, line, report = judged(tmp_path, vendor(tmp_path))
    (claim,) = report["conformance"]["claims"]
    (part,) = claim["parts"]
    count = part["asked"]
    assert count > 100 and (part["passed"], part["declined"]) == (count, 0)
    assert line.startswith(f"CONFORMANT: acme 1, dequantize of int8_row, weight_only, bf16 f16 f32 ({count} of {count})")
    assert code == 0 and report["conformance"]["conformant"] and not report["conformance"]["complete"]
    assert "<h1>Conformant</h1>" in (tmp_path / "out/report.html").read_text()


@pytest.mark.parametrize(
    ("declines", "limit"),
    [("p->w_dtype == QCTS_F16", "weight float16"), ("p->k > 15000", "k above 2048"), ("p->n == 1", "n below")],
)
def test_what_one_rule_explains_is_a_limit(declines, limit, tmp_path):
    code, line, report = judged(tmp_path, vendor(tmp_path, DECLINES=declines))
    (claim,) = report["conformance"]["claims"]
    (rule,) = claim["limits"]
    assert rule["text"].startswith(limit) and rule["cases"] == claim["parts"][0]["declined"] > 0
    assert code == 0 and line.startswith("CONFORMANT: acme 1") and f"declined: {rule['text']}, {rule['cases']})" in line


def test_a_decline_that_follows_no_rule_bars_the_word(tmp_path):
    code, line, report = judged(tmp_path, vendor(tmp_path, DECLINES="p->n == 37 && p->w_dtype == QCTS_F32"))
    (claim,) = report["conformance"]["claims"]
    assert claim["irregular_total"] == claim["parts"][0]["declined"] > 0 and claim["limits"] == []
    assert code == 3 and line.startswith("PARTIAL: ") and "declined cases follow no rule, first " in line
    assert not report["conformance"]["conformant"] and report["conformance"]["partial"]
    assert "<h1>Partial</h1>" in (tmp_path / "out/report.html").read_text()


def test_fewer_than_half_is_partial(tmp_path):
    code, line, report = judged(tmp_path, vendor(tmp_path, DECLINES="p->w_dtype != QCTS_F32"))
    (part,) = report["conformance"]["claims"][0]["parts"]
    counts = f"{part['passed']} of {part['asked']}"
    assert line.startswith(f"PARTIAL: dequantize of int8_row: {counts} mustpass cases pass, fewer than half; acme 1")
    assert code == 3


@pytest.mark.parametrize("plan", ["nightly", "default", "quick"])
def test_who_declines_everything_proves_nothing(plan, tmp_path):
    code, line, report = judged(tmp_path, vendor(tmp_path, DECLINES="1"), "--plan", plan)
    assert code == 3 and report["counts"]["by_status"]["not_supported"] == report["counts"]["total"] > 0
    assert line.startswith("NOTHING PROVED: acme declined all ") and "cases: not for this vendor" in line


def test_other_plans_keep_their_words(tmp_path):
    code, line, report = judged(tmp_path, vendor(tmp_path), "--plan", "quick")
    assert code == 0 and line.startswith("PASSED quick plan (") and report["conformance"]["claims"] == []
    code, line, report = judged(tmp_path, vendor(tmp_path), "--plan", "nightly", "--kind", "numerics")
    assert code == 0 and line.startswith("PASSED nightly plan, narrowed (") and report["conformance"]["claims"] == []


def test_a_wrong_element_is_not_conformant(tmp_path):
    code, line, report = judged(tmp_path, vendor(tmp_path, WRONG=True))
    assert code == 1 and line.startswith("NOT CONFORMANT: ") and not report["conformance"]["conformant"]


def test_a_promised_profile_is_served(tmp_path):
    """A profile that the provider cannot fill fails the run: what it does not serve, it may not promise."""
    code, line, report = judged(tmp_path, vendor(tmp_path, PROFILE='"int8_row"'))
    assert code == 1 and report["providers"][0]["profile"] == "int8_row"
    assert line.startswith("NOT CONFORMANT: acme promises int8_row, but has no kernel for ")
    assert not report["conformance"]["conformant"] and not report["conformance"]["claims"][0]["conformant"]


def test_a_declined_case_of_a_profile_fails_under_every_plan(tmp_path):
    library = vendor(tmp_path, PROFILE='"int8_row"', DECLINES="p->w_dtype == QCTS_F16")
    code, line, _ = judged(tmp_path, library, "--plan", "quick")
    assert code == 1 and line.startswith("NOT CONFORMANT: acme promises int8_row, but declined ")


def test_an_unknown_profile_is_refused(tmp_path):
    library = vendor(tmp_path, PROFILE='"int8_row int9_row"')
    command = [QCTS, "run", "--no-progress", "--out", tmp_path / "out", "--provider", library]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done.stderr
    assert "provider acme promises what cannot be judged here: no profile 'int9_row' (did you mean 'int8_row'?)" in done.stderr


def test_a_profile_is_the_first_word(tmp_path, monkeypatch):
    """Of a suite that knows a profile with the vendor's one operation."""
    root = tmp_path / "root"
    for name in ("fixtures", "reports", "kernels"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).symlink_to(ROOT / name)
    (root / "suites").mkdir()
    for entry in (ROOT / "suites").iterdir():
        (root / "suites" / entry.name).symlink_to(entry)
    profiles = json.loads((ROOT / "suites/profiles.json").read_text())
    profiles["profiles"]["rows"] = {"about": "one operation", "families": ["int8_row"], "ops": ["dequantize"]}
    (root / "suites/profiles.json").unlink()
    (root / "suites/profiles.json").write_text(json.dumps(profiles))
    monkeypatch.setenv("QCTS_ROOT", str(root))
    code, line, report = judged(tmp_path, vendor(tmp_path, PROFILE='"rows"', DECLINES="p->n > 100000"))
    (claim,) = report["conformance"]["claims"]
    assert code == 0 and line.startswith("CONFORMANT: rows: acme 1, dequantize of int8_row")
    assert claim["profile"] == "rows" and claim["conformant"]
