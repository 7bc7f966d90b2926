# SPDX-License-Identifier: BSD-3-Clause
"""Tests the latency commands: the next run reads targets proposed from a report; `stopwatch` and `block` run to the end; claims about
speed are decided from samples, and a peer's never gate."""

import json
import math
import os
import random
import re
import subprocess
from pathlib import Path

import jsonschema
import pytest
import run_record

ROOT = Path(__file__).resolve().parents[2]
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))
PLAN = {
    "description": "",
    "kinds": ["latency"],
    "all_variants": True,
    "all_inputs": True,
    "case_timeout_s": 60,
    "latency_budget_s": 0.5,
    "latency_m": [1],
    "latency_shapes": [[256, 512]],
    "latency_ops": ["linear"],
    "latency_schemes": ["int8_row"],
    "latency_activations": ["weight_only"],
    "latency_cache_states": ["cold"],
    "latency_best_only": True,
}


def qcts(*words, **more):
    return subprocess.run([QCTS, *map(str, words)], capture_output=True, text=True, timeout=300, **more)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("latency")
    (folder / "plan.json").write_text(json.dumps(PLAN))
    result = qcts("run", "--no-progress", "--plan", folder / "plan.json", "--provider", "builtin", "--out", folder)
    assert result.returncode == 0, result.stdout + result.stderr
    return folder / "report.json"


def test_a_machine_without_targets_is_never_a_pass_where_latency_gates(report):
    words = ["run", "--no-progress", "--plan", report.parent / "plan.json", "--provider", "builtin", "--gate", "latency"]
    rows = json.loads(report.read_text())["latency"]
    without = {(row["case_id"], row["variant"]) for row in rows if "no target" in row["reason"]}
    result = qcts(*words, "--out", report.parent / "gated")
    gated = json.loads((report.parent / "gated/report.json").read_text())["latency"]
    statuses = [row["status"] for row in gated if (row["case_id"], row["variant"]) in without]
    assert statuses == ["inconclusive"] * len(without)
    assert result.returncode in ((4,) if without else (0, 1, 4)), result.stdout
    assert qcts(*words, "--threads", "2", "--out", report.parent / "two").returncode == 2


def test_a_dynamic_int8_product_is_timed_beside_the_static_one_where_that_is_right(tmp_path):
    (tmp_path / "plan.json").write_text(json.dumps(PLAN | {"latency_activations": ["dyn_row_sym"]}))
    qcts("run", "--no-progress", "--plan", tmp_path / "plan.json", "--provider", "builtin", "--out", tmp_path)
    rows = json.loads((tmp_path / "report.json").read_text())["latency"]
    assert rows and all("ratio_to_itself" in row["measures"] for row in rows)  # tiles are timed as well as vectors
    static = "numerics.linear/int8_row/*static_tensor_sym_m1_*_bf16/aten_atenqlinear"
    judged = qcts("run", "--no-progress", "--provider", "aten", "--filter", static, "--out", tmp_path / "static")
    verdicts = run_record.verdicts(tmp_path / "static") if judged.returncode == 0 else []
    statuses = {case["status"] for case in verdicts}  # it declines weights with zero points
    right = "pass" in statuses and statuses <= {"pass", "not_supported"}
    for row in rows:
        assert ("ratio_to_static" in row["measures"]) == right
        assert not right or row["measures"]["ratio_to_static"]["value"] > 0


def test_proposed_targets_name_this_machine_and_hold_the_report(report, tmp_path):
    value = json.loads(report.read_text())
    for row in value["latency"]:  # as on a quiet machine
        row["reason"] = ""
        row["measures"]["share_of_roof"] |= {"low": 0.5, "high": 0.6}
    (tmp_path / "report.json").write_text(json.dumps(value))
    result = qcts("targets", "propose", "--report", tmp_path / "report.json", "--margin", "10", "--out", tmp_path)
    assert result.returncode == 0, result.stderr
    [path] = [file for file in tmp_path.iterdir() if file.name != "report.json"]
    targets = json.loads(path.read_text())
    assert targets["machine_class"] == path.stem
    shares = [target for target in targets["targets"] if target["measure"] == "share_of_roof"]
    assert [(share["at_least"], share["m_most"]) for share in shares] == [(0.45, 31)] * len(value["latency"])
    assert {share["variant"] for share in shares} == {row["variant"] for row in value["latency"]}
    for row in value["latency"]:
        row["provider"] = "acme"
    (tmp_path / "report.json").write_text(json.dumps(value))
    words = ["targets", "propose", "--report", tmp_path / "report.json", "--provider", "acme", "--out", tmp_path]
    assert qcts(*words).returncode == 0
    of_both = json.loads(path.read_text())["targets"]
    assert [target for target in of_both if target.get("provider") != "acme"] == targets["targets"]
    assert len(of_both) == 2 * len(targets["targets"])


