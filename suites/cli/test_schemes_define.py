# SPDX-License-Identifier: BSD-3-Clause
"""`qcts schemes --define`: the table that an author of a kernel needs."""

import json
import re

import pytest
from qcts_program import qcts

SCHEMES = json.loads(qcts("schemes", "--json").stdout)["schemes"]
FAMILIES = {scheme["family"]: scheme for scheme in reversed(SCHEMES)}


def defined(*names):
    return qcts("schemes", "--define", *names).stdout


def planes_of(text):
    """The planes of layout plain: name, type and shape."""
    block = text.split("planes, layout plain\n", 1)[1]
    rows = re.match(r"(?:    [a-z0-9_]+: .*\n)+", block)[0].splitlines()
    return [re.fullmatch(r"    ([a-z0-9_]+): (.*) \[(.*)\]", row).groups() for row in rows]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_shapes_are_those_of_the_size_formula(family):
    example = FAMILIES[family]["size_example"]
    names = {"n": example["n"], "k": example["k"]}
    text = defined(FAMILIES[family]["name"])
    expected = [(plane["name"], plane["dtype"], plane["shape"]) for plane in example["planes"]]
    got = []
    for name, dtype, shape in planes_of(text):
        sizes = [eval(size.replace("/", "//"), {}, names) for size in shape.split(", ")] if shape else []
        got.append((name, example["dtype"] if dtype == "the weight's dtype" else dtype, sizes))
    assert got == expected
    assert "one element" in text and "the recipe writes, for finite weights" in text


def test_it_says_what_the_sample_kernel_must_know():
    text = " ".join(defined("int8_row").split())
    assert "qdata: int8 [n, k] scale: float32 [n, 1] zero_point: int8 [n, 1]" in text
    assert "w = (value(code) - zero_point) * scale;" in text
    assert "256 values in the order of their bits: 0 1 2" in text and "the last -1" in text
    assert re.search(r"zero_point 0(;| the| also asked)", text), "the recipe writes no other"
    assert re.search(r"representable, [a-z_, ]*zero_points[a-z_, ]*: zero_point: draws ", text), "and others are asked"


@pytest.mark.parametrize(
    ("scheme", "formula"),
    [
        ("int4_tinygemm_g32", "w = (value(code) - 8) * scale_and_zero[..., 0] + scale_and_zero[..., 1];"),
        ("int4_plain_g32", "w = value(code) * scale + zero_point;"),
        ("intx_b4_g32_asym", "w = (value(code) - zero_point) * scale;"),
        ("fp8_row", "w = value(code) * scale;"),
        ("mxfp4_floor", "w = value(code) * scale;"),
        ("tinyq_w8a32", "w = value(code) * scales; zero_points is not used;"),
        ("float_weight", "the plane is the weight itself;"),
        ("nf4_b64_s256", "reference/schemes/nf4.cc defines it;"),
        ("gguf_proto", "reference/schemes/gguf_proto.cc defines it;"),
    ],
)
def test_the_formula_is_the_one_by_which_the_reference_reads(scheme, formula):
    assert formula in " ".join(defined(scheme).split())


CHOICES = json.loads(qcts("schemes", "--choices", "--json").stdout)["choices"]


@pytest.mark.parametrize("name", ["int8_row", "mxfp4_even", "nvfp4_one_level", "int4_tinygemm_g32"])
def test_it_says_by_which_options_it_computes(name):
    """Those of the ledger that list the scheme, and no sibling's."""
    text = " ".join(defined(name).split())
    wanted = {option["id"]: option for choice in CHOICES for option in choice["options"] if name in option["schemes"]}
    assert wanted and all(f"{option_id}: {option['answer']}" in text for option_id, option in wanted.items())
    others = {option["id"] for choice in CHOICES for option in choice["options"]} - set(wanted)
    assert not [option_id for option_id in others if f" {option_id}: " in text]
    scheme = next(scheme for scheme in SCHEMES if scheme["name"] == name)
    assert all(f"linear with x {policy}" in text for policy in [one["name"] for one in scheme["activations"]])


def test_nibbles_are_told_apart():
    assert "w[0, 0 .. 3] are the codes 0, 1, 2, 3 of qdata" in " ".join(defined("mxfp4_floor").split())
    assert "w[0, 0 .. 3] are the codes 1, 0, 3, 2 of " in " ".join(defined("nf4_b64_s256").split())


def test_it_wants_a_name():
    assert "--define" in qcts("schemes", "--define", code=2).stderr
    assert "did you mean 'int8_row'" in qcts("schemes", "--define", "int9_row", code=2).stderr


def test_it_says_what_shapes_do_not_tell():
    text = " ".join(defined("fp8_row").split())
    assert "hp_value_ub: float64 []: upper bound on the largest magnitude of x, for x dyn_row" in text
    assert "hp_value" not in defined("int8_row")
    assert " ".join(defined("int4_tinygemm_g32").split()).count("padded to a multiple of 8 and k to a multiple of 1024") == 2
