# SPDX-License-Identifier: BSD-3-Clause
"""Tests usage errors: they name the wrong argument, and the same mistake has the same exit code in every command: 2 for wrong arguments
and missing files, 3 if nothing was proved, 5 if the system failed.
"""

import subprocess

import pytest
from qcts_program import BIN, ROOT, qcts

WRONG = {
    "option_of_a_verb": (["targets", "propose", "--margin", "200"], "--margin: Value 200 not in range"),
    "value_of_a_verb": (["selftest", "kill", "--jobs", "x"], "--jobs = x"),
    "unknown_verb": (["selftest", "bogus"], "no command 'bogus' (known: kill, alarms, explain, cheats)"),
    "unknown_option_of_a_verb": (["targets", "propose", "--reprot", "x"], "did you mean '--report'?"),
    "unknown_command": (["ruun"], "did you mean 'run'?"),
    "nothing_near": (["run", "--zzzzzzzzzz"], "no option '--zzzzzzzzzz'"),
    "cover_alone": (["selftest", "kill", "--cover"], "--cover requires --all"),
    "negative_limit": (["run", "--memory-limit", "-5"], "--memory-limit: Value -5 not in range"),
    "vast_limit": (["run", "--memory-limit", "99999999999999999"], "not in range"),
    "negative_seed": (["run", "--seed", "-1"], "'-1' is negative"),
    "negative_jobs": (["selftest", "kill", "--jobs=-1"], "'-1' is negative"),
    "negative_first_seed": (["selftest", "alarms", "--first=-1"], "'-1' is negative"),
    "negative_tries": (["shrink", "x", "--budget=-1"], "'-1' is negative"),
    "no_rows": (["block", "--m", "0"], "--m: Value 0 not in range"),
    "negative_time": (["block", "--budget=-5"], "--budget: Value -5 not in range"),
    "scheme_of_block": (["block", "--scheme", "int8_rov"], "did you mean 'int8_row'?"),
    "plan_of_run": (["run", "--plan", "defualt"], "did you mean 'default'?"),
    "plan_of_list": (["list", "--names", "--plan", "defualt"], "did you mean 'default'?"),
    "plan_of_kill": (["selftest", "kill", "--plan", "defualt"], "did you mean 'default'?"),
    "plan_of_alarms": (["selftest", "alarms", "--plan", "defualt"], "did you mean 'default'?"),
    "plan_of_shrink": (["shrink", "x", "--plan", "defualt"], "did you mean 'default'?"),
    "plan_of_stopwatch": (["stopwatch", "--plan", "defualt"], "did you mean 'default'?"),
    "provider_of_run": (["run", "--provider", "./none.so"], "no provider ./none.so"),
    "provider_of_alarms": (["selftest", "alarms", "--provider", "./none.so"], "no provider ./none.so"),
    "provider_of_shrink": (["shrink", "x", "--provider", "./none.so"], "no provider ./none.so"),
    "file_of_inspect": (["inspect", "/none.pt"], "/none.pt"),
    "file_of_replay": (["replay", "/none.json"], "/none.json"),
    "report_of_targets": (["targets", "propose", "--report", "/none.json"], "/none.json"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_word_is_named_on_one_line(name):
    words, said = WRONG[name]
    done = qcts(*words, code=2)
    assert said in done.stderr and done.stderr.count("\n") == 1 and not done.stdout


@pytest.mark.parametrize("words", [["stopwatch", "--filter"], ["selftest", "kill", "--mutant"], ["selftest", "cheats", "--filter"]])
def test_an_empty_choice_proves_nothing(words):
    assert qcts(*words, "zzzz", code=3).stderr.startswith("qcts: no ")


@pytest.mark.parametrize("field, report", [("not JSON", ""), ("not a report.json", "[1]"), ("not a report.json", "{}")])
def test_targets_want_a_report(tmp_path, field, report):
    (tmp_path / "report.json").write_text(report)
    assert field in qcts("targets", "propose", "--report", tmp_path / "report.json", code=2).stderr


TESTDATA = ROOT / "reference/formats/testdata"


FULL = {
    "schemes": ["schemes"],
    "list": ["list", "--names", "--kind", "size"],
    "completion": ["completion", "bash"],
    "inspect": ["inspect", TESTDATA / "one_tensor.pt"],
    "refusal": ["inspect", "--json", TESTDATA / "one_tensor.pt", "--dialect", "tinyq"],
}


@pytest.mark.parametrize("name", FULL)
def test_output_that_cannot_be_written_is_an_error(name):
    """Protects: every command looks at its output, and a refusal keeps its own exit code."""
    with open("/dev/full", "w") as full:
        done = subprocess.run([BIN, *map(str, FULL[name])], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.stderr.startswith("qcts: ") and done.stderr.count("\n") == 1
    assert done.returncode == 1 if name == "refusal" else (done.returncode, done.stderr) == (5, "qcts: standard output: write failed\n")


# For each kind of error of a command on files: the command, its exit code, and the beginning of its one line.
ERRORS = {
    "refused": (["inspect", "--dialect", "torchao_2338", TESTDATA / "one_tensor.pt"], 1, "qcts: refused: "),
    "missing": (["check", "/none.pt"], 2, "qcts: /none.pt: No such file or directory"),
    "address": (["inspect", "https://x/y.pt"], 2, "qcts: https://x/y.pt: No such file or directory (qcts cannot read an address"),
    "stdin": (["inspect", "-"], 2, "qcts: -: qcts cannot read standard input"),
    "wrong_word": (["quantize", "--scheme", "int8_rov", TESTDATA / "one_tensor.pt", "@/out.pt"], 2, "qcts: no scheme 'int8_rov'"),
    "negative": (["quantize", "--like", TESTDATA / "one_tensor.pt", TESTDATA / "one_tensor.pt", "@/out.pt"], 1, "qcts: "),
    "no_folder": (["resave", TESTDATA / "one_tensor.pt", "@/none/out.pt"], 5, "qcts: "),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_of_a_file_command_is_one_line(tmp_path, name):
    words, code, begins = ERRORS[name]
    done = qcts(*(str(word).replace("@", str(tmp_path)) for word in words), code=code)
    assert done.stderr.startswith(begins) and done.stderr.count("\n") == 1 and not done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("source", "ending"), [("one_key.safetensors", ".pt"), ("one_tensor.pt", ".safetensors")])
def test_resave_gives_no_file_the_ending_of_another_format(tmp_path, source, ending):
    out = tmp_path / ("copy" + ending)
    assert f"'{ending}' is not an ending of" in qcts("resave", TESTDATA / source, out, code=2).stderr
    assert not out.exists()
    qcts("resave", TESTDATA / source, tmp_path / "copy.anything")


def test_every_dialect_that_inspect_prints_can_be_asked_for():
    text = qcts("inspect", "--help").stdout
    for name in ("plain", "torchao_v1", "torchao_v2", "torchao_safetensors", "torchao_2338", "tinyq"):
        assert name in text
    assert "torchao_2338" in qcts("inspect", "--dialect", "torchao_2338", TESTDATA / "one_tensor.pt", code=1).stderr


def test_a_block_whose_rows_cannot_be_written_says_so(tmp_path):
    words = ["block", "--shrink", "32", "--m", "1", "--scheme", "int8_row", "--budget", "0.01", "--set-mib", "1"]
    done = qcts(*words, "--out", tmp_path / "none/rows.json", code=5)
    assert "cannot be written" in done.stderr or "no provider has a dense linear" in done.stderr
