# SPDX-License-Identifier: BSD-3-Clause
"""Tests the files of `qcts run`: report.json against its schema and the record, junit.xml with two parsers."""

import json
import os
import subprocess
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

import jsonschema
import pytest
import run_record

ROOT = Path(__file__).resolve().parents[2]
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))
SCHEMA = json.loads((ROOT / "reports/report.schema.json").read_text())
SELECTION = ["--plan", "quick", "--scheme", "int8_row", "--scheme", "any", "--provider", "builtin", "--provider", "qcts"]


def run(out, *arguments):
    return subprocess.run([QCTS, "run", "--no-progress", "--out", str(out), *arguments], capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    out = tmp_path_factory.mktemp("run")
    return run(out, *SELECTION), out, json.loads((out / "report.json").read_text())


def test_the_run_passes(outcome):
    result, _, report = outcome
    assert result.returncode == report["conformance"]["exit_code"]
    assert result.returncode == 0, result.stdout + result.stderr


def test_report_follows_its_schema(outcome):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(outcome[2], SCHEMA, cls=jsonschema.Draft202012Validator)


@pytest.mark.parametrize("scheme", ["int8_row", "intx_b4_g32_sym", "int4_tinygemm_g32", "mxfp8_e4m3_floor"])
def test_the_report_of_one_scheme_is_small(scheme, tmp_path):
    """A report of a few cases holds the rows about them, and not the tables of all schemes."""
    run(tmp_path, "--filter", f"numerics.dequantize/{scheme}/noise_n37_*/builtin_scalar", "--plan", "full", "--provider", "builtin")
    report = json.loads((tmp_path / "report.json").read_text())
    jsonschema.validate(report, SCHEMA, cls=jsonschema.Draft202012Validator)
    assert 0 < report["counts"]["total"] < 10
    assert (tmp_path / "report.json").stat().st_size < 60_000


@pytest.mark.parametrize(
    "spoil",
    [
        lambda report: report.pop("floor"),
        lambda report: report["cells"][0]["statuses"].update(passed=1),
        lambda report: report["groups"][0].update(reason=""),
        lambda report: report.update(more=1),
        lambda report: report["counts"]["by_status"].pop("crash"),
    ],
    ids=["missing", "status", "reason", "unknown", "counts"],
)
def test_schema_refuses_a_spoilt_report(outcome, spoil):
    report = json.loads(json.dumps(outcome[2]))
    spoil(report)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(report, SCHEMA, cls=jsonschema.Draft202012Validator)


def test_counts_agree_with_the_cases_and_with_the_other_files(outcome):
    _, out, report = outcome
    cases, counts, cells = run_record.verdicts(out), report["counts"], report["cells"]
    assert counts["total"] == len(cases) == sum(counts["by_status"].values()) == sum(cell["total"] for cell in cells)
    assert counts["by_status"]["pass"] == sum(counts["passes_by_evidence"].values()) == sum(sum(cell["passes"].values()) for cell in cells)
    assert len({case["id"] for case in cases}) == len(cases)
    head = run_record.head(out)
    assert (head["qcts"], head["schema"]) == ("run", 2) and head["cases"] == head["all_cases"] == len(cases)
    keys = ("kind", "op", "scheme", "provider", "variant", "status")
    counted = Counter(tuple(case[key] for key in keys) for case in cases)
    assert counted == {tuple(cell[key] for key in keys[:-1]) + (status,): n for cell in cells for status, n in cell["statuses"].items()}
    assert sum(group["count"] for group in report["groups"]) == counts["total"] - counts["by_status"]["pass"]
    suites = ElementTree.parse(out / "junit.xml").getroot()
    assert int(suites.get("tests")) == len(cells) == len(suites.findall(".//testcase"))
    assert int(suites.get("failures")) + int(suites.get("errors")) == 0
    declined = sum(set(cell["statuses"]) == {"not_supported"} for cell in cells)
    assert sum(int(suite.get("skipped")) for suite in suites) == declined


@pytest.mark.parametrize("form", ["cells", "cases"])
def test_two_parsers_read_the_same_junit(form, tmp_path):
    """By cells and by cases, with failures of which each has its line to repeat it."""
    junitparser, junit2html = pytest.importorskip("junitparser"), pytest.importorskip("junit2htmlreport.parser")
    faulty = Path(QCTS).resolve().parent.parent / "lib/selftest/qcts_faulty_wrong.so"
    words = ["--filter", "numerics.dequantize/int8_row/noise_n*", "--provider", faulty, "--provider", "builtin", "--junit", form]
    assert run(tmp_path, *map(str, words)).returncode == 1
    report = json.loads((tmp_path / "report.json").read_text())
    one, other = junitparser.JUnitXml.fromfile(str(tmp_path / "junit.xml")), junit2html.Junit(str(tmp_path / "junit.xml"))
    tests = [test for suite in one for test in suite]
    failed = [test for test in tests if any(isinstance(result, junitparser.Failure) for result in test.result)]
    assert one.tests == len(tests) == sum(len(suite.all()) for suite in other.suites)
    assert len(tests) == (len(report["cells"]) if form == "cells" else report["counts"]["total"])
    assert one.failures == len(failed) == sum(len(suite.failed()) for suite in other.suites) > 0
    assert all("rerun: " in test.result[0].text and "/faulty_" in test.result[0].text for test in failed)
    for suite in one:
        properties = {(one.name, one.value) for one in suite.properties()}
        assert suite.hostname == report["environment"]["hostname"]
        assert {("plan", "default"), ("cpu", report["environment"]["cpu_model"])} <= properties
        assert any(name == "provider" and value.startswith("faulty") for name, value in properties)


def test_every_case_that_did_not_pass_says_why(outcome):
    for case in run_record.verdicts(outcome[1]):
        assert case["status"] == "pass" or case["reason"], case["id"]
        assert case["rerun"].split(" run --filter ")[1].split(" ")[0].strip("'") == case["id"]


def test_a_rerun_line_judges_the_same_case_again(outcome, tmp_path):
    case = next(case for case in run_record.verdicts(outcome[1]) if case["kind"] == "numerics" and case["status"] == "pass")
    command = case["rerun"].split(" run ", 1)[1]
    result = subprocess.run(
        f"'{QCTS}' run --no-progress --json --out '{tmp_path}' {command}", shell=True, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["counts"]["by_status"]["pass"] == 1
    assert [again["id"] for again in run_record.verdicts(tmp_path)] == [case["id"]]


def test_the_summary_fits_one_screen(outcome):
    lines = outcome[0].stdout.replace(str(outcome[1]), "out").splitlines()  # the folder is as long as its user likes
    assert len(lines) <= 50
    assert max(map(len, lines)) <= max(80, int(os.environ.get("COLUMNS") or 80))


def test_shards_together_are_the_whole(outcome, tmp_path):
    def listed(*more):
        command = [QCTS, "run", "--list", *SELECTION, *more]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout.splitlines()

    whole = listed()
    parts = [listed("--shard", f"{i}/3") for i in (1, 2, 3)]
    assert sorted(sum(parts, [])) == whole == [case["id"] for case in run_record.verdicts(outcome[1])]


def test_schemes_and_list_speak_json():
    schemes = json.loads(subprocess.run([QCTS, "schemes", "--json"], capture_output=True, text=True, check=True).stdout)["schemes"]
    assert {"int8_row", "int4_tinygemm_g128", "fp8_row"} <= {scheme["name"] for scheme in schemes}
    (int8_row,) = [scheme for scheme in schemes if scheme["name"] == "int8_row"]
    by_x = {kernel["name"]: kernel["activations"] for kernel in int8_row["operations"]["linear"]}
    assert by_x["builtin_avx512bf16"] == ["weight_only"] and "dyn_row_sym" in by_x["builtin_avx512vnni"]
    tile = [layout for scheme in schemes for layout in scheme["layouts"] if layout["name"] == "tile_packed_4d"]
    assert tile and not any(layout["confirmed"] for layout in tile)
    ids = json.loads(
        subprocess.run([QCTS, "list", "--json", "--provider", "qcts", "--kind", "size"], capture_output=True, text=True, check=True).stdout
    )["cases"]
    assert ids == sorted(ids) and all(name.startswith("size.file/") for name in ids)


def test_schemes_shows_which_policies_nobody_serves():
    wide = dict(os.environ, COLUMNS="4000")
    text = subprocess.run([QCTS, "schemes", "int8_row"], capture_output=True, text=True, check=True, env=wide).stdout
    nobody = [line.split(": ")[0].split(" for x ")[1].split(", ") for line in text.splitlines() if line.endswith(": none")]
    assert len(nobody) == 2
    assert "dyn_tensor_sym" in nobody[1] and not {"weight_only", "static_tensor_sym"} & set(nobody[1])


def golden_file(name):
    manifest = json.loads((ROOT / "fixtures/manifest.json").read_text())
    return next(ROOT / "fixtures" / g["file"] for g in manifest["goldens"] if g["id"].endswith(name))


@pytest.fixture(scope="module")
def golden():
    return golden_file("int8_row/toy_64_32_64")


# The second and third have a policy of x, the third a packed layout.
@pytest.mark.parametrize(
    "name", ["int8_row/toy_64_32_64", "int4_plain_sym_g32/toy_64_32_64", "int4_e4m3_g128/preshuffled_32x256_bf16"]
)
def test_check_judges_a_file_without_a_manifest(name):
    result = subprocess.run(
        [QCTS, "check", "--json", str(golden_file(name))], capture_output=True, text=True, timeout=120
    )
    answer = json.loads(result.stdout)
    assert result.returncode == 0 and answer["passed"]
    kinds = {verdict["case_id"].split("/")[0] for verdict in answer["verdicts"] if verdict["status"] == "pass"}
    assert kinds == {"round_trip.file", "assign.file", "size.file", "values.file", "numerics.dequantize"}


def test_check_refuses_a_damaged_file(golden, tmp_path):
    broken = tmp_path / "model.pt"
    broken.write_bytes(golden.read_bytes()[:-1])
    result = subprocess.run([QCTS, "check", "--json", str(broken)], capture_output=True, text=True, timeout=120)
    assert result.returncode == 1
    assert json.loads(result.stdout)["refusal"]["class"] == "Truncated"
    assert result.stderr.startswith("qcts: refused: Truncated: ")
