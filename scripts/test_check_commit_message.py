# SPDX-License-Identifier: BSD-3-Clause
"""Tests the check of commit messages, and that both ways to install it run the same checks."""

import os
import re
import subprocess
import sys
from pathlib import Path

import check_commit_message
import pytest

ROOT = Path(__file__).resolve().parent.parent
GOOD = [
    "kernels: read each row of x once\n",
    "inputs, CONTRIBUTING: say what inputs find\n\nBefore: nothing.\n",
    "linear sm80: process rows in pairs\n# a comment of git's\n",
    "suites/cli: " + "x" * 60,
    "build: pass flags\n\nbody\n# ------------------------ >8 ------------------------\ndiff --git a/x b/x\n",
]
WRONG = {
    "Merge branch 'wt-c3' into int\n": "names branches",
    "Merge remote-tracking branch 'origin/main'\n": "names branches",
    "kernels: read x (work in progress)\n": "unfinished",
    "WIP: kernels\n": "unfinished",
    "fixup! kernels: read x\n": "unfinished",
    "suites/cli: " + "x" * 61: "73 characters",
    "Read each row once\n": "not `area: imperative`",
    "kernels:read each row once\n": "not `area: imperative`",
    "kernels: \n": "not `area: imperative`",
    "kernels: added a row\n": "'added' is not an imperative",
    "kernels: adds a row\n": "'adds' is not an imperative",
    "kernels: adding a row\n": "'adding' is not an imperative",
    "kernels: add a row\nBefore: nothing.\n": "an empty line",
    "# only comments\n\n": "empty",
}


@pytest.mark.parametrize("message", GOOD)
def test_a_good_message_passes(message):
    assert list(check_commit_message.mistakes(message)) == []


@pytest.mark.parametrize("message", WRONG)
def test_a_mistake_is_named(message):
    assert any(WRONG[message] in mistake for mistake in check_commit_message.mistakes(message))


def git(folder, *words):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", f"core.hooksPath={folder}/scripts/hooks"]
    return subprocess.run(["git", "-C", folder, *who, *words], capture_output=True, text=True, env=clean)


@pytest.fixture
def repository(tmp_path):
    """A repository with the hooks; its scripts/format passes every file but wrong.cc."""
    (tmp_path / "scripts").mkdir()
    for name in ("check_commit_message.py", "check_includes.py", "check_names.py", "spdx.py", "hooks"):
        (tmp_path / "scripts" / name).symlink_to(ROOT / "scripts" / name)
    (tmp_path / "scripts/format").write_text('#!/bin/sh\ncase "$*" in *wrong.cc*) echo "$* is loose"; exit 1 ;; esac\n')
    (tmp_path / "scripts/format").chmod(0o755)
    git(tmp_path, "init", "-q", "-b", "main")
    return tmp_path


def test_git_runs_the_hooks(repository):
    """Protects: a commit, a merge and a loose file are stopped; git needs no network and no pre-commit."""
    assert git(repository, "commit", "--allow-empty", "-m", "added a row").returncode == 1
    assert git(repository, "commit", "--allow-empty", "-m", "kernels: add a row").returncode == 0
    git(repository, "checkout", "-q", "-b", "wt-x")
    git(repository, "commit", "--allow-empty", "-m", "kernels: add a column")
    git(repository, "checkout", "-q", "main")
    assert "names branches" in git(repository, "merge", "--no-ff", "wt-x").stderr
    assert git(repository, "commit", "-m", "kernels: add columns").returncode == 0
    (repository / "wrong.cc").write_text("")
    git(repository, "add", "wrong.cc")
    done = git(repository, "commit", "-m", "kernels: add a file")
    assert done.returncode == 1 and "--check wrong.cc is loose" in done.stdout + done.stderr
    ranged = [sys.executable, ROOT / "scripts/check_commit_message.py", "HEAD~1..HEAD"]
    assert subprocess.run(ranged, cwd=repository).returncode == 0


def test_pre_commit_runs_what_the_hooks_run():
    config = (ROOT / ".pre-commit-config.yaml").read_text()
    hooks = (ROOT / "scripts/hooks/pre-commit").read_text() + (ROOT / "scripts/hooks/commit-msg").read_text()
    entries = re.findall(r"entry: (?:python3 )?scripts/(\w+)", config)
    assert len(entries) == 5 and all(re.search(rf"\b{entry}\b", hooks) for entry in entries)
    assert re.findall(r"repo: (.*)", config) == ["local"]
