# SPDX-License-Identifier: BSD-3-Clause
"""The program qcts, which the wheel carries."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from ._errors import Failed, Refused

_HERE = Path(__file__).resolve().parent


def program_path() -> Path:
    """Returns the path to the program: $QCTS_BIN, or the one in this package."""
    return Path(os.environ.get("QCTS_BIN") or _HERE / "bin" / "qcts")


def main() -> int:
    """The command `qcts`: replaces this process with the program, which gets the same arguments."""
    program = str(program_path())
    os.execv(program, [program, *sys.argv[1:]])


def run(*words: str | os.PathLike[str]) -> subprocess.CompletedProcess[str]:
    """Runs the program with these arguments and returns how it ended."""
    return subprocess.run([str(program_path()), *map(os.fspath, words)], capture_output=True, text=True)


def run_json(*words: str | os.PathLike[str], codes: tuple[int, ...] = (0,)) -> tuple[int, Any]:
    """Runs the program and returns its exit code and the JSON that it prints. Raises Refused for a
    refused file, and Failed for an exit code that is not in `codes`."""
    ended = run(*words, "--json")
    data = json.loads(ended.stdout) if ended.stdout.startswith("{") else {}
    if data.get("qcts") == "refusal":
        why = data["refusal"]
        raise Refused(why["class"], why["detail"], why.get("offset"), why["security"], why.get("allow", ()))
    if ended.returncode not in codes or not data:
        raise Failed(ended.returncode, ended.stderr or ended.stdout)
    return ended.returncode, data
