# SPDX-License-Identifier: BSD-3-Clause
"""`qcts whence DENSE QUANTIZED` names the scheme that made a file, of all that `qcts quantize` writes and of all goldens that record
their weights; one changed bit has no recipe; and a weight that is not enough to decide is reported as undecided."""

import json
import re

import numpy as np
import pytest
from dialect_files import FIXTURES, GOLDENS, read_safetensors, write_safetensors
from qcts_program import qcts

N, K = 128, 512
SCHEMES = json.loads(qcts("schemes", "--json").stdout)["schemes"]
FAMILIES = sorted({scheme["family"] for scheme in SCHEMES})
NOT_WRITTEN = {"fp8_sparse24_row", "int4_e4m3_g128", "int4_e4m3_g256", "float_weight"}


def bits(values):
    """float32 values rounded to bfloat16: half to even."""
    word = np.asarray(values, np.float32).view(np.uint32)
    return ((word + 0x7FFF + (word >> 16 & 1)) >> 16).astype("<u2")


def weights(seed=3):
    return (np.random.default_rng(seed).standard_normal((N, K)) * 0.05).astype(np.float32)


def dense_file(path, layers, dtype="BF16"):
    data = {name: bits(w).tobytes() if dtype == "BF16" else w.tobytes() for name, w in layers.items()}
    return write_safetensors(path, {name: (dtype, list(w.shape), data[name]) for name, w in layers.items()})


def whence(*words, code=0):
    document = json.loads(qcts("whence", *words, "--json", code=code).stdout)
    assert document["qcts"] == "whence"
    return document


def schemes_of(tensor):
    return {fit["scheme"] for fit in tensor["fits"]}


@pytest.fixture(scope="module")
def dense(tmp_path_factory):
    return dense_file(tmp_path_factory.mktemp("whence") / "dense.safetensors", {"fc.weight": weights()})


def quantize(dense, scheme, folder, *words, endings=("safetensors", "pt")):
    """Returns the file, or None if qcts does not write the scheme."""
    for ending in endings:
        out = folder / f"{scheme}.{ending}"
        try:
            qcts("quantize", "--scheme", scheme, *words, dense, out)
            return out
        except AssertionError:
            assert not out.exists()
    return None


@pytest.mark.parametrize("family", FAMILIES)
def test_what_quantize_writes_is_named(dense, family, tmp_path):
    for scheme in (scheme["name"] for scheme in SCHEMES if scheme["family"] == family):
        file = quantize(dense, scheme, tmp_path)
        assert (file is None) == (scheme in NOT_WRITTEN), scheme
        if file is None:
            continue
        document = whence(dense, file)
        (tensor,) = document["tensors"]
        assert (document["compared"], document["fitting"]) == (1, 1)
        assert scheme in schemes_of(tensor), (scheme, schemes_of(tensor), tensor["nearest"])
        for fit in tensor["fits"]:
            assert fit["codes"] == fit["equal_codes"] and fit["scales"] == fit["equal_scales"]
            assert fit["rows"] == N and fit["first_difference"] is None and fit["versions"]
        # No other width, mapping or rounding makes these weights; int8 and 8 bits of intx are the same recipe.
        assert len(schemes_of(tensor)) == 1 or re.match("int(8|x_b8|x_b1_|x_b2_)", scheme), (scheme, schemes_of(tensor))


def version(text):
    return tuple(int(number) for number in text.split("."))


def covers(versions, one):
    for library in versions.split("; "):
        name, _, ranges = library.partition(" ")
        if name != "torchao":
            continue
        for low, _, high in (part.partition(" to ") for part in ranges.split(", ")):
            if version(low) <= version(one) <= version(high or low):
                return True
    return False


RECORDED = {}  # golden: its dense weights
for golden_id, golden in GOLDENS.items():
    if "expected" in golden:
        entries = read_safetensors(FIXTURES / golden["expected"])
        if found := {name.removesuffix("|w"): value for name, value in entries.items() if name.endswith("|w")}:
            RECORDED[golden_id] = found
MEANINGS = {scheme["name"]: scheme["meaning"] for scheme in SCHEMES}


def test_many_goldens_record_their_weights():
    assert sum(map(len, RECORDED.values())) >= 512


