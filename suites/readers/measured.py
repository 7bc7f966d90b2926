# SPDX-License-Identifier: BSD-3-Clause
"""Runs a command and measures its memory."""

import json
import subprocess
import sys

# A process counts the memory of the one that starts it as its own, and the caller may hold torch.
MEASURE = """
import json, os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
process.stdin.write(sys.stdin.read())
process.stdin.close()
said = process.stdout.read()
_, status, usage = os.wait4(process.pid, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), said, usage.ru_maxrss * 1024]))
"""


def measured(*words, given=""):
    """Returns what the command writes to its standard output, and its largest resident set in bytes."""
    done = subprocess.run([sys.executable, "-S", "-c", MEASURE, *map(str, words)], input=given, capture_output=True, text=True)
    code, said, memory_bytes = json.loads(done.stdout)
    assert code == 0, done.stderr
    return said, memory_bytes
