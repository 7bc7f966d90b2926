# SPDX-License-Identifier: BSD-3-Clause
"""--json is a flag of every command that prints something, and each document begins with its name and the version of its schema; a
command that writes a file says what it wrote."""

import json
import re

import pytest
from dialect_files import FIXTURES, GOLDENS
from qcts_program import commands, qcts


def golden(ending):
    (entry,) = [entry for name, entry in GOLDENS.items() if name.endswith(ending)]
    return FIXTURES / entry["file"]


FILE = golden("int8_row/toy_64_32_64")
DOCUMENTS = {
    "inspect": ["inspect", FILE],
    "check": ["check", FILE],
    "diff": ["diff", FILE, FILE],
    "schemes": ["schemes"],
    "choices": ["schemes", "--choices"],
    "list": ["list", "--kind", "size", "--provider", "qcts"],
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_begins_with_its_name_and_version(name):
    document = json.loads(qcts(*DOCUMENTS[name], "--json").stdout)
    assert list(document.items())[:2] == [("qcts", name), ("schema", 1)]


def test_the_ids_of_mustpass_are_a_list_too():
    document = json.loads(qcts("list", "--names", "--json").stdout)
    assert document["cases"] == qcts("list", "--names").stdout.splitlines() and document["qcts"] == "list"


def test_one_scheme_is_a_document():
    (scheme,) = json.loads(qcts("schemes", "int8_row", "--json").stdout)["schemes"]
    assert scheme["name"] == "int8_row"


def test_a_refusal_is_a_document(tmp_path):
    (tmp_path / "x.pt").write_bytes(b"no checkpoint")
    document = json.loads(qcts("inspect", tmp_path / "x.pt", "--json", code=1).stdout)
    assert document["qcts"] == "refusal" and document["schema"] == 1 and document["refusal"]["class"]


WRITERS = {
    "resave": lambda out: ["resave", FILE, out / "copy.pt"],
    "dequantize": lambda out: ["dequantize", FILE, out / "dense.safetensors"],
}


@pytest.mark.parametrize("name", WRITERS)
def test_who_writes_a_file_says_what_it_wrote(name, tmp_path):
    words = WRITERS[name](tmp_path)
    said = re.search(r"^wrote (.*), ([\d,]+) bytes$", qcts(*words).stdout, re.MULTILINE)
    assert said[1] == str(words[-1]) and int(said[2].replace(",", "")) == words[-1].stat().st_size
    document = json.loads(qcts(*words, "--json").stdout)
    assert document["qcts"] == name and document["out"] == str(words[-1])


def test_a_command_says_nothing_of_a_file_that_it_did_not_write(tmp_path):
    plain = tmp_path / "plain.safetensors"
    qcts("dequantize", FILE, plain)
    done = qcts("quantize", "--scheme", "int8_row", "--include", "nothing*", plain, tmp_path / "out.pt", code=3)
    assert "wrote" not in done.stdout and not (tmp_path / "out.pt").exists()


def options_of(*command):
    return re.findall(r"^ +((?:-\w,)?--[\w-]+)", qcts(*command, "--help").stdout, re.MULTILINE)


def test_json_is_a_flag_everywhere():
    """Only commands for scripts, pages and other programs' formats, and those of workers, have no JSON."""
    nested = {"selftest": ["kill", "alarms", "explain"], "targets": ["propose"], "vectors": ["export", "check"]}
    for command in commands():
        for words in [[command, below] for below in nested.get(command, [])] or [[command]]:
            text = qcts(*words, "--help").stdout
            if command in ("completion", "confirm", "export", "report", "statement", "targets"):
                continue
            assert re.search(r"^ +--json +\S", text, re.MULTILINE) and not re.search(r"--json TEXT", text), words
