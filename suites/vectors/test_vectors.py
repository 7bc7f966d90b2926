# SPDX-License-Identifier: BSD-3-Clause
"""Vectors are for those who never link qcts: three readers read them, a stranger's implementation is judged by them, and who agrees
was measured on just these vectors."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
from qcts_program import qcts  # noqa: E402

SAMPLE, READERS = HERE / "sample", HERE / "readers"
PATTERNS = "mx*,nvfp4*,int4*"
MOST_BYTES, MOST_SAMPLE_BYTES = 20_000_000, 512 * 1024


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vectors")
    done = qcts("vectors", "export", "--scheme", PATTERNS, "--out", folder)
    assert done.stderr == "", "agreement was measured on other vectors"
    return folder


def documents(folder):
    return {file.stem: json.loads(file.read_text()) for file in folder.glob("*.json") if file.name != "vectors.schema.json"}


def vectors_of(document):
    return [vector for group in document["groups"] for vector in group["vectors"]]


def test_the_export_follows_its_schema_and_is_small(exported):
    schema = json.loads((exported / "vectors.schema.json").read_text())
    made = documents(exported)
    assert len(made) == 39
    for document in made.values():
        jsonschema.validate(document, schema, cls=jsonschema.Draft202012Validator)
        assert {flag for vector in vectors_of(document) for flag in vector["flags"]} <= set(document["flags"])
    assert sum(file.stat().st_size for file in exported.iterdir()) < MOST_BYTES


def test_the_text_holds_what_the_json_holds(exported):
    for name, document in documents(exported).items():
        names, *lines = [line.split("\t") for line in (exported / f"{name}.tsv").read_text().splitlines()]
        of_text = [dict(zip(names, line, strict=True)) for line in lines]
        wanted = vectors_of(document)
        assert [row["id"] for row in of_text] == [vector["id"] for vector in wanted]
        for row, vector in zip(of_text, wanted, strict=True):
            assert all(row[part] == vector[part] for part in ("x", "codes", "y"))
            assert row["scales"] == ",".join(vector["scales"].values()) and row["flags"] == ",".join(vector["flags"])


def test_the_sample_is_todays_export(exported):
    sizes = [file.stat().st_size for file in SAMPLE.iterdir()]
    assert len(sizes) == 5 and sum(sizes) <= MOST_SAMPLE_BYTES
    for file in SAMPLE.iterdir():
        assert file.read_bytes() == (exported / file.name).read_bytes(), f"{file.name}: scripts/vector_agreement writes it again"


def compiled(language, folder):
    program = folder / f"read_{language}"
    words = {"c": ["cc", "-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O1"], "rs": ["rustc", "-O", "-D", "warnings"]}[language]
    subprocess.run([*words, READERS / f"read_vectors.{language}", "-o", program], check=True, timeout=120)
    return [program]


def checksum(document):
    """What each reader has to print, computed only from the JSON."""
    texts = [v["x"] + v["codes"] + "".join(v["scales"].values()) + v["y"] for v in vectors_of(document)]
    data, fnv = bytes.fromhex("".join(texts)), 0xCBF29CE484222325
    for byte in data:
        fnv = (fnv ^ byte) * 0x100000001B3 % 2**64
    return f"{len(texts)} vectors, {len(data)} bytes, fnv {fnv:016x}\n"


@pytest.mark.parametrize(
    "language",
    ["py", "c", pytest.param("rs", marks=pytest.mark.skipif(not shutil.which("rustc"), reason="rustc is not installed"))],
)
def test_a_reader_of_thirty_lines_reads_every_byte(language, tmp_path):
    source = (READERS / f"read_vectors.{language}").read_text().splitlines()
    assert len(source) <= 30
    program = [sys.executable, "-B", READERS / "read_vectors.py"] if language == "py" else compiled(language, tmp_path)
    for name in ("mxfp4_even", "nvfp4_one_level"):
        done = subprocess.run([*program, SAMPLE / f"{name}.tsv"], capture_output=True, text=True, check=True, timeout=60)
        assert done.stdout == checksum(json.loads((SAMPLE / f"{name}.json").read_text()))


def stranger(tmp_path, change=lambda source: source):
    """The answers of an implementation that knows only the exported text."""
    source = (READERS / "mxfp4_even.py").read_text()
    code = source.split('"""', 2)[2].split("if __name__")[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 20 and "qcts" not in code
    (tmp_path / "stranger.py").write_text(change(source))
    done = subprocess.run(
        [sys.executable, "-B", tmp_path / "stranger.py", SAMPLE / "mxfp4_even.tsv"],
        capture_output=True, text=True, check=True, timeout=60, env=os.environ | {"PYTHONPATH": str(READERS)},
    )  # fmt: skip
    (tmp_path / "answers.tsv").write_text(done.stdout)
    return tmp_path / "answers.tsv"


