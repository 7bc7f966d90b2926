# SPDX-License-Identifier: BSD-3-Clause
"""Reads test results as JUnit XML, which gtest and pytest write, for the summary of scripts/test.

count_tests.py counts FILE [FILE ...]   prints "PASSED FAILED SKIPPED"
count_tests.py summary FILE [FILE ...]  prints, on one screen, why tests were skipped, and which failed with which message
"""

import re
import shutil
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

SHOWN_REASONS = 10
SHOWN_FAILURES = 4
SHOWN_LINES = 6
NAMED_FAILURES = 8


def results(paths):
    """Yields (name, outcome, message) of every test that ran; the outcome is passed, failed or skipped. An error outside of
    the test's body is a failure."""
    for path in paths:
        # A message may quote bytes that are not UTF-8.
        root = ElementTree.fromstring(Path(path).read_text(encoding="utf-8", errors="replace"))
        for case in root.iter("testcase"):
            if case.get("status") == "notrun":
                continue
            name = f"{case.get('classname')}.{case.get('name')}"
            children = {tag: case.findall(tag) for tag in ("failure", "error", "skipped")}
            wrong = children["failure"] + children["error"]
            if wrong:
                yield name, "failed", "\n".join(f"{child.get('message') or ''}\n{child.text or ''}" for child in wrong)
            elif children["skipped"]:
                yield name, "skipped", children["skipped"][0].get("message") or children["skipped"][0].text or ""
            else:
                yield name, "passed", ""


def reason(message):
    """Returns why a test was skipped, on one line, without the position of the skip."""
    lines = message.strip().splitlines()
    if len(lines) > 1 and re.fullmatch(r"\S+:\d+", lines[0]):
        lines = lines[1:]
    return " ".join(lines).removeprefix("Skipped: ") or "no reason given"


def clipped(text):
    width = max(40, shutil.get_terminal_size().columns)
    return text if len(text) <= width else text[: width - 3] + "..."


def print_counts(paths):
    counts = Counter(outcome for _, outcome, _ in results(paths))
    print(counts["passed"], counts["failed"], counts["skipped"])


def print_skips(messages):
    reasons = Counter(map(reason, messages)).most_common()
    for text, count in reasons[:SHOWN_REASONS]:
        print(clipped(f"{count:6} skipped: {text}"))
    rest = sum(count for _, count in reasons[SHOWN_REASONS:])
    if rest:
        print(f"{rest:6} skipped for {len(reasons) - SHOWN_REASONS} other reasons")


def print_failure(name, message):
    # gtest gives a failure's first lines twice, as attribute and as text.
    lines = list(dict.fromkeys(line for line in message.strip().splitlines() if line.strip()))
    print(clipped(f"failed: {name}"))
    for line in lines[:SHOWN_LINES]:
        print(clipped(f"  {line}"))
    if len(lines) > SHOWN_LINES:
        print(f"  and {len(lines) - SHOWN_LINES} more lines")


def print_failures(failures):
    for name, message in failures[:SHOWN_FAILURES]:
        print_failure(name, message)
    for name, _ in failures[SHOWN_FAILURES : SHOWN_FAILURES + NAMED_FAILURES]:
        print(clipped(f"failed: {name}"))
    if len(failures) > SHOWN_FAILURES + NAMED_FAILURES:
        print(f"and {len(failures) - SHOWN_FAILURES - NAMED_FAILURES} more failures")


def print_summary(paths):
    tests = list(results(paths))
    print_skips([message for _, outcome, message in tests if outcome == "skipped"])
    print_failures([(name, message) for name, outcome, message in tests if outcome == "failed"])


if __name__ == "__main__":
    {"counts": print_counts, "summary": print_summary}[sys.argv[1]](sys.argv[2:])
