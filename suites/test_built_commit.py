# SPDX-License-Identifier: BSD-3-Clause
"""The program names the commit from which it was built, and "unknown" only if nothing names the commit."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))
GIT = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")} | {"GIT_CONFIG_GLOBAL": "/dev/null"}


def git(folder, *words):
    return subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True, text=True, env=os.environ | GIT).stdout.strip()


def built(source, given=""):
    output = source.parent / "built_commit.cc"
    words = [f"-DSOURCE={source}", f"-DGIVEN={given}", f"-DOUTPUT={output}", "-P", str(ROOT / "suites/built_commit.cmake")]
    subprocess.run(["cmake", *words], check=True, timeout=60)
    return output.read_text().split('"')[-2]


@pytest.fixture
def source(tmp_path):
    """A folder with the file that git fills in when it makes an archive."""
    folder = tmp_path / "source"
    (folder / "suites").mkdir(parents=True)
    for name in ("suites/commit.txt", ".gitattributes"):
        (folder / name).write_text((ROOT / name).read_text())
    return folder


def committed(source):
    git(source, "init", "--quiet")
    git(source, "add", ".")
    git(source, "commit", "--quiet", "-m", "one")
    return git(source, "rev-parse", "--short", "HEAD")


def test_without_git_it_is_unknown(source):
    assert built(source) == "unknown"


def test_git_tells_it(source):
    commit = committed(source)
    assert built(source) == commit
    (source / "suites/commit.txt").write_text("changed\n")
    assert built(source) == commit + "-dirty"


def test_an_archive_tells_it(source, tmp_path):
    commit = committed(source)
    git(source, "archive", "--output", tmp_path / "source.tar", "HEAD")
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    subprocess.run(["tar", "-xf", tmp_path / "source.tar", "-C", unpacked], check=True)
    assert built(unpacked) == commit


def test_the_repository_around_a_source_tree_is_not_asked(source):
    committed(source.parent)
    assert built(source) == "unknown"


def test_who_builds_may_tell_it(source):
    committed(source)
    assert built(source, "v1.2-3-gabcdef0") == "v1.2-3-gabcdef0"


def test_the_program_names_it():
    text = subprocess.run([QCTS, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    named = text.removeprefix("qcts 0.1.0 (").removesuffix(")")
    known = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    assert text == f"qcts 0.1.0 ({named})"
    assert (named != "unknown") == (known.returncode == 0)