def test_a_report_without_latency_proposes_nothing(report, tmp_path):
    value = json.loads(report.read_text()) | {"latency": []}
    (tmp_path / "report.json").write_text(json.dumps(value))
    assert qcts("targets", "propose", "--report", tmp_path / "report.json").returncode == 3
    (tmp_path / "report.json").write_text("{")
    assert qcts("targets", "propose", "--report", tmp_path / "report.json").returncode == 2


def test_the_stopwatch_finds_what_is_large(report):
    """50 % slower is found on any machine. 3 % and 0 % are measured but not tested, because machines differ."""
    words = ["--plan", report.parent / "plan.json", "--runs", "3", "--planted", "0.5", "--budget", "1"]
    result = qcts("stopwatch", *words)
    found = float(re.search(r"planted 50 %: found in ([0-9.]+) %", result.stdout)[1])
    assert found > 50, result.stdout + result.stderr  # while other programs run, one run in six may miss it
    assert qcts("stopwatch", "--filter", "nothing_like_it").returncode == 3


SCHEMA = json.loads((ROOT / "reports/report.schema.json").read_text())


def with_block(**more):
    return json.dumps(PLAN | {"latency_blocks": {"schemes": ["int8_row"], "m": [1], "shrink": 16}} | more)


def latency_rows(folder, *words):
    """Runs a plan with one linear and one block, and returns the exit code and the rows of latency in a valid report."""
    (folder / "plan.json").write_text(with_block())
    result = qcts("run", "--no-progress", "--plan", folder / "plan.json", "--out", folder, *words)
    value = json.loads((folder / "report.json").read_text())
    jsonschema.validate(value, SCHEMA, cls=jsonschema.Draft202012Validator)
    return result, value["latency"]


def test_a_run_claims_a_speed_up_for_every_linear_and_block(tmp_path):
    result, rows = latency_rows(tmp_path, "--provider", "builtin")
    assert result.returncode in (0, 4), result.stdout + result.stderr
    blocks = [row for row in rows if "_block_" in row["case_id"]]
    assert blocks and len(rows) > len(blocks)
    for row in rows:
        if "no dense baseline" in row["reason"] or "has a dense linear" in row["reason"]:
            pytest.skip("built without LibTorch")
        claims = row["speed"]
        assert [claim["claim"] for claim in claims] == (["faster", "faster", "as_fast"] if row in blocks else ["faster"])
        for claim in claims:
            assert claim["required"] and claim["text"] in row["reason"] and claim["text"].startswith("int8_row m=1 ")
            assert 0 < claim["ratio"] and claim.get("low", 0) <= claim["ratio"] <= claim.get("high", math.inf)
        assert claims[0]["against"].startswith("dense bfloat16 (") and not row["peer"] and row["status"] == "pass"
    assert "claims hold" in result.stdout


def test_a_peer_never_gates(tmp_path):
    aten = "aten" in qcts("list", "--plan", "latency_quick").stdout
    if not aten:
        pytest.skip("built without LibTorch")
    result, rows = latency_rows(tmp_path, "--provider", "reference", "--peer", "aten", "--peer", "builtin", "--gate", "latency")
    assert {row["provider"] for row in rows} >= {"aten", "builtin"} and all(row["peer"] for row in rows)
    assert {row["status"] for row in rows} <= {"pass", "not_supported"}
    assert result.returncode == 0, result.stdout
    providers = json.loads((tmp_path / "report.json").read_text())["providers"]
    assert {one["name"] for one in providers if one.get("peer")} == {"aten", "builtin"}
    assert "(peer)" in result.stdout


def test_a_peer_is_a_provider_by_name_or_path():
    words = ["run", "--plan", "latency_quick", "--list"]
    assert "given as --provider and as --peer" in qcts(*words, "--provider", "builtin", "--peer", "builtin").stderr
    wrong = qcts(*words, "--provider", "builtin", "--peer", "bultin")
    assert wrong.returncode == 2 and "did you mean 'builtin'?" in wrong.stderr
    assert qcts(*words, "--provider", "builtin", "--peer", "./nothing.so").returncode == 2


def times(us, spread, seed, rounds=40):
    draw = random.Random(seed)
    return [us * math.exp(draw.gauss(0, spread)) for _ in range(rounds)]


