#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that every source file has its licence line first, or after a `#!` line: SPDX-License-Identifier: BSD-3-Clause.

    scripts/spdx.py [--fix] [FOLDER]

Lists every file without the line, with exit code 1; --fix adds it. JSON, text and goldens have none.
"""

import argparse
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORDS = "SPDX-License-Identifier: BSD-3-Clause"
SLASHES = {".h", ".cc", ".c", ".cu", ".cuh", ".inc"}
HASHES = {".py", ".sh", ".cmake"}
# Folders of generated or external files.
NOT_SOURCES = {"build", "out", "golden", "malformed", "__pycache__"}


def mark(path):
    """Returns the comment marker of a file; None if it is not a source file."""
    if path.suffix in SLASHES:
        return "//"
    if path.suffix in HASHES or path.name == "CMakeLists.txt":
        return "#"
    if path.suffix == "":
        with path.open("rb") as file:
            return "#" if file.read(2) == b"#!" else None
    return None


def sources(root):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in NOT_SOURCES and (f == ".ci" or not f.startswith(".")))
        for path in (Path(folder) / name for name in sorted(names)):
            if path.is_file() and mark(path):
                yield path


def place(text):
    """Returns the position of the line: after a first line with `#!`."""
    return text.index("\n") + 1 if text.startswith("#!") else 0


def line_of(path):
    return f"{mark(path)} {WORDS}\n"


def missing(root=ROOT):
    for path in sources(root):
        text = path.read_text(encoding="utf-8")
        if not text.startswith(line_of(path), place(text)):
            yield path


def fix(path):
    text = path.read_text(encoding="utf-8")
    at = place(text)
    path.write_text(text[:at] + line_of(path) + text[at:], encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description="Checks the licence line of every source file.")
    parser.add_argument("--fix", action="store_true", help="add missing lines")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT)
    options = parser.parse_args()
    found = list(missing(options.folder))
    for path in found:
        if options.fix:
            fix(path)
        print(f"{path.relative_to(options.folder)}: " + ("added" if options.fix else f"no line '{line_of(path).strip()}'"))
    return 1 if found and not options.fix else 0


if __name__ == "__main__":
    sys.exit(main())
