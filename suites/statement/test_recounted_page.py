# SPDX-License-Identifier: BSD-3-Clause
"""`qcts report` shows what the record gives: a report.json or a record that was edited is refused by the field that differs."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))
sys.path.append(str(ROOT / "suites/run/vendors"))

from vendor import vendor  # noqa: E402


def qcts(*words):
    return subprocess.run([QCTS, *map(str, words)], capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Two complete runs: of a right library, and of one with a wrong scale."""
    folder = tmp_path_factory.mktemp("judged")
    for name, more, code in (("right", {}, 0), ("wrong", {"WRONG": True}, 1)):
        (folder / name).mkdir()
        library = vendor(folder / name / "lib", **more)
        done = qcts("run", "--no-progress", "--plan", "nightly", "--provider", library, "--out", folder / name / "out")
        assert done.returncode == code, done.stdout[-2000:] + done.stderr
    return folder


@pytest.fixture
def copied(judged, tmp_path):
    return lambda name: shutil.copytree(judged / name / "out", tmp_path / name)


def edit(folder, change):
    """Changes report.json by a function of the document."""
    file = folder / "report.json"
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))


def edit_record(folder, change):
    """Changes the lines of the record by a function of their list."""
    file = folder / "run.jsonl.gz"
    lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    change(lines)
    file.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))


def page_of(folder):
    return (folder / "report.html").read_text()


def refused(folder, code=1):
    page = page_of(folder)
    done = qcts("report", folder)
    assert done.returncode == code and done.stderr.count("\n") == 1, done.stderr
    assert page_of(folder) == page, "a refused report leaves the page as it was"
    return done.stderr


def set_to(*path, value):
    def change(document):
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value

    return change


FORGED = {
    "conformance.conformant": set_to("conformance", "conformant", value=True),
    "conformance.exit_code": set_to("conformance", "exit_code", value=0),
    "conformance.reason": set_to("conformance", "reason", value="acme 1, all of it"),
    "conformance.mustpass_total": set_to("conformance", "mustpass_total", value=1),
    "counts.by_status.fail": set_to("counts", "by_status", "fail", value=0),
    "groups[0].title": set_to("groups", 0, "title", value="harmless"),
    "groups": lambda document: document["groups"].clear(),
    "failures[0].status": set_to("failures", 0, "status", value="pass"),
    "failures": lambda document: document["failures"].clear(),
    "cells[0].total": set_to("cells", 0, "total", value=12345),
    "waivers[0]": lambda document: document["waivers"].append({"case": "*", "provider": "acme", "state": "active"}),
    "providers[0].sha256": set_to("providers", 0, "sha256", value="0" * 64),
    "run.plan": set_to("run", "plan", value="full"),
    "run.selection": lambda document: document["run"]["selection"].clear(),
    "environment.cpu_model": set_to("environment", "cpu_model", value="a better one"),
    "coverage": lambda document: document["coverage"].clear(),
    "note": set_to("note", value="judged by the authors of qcts"),
    "run.note": set_to("run", "note", value="x"),
}


@pytest.mark.parametrize("field", FORGED)
def test_a_forged_report_is_refused_by_its_field(copied, field):
    folder = copied("wrong")
    edit(folder, FORGED[field])
    said = refused(folder)
    assert f"report.json: {field}" in said and " is " in said and ", and the record gives " in said


def passed(lines):
    for line in lines[1:]:
        line["status"], line["reason"] = "pass", ""


@pytest.mark.parametrize(
    "change, said",
    [
        (passed, "report.json: conformance.conformant is false, and the record gives true"),
        (lambda lines: lines[0]["environment"].update(cpu_model="a better one"), "report.json: environment.cpu_model"),
        (lambda lines: lines[0]["providers"][0].update(version="2"), "report.json: conformance."),
    ],
)
def test_an_edited_record_is_refused_by_the_field_that_it_gives(copied, change, said):
    folder = copied("wrong")
    edit_record(folder, change)
    assert said in refused(folder)


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda lines: lines.pop(), "is unfinished: "),
        (lambda lines: lines[0].update(mustpass_sha256="0" * 64), "report.json: mustpass_sha256: "),
        (lambda lines: lines[0].update(suite_version="9.9"), "report.json: suite_version: "),
    ],
)
def test_a_record_that_cannot_be_counted_is_named(copied, change, said):
    folder = copied("right")
    edit_record(folder, change)
    assert said in refused(folder, code=2)


def test_a_report_without_a_record_is_refused(copied):
    folder = copied("right")
    (folder / "run.jsonl.gz").unlink()
    assert "run.jsonl and no run.jsonl.gz to recompute report.json from" in refused(folder, code=2)


def stated(folder):
    """What the head of the page says about a statement."""
    return re.search(r'<p class="soft">((?:no )?statement: .*)</p>', page_of(folder)).group(1)


def test_the_page_says_who_signed(copied, tmp_path):
    folder = copied("right")
    key = tmp_path / "key"
    key.write_bytes(bytes(range(32)))
    key.chmod(0o600)
    assert stated(folder) == "no statement: not signed"
    words = ["statement", folder, "--vendor", "Acme <b>", "--product", "int8"]
    for more in ([], ["--key", key]):
        done = qcts(*words, *more)
        assert done.returncode == 0, done.stderr
        assert qcts("report", folder).returncode == 0
        signer = re.search(r"signed by ([0-9a-f]{64})", done.stdout)
        who = f"signed by {signer.group(1)}" if signer else "unsigned"
        assert bool(more) == bool(signer) and stated(folder) == f"statement: int8 of Acme &lt;b&gt;, {who}"


def test_a_statement_of_another_run_is_refused(copied, judged):
    """Also after the library was judged again in the same folder: that keeps the statement under another name."""
    folder, other = copied("right"), copied("wrong")
    assert qcts("statement", folder, "--vendor", "Acme", "--product", "int8").returncode == 0
    shutil.copy(folder / "statement.json", other / "statement.json")
    assert "statement.json: head." in refused(other)
    text = (folder / "statement.json").read_text()
    done = qcts("run", "--no-progress", "--filter", "numerics.*", "--provider", judged / "right/lib/acme.so", "--out", folder)
    assert done.returncode == 0, done.stderr
    assert not (folder / "statement.json").exists() and (folder / "before.statement.json").read_text() == text
    assert qcts("report", folder).returncode == 0 and stated(folder) == "no statement: not signed"