def judged(file, code):
    return json.loads(qcts("vectors", "check", file, "--json", code=code).stdout)


def test_an_implementation_that_never_links_qcts_is_judged(tmp_path):
    verdict = judged(stranger(tmp_path), 0)
    assert verdict["verdict"] == "right"
    for group in verdict["groups"]:
        assert group["codes"] == group["scales"] == {"answered": group["vectors"], "right": group["vectors"]}
        assert group["outputs"] == {"answered": 0, "right": 0}


def test_its_bug_is_named_by_the_flag_that_hunts_it(tmp_path):
    verdict = judged(stranger(tmp_path, lambda source: source.replace("i % 2)", "-i)")), 1)
    for group in verdict["groups"]:
        assert group["wrong"] and group["scales"]["right"] == group["vectors"] > group["codes"]["right"]
        assert group["flags_of_all_wrong"] == ["tie"] and group["computes"] == ["mxfp4_even by half_away"]
        assert all(one["choices"] == ["half_away"] for one in group["wrong"])
    text = qcts("vectors", "check", tmp_path / "answers.tsv", code=1).stdout
    assert "every wrong one has the flag tie" in " ".join(text.split()) and text.endswith("WRONG\n")


def test_floor_instead_of_even_is_wrong_just_below_a_power_of_two(tmp_path):
    verdict = judged(stranger(tmp_path, lambda source: source.replace("1 << 21", "0")), 1)
    wrong = {one["id"] for group in verdict["groups"] for one in group["wrong"]}
    assert all(group["computes"] == ["mxfp4_floor"] for group in verdict["groups"])
    assert all(one["choices"] == [] for group in verdict["groups"] for one in group["wrong"]), "a sibling is not an option of the ledger"
    assert {"mxfp4_even/bf16/below_power_of_two_0", "mxfp4_even/f32/below_power_of_two_0"} <= wrong


def test_a_wrong_answer_names_the_option_that_gives_it(tmp_path):
    """Codes in the other order of a byte's halves, and one byte that nobody writes."""
    document = json.loads((SAMPLE / "mxfp4_even.json").read_text())
    for vector in vectors_of(document):
        vector["codes"] = "".join(vector["codes"][at + 1] + vector["codes"][at] for at in range(0, len(vector["codes"]), 2))
    (tmp_path / "answers.json").write_text(json.dumps({"groups": [{"vectors": vectors_of(document)}]}))
    wrong = [one for group in judged(tmp_path / "answers.json", 1)["groups"] for one in group["wrong"]]
    assert len(wrong) > 20 and all("nibble_even_high" in one["choices"] for one in wrong)
    text = " ".join(qcts("vectors", "check", tmp_path / "answers.json", code=1).stdout.split())
    assert "that is nibble_even_high of the ledger" in text
    (tmp_path / "odd.tsv").write_text(f"id\tcodes\n{FIRST}\t" + "7f" * 32 + "\n")
    (group,) = judged(tmp_path / "odd.tsv", 1)["groups"]
    assert group["wrong"][0]["choices"] == []


def test_an_answer_left_out_is_no_pass(tmp_path):
    lines = stranger(tmp_path).read_text().splitlines()
    (tmp_path / "half.tsv").write_text("\n".join(lines[:-1]) + "\n")
    verdict = judged(tmp_path / "half.tsv", 3)
    assert verdict["verdict"] == "incomplete" and [len(group["missing"]) for group in verdict["groups"]] == [0, 1]


