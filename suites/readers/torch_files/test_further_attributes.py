# SPDX-License-Identifier: BSD-3-Clause
"""Attributes that no class has: torch, wrappers and users set them on tensors, Parameters and OrderedDicts. A file with them is read,
they are kept, compared and noted, and the weight stays the same."""

import collections

import pytest
from dialect_files import FIXTURES, GOLDENS
from qcts_program import inspect, pinned, qcts

torch = pinned("torch", "2.13")
pinned("torchao", "0.18")

NAME = "0.weight"
# One golden of each class that torchao 0.18 and torch read.
CLASSES = {
    "Float8Tensor": "fp8_e4m3_tensor/extremes_16x32_f16",
    "PrototypeFloat8Tensor": "fp8_e4m3_tensor/static_out_32x64",
    "GGUFQuantizedTensor": "gguf_proto/traps_8x256_f16",
    "Int4PreshuffledTensor": "int4_e4m3_g128/preshuffled_16x128_f32",
    "Int4PlainInt32Tensor": "int4_int32_g32/traps_16x64_f16",
    "Int4Tensor": "int4_plain_g32/halfway_9x64_bf16",
    "Int4OpaqueTensor": "int4_tinygemm_g32/awq_16x32_bf16",
    "Int4TilePackedTo4dTensor": "int4_tinygemm_g32/tile_20x96",
    "Int8Tensor": "int8_tensor/extremes_8x32_bf16",
    "IntxUnpackedToInt8Tensor": "intx_b4_axis_sym/dyn_token_asym_7x48_f16",
    "MXTensor": "mxfp4_ceil/sweep_8x64",
    "NF4Tensor": "nf4_b64_s256/one_factor_64x256",
    "NVFP4Tensor": "nvfp4_one_level/zeros_16x32",
}
MADE = ["BlockSparseTensor", "plain"]


def made(kind):
    if kind == "plain":
        return torch.arange(12.0).reshape(3, 4)
    from torchao.sparsity.blocksparse import BlockSparseTensor

    return BlockSparseTensor.from_dense(torch.eye(64, dtype=torch.bfloat16), 32)


def sample(kind):
    if kind in MADE:
        return made(kind)
    path = FIXTURES / GOLDENS[f"torchao_0_18_0/{CLASSES[kind]}"]["file"]
    return torch.load(path, weights_only=False)[NAME]  # our own file


def attributes_of(kind):
    """Values of every kind that weights_only reads; the tensors among them are named."""
    return {
        "_is_hf_initialized": True,
        "note": "from step 7",
        "number": 0.5,
        "nothing": None,
        "settings": {"ranks": [1, (2, 3)], torch.float32: torch.Size([4]), 7: {"deep": torch.device("cpu")}},
        "extra": torch.arange(6).reshape(2, 3),
        "several": [torch.ones(2), {"inner": torch.zeros(1)}],
    } | ({} if kind == "plain" else {"other": sample("Int8Tensor")})


PARTS = {"state.extra", "state.several.0", "state.several.1.inner"}


