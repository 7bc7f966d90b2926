# SPDX-License-Identifier: BSD-3-Clause
"""Every command, also those of tomorrow: what it prints fits the terminal, and its JSON begins with its name and the version of its
schema and follows that schema."""

import json
import os
import re
import shutil
import subprocess
import unicodedata
from pathlib import Path

import jsonschema
import pytest
import run_record
from dialect_files import FIXTURES, GOLDENS
from qcts_program import BIN, ROOT, commands, on_terminal, qcts

SAMPLE = ROOT / "suites/vectors/sample/nvfp4_one_level.tsv"
FAULTY = Path(os.environ.get("QCTS_BUILD", str(ROOT / "build/release"))) / "lib/selftest"
WIDTHS = [80, 120]
SELECTION = ["--kind", "numerics", "--filter", "numerics.dequantize/int8_row/noise_n*_f32"]
STRUCK = "numerics.dequantize/int8_row/noise_n7_k13_f32"
WRONG = ["--provider", str(FAULTY / "qcts_faulty_wrong.so")]
SHORT = ["--filter", "latency.linear/int8_row/noise_m1_n1024_k1024_bf16_cold/builtin_*", "--budget", "0.2", "--runs", "1"]

# Words of each command, run where `folder` below is the current one; "@" stands for a file of int8_row, "~" for another.
COMMANDS = {
    "run": ["run", "--no-progress", *SELECTION, *WRONG, "--out", "again"],
    "identify": ["run", "--identify", "--scheme", "int8_row", *WRONG],
    "merge": ["merge", "whole", "--out", "merged"],
    "compare": ["compare", "before", "now"],
    "compare_latency": ["compare", "timed", "timed"],
    "history": ["history", "h.sqlite"],
    "list": ["list", "--kind", "size", "--provider", "qcts"],
    "schemes": ["schemes"],
    "a_scheme": ["schemes", "int8_row"],
    "choices": ["schemes", "--choices"],
    "inspect": ["inspect", "@"],
    "inspect_folder": ["inspect", "sharded"],
    "diff": ["diff", "@", "~"],
    "error": ["diff", "--error", "dense.safetensors", "@"],
    "whence": ["whence", "dense.safetensors", "@"],
    "check": ["check", "@"],
    "check_model": ["check", "@", "--model", "dense.safetensors", "--original", "dense.safetensors"],
    "refusal": ["inspect", "broken.pt"],
    "resave": ["resave", "@", "copy.pt"],
    "convert": ["convert", "@", "copy.safetensors"],
    "dequantize": ["dequantize", "@", "dense2.safetensors"],
    "quantize": ["quantize", "--scheme", "int8_row", "dense.safetensors", "quantized.pt"],
    "block": ["block", "--shrink", "32", "--scheme", "int8_row", "--m", "1", "--set-mib", "4", "--budget", "0.05"],
    "stopwatch": ["stopwatch", "--plan", "latency_quick", *SHORT],
    "selftest_kill": ["selftest", "kill", "--plan", "quick", "--mutant", "d8_planes_by_place", "--case", "numerics.dequantize/int8_row/*"],
    "selftest_cheats": ["selftest", "cheats", "--filter", "skips_tail"],
    "shrink": ["shrink", STRUCK, *WRONG, "-o", "small.data"],
    "replay": ["replay", "replay.data", *WRONG],
    "verify": ["verify", "broken.pt"],
    "vectors_export": ["vectors", "export", "--scheme", "int4_int32_g32", "--out", "vectors"],
    "vectors_check": ["vectors", "check", SAMPLE],
}
# Commands that print what other programs read, and ids or faults one a line.
OTHER_FORMATS = {"completion", "confirm", "export", "report", "statement", "targets"}
ONE_A_LINE = {"list", "selftest"}


def golden(ending):
    (entry,) = [entry for name, entry in GOLDENS.items() if name.endswith(ending)]
    return FIXTURES / entry["file"]


