# SPDX-License-Identifier: BSD-3-Clause
"""Tests `qcts quantize` with the recipes and classes of torchao's first generation against files that its wheels wrote."""

import json
import pickletools
import subprocess
import zipfile

import pytest
from dialect_files import FIXTURES, GOLDENS
from qcts_program import BIN, inspect, qcts

torch = pytest.importorskip("torch", reason="torch is not installed")

from safetensors.torch import load_file, save_file  # noqa: E402

WORDS = {
    "int8_row_v1 weight_only": ["--scheme", "int8_weight_only"],
    "int8_row_v1 dyn_row_sym_127": ["--scheme", "int8_dynamic_activation_int8_weight"],
    "int8_g32_v1 weight_only": ["--scheme", "int8_g32_v1"],
    "int4_tinygemm_g128 tile_packed_4d_v1": ["--scheme", "int4_weight_only"],
    "int4_tinygemm_g32 cpu_avx2": ["--scheme", "int4_tinygemm_g32", "--as", "torchao_v1", "--layout", "cpu_avx2"],
}
# The first version that writes the form of 0.9.0, which the later ones keep.
SAME_FORM_SINCE = {"int8": (0, 7, 0), "int8_dynamic": (0, 9, 0), "int4": (0, 8, 0)}


def version(id):
    return tuple(int(part) for part in id.split("/")[0].removeprefix("torchao_").split("_"))


def words_of(tensor):
    policy = tensor.get("activation", "weight_only")
    return WORDS.get(f"{tensor['scheme']} {tensor['layout'] if 'int4' in tensor['scheme'] else policy}")


def recipes():
    for id, entry in GOLDENS.items():
        tensor = entry["tensors"][0]
        if entry["generator"].endswith("torchao_old.py:make") and "w" in tensor["expected"] and words_of(tensor):
            yield id


def float_file(entry, path):
    """Writes the model that the wheel quantized, as torch.save writes its state dict; returns the weight."""
    w = load_file(FIXTURES / entry["expected"])["0.weight|w"]
    model = torch.nn.Sequential(torch.nn.Linear(w.shape[1], w.shape[0], bias=False))
    model[0].weight.data = w
    path.parent.mkdir(exist_ok=True)
    torch.save(model.state_dict(), path)
    return w


def test_goldens_cover_every_recipe():
    assert {" ".join(words_of(GOLDENS[id]["tensors"][0])) for id in recipes()} == {" ".join(words) for words in WORDS.values()}


@pytest.mark.parametrize("id", list(recipes()))
def test_a_file_is_the_wheels_own(id, tmp_path):
    """Every byte, for versions that write the form of 0.9.0; for older ones every code and scale."""
    entry = GOLDENS[id]
    tensor = entry["tensors"][0]
    source, target, golden = tmp_path / "float/model.pt", tmp_path / "model.pt", FIXTURES / entry["file"]
    float_file(entry, source)
    qcts("quantize", *words_of(tensor), source, target)
    kind = "int4" if "int4" in tensor["scheme"] else "int8_dynamic" if "activation" in tensor else "int8"
    if version(id) >= SAME_FORM_SINCE[kind]:
        assert target.read_bytes() == golden.read_bytes()
    else:
        made, want = (inspect(path)["tensors"][0]["payload"] for path in (target, golden))
        kept = min(len(made), len(want))  # up to 0.8 dynamic int8 has zero points
        assert [part["sha256"] for part in made[:kept]] == [part["sha256"] for part in want[:kept]]
        said = subprocess.run([BIN, "diff", target, golden, "--json"], capture_output=True, text=True).stdout
        assert json.loads(said)["e1"]["equal"], said


@pytest.mark.parametrize("words", WORDS.values(), ids=" ".join)
def test_all_weights_of_a_file_share_one_layout(words, tmp_path):
    """As one call of quantize_ leaves them in torchao 0.9 to 0.16; a file of two objects holds something else (E2)."""
    model = torch.nn.Sequential(torch.nn.Linear(256, 128), torch.nn.Linear(128, 64)).to(torch.bfloat16)
    torch.save(model.state_dict(), tmp_path / "w.pt")
    qcts("quantize", *words, tmp_path / "w.pt", tmp_path / "q.pt")
    with zipfile.ZipFile(tmp_path / "q.pt") as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("data.pkl")]
        assert sum(opcode.name == "NEWOBJ" for opcode, *_ in pickletools.genops(archive.read(name))) == 1


def test_the_layout_of_a_cpu_has_two_classes(tmp_path):
    """Without --as, today's; both hold the same planes."""
    id = next(id for id in recipes() if GOLDENS[id]["tensors"][0]["layout"] == "cpu_avx2")
    float_file(GOLDENS[id], tmp_path / "w.pt")
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


def test_like_takes_the_recipe_of_an_old_file(tmp_path):
    id = next(id for id in recipes() if GOLDENS[id]["tensors"][0].get("activation"))
    source, target = tmp_path / "float/model.pt", tmp_path / "model.pt"
    float_file(GOLDENS[id], source)
    qcts("quantize", "--like", FIXTURES / GOLDENS[id]["file"], source, target)
    assert inspect(target)["tensors"][0]["type"] == "LinearActivationQuantizedTensor"


REFUSED = {
    "today's recipe under the old policy": (
        ["--scheme", "int8_row", "--activation", "dyn_row_sym_127"],
        "no class of torchao holds int8_row in the layout 'plain' under the policy 'dyn_row_sym_127': use --scheme int8_row_v1",
    ),
    "today's recipe in the old classes": (
        ["--scheme", "int8_row", "--as", "torchao_v1"],
        "torchao_v1 has no class for int8_row: use --scheme int8_row_v1",
    ),
    "the old recipe in today's classes": (["--scheme", "int8_row_v1", "--as", "torchao_v2"], "torchao_v2 has no class for int8_row_v1"),
    "an unknown dialect": (["--scheme", "int8_row", "--as", "torchao_v3"], "torchao_v3 not in"),
    "no recipe": ([], "--scheme or --like has to say how to quantize"),
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
    assert "torchao writes no AffineQuantizedTensor (layout plain) to safetensors: use .pt" in said
