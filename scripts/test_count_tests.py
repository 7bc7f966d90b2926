# SPDX-License-Identifier: BSD-3-Clause
"""Tests the decision whether a test run passed: no failure is lost, and no skip counts as a pass."""

import json
import pathlib
import subprocess
import sys

COUNT = pathlib.Path(__file__).with_name("count_tests.py")


def ask(question, *paths):
    words = [sys.executable, COUNT, question, *paths]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def write_gtest(path):
    tests = [
        {"name": "holds", "result": "COMPLETED"},
        {"name": "breaks", "result": "COMPLETED", "failures": [{"failure": "a.cc:3\nExpected 1"}, {"failure": "b.cc:4"}]},
        {"name": "is_skipped", "result": "SKIPPED"},
        {"name": "breaks_then_skips", "result": "SKIPPED", "failures": [{"failure": "c.cc:5"}]},
        {"name": "is_not_run", "result": "SUPPRESSED"},
    ]
    path.write_text(json.dumps({"testsuites": [{"name": "Suite", "testsuite": tests}]}))
    return path


def write_junit(path):
    path.write_text(
        "<testsuites><testsuite>"
        '<testcase classname="a.test_b" name="holds"/>'
        '<testcase classname="a.test_b" name="breaks"><failure message="assert 1">line 2</failure></testcase>'
        '<testcase classname="a.test_b" name="has_no_fixture"><error message="gone">line 3</error></testcase>'
        '<testcase classname="a.test_b" name="is_skipped"><skipped message="no"/></testcase>'
        "</testsuite></testsuites>"
    )
    return path


def test_counts_what_passed_failed_and_was_skipped(tmp_path):
    gtest, junit = write_gtest(tmp_path / "a.json"), write_junit(tmp_path / "b.xml")
    assert ask("counts", gtest).stdout == "1 2 1\n"
    assert ask("counts", junit).stdout == "1 2 1\n"
    assert ask("counts", gtest, junit).stdout == "2 4 2\n"


def test_names_what_failed_and_what_it_said(tmp_path):
    said = ask("failures", write_gtest(tmp_path / "a.json"), write_junit(tmp_path / "b.xml")).stdout
    names = [line.removeprefix("failed: ") for line in said.splitlines() if line.startswith("failed: ")]
    assert names == ["Suite.breaks", "Suite.breaks_then_skips", "a.test_b.breaks", "a.test_b.has_no_fixture"]
    for message in ("a.cc:3", "Expected 1", "b.cc:4", "c.cc:5", "assert 1", "line 2", "gone", "line 3"):
        assert f"  {message}" in said.splitlines()


def test_a_long_message_is_cut_with_a_word_of_it(tmp_path):
    path = tmp_path / "a.json"
    failure = {"failure": "\n".join(f"line {i}" for i in range(50))}
    test = {"name": "breaks", "result": "COMPLETED", "failures": [failure]}
    path.write_text(json.dumps({"testsuites": [{"name": "Suite", "testsuite": [test]}]}))
    lines = ask("failures", path).stdout.splitlines()
    assert lines[1] == "  line 0" and lines[-1] == "  and 30 lines more, above"


def test_a_file_that_was_cut_off_is_an_error(tmp_path):
    (tmp_path / "a.json").write_text('{"testsuites": [')
    (tmp_path / "b.xml").write_text("<testsuites>")
    assert ask("counts", tmp_path / "a.json").returncode != 0
    assert ask("counts", tmp_path / "b.xml").returncode != 0
