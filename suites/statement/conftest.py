# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of statements share: one signed statement of a complete run."""

import json

import pytest
from statements import DECLINES, key_file, run, state
from vendor import vendor


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A library, its complete run, and the signed statement of that."""
    folder = tmp_path_factory.mktemp("made")
    library = vendor(folder / "lib", DECLINES=DECLINES)
    run(folder / "run", library)
    state(folder / "run", "--key", key_file(folder))
    return {"library": library, "run": folder / "run", "file": folder / "run/statement.json"}


@pytest.fixture
def envelope(made):
    return json.loads(made["file"].read_text())