@pytest.mark.parametrize("producer", sorted({id.split("/")[0] for id in RECORDED}))
def test_a_golden_has_the_recipe_of_its_producer(producer, tmp_path):
    """A file does not say whether its codes are of sym or symnc, or of a first recipe: the folder's name of the golden does."""
    for id, found in RECORDED.items():
        if not id.startswith(producer + "/"):
            continue
        document = whence(write_safetensors(tmp_path / "dense.safetensors", found), FIXTURES / GOLDENS[id]["file"])
        assert {tensor["name"] for tensor in document["tensors"]} == found.keys(), id
        torchao = GOLDENS[id]["versions"].get("torchao")
        for tensor in document["tensors"]:
            made = id.split("/")[1]
            assert made in schemes_of(tensor) or made not in MEANINGS, (id, tensor)
            assert MEANINGS[tensor["scheme"]] in {MEANINGS[scheme] for scheme in schemes_of(tensor)}, (id, tensor)
            if torchao:
                assert any(covers(fit["versions"], torchao) for fit in tensor["fits"]), (id, torchao, tensor["fits"])


def changed(file, out, plane, place, value):
    entries, name = read_safetensors(file), f"fc._weight_{plane}"
    dtype, shape, data = entries[name]
    entries[name] = dtype, shape, data[:place] + bytes([data[place] ^ value]) + data[place + 1 :]
    head = json.loads(file.read_bytes()[8:][: int.from_bytes(file.read_bytes()[:8], "little")])
    return write_safetensors(out, entries, head["__metadata__"])


@pytest.mark.parametrize("row", [0, N - 1])
@pytest.mark.parametrize("scheme", ["int8_row", "fp8_row", "mxfp8_e4m3_even", "intx_b4_g32_sym", "int8_tensor"])
def test_one_changed_code_has_no_recipe(dense, scheme, row, tmp_path):
    file = quantize(dense, scheme, tmp_path, endings=["safetensors"])
    other = changed(file, tmp_path / "changed.safetensors", "qdata", row * K + 9, 1)
    (tensor,) = whence(dense, other, code=1)["tensors"]
    assert tensor["fits"] == [] and tensor["nearest"]["scheme"] == scheme
    assert tensor["nearest"]["equal_codes"] == tensor["nearest"]["codes"] - 1 == N * K - 1
    assert tensor["nearest"]["first_difference"] == {"plane": "qdata", "place": f"row {row}, column 9", "row": row, "column": 9}
    shown = " ".join(qcts("whence", dense, other, code=1).stdout.split())
    assert "no recipe makes it; nearest is " + scheme in shown and f"fc.weight, qdata, row {row}, column 9" in shown
    assert "65,535 of 65,536 codes" in shown and shown.endswith("UNKNOWN: no recipe makes 1 of 1 weight")


def test_one_changed_scale_has_no_recipe(dense, tmp_path):
    file = quantize(dense, "int8_row", tmp_path)
    (tensor,) = whence(dense, changed(file, tmp_path / "c.safetensors", "scale", 4 * 7, 1), code=1)["tensors"]
    nearest = tensor["nearest"]
    assert nearest["equal_codes"] == nearest["codes"] and nearest["equal_scales"] == nearest["scales"] - 1
    assert nearest["first_difference"]["plane"] == "scale" and nearest["first_difference"]["row"] is None
    assert "row 7" in nearest["first_difference"]["place"]


def test_a_rounding_of_mx_is_told_from_the_others(dense, tmp_path):
    files = {mode: quantize(dense, f"mxfp4_{mode}", tmp_path) for mode in ("floor", "even")}
    codes = [np.frombuffer(read_safetensors(file)["fc._weight_qdata"][2], np.uint8) for file in files.values()]
    nibbles = [np.stack([data & 15, data >> 4]) for data in codes]
    share = (nibbles[0] == nibbles[1]).mean()
    assert 0.1 < share < 0.99
    (tensor,) = whence(dense, files["even"])["tensors"]
    assert schemes_of(tensor) == {"mxfp4_even"} and tensor["nearest"]["scheme"].startswith("mxfp4_")
    assert tensor["nearest"]["equal_codes"] / tensor["nearest"]["codes"] >= share - 1e-9


