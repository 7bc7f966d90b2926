# SPDX-License-Identifier: BSD-3-Clause
"""Runs programs in the environment of the wheel, without a compiler."""

import os
import subprocess
import textwrap


def call(environment, cwd, *words):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("QCTS_", "PYTHON"))}
    clean["PATH"] = str(environment / "bin")  # no compiler
    return subprocess.run([*map(str, words)], capture_output=True, text=True, cwd=cwd, env=clean, timeout=600)


def python(environment, cwd, program):
    ended = call(environment, cwd, environment / "bin/python", "-c", textwrap.dedent(program))
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
