# SPDX-License-Identifier: BSD-3-Clause
"""The program under test ($QCTS_BIN, by default build/release/bin/qcts) and the libraries that tests compare it with."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))


def qcts(*words, code=0, **environment):
    done = subprocess.run([BIN, *map(str, words)], capture_output=True, text=True, timeout=300, env=os.environ | environment)
    assert done.returncode == code, (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done


def commands():
    """Returns the names of the commands that `qcts --help` lists."""
    return re.findall(r"^  ([a-z]+) ", qcts("--help").stdout, re.MULTILINE)


class Terminal:
    """What a command wrote on a terminal of `columns` x `rows`."""

    def __init__(self, text, code):
        self.text, self.code = text, code

    @property
    def lines(self):
        """The lines as they were written, without colours; a rewritten line is several."""
        plain = re.sub(r"\x1b\[[0-9;]*[mK]", "", self.text)
        return re.split(r"[\r\n]+", plain)


def on_terminal(*words, columns=80, rows=24, cwd=None, **environment):
    """Runs the program on a pseudo terminal. The environment has no NO_COLOR and no COLUMNS of the caller's."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    clean = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    with subprocess.Popen(
        [BIN, *map(str, words)], stdin=slave, stdout=slave, stderr=slave, cwd=cwd, env=clean | {"TERM": "xterm"} | environment
    ) as process:
        os.close(slave)
        text = b""
        try:
            while piece := os.read(master, 65536):
                text += piece
        except OSError:  # Linux says EIO when the last writer is gone
            pass
        os.close(master)
        code = process.wait(timeout=300)
    return Terminal(text.decode(), code)


def inspect(path, *words):
    return json.loads(qcts("inspect", path, "--json", *words).stdout)


def pinned(library, version):
    """Returns the library, or skips the calling module: its expected values are those of one version."""
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    if not module.__version__.startswith(version + "."):
        pytest.skip(f"{library} {module.__version__} is not the pinned {version}", allow_module_level=True)
    return module