@pytest.mark.parametrize(
    ("words", "scheme", "recipe", "versions"),
    [
        (["--as", "torchao_0.9", "--scheme", "float8_weight_only"], "fp8_row", "narrow_reciprocal", "torchao 0.9.0"),
        (["--scheme", "int8_weight_only"], "int8_row_v1", "current", "torchao 0.5.0, 0.6.1, 0.7.0 to 0.17.0"),
    ],
)
def test_an_older_recipe_is_told_from_todays(dense, words, scheme, recipe, versions, tmp_path):
    qcts("quantize", *words, dense, tmp_path / "old.pt")
    (tensor,) = whence(dense, tmp_path / "old.pt")["tensors"]
    assert {(fit["scheme"], fit["recipe"], fit["versions"]) for fit in tensor["fits"]} == {(scheme, recipe, versions)}
    assert versions in " ".join(qcts("whence", dense, tmp_path / "old.pt").stdout.split())


def test_the_least_scale_tells_the_recipes_of_small_weights_apart(tmp_path):
    small = dense_file(tmp_path / "small.safetensors", {"fc.weight": weights() * np.float32(1e-9)})
    recipes = {}
    for name, words in {
        "current": ["--scheme", "intx_b4_g32_sym"],
        "least_scale_eps": ["--as", "torchao_v1", "--scheme", "int8_dynamic_activation_int4_weight"],
        "least_scale_2_23": ["--as", "torchao_0.9", "--scheme", "int8_dynamic_activation_int4_weight"],
    }.items():
        qcts("quantize", *words, small, tmp_path / f"{name}.pt")
        (tensor,) = whence(small, tmp_path / f"{name}.pt")["tensors"]
        recipes[name] = {fit["recipe"] for fit in tensor["fits"] if fit["scheme"] == tensor["scheme"]}
    assert recipes == {name: {name} for name in recipes}


def test_dense_is_rounded_as_the_model_was(dense, tmp_path):
    """DENSE in float32, and a file that was made from it in bfloat16."""
    wide = dense_file(tmp_path / "wide.safetensors", {"fc.weight": weights()}, "F32")
    for scheme in ("intx_b4_g32_sym", "int8_row", "mxfp4_even"):
        file = quantize(dense, scheme, tmp_path)
        (tensor,) = whence(wide, file)["tensors"]
        assert {fit["dtype"] for fit in tensor["fits"]} == {"bfloat16"} and scheme in schemes_of(tensor)
        assert "from DENSE in bfloat16" in " ".join(qcts("whence", wide, file).stdout.split())


def test_several_tensors_with_one_answer_are_one_line(tmp_path):
    layers = {f"l{i}.weight": weights(i) for i in range(3)}
    dense = dense_file(tmp_path / "dense.safetensors", layers)
    file = quantize(dense, "mxfp8_e4m3_even", tmp_path)
    shown = qcts("whence", dense, file).stdout
    assert shown.startswith("3 of 3: mxfp8_e4m3_even: torchao 0.18.0") and "KNOWN: recipes make all codes and scales of 3 weights" in shown
    layers["l1.weight"] = layers["l1.weight"] * np.float32(1.25)
    other = dense_file(tmp_path / "other.safetensors", layers)
    shown = qcts("whence", other, file, code=1).stdout
    assert "2 of 3: mxfp8" in shown and "1 of 3: no recipe" in shown and "UNKNOWN: no recipe makes 1 of 3 weights" in shown


PACKED = "torchao_0_18_0/int4_tinygemm_g32/traps_32x128_bf16"


def test_the_weight_shows_the_cpu_pack_that_no_file_records(tmp_path):
    file = FIXTURES / GOLDENS[PACKED]["file"]
    original = write_safetensors(tmp_path / "dense.safetensors", RECORDED[PACKED])
    assert "does not say which CPU" in qcts("diff", original, file, "--error", code=2).stderr
    (tensor,) = whence(original, file)["tensors"]
    assert tensor["cpu_pack"] in ("cpu_avx512", "cpu_avx2", "cpu_default")
    asked = whence(original, file, "--cpu-pack", tensor["cpu_pack"])["tensors"][0]
    assert asked["cpu_pack"] is None and asked["fits"] == tensor["fits"]
    wrong = "avx2" if tensor["cpu_pack"] == "cpu_avx512" else "avx512"
    assert whence(original, file, "--cpu-pack", wrong, code=1)["tensors"][0]["fits"] == []


