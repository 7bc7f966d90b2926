# SPDX-License-Identifier: BSD-3-Clause
"""The program under test ($QCTS_BIN, by default build/release/bin/qcts) and the libraries that tests compare it with."""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))


def qcts(*words, code=0):
    done = subprocess.run([BIN, *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done


def inspect(path, *words):
    return json.loads(qcts("inspect", path, "--json", *words).stdout)


def pinned(library, version):
    """Returns the library, or skips the calling module: its expected values are those of one version."""
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    if not module.__version__.startswith(version + "."):
        pytest.skip(f"{library} {module.__version__} is not the pinned {version}", allow_module_level=True)
    return module
