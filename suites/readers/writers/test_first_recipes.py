# SPDX-License-Identifier: BSD-3-Clause
"""Tests `qcts quantize` with the recipes and classes of torchao's first generation against files that its wheels wrote."""

import json
import os
import pickletools
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from dialect_files import FIXTURES, GOLDENS
from qcts_program import BIN, ROOT, inspect, qcts

sys.path.append(str(ROOT / "fixtures/make/shared"))
import pinned_envs  # noqa: E402

torch = pytest.importorskip("torch", reason="torch is not installed")

from safetensors.torch import load_file, save_file  # noqa: E402

WORDS = {
    "int8_row_v1 weight_only": ["--scheme", "int8_weight_only"],
    "int8_row_v1 dyn_row_sym_127": ["--scheme", "int8_dynamic_activation_int8_weight"],
    "int8_row_v1 dyn_row_asym": ["--scheme", "int8_row_v1", "--activation", "dyn_row_asym"],
    "int8_g32_v1 weight_only": ["--scheme", "int8_g32_v1"],
    "int4_tinygemm_g128 tile_packed_4d_v1": ["--scheme", "int4_weight_only"],
    "int4_tinygemm_g32 tile_packed_4d_v1": ["--scheme", "int4_tinygemm_g32", "--as", "torchao_v1"],
    "int4_tinygemm_g32 cpu_avx2": ["--scheme", "int4_tinygemm_g32", "--as", "torchao_v1", "--layout", "cpu_avx2"],
}
# The first and the last version that read a form, for those that not every version reads.
LOADED = {
    "int8_row_v1 dyn_row_asym": ((0, 7, 0), (0, 17, 0)),
    "int8_g32_v1 weight_only": ((0, 7, 0), (0, 17, 0)),
    "int4_tinygemm_g32 cpu_avx2": ((0, 7, 0), (0, 16, 0)),
}
# Goldens of these recipes under other names of their functions, classes or codes.
OTHERS = ("int8wo_v2", "int8dq_decode", "int8dq_cutlass")


def as_version(words, version):
    """The same words, for the classes of one version of torchao."""
    kept = [word for word in words if word not in ("--as", "torchao_v1")]
    return [*kept, "--as", "torchao_v1" if version >= (0, 9, 0) else f"torchao_0.{version[1]}"]


def version_of(id):
    return tuple(int(part) for part in id.split("/")[0].removeprefix("torchao_").split("_"))


def words_of(tensor):
    scheme = tensor["scheme"] or ""
    if "int4" in scheme:
        return WORDS.get(f"{scheme} {tensor['layout']}")
    # The oldest goldens of the recipes name the scheme that has the same meaning.
    return WORDS.get(f"{scheme.removesuffix('_v1')}_v1 {tensor.get('activation', 'weight_only')}")


def recipes():
    for id, entry in GOLDENS.items():
        if entry["generator"].endswith("torchao_old.py:make") and words_of(entry["tensors"][0]):
            if id.split("/")[1] not in OTHERS:
                yield id


def float_file(id, path):
    """Writes the model that the wheel quantized, as torch.save writes its state dict. Returns whether it has the same
    values: not every golden records them.
    """
    entry = GOLDENS[id]
    (tensor,) = inspect(FIXTURES / entry["file"])["tensors"]
    model = torch.nn.Sequential(torch.nn.Linear(*reversed(tensor["shape"]), bias=False)).to(getattr(torch, tensor["dtype"]))
    recorded = load_file(FIXTURES / entry["expected"]).get("0.weight|w")
    if recorded is not None:
        model[0].weight.data = recorded
    path.parent.mkdir(exist_ok=True)
    torch.save(model.state_dict(), path)
    return recorded is not None


def pickle_of(path):
    with zipfile.ZipFile(path) as archive:
        return archive.read(next(name for name in archive.namelist() if name.endswith("data.pkl")))


def test_goldens_cover_every_recipe_in_every_form():
    forms = {(" ".join(words_of(GOLDENS[id]["tensors"][0])), min(version_of(id), (0, 9, 0))) for id in recipes()}
    assert {words for words, _ in forms} == {" ".join(words) for words in WORDS.values()}
    assert {version for _, version in forms} == {(0, 5, 0), (0, 6, 1), (0, 7, 0), (0, 8, 0), (0, 9, 0)}


@pytest.mark.parametrize("id", list(recipes()))
def test_a_file_is_the_wheels_own(id, tmp_path):
    """Every byte of the file, or of its pickle if the golden does not record the weights; so too with --like."""
    source, target, golden = tmp_path / "float/model.pt", tmp_path / "model.pt", FIXTURES / GOLDENS[id]["file"]
    same_weights = float_file(id, source)
    words = as_version(words_of(GOLDENS[id]["tensors"][0]), version_of(id))
    like = ["--like", golden, *(["--layout", "cpu_avx2"] if "cpu_avx2" in words else [])]
    for choice in (words, like):
        qcts("quantize", *choice, source, target)
        assert pickle_of(target) == pickle_of(golden), choice
        assert not same_weights or target.read_bytes() == golden.read_bytes(), choice


