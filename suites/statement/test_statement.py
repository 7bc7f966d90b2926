# SPDX-License-Identifier: BSD-3-Clause
"""A vendor's verdict travels: a signed statement of his run, which others check offline and against the record."""

import gzip
import hashlib
import json
from pathlib import Path
from xml.etree import ElementTree

import nacl.signing
import pytest
from statements import QCTS, SEED, TYPE, edited, key_id, payload_of, qcts, run, state, tampered, verified, written
from vendor import vendor


def test_it_says_who_judged_what(made, envelope):
    statement = json.loads(payload_of(envelope))
    assert (envelope["payloadType"], statement["_type"]) == (TYPE, "https://in-toto.io/Statement/v1")
    assert statement["predicateType"] == "urn:qcts:verdict:v1"
    digest = hashlib.sha256(made["library"].read_bytes()).hexdigest()
    assert statement["subject"] == [{"name": "acme.so", "digest": {"sha256": digest}}]
    predicate = statement["predicate"]
    head = predicate["head"]
    lines = gzip.decompress((made["run"] / "run.jsonl.gz").read_bytes()).splitlines()
    assert [row["sha256"] for row in predicate["verdicts"]] == [hashlib.sha256(line).hexdigest() for line in lines[1:]]
    assert head == json.loads(lines[0]) and predicate["head_sha256"] == hashlib.sha256(lines[0]).hexdigest()
    assert head["program_sha256"] == hashlib.sha256(Path(QCTS).read_bytes()).hexdigest()
    assert head["providers"][0]["isolation"].startswith("isolated") and head["environment"]["cpu_model"]
    assert (predicate["vendor"], predicate["product"]) == ("Acme", "int8")
    assert predicate["claim"] == json.loads((made["run"] / "report.json").read_text())["conformance"]["claims"][0]


def test_it_is_accepted(made):
    said = verified(made["file"], "--run", made["run"])["lines"]
    assert said[0].startswith("CONFORMANT: acme 1, dequantize of int8_row") and "vendor Acme, product int8" in said
    key = key_id(nacl.signing.SigningKey(SEED))
    assert any(line.startswith(f"signed by {key}, the key in the statement itself") for line in said)
    assert "only consistency was checked; no case was judged again (--provider)" in said


def test_a_badge_says_what_was_stated(made, envelope, tmp_path):
    file = written(tmp_path, envelope)
    done = qcts("report", file, "--badge")
    assert done.stdout.split() == [str(tmp_path / "badge.svg"), str(tmp_path / "badge.md")]
    line = verified(file)["lines"][0]
    svg = ElementTree.parse(tmp_path / "badge.svg").getroot()
    assert svg[0].text == line and "".join(svg.itertext()) == line + "qctsconformant"
    text = (tmp_path / "badge.md").read_text()
    head = json.loads(payload_of(envelope))["predicate"]["head"]
    said = text.replace("\\", "")
    for word in (
        line,
        "int8 of Acme",
        head["providers"][0]["sha256"],
        head["started"],
        head["suite_commit"],
        envelope["signatures"][0]["keyid"],
    ):
        assert word in said
    assert hashlib.sha256(file.read_bytes()).hexdigest() in said


def test_a_refused_statement_gets_no_badge(envelope, tmp_path):
    file = written(tmp_path, tampered(envelope, "predicate.claim.text", False))
    assert "no badge: the statement is refused: claim.text: " in qcts("report", file, "--badge", code=1).stderr
    assert not list(tmp_path.glob("badge*"))


def test_a_vendors_name_is_no_markup(made, tmp_path):
    qcts("statement", made["run"], "--vendor", "A](x)\n# <b>", "--product", "p|`q`", "--out", tmp_path / "s.json")
    qcts("report", tmp_path / "s.json", "--badge")
    text = (tmp_path / "badge.md").read_text()
    assert "p\\|\\`q\\` of A\\](x)" in text and "<b>" not in text and "\n# " not in text


def test_the_record_of_another_run_is_refused(made, tmp_path):
    other = run(tmp_path / "other", made["library"], "--seed", 7)
    faults = verified(made["file"], "--run", other, code=1)["faults"]
    assert any(fault.startswith("head.seed: ") and "another run" in fault for fault in faults), faults


def with_head(**fields):
    return lambda lines: [lines[0] | fields, *lines[1:]]


def with_provider(**fields):
    return lambda lines: [lines[0] | {"providers": [lines[0]["providers"][0] | fields]}, *lines[1:]]


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (with_head(selection=["--provider x", "--filter y"]), "a selection (--filter y), and a statement needs a whole run"),
        (with_head(selection=["--plan quick", "--provider x"]), "a selection (--plan quick)"),
        (with_head(shards=2), "one shard of 2"),
        (with_head(arguments=["run", "--seed-file", "s"]), "its seed is secret, but the hash of the seed is missing"),
        (with_head(infrastructure=["provider x: gone"]), "it could not judge: provider x: gone"),
        (with_head(program_sha256=""), "which program judged"),
        (with_provider(isolation="not isolated, as was asked: it can trace"), "the provider was not isolated: not isolated, as was asked"),
        (with_provider(isolation=""), "the provider was not isolated: "),
        (lambda lines: lines[:-1], "it is unfinished: "),
        (lambda lines: [*lines[:-1], lines[-1] | {"status": "fail", "reason": "x"}], "it did not pass: 1 of "),
        (lambda lines: [*lines[:-1], lines[-1] | {"provider": "other"}], "verdicts on other too"),
    ],
)
def test_there_is_none_of_a_lesser_run(made, tmp_path, edit, why):
    folder = edited(made["run"], tmp_path / "run", edit)
    (folder / "statement.json").unlink()
    assert why in state(folder, code=1).stderr
    assert not (folder / "statement.json").exists()


@pytest.mark.parametrize(
    ("declines", "why"),
    [
        ("p->w_dtype != QCTS_F32", "it is partial: dequantize of int8_row: "),
        ("p->n == 37 && p->w_dtype == QCTS_F32", " declined cases follow no rule, first "),
    ],
    ids=["less_than_half", "irregular"],
)
def test_there_is_none_of_a_part(tmp_path, declines, why):
    folder = run(tmp_path / "run", vendor(tmp_path / "lib", DECLINES=declines), code=3)
    said = state(folder, code=1).stderr
    assert "the run cannot support one: it is partial: " in said and why in said
    assert not (folder / "statement.json").exists()


def test_there_is_none_where_all_was_declined(tmp_path):
    folder = run(tmp_path / "run", vendor(tmp_path / "lib", DECLINES="1"), code=3)
    assert "it did not pass: acme declined all " in state(folder, code=1).stderr


def test_there_is_none_of_another_version(made, tmp_path):
    folder = edited(made["run"], tmp_path / "run", with_head(mustpass_sha256="0" * 64))
    assert "another version: mustpass_sha256" in state(folder, code=2).stderr
