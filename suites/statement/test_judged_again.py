# SPDX-License-Identifier: BSD-3-Clause
"""Whoever has the library judges a sample of a statement's cases again: what was forged before it was signed is found out."""

import gzip
import json
import re

import pytest
from statements import edited, key_file, qcts, run, state, verified
from vendor import vendor


def test_a_sample_is_judged_anew(made):
    said = verified(made["file"], "--provider", made["library"], "--sample", "20%")["lines"]
    (line,) = [line for line in said if "judged again" in line]
    count = int(re.match(r"(\d+) cases, drawn at random, were judged again and are equal", line)[1])
    assert count >= 50
    bits, sums, status = outputs_of(said)
    assert bits + sums + status == count and bits > 20 and sums == 0, "what was declined has no output"


def outputs_of(said):
    """How many outputs of the sample are equal, how many of linear were not compared, and how many have no hash."""
    (line,) = [line for line in said if line.startswith("outputs: ")]
    pattern = r"outputs: (\d+) equal bit for bit; (\d+) of linear status only \(.*\); (\d+) status only \(no output_hash\)"
    return map(int, re.fullmatch(pattern, line).groups())


def passed(line):
    return line["status"] == "pass" and not line["case_id"].startswith("latency.")


def hashes(folder):
    """By full id, of the cases that passed, but for times."""
    lines = [json.loads(line) for line in gzip.decompress((folder / "run.jsonl.gz").read_bytes()).splitlines()[1:]]
    return {(line["case_id"], line["variant"]): line.get("output_hash") for line in lines if passed(line)}


def test_a_record_grows_by_few_bytes(made):
    """A night of 136,000 verdicts by at most 4 MB."""
    lines = gzip.decompress((made["run"] / "run.jsonl.gz").read_bytes())
    without = re.sub(rb'"output_hash":"[0-9a-f]{16}",', b"", lines)
    count = len(hashes(made["run"]))
    assert len(lines) - len(without) == count * len('"output_hash":"0123456789abcdef",') and count > 50
    grown = len(gzip.compress(lines)) - len(gzip.compress(without))
    assert 0 < grown * 136_000 < 4e6 * count, (grown, count)


def test_two_runs_have_the_same_hashes(made, tmp_path):
    again = hashes(run(tmp_path / "again", made["library"], "--jobs", 2))
    assert again == hashes(made["run"]) and None not in again.values()


@pytest.mark.parametrize("forged", ["0" * 16, None], ids=["changed", "removed"])
def test_a_forged_hash_is_found_out_by_judging_anew(made, tmp_path, forged):
    """The record was changed before the statement was signed, so that both agree."""

    def forge(lines):
        for line in lines[1:]:
            if line.pop("output_hash", None) and forged:
                line["output_hash"] = forged
        return lines

    folder = edited(made["run"], tmp_path / "forged", forge)
    state(folder, "--key", key_file(tmp_path))
    assert verified(folder / "statement.json", "--run", folder)["lines"][0].startswith("CONFORMANT: ")
    faults = verified(folder / "statement.json", "--provider", made["library"], code=1)["faults"]
    told = f" has output_hash {forged or 'none'} in the statement, and "
    assert len(faults) > 20 and all(fault.startswith("verdicts: ") and told in fault for fault in faults), faults[:3]


@pytest.fixture(scope="module")
def linear_made(tmp_path_factory):
    """Two right libraries with a linear, of which one adds up as the clock says and claims nothing."""
    folder = tmp_path_factory.mktemp("linear")
    made = {}
    for name, macros in {"fixed": {"LINEAR": "QCTS_CLAIM_DETERMINISTIC"}, "either": {"LINEAR": "0", "EITHER_ORDER": True}}.items():
        library = vendor(folder / name, **macros)
        state(run(folder / name / "run", library))
        made[name] = {"library": library, "run": folder / name / "run"}
    return made


def of_linear(hashed):
    return {key: value for key, value in hashed.items() if ".linear/" in key[0]}


def test_a_right_library_that_adds_up_in_either_order_is_accepted(linear_made):
    of = linear_made["either"]
    assert set(of_linear(hashes(of["run"])).values()) == {None}
    said = verified(of["run"] / "statement.json", "--provider", of["library"], "--sample", "30%")["lines"]
    _, _, status = outputs_of(said)
    assert status > 10


def with_features(lines):
    return [lines[0] | {"environment": lines[0]["environment"] | {"features": ["other"]}}, *lines[1:]]


def test_a_linear_is_compared_where_the_processor_is_the_same(linear_made, tmp_path):
    """Its hashes were forged. With other features, only its status counts; all other outputs are compared."""
    of = linear_made["fixed"]
    without = {key[0] for key, value in of_linear(hashes(of["run"])).items() if value is None}
    assert all("/far_" in case or "_m0_" in case for case in without), without
    words = ["--provider", of["library"], "--sample", "30%"]
    bits, sums, _ = outputs_of(verified(of["run"] / "statement.json", *words)["lines"])
    assert bits > 20 and sums == 0

    def forge(lines):
        for line in lines[1:]:
            if ".linear/" in line["case_id"] and "output_hash" in line:
                line["output_hash"] = "0" * 16
        return lines

    here = edited(of["run"], tmp_path / "here", forge)
    state(here)
    faults = verified(here / "statement.json", *words, code=1)["faults"]
    assert all("numerics.linear/" in fault or "determinism.linear/" in fault for fault in faults), faults
    elsewhere = edited(here, tmp_path / "elsewhere", with_features)
    state(elsewhere)
    bits, sums, _ = outputs_of(verified(elsewhere / "statement.json", *words)["lines"])
    assert bits > 10 and sums > 10


def test_another_library_is_refused(made, tmp_path):
    other = vendor(tmp_path, DECLINES="0")
    (fault,) = verified(made["file"], "--provider", other, code=1)["faults"]
    assert fault.startswith(f"subject: {other} is another file")


def test_a_forged_record_is_found_out(tmp_path):
    """Every wrong answer was made a pass before the statement was signed."""
    library = vendor(tmp_path / "lib", WRONG=True)
    run(tmp_path / "run", library, code=1)

    def forge(lines):
        for line in lines[1:]:
            if line["status"] == "fail":
                line |= {"status": "pass", "reason": ""}
        return lines

    forged = edited(tmp_path / "run", tmp_path / "forged", forge)
    state(forged, "--key", key_file(tmp_path))
    assert verified(forged / "statement.json", "--run", forged)["lines"][0].startswith("CONFORMANT: ")
    faults = verified(forged / "statement.json", "--run", forged, "--provider", library, code=1)["faults"]
    assert any(" is pass in the statement, and fail judged again: " in fault for fault in faults), faults


@pytest.mark.parametrize("sample", ["0%", "101%", "x", "-5%", "%"])
def test_a_share_is_above_0_and_at_most_100(made, sample):
    assert "must be a share such as 5%" in qcts("verify", made["file"], f"--sample={sample}", code=2).stderr
