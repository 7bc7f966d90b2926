#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks a commit message against the rules of CONTRIBUTING.md: `area: imperative`, at most 72 characters, then an empty line and the body.

    scripts/check_commit_message.py FILE      the message of a commit, as git gives it to the hook commit-msg
    scripts/check_commit_message.py A..B      every commit of a range

Prints one line per mistake; exit code 1 if there is one, 2 for a range that git does not know.
"""

import re
import subprocess
import sys
from pathlib import Path

MAX_COLUMNS = 72
SUBJECT = re.compile(r"[\w./*+-]+((, | )[\w./*+-]+){0,2}: (?P<what>\S.*)")
UNFINISHED = re.compile(r"\bwork in progress\b|\bwip\b|^(fixup|squash|amend)! ", re.IGNORECASE)
MERGE = re.compile(r"^Merge (remote-tracking )?(branch|branches|commit|tag|pull request)\b")
# Endings of "added", "adding" and "adds", and the imperatives that share them.
OTHER_FORM = re.compile(r"(ed|ing|[^s]s)$")
IMPERATIVES = set(
    "alias bias bring embed exceed feed focus heed need ping precede proceed seed shed speed spring string succeed swing weed".split()
)
SCISSORS = "# ------------------------ >8 ------------------------"


def text_of(message):
    """Returns the lines that git keeps: no comments, nothing below the scissors, no empty lines at either end."""
    kept = []
    for line in message.splitlines():
        if line == SCISSORS:
            break
        if not line.startswith("#"):
            kept.append(line.rstrip())
    return "\n".join(kept).strip("\n").split("\n")


def mistakes(message):
    """Yields what is wrong with a message."""
    subject, *rest = text_of(message)
    if not subject:
        yield "the message is empty"
        return
    if MERGE.match(subject):
        yield f"'{subject}' names branches: say what the merge adds, as `area: imperative`"
        return
    if UNFINISHED.search(subject):
        yield f"'{subject}' is unfinished: every commit on main stands on its own"
    if len(subject) > MAX_COLUMNS:
        yield f"the subject has {len(subject)} characters, at most {MAX_COLUMNS} are allowed"
    match = SUBJECT.fullmatch(subject)
    if not match:
        yield f"'{subject}' is not `area: imperative`, as in `kernels: read each row once`"
    else:
        word = re.split(r"\W", match["what"])[0]
        if OTHER_FORM.search(word) and word.lower() not in IMPERATIVES:
            yield f"'{word}' is not an imperative verb: `add`, not `added`, `adds`, `adding` or a noun"
    if rest and rest[0]:
        yield "an empty line must follow the subject"


def messages(word):
    """Yields (where, message) of a file, or of each commit of a range."""
    if ".." not in word or Path(word).is_file():
        yield "commit message", Path(word).read_text(encoding="utf-8", errors="replace")
        return
    listing = subprocess.run(["git", "log", "-z", "--format=%h%n%B", word, "--"], capture_output=True, text=True, errors="replace")
    if listing.returncode != 0:
        print(listing.stderr.strip(), file=sys.stderr)
        sys.exit(2)
    for entry in filter(None, listing.stdout.split("\0")):
        commit, _, message = entry.partition("\n")
        yield commit, message


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__.strip())
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    found = [f"{where}: {mistake}" for where, message in messages(sys.argv[1]) for mistake in mistakes(message)]
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
