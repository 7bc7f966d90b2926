"""What is typed wrong is named, and the same mistake has the same exit code in every command: 2 for wrong words and missing files,
3 where nothing was proved, 5 where the system failed.
"""

import pytest
from qcts_program import qcts

WRONG = {
    "option_of_a_verb": (["targets", "propose", "--margin", "200"], "--margin: Value 200 not in range"),
    "value_of_a_verb": (["selftest", "kill", "--jobs", "x"], "--jobs = x"),
    "unknown_verb": (["selftest", "bogus"], "no command 'bogus' (known: kill, alarms, explain)"),
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


@pytest.mark.parametrize("words", [["stopwatch", "--filter", "zzzz"], ["selftest", "kill", "--mutant", "zzzz"]])
def test_an_empty_choice_proves_nothing(words):
    assert qcts(*words, code=3).stderr.startswith("qcts: no ")


@pytest.mark.parametrize("field, report", [("no JSON", ""), ("no report.json", "[1]"), ("no report.json", "{}")])
def test_targets_want_a_report(tmp_path, field, report):
    (tmp_path / "report.json").write_text(report)
    assert field in qcts("targets", "propose", "--report", tmp_path / "report.json", code=2).stderr