@pytest.mark.parametrize("id", ["gptqmodel_7_7_0/int4_g32_act_order", "autoawq_0_2_9/int4_g32", "compressed_tensors_0_20_0/integers_bf16"])
def test_codes_that_calibration_chose_are_left_open(id, tmp_path):
    folder = FIXTURES / GOLDENS[id]["file"]
    qcts("dequantize", folder, tmp_path / "dense.safetensors")
    document = whence(tmp_path / "dense.safetensors", folder, code=3)
    assert document["tensors"] == [] and document["undecided"]
    for tensor in document["undecided"]:
        assert "calibration data" in tensor["reason"] and "the weight is not enough to decide" in tensor["reason"]
        assert re.match(r"(gptq|awq|compressed-tensors) \(\w+\)", tensor["what"])
    shown = " ".join(qcts("whence", tmp_path / "dense.safetensors", folder, code=3).stdout.split())
    assert "the weight is not enough to decide" in shown and "NOT COMPARED" in shown


@pytest.mark.parametrize("id", ["torchao_0_18_0/int8_g32/awq_9x96", "torchao_0_18_0/int4_tinygemm_g64/awq_16x128_f32"])
def test_a_weight_scaled_by_calibration_is_left_open(id, tmp_path):
    file = FIXTURES / GOLDENS[id]["file"]
    (tensor,) = [one for one in json.loads(qcts("inspect", file, "--json").stdout)["tensors"] if one["scheme"]]
    values = np.random.default_rng(1).standard_normal(tensor["shape"]).astype(np.float32)
    document = whence(dense_file(tmp_path / "dense.safetensors", {tensor["name"]: values}, "F32"), file, code=3)
    (left_open,) = document["undecided"]
    assert "scaled by calibration data" in left_open["reason"] and document["tensors"] == []


def test_what_either_side_lacks_is_named(dense, tmp_path):
    layers = {"fc.weight": weights(), "head.weight": weights(4)}
    whole = dense_file(tmp_path / "whole.safetensors", layers)
    file = quantize(whole, "int8_row", tmp_path)
    lacking = qcts("whence", dense, file)
    assert "head.weight: DENSE has no tensor of this name" in lacking.stderr
    document = whence(dense, file)
    assert document["not_compared"] == [{"name": "head.weight", "reason": "DENSE has no tensor of this name"}]
    assert (document["compared"], document["missing"]) == (1, [])
    few = quantize(dense, "int8_tensor", tmp_path)
    assert whence(whole, few)["missing"] == ["head.weight"]
    assert "head.weight: only DENSE has a tensor of this name" in qcts("whence", whole, few).stderr


def test_a_weight_that_cannot_be_compared_is_named(dense, tmp_path):
    file = quantize(dense, "int8_row", tmp_path)
    for values, dtype, why in (
        ((np.zeros((K, N), np.float32)), "F32", f"DENSE has the shape [{K},{N}], this [{N},{K}]"),
        ((np.zeros((N, K), np.float32)), "I32", "DENSE has elements of int32"),
    ):
        other = dense_file(tmp_path / "other.safetensors", {"fc.weight": values}, dtype)
        assert whence(other, file, code=3)["not_compared"] == [{"name": "fc.weight", "reason": why}]
    assert "which is not a dense weight" in whence(file, file, code=3)["not_compared"][0]["reason"]
    assert whence(dense, dense, code=3)["tensors"] == []
    blocks = whence(dense, FIXTURES / GOLDENS["gguf_0_19_0/quantized"]["file"], code=3)["not_compared"]
    assert {"name": "blk.0.q4_0.weight", "reason": "Q4_0 belongs to no scheme whose recipe is known"} in blocks


def test_what_cannot_be_read_is_refused(dense, tmp_path):
    (tmp_path / "broken.pt").write_bytes(b"no checkpoint")
    for words in ([dense, tmp_path / "broken.pt"], [tmp_path / "broken.pt", dense]):
        assert "qcts: refused: " in qcts("whence", *words, code=5).stderr
    assert "no-such-file" in qcts("whence", dense, tmp_path / "no-such-file.pt", code=2).stderr
    assert "no CPU pack" in qcts("whence", dense, dense, "--cpu-pack", "avx3", code=2).stderr
