#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What scripts/nightly does once its runs are judged: compares each with the previous night in the history, keeps it among the
last nights, and prints one JSON line for a chat webhook.

    scripts/night_report.py CODE FOLDER ... [--history FILE] [--nights FOLDER] [--keep 14] [--date YYYYMMDD]

Each FOLDER gets compare.md. The nights are kept below --nights, one folder per date; beyond --keep, the oldest are deleted.
The line is {"text": ...}, which Slack, Mattermost and others accept; it is the last line printed and is also in NIGHTS/last.json.
Exit code: CODE, which is the night's, or 1 if CODE is 0 and a comparison is worse.
"""

import argparse
import datetime
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))
KEPT = ("report.html", "report.json", "run.jsonl.gz", "junit.xml", "summary.md", "compare.md", "trend.json")
WORDS = {0: "passed", 1: "FAILED", 2: "wrong usage", 3: "nothing proved", 4: "inconclusive", 5: "could not judge"}
WORSE, NOT_COMPARABLE = 1, 3


def compare(folder, history):
    """Writes compare.md. Returns (exit code, the comparison's last line); (3, why) if there is nothing to compare with."""
    done = subprocess.run([QCTS, "compare", folder, "--history", history, "--json"], capture_output=True, text=True)
    if not done.stdout.startswith("{"):
        return NOT_COMPARABLE, (done.stderr.strip().splitlines() or ["no comparison"])[-1].removeprefix("qcts: ")
    text = subprocess.run([QCTS, "compare", folder, "--history", history, "--markdown"], capture_output=True, text=True).stdout
    (folder / "compare.md").write_text(text)
    return done.returncode, json.loads(done.stdout)["summary"]


def verdict(folder):
    """Returns what a run's last lines say, or that there is no report."""
    file = folder / "report.json"
    if not file.exists():
        return "no report"
    report = json.loads(file.read_text())
    counts = ", ".join(f"{number:,} {status}" for status, number in report["counts"]["by_status"].items() if number)
    return f"{report['conformance']['reason']} ({counts})"


def keep(folders, nights, date, number):
    """Copies what is worth keeping to NIGHTS/DATE/name, and deletes the oldest dates beyond `number`. Returns the deleted."""
    for folder in folders:
        place = nights / date / folder.name
        place.mkdir(parents=True, exist_ok=True)
        for name in KEPT:
            if (folder / name).exists():
                shutil.copy2(folder / name, place / name)
    dates = sorted(path for path in nights.iterdir() if path.is_dir() and path.name.isdigit() and len(path.name) == 8)
    old = dates[:-number]
    for path in old:
        shutil.rmtree(path)
    return old


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("code", type=int)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--history", type=Path, default=Path("out/history.sqlite"))
    parser.add_argument("--nights", type=Path, default=Path("out/nights"))
    parser.add_argument("--keep", type=int, default=14)
    parser.add_argument("--date", default=datetime.datetime.now(datetime.UTC).strftime("%Y%m%d"))
    options = parser.parse_args()
    if options.keep < 1:
        parser.error("--keep needs at least one night")
    code, lines = options.code, []
    for folder in options.folders:
        worse, change = compare(folder, options.history)
        if worse == WORSE and code == 0:
            code = WORSE
        lines.append(f"{folder.name}: {verdict(folder)}. {change[:1].upper()}{change[1:]}.")
    options.nights.mkdir(parents=True, exist_ok=True)
    keep(options.folders, options.nights, options.date, options.keep)
    line = json.dumps({"text": f"qcts, night of {options.date}: {WORDS.get(code, 'ended with ' + str(code))}\n" + "\n".join(lines)})
    (options.nights / "last.json").write_text(line + "\n")
    print(line)
    return code


if __name__ == "__main__":
    sys.exit(main())
