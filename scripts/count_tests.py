# SPDX-License-Identifier: BSD-3-Clause
"""Reads test results, gtest's JSON or JUnit XML, for the summary of scripts/test.

count_tests.py counts FILE [FILE ...]    prints "PASSED FAILED SKIPPED"
count_tests.py failures FILE [FILE ...]  prints each failed test's name and the first lines of its output
"""

import json
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter

SHOWN_LINES = 20


def gtest_results(path):
    """Yields (name, outcome, message) of every test that ran; the outcome is passed, failed or skipped."""
    with open(path, encoding="utf-8", errors="replace") as file:
        suites = json.load(file)["testsuites"]
    for suite in suites:
        for test in suite["testsuite"]:
            name = f"{suite['name']}.{test['name']}"
            if test.get("failures"):
                yield name, "failed", "\n".join(failure["failure"] for failure in test["failures"])
            elif test["result"] == "SKIPPED":
                yield name, "skipped", ""
            elif test["result"] == "COMPLETED":
                yield name, "passed", ""


def junit_results(path):
    """As above, for JUnit XML; an error outside the test's body is a failure."""
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        outcomes = {child.tag: child for child in case}
        wrong = [outcomes[tag] for tag in ("failure", "error") if tag in outcomes]
        if wrong:
            yield name, "failed", "\n".join(f"{child.get('message') or ''}\n{child.text or ''}" for child in wrong)
        else:
            yield name, "skipped" if "skipped" in outcomes else "passed", ""


def results(paths):
    for path in paths:
        yield from junit_results(path) if path.endswith(".xml") else gtest_results(path)


def print_counts(paths):
    counts = Counter(outcome for _, outcome, _ in results(paths))
    print(counts["passed"], counts["failed"], counts["skipped"])


def print_failures(paths):
    for name, outcome, message in results(paths):
        if outcome != "failed":
            continue
        lines = message.strip().splitlines()
        print(f"failed: {name}")
        for line in lines[:SHOWN_LINES]:
            print(f"  {line}")
        if len(lines) > SHOWN_LINES:
            print(f"  and {len(lines) - SHOWN_LINES} lines more, above")


if __name__ == "__main__":
    {"counts": print_counts, "failures": print_failures}[sys.argv[1]](sys.argv[2:])
