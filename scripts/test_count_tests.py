# SPDX-License-Identifier: BSD-3-Clause
"""Tests the decision whether a test run passed: no failure is lost, no skip counts as a pass, and the summary fits a screen."""

import os
import pathlib
import subprocess
import sys
from xml.sax.saxutils import quoteattr

COUNT = pathlib.Path(__file__).with_name("count_tests.py")


def ask(question, *paths, columns=80):
    words = [sys.executable, COUNT, question, *paths]
    return subprocess.run(words, capture_output=True, text=True, check=False, env=dict(os.environ, COLUMNS=str(columns)))


def write(path, *cases):
    path.write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
    return path


def case(name, child="", status="run"):
    return f'<testcase classname="Suite" name="{name}" status="{status}">{child}</testcase>'


def write_gtest(path):
    return write(
        path,
        case("holds"),
        case("breaks", '<failure message="a.cc:3&#x0A;Expected 1"/><failure message="b.cc:4"/>'),
        case("is_skipped", '<skipped message="a.cc:7&#x0A;needs avx"/>'),
        case("breaks_then_skips", '<failure message="c.cc:5"/><skipped message="a.cc:7&#x0A;late"/>'),
        case("is_not_run", status="notrun"),
    )


def write_junit(path):
    return write(
        path,
        '<testcase classname="a.test_b" name="holds"/>',
        '<testcase classname="a.test_b" name="breaks"><failure message="assert 1">line 2</failure></testcase>',
        '<testcase classname="a.test_b" name="has_no_fixture"><error message="gone">line 3</error></testcase>',
        '<testcase classname="a.test_b" name="is_skipped"><skipped message="needs avx"/></testcase>',
    )


def test_counts_what_passed_failed_and_was_skipped(tmp_path):
    gtest, junit = write_gtest(tmp_path / "a.xml"), write_junit(tmp_path / "b.xml")
    assert ask("counts", gtest).stdout == "1 2 1\n"
    assert ask("counts", junit).stdout == "1 2 1\n"
    assert ask("counts", gtest, junit).stdout == "2 4 2\n"


def test_names_what_failed_and_what_it_said(tmp_path):
    said = ask("summary", write_gtest(tmp_path / "a.xml"), write_junit(tmp_path / "b.xml")).stdout.splitlines()
    names = [line.removeprefix("failed: ") for line in said if line.startswith("failed: ")]
    assert names == ["Suite.breaks", "Suite.breaks_then_skips", "a.test_b.breaks", "a.test_b.has_no_fixture"]
    for message in ("a.cc:3", "Expected 1", "b.cc:4", "c.cc:5", "assert 1", "line 2", "gone", "line 3"):
        assert f"  {message}" in said


def test_skips_of_one_reason_are_one_line_whoever_skips(tmp_path):
    said = ask("summary", write_gtest(tmp_path / "a.xml"), write_junit(tmp_path / "b.xml")).stdout.splitlines()
    assert said[0] == "     2 skipped: needs avx" and sum("skipped" in line and "failed" not in line for line in said) == 1


def test_a_long_message_is_cut_and_says_so(tmp_path):
    text = "\n".join(f"line {i}" for i in range(50))
    path = write(tmp_path / "a.xml", case("breaks", f"<failure message={quoteattr(text, {chr(10): '&#10;'})}/>"))
    lines = ask("summary", path).stdout.splitlines()
    assert lines[1] == "  line 0" and lines[-1] == "  and 44 more lines"


def test_the_summary_of_the_worst_run_fits_a_screen(tmp_path):
    long = "x" * 300
    cases = [case(f"breaks_{i}", f'<failure message="{long}&#10;{"&#10;".join(map(str, range(30)))}"/>') for i in range(500)]
    cases += [case(f"skips_{i}", f'<skipped message="a.cc:1&#10;{i % 40} {long}"/>') for i in range(5000)]
    for columns in (80, 120):
        lines = ask("summary", write(tmp_path / "a.xml", *cases), columns=columns).stdout.splitlines()
        assert len(lines) <= 56 and max(map(len, lines)) <= columns
        assert lines[-1] == "and 488 more failures" and "  3750 skipped for 30 other reasons" in lines


def test_bytes_that_are_no_text_do_not_hide_a_failure(tmp_path):
    path = tmp_path / "a.xml"
    path.write_bytes(b'<testsuites><testcase classname="S" name="n"><failure message="got \xff"/></testcase></testsuites>')
    assert ask("counts", path).stdout == "0 1 0\n"


def test_a_file_that_was_cut_off_is_an_error(tmp_path):
    (tmp_path / "b.xml").write_text("<testsuites>")
    assert ask("counts", tmp_path / "b.xml").returncode != 0
