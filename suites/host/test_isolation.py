# SPDX-License-Identifier: BSD-3-Clause
"""Starts hosts as root and not, with namespaces and where the system refuses them: what isolates a provider is found by trying, right ones
pass, and a library that patches its process changes no verdict."""

import ctypes
import gzip
import json
import os
import struct
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))
SELFTEST = Path(os.environ.get("QCTS_BUILD", str(ROOT / "build/release"))) / "lib/selftest"
# One float32 input, on which the planted faults strike.
STRUCK = "numerics.dequantize/int8_row/noise_n7_k13_f32"
NOBODY = 65534

# seccomp(2): a container's usual filter, by which unshare, setns and clone with any CLONE_NEW* flag answer EPERM, and clone3 ENOSYS.
LOAD, EQUAL, ANY_OF, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, EPERM, ENOSYS = 0x7FFF0000, 0x00050001, 0x00050026
NEW_NAMESPACES = 0x7E020000
NUMBERS = {"x86_64": (435, 272, 308, 56), "aarch64": (435, 97, 268, 220)}


def refuse_namespaces():
    clone3, unshare, setns, clone = NUMBERS[os.uname().machine]
    program = [(LOAD, 0, 0, 0)]
    for number, answer in ((clone3, ENOSYS), (unshare, EPERM), (setns, EPERM)):
        program += [(EQUAL, 0, 1, number), (RETURN, 0, 0, answer)]
    program += [(EQUAL, 0, 3, clone), (LOAD, 0, 0, 16), (ANY_OF, 0, 1, NEW_NAMESPACES), (RETURN, 0, 0, EPERM), (RETURN, 0, 0, ALLOW)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *statement) for statement in program))
    whole = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS, without which only root may filter
    assert libc.prctl(22, 2, whole, 0, 0) == 0  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


@pytest.fixture(params=["as_we_are", "as_nobody"])
def user(request):
    if request.param == "as_we_are":
        return {}
    if os.geteuid() != 0:
        pytest.skip("only root can become nobody")
    if subprocess.run(["test", "-r", QCTS], user=NOBODY, check=False).returncode != 0:
        pytest.skip("nobody cannot read the build folder")
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []}


@pytest.fixture(params=["namespaces", "none"])
def namespaces(request):
    return None if request.param == "namespaces" else refuse_namespaces


def judged(provider, user, namespaces, folder):
    """Returns the verdict on STRUCK and the provider's isolation."""
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    for parent in folder.parents:  # pytest makes its folders for one user
        if parent.owner() != "root" or parent == Path("/"):
            break
        parent.chmod(parent.stat().st_mode | 0o011)
    result = subprocess.run(
        [QCTS, "run", "--no-progress", "--kind", "numerics", "--filter", STRUCK, "--provider", provider, "--out", folder / "out"],
        capture_output=True, text=True, timeout=120, preexec_fn=namespaces, env=os.environ | {"TMPDIR": str(folder)}, **user,
    )  # fmt: skip
    assert (folder / "out/run.jsonl.gz").exists(), result.stderr
    head, verdict = map(json.loads, gzip.open(folder / "out/run.jsonl.gz", "rt"))
    return verdict, head["providers"][0]["isolation"]


@pytest.mark.parametrize(
    ("library", "status", "reason"),
    [
        ("minimal", "pass", ""),
        ("qcts_faulty_spawns", "pass", ""),  # a thread and a child process
        ("qcts_faulty_patches_host", "fail", ""),
        ("qcts_faulty_aborts", "crash", "SIGABRT"),
        ("qcts_faulty_exits", "crash", "exit code 0"),
        ("qcts_faulty_writes_input", "fail", "wrote into its input qdata"),
    ],
)
def test_verdicts_do_not_depend_on_the_start(library, status, reason, user, namespaces, tmp_path):
    verdict, isolation = judged(SELFTEST / f"{library}.so", user, namespaces, tmp_path / "run")
    assert (verdict["status"], reason in verdict["reason"]) == (status, True), verdict
    assert isolation.startswith("isolated"), isolation
    if namespaces:
        assert "see other processes" in isolation


def test_a_program_is_held_too(namespaces, tmp_path):
    verdict, isolation = judged(ROOT / "suites/selftest/python/provider.py", {}, namespaces, tmp_path / "run")
    assert verdict["status"] == "pass", verdict
    assert isolation.startswith("isolated"), isolation
