# SPDX-License-Identifier: BSD-3-Clause
"""Finds, in their sources, the tests that a pattern matches, so that scripts/test --only builds no more than they need.

match_tests.py cpp PATTERN     exit code 0 if a C++ test may match, 1 if none does: qcts_tests --only decides
match_tests.py python PATTERN  prints one pytest argument per line: a file, or FILE::TEST

A pattern matches part of a test's name or of its file's path, or all of it if the pattern has * or ?. Names are Suite.Test and test_name;
names as a summary prints them, with the instance of a parametrized test, match too."""

import re
import sys
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOPS = ("reference", "kernels", "fixtures", "reports", "suites", "scripts")
CPP_TEST = re.compile(r"^(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", re.MULTILINE)
PYTHON_TEST = re.compile(r"^def (test_\w+)\(", re.MULTILINE)


def names(pattern, text):
    """The same as names() in suites/gtest_main.cc."""
    return fnmatchcase(text, pattern) if re.search(r"[*?]", pattern) else pattern in text


def files(root, wanted):
    for top in TOPS:
        yield from sorted(path for path in (root / top).rglob(wanted))


def may_match_cpp(root, pattern):
    """Returns whether a C++ test may match. Full names begin with the name of an instance, or end with a parameter."""
    for path in files(root, "*_test.cc"):
        if names(pattern, path.relative_to(root).as_posix()):
            return True
        for suite, test in CPP_TEST.findall(path.read_text(encoding="utf-8")):
            full = f"{suite}.{test}"
            if full in pattern or names(pattern, full) or names(pattern, f"instance/{full}/0"):
                return True
    return False


def python_arguments(root, pattern):
    """Returns what pytest runs: whole files whose path matches, and single tests of the others."""
    plain, bracket, instance = pattern.partition("[")
    found = []
    for path in files(root, "test_*.py"):
        relative = path.relative_to(root).as_posix()
        if names(pattern, relative):
            found.append(relative)
            continue
        module = relative.removesuffix(".py").replace("/", ".")
        for test in PYTHON_TEST.findall(path.read_text(encoding="utf-8")):
            whole = [f"{relative}::{test}", f"{module}.{test}"]
            if any(names(plain, name) for name in [test, *whole]):
                found.append(f"{relative}::{test}{bracket}{instance}")
    return found


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("cpp", "python"):
        print(__doc__)
        return 2
    if sys.argv[1] == "cpp":
        return 0 if may_match_cpp(ROOT, sys.argv[2]) else 1
    for argument in python_arguments(ROOT, sys.argv[2]):
        print(argument)
    return 0


if __name__ == "__main__":
    sys.exit(main())
