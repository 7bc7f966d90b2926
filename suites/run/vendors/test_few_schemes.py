# SPDX-License-Identifier: BSD-3-Clause
"""A vendor with a few schemes of a large family is asked every input on them if the plan samples schemes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))
sys.path.append(str(Path(__file__).resolve().parent))

from vendor import vendor  # noqa: E402

B3, B4, MX = "intx_b3_g64_asym", "intx_b4_g32_sym", "mxfp4_ceil"


def asked(library, *words, plan="nightly"):
    """Returns the ids of synthetic cases that a run would judge, without the implementation."""
    command = [QCTS, "list", "--plan", plan, "--provider", library, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    ids = {line.rsplit("/", 1)[0] for line in done.stdout.split()}
    return {each for each in ids if each.startswith(("numerics.", "determinism."))}


def of_scheme(ids, scheme):
    return {each for each in ids if f"/{scheme}/" in each}


def serving(folder, family, *schemes):
    declines = " && ".join(f'strcmp(p->scheme_name, "{scheme}") != 0' for scheme in schemes)
    return vendor(folder, FAMILY=f'"{family}"', DECLINES=declines)


@pytest.mark.parametrize(("family", "schemes"), [("intx", [B3]), ("intx", [B3, B4]), ("mx", [MX])])
def test_a_vendor_of_few_schemes_is_asked_all_inputs_of_them(family, schemes, tmp_path):
    library = serving(tmp_path, family, *schemes)
    nightly, full = asked(library), asked(library, plan="full")
    for scheme in schemes:
        assert of_scheme(nightly, scheme) == of_scheme(full, scheme)
        assert any(each.startswith("determinism.") for each in of_scheme(nightly, scheme))
    (other,) = {"intx": ["intx_b5_g128_asym"], "mx": ["mxfp8_e4m3_floor"]}[family]
    assert 0 < len(of_scheme(nightly, other)) < len(of_scheme(full, other))


def test_of_many_schemes_four_are_asked_all_inputs(tmp_path):
    library = vendor(tmp_path, FAMILY='"intx"', DECLINES='strncmp(p->scheme_name, "intx_b4", 7) != 0')
    nightly, full = asked(library), asked(library, plan="full")
    schemes = {each.split("/")[1] for each in full}
    whole = {scheme for scheme in schemes if of_scheme(nightly, scheme) == of_scheme(full, scheme)}
    assert len(whole) == 4 and all(scheme.startswith("intx_b4") for scheme in whole)


def test_a_vendor_of_all_schemes_is_asked_the_plan(tmp_path):
    everything = asked(vendor(tmp_path, FAMILY='"intx"'))
    assert everything == asked(vendor(tmp_path, name="none", FAMILY='"intx"', DECLINES="1"))
    assert len(everything) < len(asked(tmp_path / "none.so", plan="full"))


def test_shards_and_selections_choose_from_the_same_cases(tmp_path):
    library = serving(tmp_path, "intx", B3)
    whole = asked(library, "--scheme", B3)
    assert whole == of_scheme(asked(library), B3)
    assert whole >= asked(library, "--scheme", B3, "--kind", "determinism") > set()
