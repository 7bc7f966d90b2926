"""Prints "PASSED FAILED SKIPPED" of a gtest JSON or a JUnit XML file: what scripts/test adds up."""

import json
import sys
import xml.etree.ElementTree as ElementTree


def count_gtest(path):
    passed = failed = skipped = 0
    with open(path, encoding="utf-8") as file:
        for suite in json.load(file)["testsuites"]:
            for test in suite["testsuite"]:
                if test.get("failures"):
                    failed += 1
                elif test["result"] == "SKIPPED":
                    skipped += 1
                elif test["result"] == "COMPLETED":
                    passed += 1
    return passed, failed, skipped


def count_junit(path):
    passed = failed = skipped = 0
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        outcomes = {child.tag for child in case}
        if outcomes & {"failure", "error"}:
            failed += 1
        elif "skipped" in outcomes:
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


if __name__ == "__main__":
    counter = {"gtest": count_gtest, "junit": count_junit}[sys.argv[1]]
    print(*counter(sys.argv[2]))
