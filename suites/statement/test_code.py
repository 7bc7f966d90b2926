# SPDX-License-Identifier: BSD-3-Clause
"""The subjects of a statement are all files of code that the judged library runs, also those that it opens itself."""

import gzip
import hashlib
import json
import shutil

import pytest
from statements import payload_of, qcts, run, state
from vendor import vendor


def sha256(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A library that opens inner.so next to it, its complete run, and the statement about that run."""
    folder = tmp_path_factory.mktemp("made")
    vendor(folder / "lib", name="inner")
    library = vendor(folder / "lib", name="acme", source="outer.c")
    run(folder / "run", library)
    state(folder / "run")
    return folder


def edited_run(made, tmp_path, change):
    """A copy of the run, with the provider's entry in the record's head changed."""
    folder = shutil.copytree(made / "run", tmp_path / "run")
    (folder / "statement.json").unlink()
    file = folder / "run.jsonl.gz"
    head, *lines = gzip.decompress(file.read_bytes()).decode().splitlines(keepends=True)
    head = json.loads(head)
    change(head["providers"][0])
    file.write_bytes(gzip.compress((json.dumps(head) + "\n" + "".join(lines)).encode()))
    return folder


def test_both_files_are_subjects(made):
    files = [made / "lib/acme.so", made / "lib/inner.so"]
    subjects = json.loads(payload_of(json.loads((made / "run/statement.json").read_text())))["subject"]
    assert subjects == [{"name": file.name, "digest": {"sha256": sha256(file)}} for file in files]
    code = json.loads((made / "run/report.json").read_text())["providers"][0]["code"]
    assert code == [{"path": str(file), "sha256": sha256(file)} for file in files]
    qcts("report", made / "run")


def test_another_inner_library_is_refused_when_judged_anew(made, tmp_path):
    lib = shutil.copytree(made / "lib", tmp_path / "lib")
    words = ["verify", made / "run/statement.json", "--provider", lib / "acme.so"]
    said = " ".join(qcts(*words).stdout.split())
    assert "were judged again and are equal" in said
    with (lib / "inner.so").open("ab") as file:
        file.write(b"\0")
    said = " ".join(qcts(*words, code=1).stdout.split())
    assert f"refused: subject: inner.so is another file here: its sha256 is {sha256(lib / 'inner.so')}" in said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda provider: provider.pop("code"), "it does not say which files of code the provider's host had mapped"),
        (lambda provider: provider["code"].pop(0), "it does not say which files of code the provider's host had mapped"),
        (lambda provider: provider["code"][1].update(sha256=""), "the provider ran code that cannot be hashed any more: "),
    ],
)
def test_no_statement_where_the_files_are_not_known(made, tmp_path, change, said):
    assert said in " ".join(state(edited_run(made, tmp_path, change), code=1).stderr.split())