def decided(first_us, after_us, dense_us, spread=0.01, again_us=None, **more):
    """What `qcts speed` decides about int4 that takes first_us and, after loading, after_us. Returns the exit code and the document."""
    first, after = times(first_us, spread, 1), times(after_us, spread, 5)
    request = {
        "itself": {"again_us": times(again_us or first_us, spread, 3), "first_us": first},
        "claims": [
            {"claim": "faster", "subject": "int4", "against": "dense", "subject_us": first, "against_us": times(dense_us, spread, 4)},
            {"claim": "as_fast", "subject": "int4 after loading", "against": "before", "subject_us": after, "against_us": first},
        ],
    } | more
    done = qcts("speed", input=json.dumps(request))
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize(("sample", "code", "statuses"), [
    ({"first_us": 100, "after_us": 100, "dense_us": 200}, 0, ["pass", "pass"]),
    ({"first_us": 200, "after_us": 200, "dense_us": 100}, 1, ["fail", "pass"]),
    ({"first_us": 100, "after_us": 100, "dense_us": 100}, 4, ["inconclusive", "pass"]),
    ({"first_us": 100, "after_us": 200, "dense_us": 200}, 1, ["pass", "fail"]),
    ({"first_us": 100, "after_us": 100, "dense_us": 110, "spread": 1}, 4, ["inconclusive", "inconclusive"]),
    ({"first_us": 100, "after_us": 100, "dense_us": 200, "again_us": 120}, 4, ["inconclusive", "inconclusive"]),
    ({"first_us": 200, "after_us": 200, "dense_us": 100, "canary_drift": 1.3}, 4, ["inconclusive", "inconclusive"]),
])  # fmt: skip
def test_claims_are_decided_from_samples(sample, code, statuses):
    got, value = decided(**sample)
    assert got == code and [claim["status"] for claim in value["speed"]] == statuses
    assert bool(value["doubt"]) == ("again_us" in sample or "canary_drift" in sample)
    for claim in value["speed"]:
        jsonschema.validate(claim, SCHEMA["$defs"]["speed_claim"])


ITSELF = '{"itself": {"again_us": [1], "first_us": [1]}, "claims": '
NONSENSE = [
    *("", "{", "[]", "{}", ITSELF + "3}", ITSELF.replace("[1]", "[0]") + "[]}", ITSELF.replace("[1]", '["x"]') + "[]}"),
    ITSELF.replace("[1]", "[1, 2]", 1) + "[]}",
    ITSELF + '[{"claim": "best", "subject": "a", "against": "b"}]}',
    ITSELF + '[{"claim": "faster", "subject": "a", "against": "b", "subject_us": [1], "against_us": []}]}',
]


@pytest.mark.parametrize("text", NONSENSE)
def test_samples_that_make_no_sense_are_refused(text):
    done = qcts("speed", input=text)
    assert done.returncode == 2 and done.stderr.startswith("qcts: speed: ") and not done.stdout


def test_a_block_is_the_same_after_it_was_saved_and_loaded(tmp_path):
    words = ["block", "--shrink", "16", "--set-mib", "4", "--budget", "0.3", "--m", "1", "--out", tmp_path / "block.json"]
    result = qcts(*words)
    if "no provider has a dense linear" in result.stderr:
        pytest.skip("built without LibTorch")
    assert result.returncode == 0, result.stdout + result.stderr
    value = json.loads((tmp_path / "block.json").read_text())
    assert value["label"] == "linear layers only" and "linear layers only" in result.stdout
    assert [row["scheme"] for row in value["rows"]] == ["int8_row", "int4_tinygemm_g128"]
    for row in value["rows"]:
        assert row["reloaded_equal"] is True and row["status"] == "pass"
        assert [claim["claim"] for claim in row["speed"]] == ["faster", "faster", "as_fast"]
        assert all(claim["text"] in " ".join(result.stdout.split()) for claim in row["speed"])
        # q, k, v, o, gate, up, down at a sixteenth of every dimension
        assert row["dense_bytes"] == 2 * (2 * 256 * 256 + 2 * 64 * 256 + 3 * 896 * 256)
        assert row["dense_bytes"] > 1.7 * row["quantized_bytes"] and row["dense_copies"] * row["dense_bytes"] >= 4 << 20


def test_a_block_gates_where_it_is_asked_to(tmp_path):
    words = ["block", "--shrink", "32", "--set-mib", "1", "--budget", "0.2", "--m", "1", "--scheme", "int8_row", "--json"]
    result = qcts(*words, "--gate", "latency")
    if "no provider has a dense linear" in result.stderr:
        pytest.skip("built without LibTorch")
    [row] = json.loads(result.stdout)["rows"]
    assert result.returncode == {"pass": 0, "fail": 1, "inconclusive": 4}[row["status"]], result.stderr
    assert row["status"] == "inconclusive" or not row["doubt"]
    assert qcts(*words, "--gate", "latency", "--threads", "2").returncode == 2
    refused = qcts("block", "--scheme", "tinyq_w8a32")
    assert refused.returncode == 2 and "cannot be saved" in refused.stderr
    assert qcts("block", "--provider", "kernels/plugins/python/torchao_peer.py", cwd=ROOT).returncode == 2
