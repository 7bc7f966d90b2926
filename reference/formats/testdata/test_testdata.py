# SPDX-License-Identifier: BSD-3-Clause
"""Tests that the committed files are what make.py makes: none is edited by hand, and today's libraries still write
them.
"""

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
VERSIONS = {"torch": "2.13.0", "torchao": "0.18.0", "safetensors": "0.8.0"}
RANDOM = {"several_keys.safetensors"}  # the order of its metadata


def version_of(package):
    try:
        return importlib.metadata.version(package).split("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return None


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    missing = [f"{name} {version}" for name, version in VERSIONS.items() if version_of(name) != version]
    if missing:
        pytest.skip("needs " + ", ".join(missing))
    out = tmp_path_factory.mktemp("testdata")
    subprocess.run([sys.executable, "-W", "ignore", FOLDER / "make.py", out], check=True, capture_output=True)
    return out


def test_the_folder_holds_what_make_makes(made):
    names = {path.name for path in FOLDER.iterdir() if path.suffix in {".pt", ".safetensors", ".extents"}}
    assert names == {path.name for path in made.iterdir()}
    for name in sorted(names - RANDOM):
        assert (FOLDER / name).read_bytes() == (made / name).read_bytes(), name