@pytest.mark.parametrize("version", pinned_envs.WHEELS)
def test_the_wheel_takes_the_file_for_its_own(version, tmp_path):
    """Each wheel loads what is written for it, with weights_only, and multiplies by it as by its own weights."""
    wheel, number = ROOT / f"build/goldens-env/torchao-{version}", tuple(map(int, version.split(".")))
    if not wheel.exists():
        pytest.skip(f"torchao {version} is not in build/goldens-env, where scripts/make_goldens puts it")
    model = torch.nn.Sequential(torch.nn.Linear(256, 64, bias=False), torch.nn.Linear(128, 32)).to(torch.bfloat16)
    torch.save(model.state_dict(), tmp_path / "float.pt")
    written = []
    for recipe, words in WORDS.items():
        if recipe in LOADED and not LOADED[recipe][0] <= number <= LOADED[recipe][1]:
            continue
        qcts("quantize", *as_version(words, number), tmp_path / "float.pt", tmp_path / f"{recipe}.pt")
        written.append(recipe)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", Path(__file__).with_name("wheel_program.py"), tmp_path, *written],
        env={**os.environ, **pinned_envs.PINNED, "PYTHONPATH": str(wheel), "ATEN_CPU_CAPABILITY": "avx2"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == dict.fromkeys(written, [])


@pytest.mark.parametrize("words", WORDS.values(), ids=" ".join)
def test_all_weights_of_a_file_share_one_layout(words, tmp_path):
    """As one call of quantize_ leaves them in torchao 0.5 to 0.16; a file of two objects holds something else (E2)."""
    model = torch.nn.Sequential(torch.nn.Linear(256, 128), torch.nn.Linear(128, 64)).to(torch.bfloat16)
    torch.save(model.state_dict(), tmp_path / "w.pt")
    qcts("quantize", *words, tmp_path / "w.pt", tmp_path / "q.pt")
    with zipfile.ZipFile(tmp_path / "q.pt") as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("data.pkl")]
        assert sum(opcode.name == "NEWOBJ" for opcode, *_ in pickletools.genops(archive.read(name))) == 1


def test_the_layout_of_a_cpu_has_two_classes(tmp_path):
    """Without --as, today's; both hold the same planes."""
    float_file("torchao_0_9_0/int4wo", tmp_path / "w.pt")
    words = ["quantize", "--scheme", "int4_tinygemm_g32", "--layout", "cpu_avx2", tmp_path / "w.pt"]
    qcts(*words, tmp_path / "today.pt")
    qcts(*words, tmp_path / "first.pt", "--as", "torchao_v1")
    today, first = (inspect(tmp_path / f"{name}.pt")["tensors"][0] for name in ("today", "first"))
    assert (today["type"], first["type"]) == ("Int4OpaqueTensor", "AffineQuantizedTensor")
    assert [part["sha256"] for part in today["payload"]] == [part["sha256"] for part in first["payload"]]


def test_small_layers_stay_float_under_dynamic_activations(tmp_path):
    """As in torchao, where 16 inputs are too few; weight_only takes them."""
    source, target = tmp_path / "in.safetensors", tmp_path / "out.pt"
    save_file({"a.weight": torch.ones(4, 16), "b.weight": torch.ones(4, 17)}, source)
    said = qcts("quantize", "--scheme", "int8_dynamic_activation_int8_weight", source, target).stdout
    assert "left float  a.weight: torchao leaves a layer of 16 or fewer inputs float" in said
    types = {tensor["name"]: tensor["type"] for tensor in inspect(target)["tensors"]}
    assert types == {"a.weight": "Tensor", "b.weight": "LinearActivationQuantizedTensor"}
    assert "2 of 2" in qcts("quantize", "--scheme", "int8_weight_only", source, target).stdout


def test_asymmetric_activations_name_their_function(tmp_path):
    source, target = tmp_path / "in.safetensors", tmp_path / "out.pt"
    save_file({"a.weight": torch.arange(64.0).reshape(2, 32)}, source)
    qcts("quantize", "--scheme", "int8_row_v1", "--activation", "dyn_row_asym", source, target)
    (tensor,) = inspect(target)["tensors"]
    function = {"_type": "function", "_data": "torchao.quantization.quant_api._int8_asymm_per_token_quant"}
    assert (tensor["scheme"], tensor["attributes"]["input_quant_func"]) == ("int8_row", function)


