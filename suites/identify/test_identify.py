# SPDX-License-Identifier: BSD-3-Clause
"""`qcts run --identify` names what a kernel computes: kernels with planted options are named by them, those of an option that nobody
has are not counted for any option, and options that no input can tell apart are listed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "suites/cli"))
from qcts_program import qcts  # noqa: E402

SCHEMES = ["int8_row", "mxfp4_floor", "int4_plain_g32"]
# variant and scheme -> the options that the kernel follows
NAMED = {
    ("away", "int8_row"): "int8_row by half_away",
    ("divides", "int8_row"): "int8_row by tinyq_divide",
    ("by127", "int8_row"): "int8_row by tinyq_127",
    ("reduced", "int8_row"): "int8_row_reduced",
    ("x127", "int8_row"): "dyn_row_sym_127",
    ("even", "mxfp4_floor"): "mxfp4_even",
    ("ceil", "mxfp4_floor"): "mxfp4_ceil",
    ("rceil", "mxfp4_floor"): "mxfp4_rceil",
    ("away", "mxfp4_floor"): "mxfp4_floor by half_away",
    ("nibbles", "mxfp4_floor"): "mxfp4_floor by nibble_even_high",
    ("tworoundings", "int4_plain_g32"): "int4_plain_g32 by int4_dequant_two_roundings",
    ("floatx", "int8_row"): "int8_row, weight_only",
    ("linearnibbles", "mxfp4_floor"): "mxfp4_floor by nibble_even_high",
    ("copies", "int4_plain_g32"): "plain",
    ("copiesback", "int4_plain_g32"): "plain",
}
# variant and scheme -> the nearest option
OUTSIDE = {
    ("truncates", "int8_row"): "int8_row by tinyq_127",
    ("by126", "int8_row"): "int8_row by tinyq_127",
    ("onemore", "mxfp4_floor"): "mxfp4_ceil",
}
FAR_OUTSIDE = {
    ("firstscale", "int8_row"): "int8_row, weight_only",
    ("exchanges", "int4_plain_g32"): "preshuffled_bf16 by nibble_even_high",
}
RIGHT_KERNELS = {("asked", "int8_row"), ("rightlinear", "int8_row")}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    library = tmp_path_factory.mktemp("planted") / "planted.so"
    flags = ["-std=c11", "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    source = ROOT / "suites/selftest/planted/planted.c"
    subprocess.run(["cc", *flags, "-I", ROOT / "kernels/abi", source, "-o", library, "-lm"], check=True, timeout=120)
    return library


def words(library, schemes=SCHEMES):
    return ["run", "--identify", "--provider", library, *(word for scheme in schemes for word in ("--scheme", scheme))]


@pytest.fixture(scope="module")
def found(library):
    kernels = json.loads(qcts(*words(library), "--json", code=1).stdout)["kernels"]
    return {(kernel["kernel"].removeprefix("planted_"), kernel["scheme"]): kernel for kernel in kernels}


def test_every_planted_kernel_is_asked(found):
    assert set(found) == {*NAMED, *OUTSIDE, *FAR_OUTSIDE, *RIGHT_KERNELS} and len(NAMED) >= 10
    for kernel in found.values():
        if "pack" in kernel["op"]:
            assert kernel["answered"] == kernel["inputs"] > 0 and kernel["layout"] == "preshuffled_bf16"
        else:
            assert 0 < kernel["answered"] < kernel["inputs"] and "only float32" in kernel["reason"] and kernel["layout"] == "plain"


@pytest.mark.parametrize("planted", NAMED, ids="_".join)
def test_a_planted_option_is_named(found, planted):
    kernel = found[planted]
    assert kernel["computes"][0] == kernel["nearest"] == NAMED[planted] and not kernel["as_asked"]
    (option,) = [option for option in kernel["options"] if option["option"] == NAMED[planted]]
    asked = kernel["options"][0]
    assert option["fits"] and option["codes"] == option["equal_codes"] > 300 and option["scales"] == option["equal_scales"]
    assert asked["equal_codes"] < asked["codes"] == option["codes"]
    same = [names for names in kernel["not_told_apart"] if NAMED[planted] in names]
    assert set(kernel["computes"]) == set(same[0] if same else [NAMED[planted]]), "whatever else fits is said not to be told apart"


@pytest.mark.parametrize("planted", OUTSIDE | FAR_OUTSIDE, ids="_".join)
def test_an_option_that_nobody_has_is_none_of_them(found, planted):
    kernel = found[planted]
    assert kernel["computes"] == [] and kernel["nearest"] == (OUTSIDE | FAR_OUTSIDE)[planted]
    (nearest,) = [option for option in kernel["options"] if option["option"] == kernel["nearest"]]
    assert (0.5 if planted in OUTSIDE else 0) < nearest["equal_codes"] / nearest["codes"] < 1
    assert nearest["equal_codes"] == max(option["equal_codes"] for option in kernel["options"])


def test_a_right_kernel_is_as_asked(found, library):
    for right in RIGHT_KERNELS:
        assert found[right]["as_asked"] and found[right]["nearest"] == found[right]["computes"][0]
    assert found["asked", "int8_row"]["as_asked"] and found["asked", "int8_row"]["computes"][0] == "int8_row"
    qcts(*words(library, ["int8_row"]), "--variant", "asked", code=0)


def test_options_that_no_input_tells_apart_are_printed(found, library):
    policies = found["x127", "int8_row"]
    assert any({"dyn_row_sym_127", "dyn_token_sym_127_s32 of intx_b1_axis_sym"} <= set(names) for names in policies["not_told_apart"])
    assert ["int8_row", "int8_row_v1"] in [sorted(names) for names in found["asked", "int8_row"]["not_told_apart"]]
    assert found["even", "mxfp4_floor"]["not_told_apart"] == []
    text = " ".join(qcts(*words(library, ["int8_row"]), code=1).stdout.split())
    assert "no input can tell apart: int8_row = int8_row_v1" in text


def test_the_text_says_what_was_asked(library):
    text = " ".join(qcts(*words(library, ["mxfp4_floor"]), code=1).stdout.split())
    assert "linear mxfp4_floor, planted_linearnibbles: mxfp4_floor by nibble_even_high, 2,536 of 2,536; asked: " in text
    assert "quantize mxfp4_floor, planted_even: mxfp4_even, 50,592 of 50,592 codes" in text
    assert "; asked: mxfp4_floor, 43,003 of 50,592" in text
    assert "planted_onemore: none; nearest mxfp4_ceil, 49,100 of 50,592 codes, 1,470 of 1,581 scales (97.0 %)" in text


RIGHT = ["int8_row", "int8_g32", "int4_tinygemm_g32", "nvfp4_two_level", "fp8_row", "intx_b4_g32_sym", "mxfp8_e4m3_rceil"]


@pytest.mark.parametrize("scheme", RIGHT)
def test_right_kernels_are_accused_of_nothing(scheme):
    kernels = json.loads(qcts(*words("builtin", [scheme]), "--json").stdout)["kernels"]
    assert kernels and all(kernel["as_asked"] for kernel in kernels if kernel["answered"])
    assert any(kernel["answered"] for kernel in kernels)


def test_a_failure_of_a_run_names_the_option(library, tmp_path):
    cases = ["numerics.quantize/int8_row/noise_n37_k216_f32/planted_by127", "numerics.dequantize/int4_plain_g32/noise*_f32/planted_*"]
    chosen = [word for case in cases for word in ("--filter", case)]
    done = qcts("run", "--no-progress", "--provider", library, *chosen, "--out", tmp_path / "out", code=1)
    text = " ".join(done.stdout.split())
    assert "qdata and scale match int8_row by tinyq_127" in text
    assert "y matches int4_plain_g32 by int4_dequant_two_roundings" in text


def test_a_kernel_that_crashes_is_never_as_asked():
    library = Path(qcts("--version").args[0]).resolve().parents[1] / "lib/selftest/qcts_faulty_aborts.so"
    (kernel,) = json.loads(qcts(*words(library, ["int8_row"]), "--json", code=1).stdout)["kernels"]
    assert kernel["faults"] > 0 and not kernel["as_asked"] and kernel["reason"].startswith("crash: ")


def test_wrong_words_are_refused(library):
    assert "--identify needs one --provider" in qcts("run", "--identify", code=2).stderr
    assert "has no kernel of these schemes" in qcts(*words(library, ["nf4_b64_s256"]), code=3).stderr
    assert "excludes" in qcts(*words(library), "--plan", "quick", code=2).stderr
