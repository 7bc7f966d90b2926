# SPDX-License-Identifier: BSD-3-Clause
"""Tests `qcts convert --as torchao_v2`: files of torchao's first generation in the classes of today, with the same planes."""

import enum
import importlib
import json
import pickletools
import subprocess
import sys
import types
import zipfile

import pytest
from dialect_files import FIXTURES, GOLDENS, metadata_of, read_safetensors, write_safetensors
from qcts_program import BIN, inspect, qcts

CONVERTED = {
    "torchao_0_9_0/int8_weight_only": "Int8Tensor",
    "torchao_0_9_0/int8wo_g32": "Int8Tensor",
    "torchao_0_5_0/int8wo": "Int8Tensor",
    "torchao_0_9_0/fp8wo": "Float8Tensor",
    "torchao_0_13_0/fp8wo": "Float8Tensor",
    "torchao_0_13_0/fp8dq": "Float8Tensor",
    "torchao_0_13_0/fp8dq_row": "Float8Tensor",
    "torchao_0_9_0/int4_weight_only": "Int4TilePackedTo4dTensor",
    "torchao_0_13_0/intx4": "IntxUnpackedToInt8Tensor",
}
REFUSED = {
    "torchao_0_9_0/int8dq": "no class for int8_row in the layout 'plain' under the policy 'dyn_row_sym_127'",
    "torchao_0_13_0/int8da_int4w": "no class for intx_b4_g32_sym in the layout 'plain' under the policy 'dyn_token_asym_s32'",
    "torchao_0_9_0/fp8dq": "under the policy 'dyn_tensor_recip'",
    "torchao_0_9_0/int4wo": "does not say which CPU packed it",
    "torchao_0_9_0/uintx7": "no torchao 0.18.0 class holds the planes of this AffineQuantizedTensor",
}


@pytest.mark.parametrize("ending", ["pt", "safetensors"])
@pytest.mark.parametrize("id", CONVERTED)
def test_a_class_of_today_holds_the_same_planes(id, ending, tmp_path):
    """The codes byte for byte, and the values that dequantize gives."""
    old, new = FIXTURES / GOLDENS[id]["file"], tmp_path / f"new.{ending}"
    qcts("convert", "--as", "torchao_v2", old, new)
    (before,), (after,) = inspect(old)["tensors"], inspect(new)["tensors"]
    assert after["type"] == CONVERTED[id]
    assert before["payload"][0]["sha256"] == after["payload"][0]["sha256"]
    said = json.loads(subprocess.run([BIN, "diff", old, new, "--json"], capture_output=True, text=True).stdout)
    assert said["e1"]["equal"], said["e1"]
    for path, name in ((old, "old"), (new, "new")):
        qcts("dequantize", path, tmp_path / f"{name}.values.safetensors")
    assert (tmp_path / "old.values.safetensors").read_bytes() == (tmp_path / "new.values.safetensors").read_bytes()


