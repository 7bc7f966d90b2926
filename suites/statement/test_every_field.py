# SPDX-License-Identifier: BSD-3-Clause
"""Every field of a statement and of the record that it is about, as the documents have them, is changed once: none is accepted, and
the fault names the field."""

import base64
import copy
import gzip
import json

import pytest
from statements import DECLINES, SEED, changed, edited, key_file, payload_of, run, state, verified, written
from vendor import vendor

UNPROTECTED = {("predicate", "vendor"), ("predicate", "product")}  # only a signature stands for these


def leaves(value, path=()):
    """Paths of all values without children, of a list of implementations only those of the first, and of a list of verdicts those of
    the first that has an output_hash."""
    if isinstance(value, dict) and value:
        for name, child in value.items():
            yield from leaves(child, (*path, name))
    elif isinstance(value, list) and value:
        hashed = [index for index, child in enumerate(value) if isinstance(child, dict) and "output_hash" in child]
        shown = (hashed or [0])[:1] if isinstance(value[0], dict) else range(len(value))
        for index in shown:
            yield from leaves(value[index], (*path, index))
    else:
        yield path


def other(value):
    if value is None:
        return "x"
    if isinstance(value, float):
        return value + 0.5
    if isinstance(value, dict):
        return {"x": 1}
    return changed(value)


def other_at(path, value):
    """Another value; of a hash, one that has its form."""
    return "0" * 16 if path[-1] == "output_hash" else other(value)


def with_change(document, path):
    document = copy.deepcopy(document)
    place = document
    for word in path[:-1]:
        place = place[word]
    place[path[-1]] = other_at(path, place[path[-1]])
    return document


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    run(folder / "run", vendor(folder / "lib", DECLINES=DECLINES))
    state(folder / "run", "--key", key_file(folder, SEED))
    state(folder / "run", "--out", folder / "unsigned.json")
    return {"run": folder / "run", "signed": folder / "run/statement.json", "unsigned": folder / "unsigned.json"}


def with_payload(envelope, statement):
    return envelope | {"payload": base64.b64encode(json.dumps(statement).encode()).decode()}


def name_of(path):
    """The field that the fault has to name: a field of the statement, of the claim, or of the head."""
    path = [word for word in path if word != "predicate"]
    return f"{path[0]}.{path[1]}" if path[0] in ("head", "claim") else path[0]


def test_every_changed_field_of_a_statement_is_named(made, tmp_path):
    """Without a signature, so that the tamperer needs no key."""
    envelope = json.loads(made["unsigned"].read_text())
    statement = json.loads(payload_of(envelope))
    paths = [path for path in leaves(statement) if path not in UNPROTECTED]
    assert len(paths) > 90 and any(path[-1] == "output_hash" for path in paths)
    for path in paths:
        file = written(tmp_path, with_payload(envelope, with_change(statement, path)))
        faults = verified(file, "--run", made["run"], code=1)["faults"]
        named = name_of(path)
        short = named.removeprefix("head.")
        names = [named, f": {short}"]
        if named in ("head.schema", "head.qcts"):
            names.append("head: not the head of a run")
        if path[-1] in ("library", "sha256", "path"):
            names.append("subject: ")
        assert any(name in fault for fault in faults for name in names), (path, faults)


def test_every_changed_field_breaks_the_signature(made, tmp_path):
    envelope = json.loads(made["signed"].read_text())
    statement = json.loads(payload_of(envelope))
    paths = list(leaves(statement))
    assert UNPROTECTED < set(paths)
    for path in paths:
        verified(written(tmp_path, with_payload(envelope, with_change(statement, path))), code=1)


@pytest.mark.parametrize("part", ["head", "verdict"])
def test_every_changed_field_of_the_record_is_found(made, tmp_path, part):
    lines = [json.loads(text) for text in gzip.decompress((made["run"] / "run.jsonl.gz").read_bytes()).splitlines()]
    line = 0 if part == "head" else next(index for index, verdict in enumerate(lines) if "output_hash" in verdict)
    paths = list(leaves(lines[line]))
    assert len(paths) > (50 if part == "head" else 5) and (part == "head" or ("output_hash",) in paths)
    for number, path in enumerate(paths):
        spoiled = edited(
            made["run"],
            tmp_path / str(number),
            lambda lines, path=path: [*lines[:line], with_change(lines[line], path), *lines[line + 1 :]],
        )
        faults = verified(made["signed"], "--run", spoiled, code=1)["faults"]
        assert any(fault.startswith(("head", "verdicts", "record")) for fault in faults), (path, faults)
