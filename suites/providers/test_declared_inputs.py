# SPDX-License-Identifier: BSD-3-Clause
"""A provider is asked for the values that recipes write, and for others only if it says that it takes them.

Wrong answers to hostile ones fail only if it promises right ones."""

import sys
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent))

from test_remote_provider import ROOT, SAMPLE, program, run  # noqa: E402

ZERO_POINTS = "--filter=numerics.dequantize/int8_row/zero_points*"
HOSTILE = "--filter=numerics.dequantize/int8_row/extremes_n37_k216_f*"
NOISE = "--filter=numerics.dequantize/int8_row/noise_n*_f32"
DECLARED = 'choices="representable_inputs"'
READS_ZERO_POINTS = '.astype(np.float32) - p.planes["zero_point"].reshape(-1, 1)'
REFUSES = """\
    if {condition}:
        raise Refused("zero points", "failed")
    p.y[...] = narrow(codes * """


def sample(declares, *changes):
    text = SAMPLE.read_text().replace("import Provider,", "import Provider, Refused,")
    for parents in (2, 3):
        text = text.replace(f"Path(__file__).resolve().parents[{parents}]", f"Path({str(ROOT)!r})")
    if not declares:
        changes = ((DECLARED, 'choices=""'), *changes)
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def statuses(report):
    return Counter(case["status"] for case in report["cases"])


def test_a_symmetric_kernel_is_not_asked_for_zero_points(tmp_path):
    provider = program(tmp_path, sample(False, (READS_ZERO_POINTS, ".astype(np.float32)")))
    result, report = run(tmp_path, provider, ZERO_POINTS, NOISE)
    assert set(statuses(report)) == {"pass"}, result.stdout
    (described,) = report["providers"]
    assert described["not_asked"] == 4
    assert "not asked: 4 cases with inputs that no recipe writes" in result.stdout


def test_who_declares_is_asked(tmp_path):
    provider = program(tmp_path, sample(True, (READS_ZERO_POINTS, ".astype(np.float32)")))
    result, report = run(tmp_path, provider, ZERO_POINTS, NOISE)
    assert statuses(report)["fail"] == 4, result.stdout
    assert {failure["input_kind"] for failure in report["failures"]} == {"representable"}


def test_a_program_promises_profiles_too(tmp_path):
    """In its answer to hello; one that nobody knows is refused before anything is judged."""
    named = 'choices="representable_inputs", profile="int8_row"'
    _, report = run(tmp_path, program(tmp_path, sample(True, (DECLARED, named))), NOISE)
    assert report["providers"][0]["profile"] == "int8_row"
    unknown = program(tmp_path, sample(True, (DECLARED, named.replace("int8", "int9"))))
    (tmp_path / "out/report.json").unlink()
    result, report = run(tmp_path, unknown, NOISE)
    assert (result.returncode, report) == (2, None)
    assert "promises what cannot be judged here: no profile 'int9_row' (did you mean 'int8_row'?)" in result.stderr


def test_nothing_is_left_to_ask(tmp_path):
    result, report = run(tmp_path, program(tmp_path, sample(False)), ZERO_POINTS)
    assert result.returncode == 3 and "does not declare representable_inputs" in result.stderr + result.stdout


def refusing(condition):
    return ("    p.y[...] = narrow(codes * ", REFUSES.format(condition=condition))


def test_failed_is_accepted_where_no_recipe_writes_the_values(tmp_path):
    provider = program(tmp_path, sample(True, refusing('p.planes["zero_point"].any()')))
    result, report = run(tmp_path, provider, ZERO_POINTS, NOISE)
    assert statuses(report)["fail"] == 0 and statuses(report)["not_supported"] == 4, result.stdout


def test_failed_is_a_failure_where_a_recipe_writes_them(tmp_path):
    provider = program(tmp_path, sample(True, refusing("True")))
    result, report = run(tmp_path, provider, NOISE)
    assert set(statuses(report)) == {"fail"}, result.stdout


LOSES_NANS = ('p.planes["scale"].reshape(-1, 1), p.w_dtype)', 'np.nan_to_num(p.planes["scale"]).reshape(-1, 1), p.w_dtype)')


def test_a_wrong_answer_to_a_hostile_input_is_robustness(tmp_path):
    result, report = run(tmp_path, program(tmp_path, sample(True, LOSES_NANS)), HOSTILE, NOISE)
    assert result.returncode == 0, result.stdout
    counted = statuses(report)
    assert set(counted) == {"pass", "robustness"} and counted["robustness"] == 2, result.stdout
    assert report["conformance"]["exit_code"] == 0
    assert report["counts"]["by_status"]["robustness"] == 2
    assert {failure["input_kind"] for failure in report["failures"]} == {"hostile"}
    assert all("nan" in failure["mismatch"]["want"].lower() for failure in report["failures"]), report["failures"]
    assert "robustness of numpy: 2 hostile inputs, 0 right, 0 declined, 2 differ, 0 crashes; first numerics." in result.stdout
    assert "2 robustness" in result.stdout


def test_a_wrong_answer_fails_where_the_provider_promises_a_right_one(tmp_path):
    promises = (DECLARED, 'choices="hostile_inputs"')
    result, report = run(tmp_path, program(tmp_path, sample(True, LOSES_NANS, promises)), HOSTILE, NOISE)
    assert result.returncode == 1 and statuses(report)["fail"] == 2, result.stdout


def test_a_crash_on_a_hostile_input_fails(tmp_path):
    crashes = (
        "    p.y[...] = narrow(codes * ",
        '    if np.isnan(p.planes["scale"]).any():\n        os._exit(3)\n    p.y[...] = narrow(codes * ',
    )
    provider = program(tmp_path, sample(True, crashes, ("import sys\n", "import os\nimport sys\n")))
    result, report = run(tmp_path, provider, HOSTILE, NOISE)
    assert result.returncode == 1 and statuses(report)["crash"] == 2, result.stdout
    assert {failure["input_kind"] for failure in report["failures"]} == {"hostile"}
    assert "0 differ, 2 crashes" in result.stdout