@pytest.mark.parametrize("id", CONVERTED)
def test_todays_torchao_loads_it(id, tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    torchao = pytest.importorskip("torchao", reason="torchao is not installed")
    if not torchao.__version__.startswith("0.18"):
        pytest.skip("torchao 0.18 is not installed")
    import torchao.quantization  # noqa: F401

    qcts("convert", "--as", "torchao_v2", FIXTURES / GOLDENS[id]["file"], tmp_path / "new.pt")
    ((_, tensor),) = torch.load(tmp_path / "new.pt", weights_only=True).items()
    assert type(tensor).__name__ == CONVERTED[id]


@pytest.mark.parametrize("id", REFUSED)
def test_what_no_class_of_today_holds_is_named(id, tmp_path):
    said = qcts("convert", "--as", "torchao_v2", FIXTURES / GOLDENS[id]["file"], tmp_path / "new.pt", code=1).stderr
    assert REFUSED[id] in said and "qcts dequantize, then qcts quantize" in said
    assert not list(tmp_path.iterdir())


def test_convert_says_what_to_do_with_an_old_file(tmp_path):
    old = FIXTURES / GOLDENS["torchao_0_9_0/int8wo"]["file"]
    said = qcts("convert", old, tmp_path / "new.safetensors", code=1).stderr
    assert "cannot store the class AffineQuantizedTensor; qcts convert --as torchao_v2 writes its planes in a current class" in said


# Recipes of the first generation -> the class of today that holds them, and its configuration; None: refused.
RECIPES = {
    ("int8_weight_only",): ("Int8Tensor", "Int8WeightOnlyConfig"),
    ("int8_g32_v1",): ("Int8Tensor", "Int8WeightOnlyConfig"),
    ("int4_weight_only",): ("Int4TilePackedTo4dTensor", "Int4WeightOnlyConfig"),
    ("float8_weight_only",): ("Float8Tensor", "Float8WeightOnlyConfig"),
    ("fp8_row", "--activation", "dyn_row", "--as", "torchao_v1"): ("Float8Tensor", "Float8DynamicActivationFloat8WeightConfig"),
    ("IntxWeightOnlyConfig",): ("IntxUnpackedToInt8Tensor", "IntxWeightOnlyConfig"),
    ("int8_dynamic_activation_int8_weight",): None,
    ("int8_dynamic_activation_int4_weight",): None,
    ("int4_weight_only", "--layout", "cpu_avx2"): None,
}  # fmt: skip
SHARDS = {"one": [], "several": ["--max-shard-size", "60KB"]}


@pytest.fixture(scope="module")
def old_folder(tmp_path_factory):
    """Returns a function that makes a folder of the first generation: a small Llama by a recipe, in one or several pickles."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from safetensors.torch import save_file

    folder = tmp_path_factory.mktemp("old")
    floats, made = folder / "floats", {}
    floats.mkdir()
    torch.manual_seed(3)
    layer = "model.layers.0."
    shapes = {"model.embed_tokens": (96, 128), "lm_head": (96, 128), "model.norm": (128,), f"{layer}input_layernorm": (128,)}
    shapes |= {f"{layer}self_attn.{name}_proj": (128, 128) for name in "qkvo"}
    tensors = {f"{name}.weight": (torch.randn(shape) * 0.1).bfloat16() for name, shape in shapes.items()}
    save_file(tensors, floats / "model.safetensors", {"format": "pt"})
    config = {"architectures": ["LlamaForCausalLM"], "hidden_size": 128, "model_type": "llama", "torch_dtype": "bfloat16"}
    (floats / "config.json").write_text(json.dumps(config, indent=2))
    (floats / "tokenizer.json").write_text("{}")

    def make(words, shards):
        key = (words, shards)
        if key not in made:
            made[key] = folder / f"old{len(made)}"
            qcts("quantize", "--scheme", *words, *SHARDS[shards], floats, made[key])
        return made[key]

    return make


def values_of(path, out):
    qcts("dequantize", path, out)
    return read_safetensors(out)


@pytest.mark.parametrize("container", ["pickles", "safetensors"])
@pytest.mark.parametrize("shards", SHARDS)
@pytest.mark.parametrize("words", [words for words, held in RECIPES.items() if held], ids=" ".join)
def test_a_folder_keeps_its_shards_and_values(words, shards, container, old_folder, tmp_path):
    old, new = old_folder(words, shards), tmp_path / "new"
    qcts("convert", "--as", "torchao_v2", *(["--dialect", "torchao_safetensors"] if container == "safetensors" else []), old, new)
    names = {path.name for path in old.iterdir()}
    if container == "safetensors":
        names = {name.replace("pytorch_model", "model").replace(".bin", ".safetensors") for name in names}
    assert {path.name for path in new.iterdir()} == names
    weights = [name for name in names if name.endswith((".bin", ".safetensors"))]
    assert (len(weights) == 1) == (shards == "one")
    cls, config = RECIPES[words]
    report = inspect(new)
    assert {tensor["type"] for tensor in report["tensors"]} == {"Tensor", cls}
    said = json.loads((new / "config.json").read_text())["quantization_config"]
    assert said["quant_type"]["default"]["_type"] == config and "quant_type_kwargs" not in said
    if shards == "several":
        (index,) = new.glob("*.index.json")
        index = json.loads(index.read_text())
        assert index["metadata"]["total_size"] == sum(part["storage_bytes"] for tensor in report["tensors"] for part in tensor["payload"])
        if container == "pickles":
            before = json.loads((old / "pytorch_model.bin.index.json").read_text())
            assert index["weight_map"] == before["weight_map"]
            assert index["metadata"]["total_parameters"] == before["metadata"]["total_parameters"]
    qcts("check", new)
    assert values_of(old, tmp_path / "a.safetensors") == values_of(new, tmp_path / "b.safetensors")


@pytest.mark.parametrize("words", [words for words, held in RECIPES.items() if not held], ids=" ".join)
def test_every_tensor_of_a_folder_that_no_class_holds_is_named(words, old_folder, tmp_path):
    said = qcts("convert", "--as", "torchao_v2", old_folder(words, "several"), tmp_path / "new", code=1).stderr
    for name in "qkvo":
        assert f"model.layers.0.self_attn.{name}_proj.weight" in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("id", [id for id in GOLDENS if id.startswith("transformers_4_57_1/") and "int8wo" in id])
def test_folders_of_transformers_4_57(id, tmp_path):
    """What its config.json says in addition to the recipe stays, such as modules_to_not_convert."""
    old = FIXTURES / GOLDENS[id]["file"]
    qcts("convert", "--as", "torchao_v2", old, tmp_path / "new")
    qcts("check", tmp_path / "new")
    before, after = (json.loads((path / "config.json").read_text()) for path in (old, tmp_path / "new"))
    said = [config.pop("quantization_config") for config in (before, after)]
    assert before == after
    assert said[1].pop("quant_type")["default"]["_version"] == 2
    said[0].pop("quant_type"), said[0].pop("quant_type_kwargs")
    assert said[0] == said[1]
    assert values_of(old, tmp_path / "a.safetensors") == values_of(tmp_path / "new", tmp_path / "b.safetensors")


def test_several_recipes_are_configured_by_module(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    folder, weight_map = tmp_path / "mixed", {}
    folder.mkdir()
    recipes = {"a": "int8_weight_only", "b": "float8_weight_only"}
    for name, recipe in recipes.items():
        torch.save({f"{name}.{layer}.weight": torch.randn(64, 64) for layer in "xy"}, tmp_path / "floats.pt")
        qcts("quantize", "--scheme", recipe, tmp_path / "floats.pt", folder / f"{name}.bin")
        weight_map |= {f"{name}.{layer}.weight": f"{name}.bin" for layer in "xy"}
    said = {"quant_method": "torchao", "quant_type": "int8_weight_only", "quant_type_kwargs": {}, "modules_to_not_convert": ["z"]}
    (folder / "config.json").write_text(json.dumps({"model_type": "own", "quantization_config": said}))
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {"mine": 1}, "weight_map": weight_map}))
    qcts("convert", "--as", "torchao_v2", folder, tmp_path / "new")
    said = json.loads((tmp_path / "new" / "config.json").read_text())["quantization_config"]
    assert said["quant_type"]["default"]["_type"] == "FqnToConfig" and said["modules_to_not_convert"] == ["z"]
    modules = said["quant_type"]["default"]["_data"]["fqn_to_config"]
    kinds = {"a": "Int8WeightOnlyConfig", "b": "Float8WeightOnlyConfig"}
    assert {name: config["_type"] for name, config in modules.items()} == {f"{n}.{layer}": kinds[n] for n in recipes for layer in "xy"}
    index = json.loads((tmp_path / "new" / "pytorch_model.bin.index.json").read_text())
    assert index["weight_map"] == weight_map and index["metadata"]["mine"] == 1
    qcts("check", tmp_path / "new")


def stub_of(torch, module, name):
    """A class of an older torchao, as far as torch.load and torch.save need it."""
    if name == "ZeroPointDomain":
        return enum.Enum(name, {"INT": 1, "FLOAT": 2, "NONE": 3}, module=module)
    is_tensor = name.endswith(("Tensor", "Impl"))
    body = {"__torch_dispatch__": classmethod(lambda *words: NotImplemented)} if is_tensor else {}
    return type(name, (torch.Tensor if is_tensor else object,), {"__module__": module, **body})


@pytest.mark.parametrize("ending", ["pt", "safetensors"])
def test_ties_and_further_attributes_stay(ending, monkeypatch, tmp_path):
    """Two names of one Parameter stay one object in a pickle, with what a user put on it; safetensors notes what it cannot hold."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    torch.save({"l.weight": torch.randn(64, 64)}, tmp_path / "floats.pt")
    qcts("quantize", "--scheme", "int8_weight_only", tmp_path / "floats.pt", tmp_path / "plain.pt")
    with zipfile.ZipFile(tmp_path / "plain.pt") as file:
        operations = list(pickletools.genops(file.read("plain/data.pkl")))
    for module, name in {tuple(value.split()) for code, value, _ in operations if code.name == "GLOBAL"}:
        if not module.startswith("torchao"):
            continue
        try:
            held = importlib.import_module(module)
        except ImportError:
            held = types.ModuleType(module)
            monkeypatch.setitem(sys.modules, module, held)
        if not hasattr(held, name):
            monkeypatch.setattr(held, name, stub_of(torch, module, name), raising=False)
    weight = torch.load(tmp_path / "plain.pt", weights_only=False)["l.weight"]
    weight._is_param, weight.note = True, {"by": "me"}
    torch.save({"l.weight": weight, "head.weight": weight}, tmp_path / "old.pt")
    done = qcts("convert", "--as", "torchao_v2", tmp_path / "old.pt", tmp_path / f"new.{ending}")
    report = inspect(tmp_path / f"new.{ending}")
    assert [tensor["type"] for tensor in report["tensors"]] == ["Int8Tensor"] * 2
    if ending == "pt":
        assert all(tensor["attributes"]["state.note.by"] == "me" for tensor in report["tensors"])
        first, second = ([(part["storage"], part["offset"]) for part in tensor["payload"]] for tensor in report["tensors"])
        assert first == second
    else:
        assert "OUT cannot store head.weight.note" in done.stderr


def in_first_spelling(folder, out, **more):
    """Writes torchao_safetensors as torchao 0.13 spells it, NAME:PART, shard by shard. Its metadata lists a head besides, which
    is not stored; `more` goes into config.json.
    """
    out.mkdir()
    places = {}
    for path in sorted(folder.glob("*.safetensors")):
        entries, metadata = read_safetensors(path), metadata_of(path)
        names, written = json.loads(metadata["tensor_names"]), {}
        for key, entry in entries.items():
            module, _, rest = key.rpartition("._")
            parameter, _, part = rest.partition("_")
            written[f"{key}:_data" if key in names else f"{module}.{parameter}:{part}"] = entry
        for name in names:
            said = json.loads(metadata[name])
            said.pop("_tensor_data_names", None)
            metadata[name] = json.dumps(said)
        metadata |= {"lm_head.weight": json.dumps({"_type": "Tensor"}), "tensor_names": json.dumps([*names, "lm_head.weight"])}
        write_safetensors(out / path.name, written, metadata)
        places |= dict.fromkeys(written, path.name)
    (out / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    config = json.loads((folder / "config.json").read_text()) | more
    (out / "config.json").write_text(json.dumps(config))
    return out


@pytest.fixture(scope="module")
def todays_shards(tmp_path_factory):
    """A small Llama without a head, in two shards of safetensors as torchao 0.18 spells them."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from safetensors.torch import save_file

    folder = tmp_path_factory.mktemp("today")
    (folder / "floats").mkdir()
    torch.manual_seed(5)
    names = {"model.embed_tokens": (96, 128), **{f"model.layers.0.self_attn.{name}_proj": (128, 128) for name in "qkvo"}}
    save_file({f"{n}.weight": torch.randn(shape).bfloat16() for n, shape in names.items()}, folder / "floats/model.safetensors")
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "tie_word_embeddings": True}
    (folder / "floats/config.json").write_text(json.dumps(config))
    qcts("quantize", "--scheme", "int8_row", "--max-shard-size", "60KB", folder / "floats", folder / "shards")
    assert len(list((folder / "shards").glob("*.safetensors"))) == 2
    return folder / "shards"


def test_shards_of_the_first_spelling_get_todays_keys(todays_shards, tmp_path):
    """A tied head that the shards list and do not store is noted, and no part of another tensor is lost."""
    old = in_first_spelling(todays_shards, tmp_path / "old")
    done = qcts("convert", "--as", "torchao_v2", old, tmp_path / "new")
    assert "lm_head.weight: listed and not stored" in done.stderr and "tied (to model.embed_tokens.weight)" in done.stderr
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"config.json", "model.safetensors"}
    shards = [read_safetensors(path) for path in todays_shards.glob("*.safetensors")]
    assert read_safetensors(tmp_path / "new/model.safetensors") == {key: value for shard in shards for key, value in shard.items()}
    assert (tmp_path / "new/config.json").read_bytes() == (old / "config.json").read_bytes()
    qcts("check", tmp_path / "new")
    assert values_of(old, tmp_path / "a.safetensors") == values_of(tmp_path / "new", tmp_path / "b.safetensors")


def test_shards_that_lack_a_tensor_are_not_converted(todays_shards, tmp_path):
    """A head that nothing ties is lost."""
    old = in_first_spelling(todays_shards, tmp_path / "old", tie_word_embeddings=False)
    said = qcts("convert", "--as", "torchao_v2", old, tmp_path / "new", code=1).stderr
    assert "lm_head.weight is listed and not stored" in said and not (tmp_path / "new").exists()


def test_todays_shards_are_today(todays_shards, tmp_path):
    said = qcts("convert", "--as", "torchao_v2", todays_shards, tmp_path / "new", code=2).stderr
    assert "qcts resave copies it" in said and not (tmp_path / "new").exists()


@pytest.mark.parametrize("container", ["pickles", "safetensors"])
def test_ties_within_a_shard(container, todays_shards, tmp_path):
    """Pickles keep one storage under two names; safetensors stores both, as a file without ties has to."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    old, embedding = tmp_path / "old", torch.randn(96, 128).bfloat16()
    old.mkdir()
    shards = [
        {"model.embed_tokens.weight": embedding, "lm_head.weight": embedding, "a.q_proj.weight": torch.randn(128, 128)},
        {"b.q_proj.weight": torch.randn(128, 128)},
    ]
    places = {}
    for number, shard in enumerate(shards, 1):
        name = f"pytorch_model-0000{number}-of-00002.bin"
        torch.save(shard, tmp_path / "float.pt")
        qcts("quantize", "--scheme", "int8_weight_only", "--include", "*q_proj*", tmp_path / "float.pt", old / name)
        places |= dict.fromkeys(shard, name)
    (old / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    words = ["--dialect", "torchao_safetensors"] if container == "safetensors" else []
    qcts("convert", "--as", "torchao_v2", *words, old, tmp_path / "new")
    tensors = {tensor["name"]: tensor for tensor in inspect(tmp_path / "new")["tensors"]}
    assert {name: tensor["type"] for name, tensor in tensors.items()} == {
        name: "Int8Tensor" if "q_proj" in name else "Tensor" for name in places
    }
    first, second = (tensors[name]["payload"][0] for name in ("model.embed_tokens.weight", "lm_head.weight"))
    assert first["sha256"] == second["sha256"] and (first["storage"] == second["storage"]) == (container == "pickles")
    assert values_of(old, tmp_path / "a.safetensors") == values_of(tmp_path / "new", tmp_path / "b.safetensors")
    qcts("check", tmp_path / "new")
