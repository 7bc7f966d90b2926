# SPDX-License-Identifier: BSD-3-Clause
"""Tests which tests `scripts/test --only` builds and runs."""

import subprocess
from pathlib import Path

import match_tests
import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def tree(tmp_path):
    for top in match_tests.TOPS:
        (tmp_path / top).mkdir()
    (tmp_path / "suites/plan_test.cc").write_text("TEST(Plan, Reads) {}\nTEST_P(Sampled,\n       Draws) {}\n")
    (tmp_path / "suites/test_run.py").write_text("def test_one():\n    pass\n\n\ndef test_other(): pass\n")
    return tmp_path


@pytest.mark.parametrize(("pattern", "cpp", "python"), [
    ("Plan", True, []), ("Plan.R", True, []), ("plan_test", True, []), ("Draws", True, []), ("Plan.*", True, []),
    ("All/Sampled.Draws/7", True, []), ("*/Sampled.*", True, []), ("Plan.?", False, []),
    ("suites/", True, ["suites/test_run.py"]), ("test_run", False, ["suites/test_run.py"]),
    ("test_o*", False, ["suites/test_run.py::test_one", "suites/test_run.py::test_other"]),
    ("test_one", False, ["suites/test_run.py::test_one"]),
    ("suites.test_run.test_one[a-b]", False, ["suites/test_run.py::test_one[a-b]"]), ("nothing", False, []),
])
def test_a_pattern_names_tests(tree, pattern, cpp, python):
    assert match_tests.may_match_cpp(tree, pattern) == cpp
    assert match_tests.python_arguments(tree, pattern) == python


def test_a_pattern_without_a_test_ends_before_a_build():
    done = subprocess.run(["scripts/test", "--only", "no such test"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 3 and "no test matches 'no such test'" in done.stderr and not done.stdout