def test_the_exported_files_are_right_answers_themselves():
    for file in ("mxfp4_even.json", "mxfp4_even.tsv", "nvfp4_one_level.json"):
        verdict = judged(SAMPLE / file, 0)
        assert all(group[part]["right"] == group["vectors"] for group in verdict["groups"] for part in ("codes", "scales", "outputs"))


FIRST = "mxfp4_even/bf16/noise_0"
REFUSED = {
    "": "it is empty",
    "id\tcodes\n": "it has no vector",
    "codes\n00\n": "no column `id`",
    "id\tcode\n": "unknown field 'code' (did you mean 'codes'?)",
    f"id\tcodes\n{FIRST}\t0\n": "line 2: codes: an odd number of hexadecimal digits",
    f"id\tcodes\n{FIRST}\t0g\n": "line 2: codes: not hexadecimal",
    f"id\tcodes\n{FIRST}\n": "line 2: 1 columns, the first line has 2",
    f"id\tcodes\n{FIRST}\t00\n{FIRST}\t00\n": f"{FIRST}: twice",
    "id\tcodes\nmxfp4_even/bf16/noise_9\t00\n": "no vector has the id 'mxfp4_even/bf16/noise_9'",
    "id\tcodes\nmxfp5_even/bf16/noise_0\t00\n": "no vector has the id 'mxfp5_even/bf16/noise_0'",
    f"id\tx\tcodes\n{FIRST}\t00\t00\n": f"{FIRST}: x differs from the vector's",
    '{"groups": [{"vectors": [{"id": "a", "codes": "00", "codes": "01"}]}]}': "duplicate key 'codes'",
    '{"groups": [{"vectors": [{"codes": "00"}]}]}': "a vector without an id",
    '{"groups": [{"vectors": [{"id": "a", "scales": "00"}]}]}': "a: scales: want an object, got string",
    '{"vectors": []}': "no list `groups`",
}


@pytest.mark.parametrize("text", REFUSED)
def test_answers_that_cannot_be_read_are_refused_by_name(text, tmp_path):
    (tmp_path / "answers").write_text(text)
    assert REFUSED[text] in qcts("vectors", "check", tmp_path / "answers", code=5).stderr


def test_a_plane_of_the_wrong_size_is_a_wrong_answer(tmp_path):
    (tmp_path / "answers").write_text(f"id\tcodes\n{FIRST}\t0000\n")
    (group,) = judged(tmp_path / "answers", 1)["groups"]
    assert group["wrong"][0]["difference"] == "2 bytes, want 32" and len(group["missing"]) == group["vectors"] - 1


def test_agreement_names_every_disagreement(exported):
    """Whoever is asked of a group is asked of all its vectors, and the counts are those of the vectors' own marks."""
    table = json.loads((HERE / "agreement.json").read_text())
    made, rows = documents(exported), 0
    for row in table["measured"]:
        (group,) = [group for group in made[row["scheme"]]["groups"] if group["dtype"] == row["dtype"]]
        marks = {vector["id"]: vector["agree"][row["library"]] for vector in group["vectors"]}
        assert {name for name, agrees in marks.items() if not agrees} == set(row["differing"])
        assert row["asked"] == len(marks) and re.fullmatch(r"\d{4}-\d\d-\d\d", row["date"])
        by_choice = row.get("by_choice", {})
        assert all(ids and set(ids) <= set(row["differing"]) for ids in by_choice.values())
        (said,) = [one for one in group["libraries"] if one["library"] == row["library"]]
        assert said["by_choice"] == {choice: len(ids) for choice, ids in by_choice.items()}
        rows += 1
    assert rows > 100 and {"torchao", "ml_dtypes", "onnxruntime", "microxcaling"} <= {row["library"] for row in table["measured"]}
    assert all(row["commit"] for row in table["measured"] if row["library"].startswith("microxcaling"))
    measured = {(row["library"], row["scheme"]) for row in table["measured"]}
    assert table["not_measured"] and ("torchao", "int4_plain_g32") not in measured


def test_unknown_schemes_are_named():
    assert "no scheme with vectors matches 'mxfp9*'" in qcts("vectors", "export", "--scheme", "mxfp9*", "--out", "/nowhere", code=2).stderr


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot be made" in qcts("vectors", "export", "--scheme", "mxfp4_even", "--out", tmp_path / "file/below", code=5).stderr