@pytest.mark.parametrize("parameter", [False, True], ids=["tensor", "parameter"])
@pytest.mark.parametrize("kind", [*CLASSES, *MADE])
def test_attributes_of_any_kind_are_kept_beside_the_weight(kind, parameter, tmp_path):
    bare, full = tmp_path / "bare.pt", tmp_path / "full.pt"
    tensor = sample(kind)
    torch.save({NAME: tensor}, bare)
    tensor = torch.nn.Parameter(tensor, requires_grad=False) if parameter else tensor
    for name, value in attributes_of(kind).items():
        setattr(tensor, name, value)
    torch.save({NAME: tensor}, full)
    (want,), (got,) = inspect(bare)["tensors"], inspect(full)["tensors"]
    further = {name for name in got["attributes"] if name.startswith("state.")}
    assert {"state._is_hf_initialized", "state.note", "state.number", "state.nothing", "state.settings.ranks"} <= further
    assert ("state._is_param" in further) == (parameter and kind != "plain")
    parts = {part["name"]: part["sha256"] for part in got["payload"]}
    assert parts.keys() >= PARTS | ({"state.other.qdata"} if kind != "plain" else set())
    assert (got["scheme"], got["shape"], got["dtype"]) == (want["scheme"], want["shape"], want["dtype"])
    assert {part["name"]: part["sha256"] for part in want["payload"]}.items() <= parts.items()
    assert {name: got["attributes"].get(name) for name in want["attributes"]} == want["attributes"]
    table = qcts("inspect", full)
    assert "the further attribute note is not a part of the weight" in table.stderr and "state.extra" in table.stdout
    # The same bytes, the same verdicts and the same numbers.
    qcts("resave", full, tmp_path / "copy.pt")
    assert (tmp_path / "copy.pt").read_bytes() == full.read_bytes()
    hint = ["--cpu-pack", "avx2"] if kind == "Int4OpaqueTensor" else []
    assert "fail" not in qcts("check", full, *hint).stdout
    differs = qcts("diff", bare, full, *hint, "--all", code=1).stdout
    assert f'{NAME}.note: absent | "from step 7"' in differs and f"{NAME}.extra: absent" in differs
    qcts("dequantize", bare, tmp_path / "want.safetensors", *hint)
    done = qcts("dequantize", full, tmp_path / "got.safetensors", *hint)
    assert (tmp_path / "got.safetensors").read_bytes() == (tmp_path / "want.safetensors").read_bytes()
    assert "attributes of tensors and dicts are not in OUT" in done.stderr
    for command, out in {"check": [], "dequantize": [tmp_path / "no.safetensors"], "convert": [tmp_path / "no.safetensors"]}.items():
        said = qcts(command, "--strict", full, *out, *(hint if command != "convert" else []), code=1).stderr
        assert all(f"{NAME}.{name}" in said.splitlines()[-1] for name in attributes_of(kind)), said
    assert not (tmp_path / "no.safetensors").exists()
    qcts("check", "--strict", bare, *hint)


CHANGES = {"note": "from step 8", "number": 0.25, "settings": {"ranks": [1, (2, 4)]}, "extra": torch.arange(1, 7).reshape(2, 3)}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_attribute_is_a_difference_with_its_path(name, tmp_path):
    tensor = sample("Int8Tensor")
    for attribute, value in attributes_of("Int8Tensor").items():
        setattr(tensor, attribute, value)
    torch.save({NAME: tensor}, tmp_path / "a.pt")
    setattr(tensor, name, CHANGES[name])
    torch.save({NAME: tensor}, tmp_path / "b.pt")
    assert qcts("diff", tmp_path / "a.pt", tmp_path / "a.pt").stdout.count("equal") == 3
    done = qcts("diff", tmp_path / "a.pt", tmp_path / "b.pt", code=1)
    assert f"{NAME}.{name}" in done.stdout and "E1 meaning  equal" in done.stdout


def test_the_classes_own_attributes_stay_strict(tmp_path):
    tensor = sample("Int8Tensor")
    tensor.note = "x"
    del tensor.block_size
    torch.save({NAME: tensor}, tmp_path / "x.pt")
    assert "no attribute block_size" in qcts("check", tmp_path / "x.pt", code=1).stderr


def quantized_model():
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    model = torch.nn.Sequential(torch.nn.Linear(32, 16), torch.nn.LayerNorm(16), torch.nn.Linear(16, 8)).to(torch.bfloat16)
    quantize_(model, Int8WeightOnlyConfig())
    for part in model.modules():
        part.__dict__.pop("extra_repr", None)  # a partial, which torch.save cannot pickle
    return model


WAYS = {
    "named_parameters": lambda model: dict(model.named_parameters()),
    "keep_vars": lambda model: model.state_dict(keep_vars=True),
    "module": lambda model: model,
    "weight": lambda model: model[0].weight,
}