@pytest.mark.parametrize(("k", "shape"), [(32, [4]), (64, [4, 2])])
def test_one_group_a_row_has_no_dimension(k, shape, tmp_path):
    """As torchao's choose_qparams_affine, which reduces the elements of a group and keeps no dimension for one."""
    source, target = tmp_path / "in.safetensors", tmp_path / "out.pt"
    save_file({"a.weight": torch.ones(4, k)}, source)
    qcts("quantize", "--scheme", "int8_g32_v1", source, target)
    shapes = {part["name"].split(".")[-1]: part["shape"] for part in inspect(target)["tensors"][0]["payload"]}
    assert shapes == {"int_data": [4, k], "scale": shape, "zero_point": shape}


def test_like_leaves_the_version_to_as(tmp_path):
    """An old file says how to quantize; --as says for whom."""
    source, target = tmp_path / "float/model.pt", tmp_path / "model.pt"
    old, new = "torchao_0_5_0/int8_dynamic_activation_int8_weight", "torchao_0_9_0/int8_dynamic_activation_int8_weight"
    float_file(new, source)
    qcts("quantize", "--like", FIXTURES / GOLDENS[old]["file"], "--as", "torchao_v1", source, target)
    assert target.read_bytes() == (FIXTURES / GOLDENS[new]["file"]).read_bytes()


@pytest.mark.parametrize("word", ["torchao_0.5", "torchao_0.6", "torchao_0.7", "torchao_0.8", "torchao_v1"])
@pytest.mark.parametrize("recipe", ["int8_weight_only", "int8_dynamic_activation_int8_weight", "int4_weight_only"])
def test_every_form_has_one_meaning(recipe, word, tmp_path):
    torch.save({"a.weight": torch.randn(24, 256, dtype=torch.bfloat16)}, tmp_path / "w.pt")
    qcts("quantize", "--scheme", recipe, tmp_path / "w.pt", tmp_path / "today.pt")
    qcts("quantize", "--scheme", recipe, "--as", word, tmp_path / "w.pt", tmp_path / "old.pt")
    qcts("check", tmp_path / "old.pt")
    told = subprocess.run([BIN, "diff", tmp_path / "today.pt", tmp_path / "old.pt", "--json"], capture_output=True, text=True).stdout
    assert json.loads(told)["e1"]["equal"], told
    for name in ("today", "old"):
        qcts("dequantize", tmp_path / f"{name}.pt", tmp_path / f"{name}.safetensors")
    assert (tmp_path / "today.safetensors").read_bytes() == (tmp_path / "old.safetensors").read_bytes()


REFUSED = {
    "today's recipe under the old policy": (
        ["--scheme", "int8_row", "--activation", "dyn_row_sym_127"],
        "no torchao class holds int8_row in the layout 'plain' under the policy 'dyn_row_sym_127': use --scheme int8_row_v1",
    ),
    "today's recipe in the old classes": (
        ["--scheme", "int8_row", "--as", "torchao_v1"],
        "torchao_v1 has no class for int8_row: use --scheme int8_row_v1",
    ),
    "the old recipe in today's classes": (["--scheme", "int8_row_v1", "--as", "torchao_v2"], "torchao_v2 has no class for int8_row_v1"),
    "groups in a version that has none": (["--scheme", "int8_g32_v1", "--as", "torchao_0.6"], "torchao_0.6 has no class for int8_g32_v1"),
    "a policy that came later": (
        ["--scheme", "int8_row_v1", "--activation", "dyn_row_asym", "--as", "torchao_0.5"],
        "torchao_0.5 has no class for int8_row_v1 in the layout 'plain' under the policy 'dyn_row_asym'",
    ),
    "a layout that came later": (
        ["--scheme", "int4_tinygemm_g32", "--layout", "cpu_avx2", "--as", "torchao_0.6"],
        "int4_tinygemm_g32 cannot be written in the layout 'cpu_avx2' by torchao_0.6",
    ),
    "today's recipe for an old version": (
        ["--scheme", "int8_row", "--as", "torchao_0.8"],
        "torchao_0.8 has no class for int8_row: use --scheme int8_row_v1",
    ),
    "TinyQ's layers for torchao": (["--scheme", "tinyq_w8a32", "--as", "torchao_v1"], "torchao_v1 has no class for tinyq_w8a32"),
    "an unknown dialect": (["--scheme", "int8_row", "--as", "torchao_v3"], "torchao_v3 not in"),
    "no recipe": ([], "--scheme or --like must say how to quantize"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_no_torchao_writes_is_refused(what, tmp_path):
    words, why = REFUSED[what]
    source, target = tmp_path / "in.safetensors", tmp_path / "out.pt"
    save_file({"a.weight": torch.ones(16, 32)}, source)
    assert why in qcts("quantize", *words, source, target, code=2).stderr
    assert not target.exists()


def test_no_wheel_wrote_the_first_generation_to_safetensors(tmp_path):
    source = tmp_path / "in.safetensors"
    save_file({"a.weight": torch.ones(16, 32)}, source)
    said = qcts("quantize", "--scheme", "int8_weight_only", source, tmp_path / "out.safetensors", code=2).stderr
    assert "torchao cannot write AffineQuantizedTensor (layout plain) to safetensors: use .pt" in said
