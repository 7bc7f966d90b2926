# SPDX-License-Identifier: BSD-3-Clause
"""Tests the files of `qcts run`: report.json against its schema, junit.xml with an XML parser, run.jsonl with one verdict per line."""

import json
import os
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import jsonschema
import pytest

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
    assert 0 < len(report["cases"]) < 10
    assert (tmp_path / "report.json").stat().st_size < 60_000


@pytest.mark.parametrize(
    "spoil",
    [
        lambda report: report.pop("floor"),
        lambda report: report["cases"][0].update(status="passed"),
        lambda report: report["cases"][0].update(status="fail", reason=""),
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
    cases, counts = report["cases"], report["counts"]
    assert counts["total"] == len(cases) == sum(counts["by_status"].values())
    assert counts["by_status"]["pass"] == sum(counts["passes_by_evidence"].values())
    assert len({case["id"] for case in cases}) == len(cases)
    head, *lines = [json.loads(line) for line in (out / "run.jsonl").read_text().splitlines()]
    assert head["run"] == 1 and head["cases"] == head["all_cases"] == len(lines)
    assert sorted((line["case_id"], line["variant"], line["status"]) for line in lines) == sorted(
        (case["case_id"], case["variant"], case["status"]) for case in cases
    )
    suites = ElementTree.parse(out / "junit.xml").getroot()
    assert int(suites.get("tests")) == len(cases) == len(suites.findall(".//testcase"))
    assert int(suites.get("failures")) + int(suites.get("errors")) == 0
    assert int(suites.get("skipped")) == counts["by_status"]["not_supported"]


def test_every_case_that_did_not_pass_says_why(outcome):
    for case in outcome[2]["cases"]:
        assert case["status"] == "pass" or case["reason"], case["id"]
        assert case["rerun"].split(" run --filter ")[1].split(" ")[0].strip("'") == case["id"]


def test_a_rerun_line_judges_the_same_case_again(outcome, tmp_path):
    case = next(case for case in outcome[2]["cases"] if case["kind"] == "numerics" and case["status"] == "pass")
    command = case["rerun"].split(" run ", 1)[1]
    result = subprocess.run(
        f"'{QCTS}' run --no-progress --json --out '{tmp_path}' {command}", shell=True, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    assert [again["id"] for again in json.loads(result.stdout)["cases"]] == [case["id"]]


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
    assert sorted(sum(parts, [])) == whole == sorted(case["id"] for case in outcome[2]["cases"])


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
    assert kinds == {"round_trip.file", "assign.file", "size.file", "numerics.dequantize"}


def test_check_refuses_a_damaged_file(golden, tmp_path):
    broken = tmp_path / "model.pt"
    broken.write_bytes(golden.read_bytes()[:-1])
    result = subprocess.run([QCTS, "check", "--json", str(broken)], capture_output=True, text=True, timeout=120)
    assert result.returncode == 1
    assert json.loads(result.stdout)["refusal"]["class"] == "Truncated"
    assert result.stderr.startswith("qcts: refused: Truncated: ")