@pytest.mark.parametrize("way", WAYS)
def test_ways_to_save_the_parameters_of_a_model(way, tmp_path):
    model = quantized_model()
    torch.save(WAYS[way](model), tmp_path / "x.pt")
    allowed = [f"--allow={type(part).__module__}.{type(part).__qualname__}" for part in model.modules()] if way == "module" else []
    done = qcts("check", tmp_path / "x.pt", *allowed)
    assert done.stderr.count("_is_param") == 1 and "fail" not in done.stdout, done.stderr
    assert ("tensor" if way == "weight" else "weight") + "._is_param" in qcts(
        "check", "--strict", tmp_path / "x.pt", *allowed, code=1
    ).stderr
    qcts("resave", tmp_path / "x.pt", tmp_path / "copy.pt", *allowed)
    assert (tmp_path / "copy.pt").read_bytes() == (tmp_path / "x.pt").read_bytes()
    out = tmp_path / "dense.safetensors"
    qcts("dequantize", tmp_path / "x.pt", out, *allowed)
    from safetensors.torch import load_file

    got = load_file(out)
    want = {"tensor": model[0].weight} if way == "weight" else dict(model.named_parameters())
    assert got.keys() == want.keys()
    for name, value in want.items():
        dense = value.dequantize() if hasattr(value, "qdata") else value
        assert torch.equal(got[name], dense.detach()), name


def test_convert_says_which_attributes_have_no_place(tmp_path):
    model = quantized_model()
    state = dict(model.named_parameters())
    state["1.weight"].note = "x"
    torch.save(state, tmp_path / "x.pt")
    done = qcts("convert", tmp_path / "x.pt", tmp_path / "x.safetensors")
    assert "OUT cannot store 0.weight._is_param: True" in done.stderr
    assert 'OUT cannot store 1.weight.note: "x"' in done.stderr
    qcts("diff", tmp_path / "x.pt", tmp_path / "x.safetensors")
    state["0.weight"].extra = torch.ones(2)
    torch.save(state, tmp_path / "x.pt")
    done = qcts("convert", tmp_path / "x.pt", tmp_path / "y.safetensors", code=1)
    assert "0.weight.state.extra: a tensor among the attributes" in done.stderr and not (tmp_path / "y.safetensors").exists()


def test_an_ordered_dict_with_attributes_is_read(tmp_path):
    state = collections.OrderedDict(w=torch.ones(2))
    state._metadata = collections.OrderedDict()
    state.step, state.extra = 7, torch.arange(3)
    torch.save(state, tmp_path / "a.pt")
    done = qcts("check", tmp_path / "a.pt")
    assert "further attribute step" in done.stderr and "further attribute extra" in done.stderr
    said = qcts("check", "--strict", tmp_path / "a.pt", code=1).stderr
    assert "an OrderedDict.step" in said and "an OrderedDict.extra" in said
    assert [tensor["name"] for tensor in inspect(tmp_path / "a.pt")["tensors"]] == ["w", "extra"]
    qcts("resave", tmp_path / "a.pt", tmp_path / "copy.pt")
    assert (tmp_path / "copy.pt").read_bytes() == (tmp_path / "a.pt").read_bytes()
    state.step = 8
    torch.save(state, tmp_path / "b.pt")
    assert "step: 7 | 8" in qcts("diff", tmp_path / "a.pt", tmp_path / "b.pt", code=1).stdout
    done = qcts("dequantize", tmp_path / "a.pt", tmp_path / "out.safetensors")
    assert "attributes of tensors and dicts are not in OUT: step" in done.stderr


@pytest.mark.parametrize("name", ["keys", "__class__", "get"])
def test_an_attribute_that_hides_a_method_is_refused(name, tmp_path):
    state = collections.OrderedDict(w=torch.ones(2))
    state.__dict__[name] = 1
    torch.save(state, tmp_path / "a.pt")
    assert "PickleType" in qcts("check", tmp_path / "a.pt", code=1).stderr