def record_with_latency(folder, base):
    """A record whose two latency cases a kernel of 20 us was timed in."""
    head, line = run_record.head(base), json.loads(run_record.lines(base)[1])
    lines = []
    for m in (1, 16):
        measures = [{"name": "fastest_us", "unit": "us", "value": 20.0 + m, "low": 19.9, "high": 20.0 + m, "samples": 90}]
        measures += [{"name": "fastest_of_roof", "unit": "x", "value": 2.0, "low": 1.9, "high": 2.1, "samples": 90}]
        case = f"latency.linear/int8_row/noise_m{m}_n1024_k1024_bf16_cold"
        lines.append(line | {"case_id": case, "status": "pass", "reason": "", "measures": measures})
    folder.mkdir()
    head |= {"cases": 2, "all_cases": 2}
    (folder / "run.jsonl").write_text("".join(json.dumps(one) + "\n" for one in [head, *lines]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("every")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, fault, code in (("before", "none", 0), ("now", "wrong", 1)):
            words = ["--provider", FAULTY / f"qcts_faulty_{fault}.so", "--out", name, "--history", "h.sqlite"]
            qcts("run", "--no-progress", *SELECTION, *words, code=code)
        record_with_latency(folder / "timed", folder / "now")
        qcts("history", "h.sqlite", "--add", "timed")
        shutil.copytree(folder / "before", folder / "whole")
        shutil.copy(golden("int8_row/toy_64_32_64"), "a.pt")
        shutil.copy(golden("int8_row/dyn_row_asym_16x48_f16"), "b.pt")
        (folder / "broken.pt").write_bytes(b"no checkpoint")
        qcts("dequantize", "a.pt", "dense.safetensors")
        os.symlink(golden("int8_row/llama_shards"), "sharded")
        qcts("shrink", STRUCK, *WRONG, "-o", "replay.data")
        yield folder


def words_of(name):
    return [{"@": "a.pt", "~": "b.pt"}.get(word, word) for word in COMMANDS[name]]


def columns_of(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def fits(lines, columns):
    wide = [line for line in lines if columns_of(line) > columns]
    assert not wide, wide[:3]


def test_none_is_left_out():
    assert set(commands()) == {words[0] for words in COMMANDS.values()} | OTHER_FORMATS | {"selftest"}


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("name", [name for name, words in COMMANDS.items() if words[0] not in ONE_A_LINE])
def test_no_line_is_wider_than_the_terminal(folder, monkeypatch, name, columns):
    monkeypatch.chdir(folder)
    done = on_terminal(*words_of(name), columns=columns)
    if "no provider has a dense linear" in done.text:
        pytest.skip("block needs the aten plug-in")
    assert done.text.strip()
    fits([line for line in done.lines if not line.startswith("qcts: ")], columns)


def test_help_has_groups_and_each_command_an_example_that_it_understands():
    groups = re.findall(r"^(\S.*):$", qcts("--help").stdout, re.MULTILINE)
    assert groups == ["Options", "Kernels", "Runs", "Files", "Times", "qcts itself"]
    for name in commands():
        text = qcts(name, "--help").stdout
        assert "Example:\n" in text, name
        example = " ".join(text.split("Example:\n")[1].split())
        assert f"qcts {name}" in example, example
        known = text if name not in ("selftest", "targets", "vectors") else qcts(name, example.split()[2], "--help").stdout
        assert all(word in known for word in re.findall(r"--[a-z-]+", example)), example


@pytest.mark.parametrize("columns", WIDTHS)
def test_no_line_of_help_is_wider_than_the_terminal(columns):
    nested = {"selftest": ["kill", "alarms", "explain", "cheats"], "targets": ["propose"], "vectors": ["export", "check"]}
    for words in [[], *([name] for name in commands()), *([name, verb] for name, verbs in nested.items() for verb in verbs)]:
        done = on_terminal(*words, "--help", columns=columns)
        assert done.code == 0
        fits(done.lines, columns)


def on_pipe(*words):
    return subprocess.run([BIN, *map(str, words)], capture_output=True, text=True, timeout=300)


def schema_of(name):
    file = name if name in ("report", "comparison", "history") else "documents"
    return json.loads((ROOT / f"reports/{file}.schema.json").read_text())


def valid(text):
    document = json.loads(text)
    (first, name), (second, version) = list(document.items())[:2]
    assert (first, second) == ("qcts", "schema") and isinstance(version, int)
    jsonschema.validate(document, schema_of(name), cls=jsonschema.Draft202012Validator)
    return name


NAMES = {"run": "report", "merge": "report", "compare": "comparison", "compare_latency": "comparison", "a_scheme": "schemes"}
NAMES |= {"inspect_folder": "inspect", "check_model": "check"}


@pytest.mark.parametrize("name", COMMANDS)
def test_json_begins_with_its_name_and_follows_its_schema(folder, monkeypatch, name):
    monkeypatch.chdir(folder)
    done = on_pipe(*words_of(name), "--json")
    if "no provider has a dense linear" in done.stderr:
        pytest.skip("block needs the aten plug-in")
    assert valid(done.stdout) == NAMES.get(name, name)


def test_what_lies_beside_a_run_follows_its_schema(folder):
    assert valid((folder / "now/report.json").read_text()) == "report"
    assert valid((folder / "now/trend.json").read_text()) == "trend"
    assert list(run_record.head(folder / "now").items())[:2] == [("qcts", "run"), ("schema", 2)]


def test_a_document_of_another_form_is_refused():
    for spoilt in ({"qcts": "list", "schema": 1, "cases": [1]}, {"qcts": "list", "schema": 2, "cases": []}, {"qcts": "lists", "schema": 1}):
        with pytest.raises(jsonschema.ValidationError):
            valid(json.dumps(spoilt))
