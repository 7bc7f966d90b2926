# SPDX-License-Identifier: BSD-3-Clause
"""The program under test: $QCTS_BIN, by default build/release/bin/qcts."""

import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))


def qcts(*words, code=0):
    done = subprocess.run([BIN, *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done


def inspect(path, *words):
    return json.loads(qcts("inspect", path, "--json", *words).stdout)
