# SPDX-License-Identifier: BSD-3-Clause
"""Checks that every C and C++ source has its own compile command and compiles by itself: with QCTS_UNITY=OFF, a file borrows no header
from a neighbour in its group or from a precompiled header. Prints one line per source that does not; exit code 1 if there is one.

    scripts/check_sources.py [--all] [--jobs N] [BUILD]

BUILD is a folder configured with preset dev (build/dev). Without --all, one source in ten is compiled, drawn by the commit.
Sources of qcts_unavailable (CMakeLists.txt) need a library that is missing here; they are not compiled.
"""

import argparse
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOPS = ("reference", "kernels", "fixtures", "reports", "suites")
SUFFIXES = {".cc", ".c", ".cu"}
SHARE = 10
SHOWN_LINES = 6


def sources(root):
    """Returns the paths of all sources below the top-level folders, relative to `root`."""
    return sorted(path.relative_to(root).as_posix() for top in TOPS for path in (root / top).rglob("*") if path.suffix in SUFFIXES)


def commands(build, root):
    """Maps each source to a compile command of the C or C++ compiler (words, folder); of several, to the first that forces no header."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = os.path.relpath(entry["file"], root)
        words = shlex.split(entry["command"])
        if any(word.endswith("/nvcc") for word in words):
            continue
        if path not in found or ("-include" in found[path][0] and "-include" not in words):
            found[path] = (words, entry["directory"])
    return found


def is_unavailable(words):
    return any("/qcts_unavailable.dir/" in word for word in words)


def check_only(words):
    """Returns the command without its output, and without the compiler cache."""
    at = next((i for i, word in enumerate(words) if re.search(r"(^|/)(c\+\+|cc|g\+\+|gcc|clang(\+\+)?)(-\d+)?$", word)), 0)
    kept, skip = [], False
    for word in words[at:]:
        if skip:
            skip = False
        elif word == "-o":
            skip = True
        elif word != "-c":
            kept.append(word)
    return [*kept, "-fsyntax-only", "-fdiagnostics-color=never"]


def drawn(paths, commit):
    """Returns one path in SHARE, drawn by the commit."""
    order = sorted(paths, key=lambda path: hashlib.sha256(f"{commit} {path}".encode()).digest())
    return sorted(order[: -(-len(order) // SHARE)])


def commit_of(root):
    done = subprocess.run(["git", "-C", root, "rev-parse", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def complaint(path, words, folder):
    """Returns the compiler's first lines on a source; "" if it compiles without a warning that is an error."""
    done = subprocess.run(check_only(words), cwd=folder, capture_output=True, text=True, errors="replace")
    if done.returncode == 0:
        return ""
    said = [line for line in done.stderr.splitlines() if re.search(r"error|warning", line)] or done.stderr.splitlines()
    return "\n  ".join([f"{path} does not compile by itself", *said[:SHOWN_LINES]])


def check(build, root, all_of_them, jobs):
    """Returns the complaints, the number of sources that were compiled, and the number that lack a library here."""
    known = commands(build, root)
    complaints = [f"{path}: no compile command in {build}" for path in sources(root) if path not in known]
    able = [path for path in sources(root) if path in known and not is_unavailable(known[path][0])]
    asked = able if all_of_them else drawn(able, commit_of(root))
    with ThreadPoolExecutor(jobs) as pool:
        said = pool.map(lambda path: complaint(path, *known[path]), asked)
    return complaints + [text for text in said if text], len(asked), sum(is_unavailable(words) for words, _ in known.values())


def main():
    parser = argparse.ArgumentParser(description="Checks that every source compiles by itself.")
    parser.add_argument("--all", action="store_true", help="compile every source, not one in ten")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("build", nargs="?", type=Path, default=ROOT / "build/dev")
    options = parser.parse_args()
    complaints, compiled, unavailable = check(options.build, ROOT, options.all, options.jobs)
    print(
        "\n".join(complaints) if complaints else f"{compiled} sources compile by themselves, {unavailable} need a missing library"
    )
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
