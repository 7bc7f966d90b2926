# SPDX-License-Identifier: BSD-3-Clause
"""Tests `qcts quantize FOLDER OUT_FOLDER` against folders that transformers' save_pretrained wrote (the goldens), and torchao's own JSON
of a configuration. test_quantize_transformers.py loads such folders with transformers.
"""

import json
import os
import shutil
import subprocess

import pytest
from dialect_files import FIXTURES, GOLDENS
from qcts_program import BIN, inspect, qcts

torch = pytest.importorskip("torch", reason="torch is not installed")

from safetensors import safe_open  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

FOLDERS = [id for id in GOLDENS if id.startswith("transformers_5_23_0/")]
INT8 = "transformers_5_23_0/int8_row/llama"


def golden_folder(id):
    return FIXTURES / GOLDENS[id]["file"]


def words_of(id):
    tensor = next(tensor for tensor in GOLDENS[id]["tensors"] if tensor["scheme"])
    return ["--scheme", tensor["scheme"], "--activation", tensor.get("activation", "weight_only")]


def float_folder(id, folder, shards=1, pickled=False):
    """Writes the float model from which the golden was made, in `shards` weight files. Returns the folder."""
    entry, golden = GOLDENS[id], golden_folder(id)
    expected = load_file(FIXTURES / entry["expected"])
    stored = {}
    for path in golden.glob("*.safetensors"):
        stored |= load_file(path)
    names = [tensor["name"] for tensor in entry["tensors"]]
    state = {name: expected.get(f"{name}|w", stored.get(name)) for name in names}
    folder.mkdir()
    config = json.loads((golden / "config.json").read_text())
    del config["quantization_config"]
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    shutil.copy(golden / "generation_config.json", folder)
    stem, ending = ("pytorch_model", ".bin") if pickled else ("model", ".safetensors")
    files = [f"{stem}-{i + 1:05}-of-{shards:05}{ending}" for i in range(shards)] if shards > 1 else [stem + ending]
    for i, file in enumerate(files):
        part = {name: state[name] for name in names[i::shards]}
        torch.save(part, folder / file) if pickled else save_file(part, folder / file, {"format": "pt"})
    if shards > 1:
        weights = {name: files[i % shards] for i, name in enumerate(names)}
        (folder / f"{stem}{ending}.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weights}))
    return folder


def contents(folder):
    """Every byte of every tensor of each weight file, and the metadata."""
    found = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            tensors = {key: (value := file.get_tensor(key), value.flatten().view(torch.uint8).tolist())[1] for key in file.keys()}
            metadata = {key: json.loads(value) if key != "format" else value for key, value in file.metadata().items()}
            metadata["tensor_names"] = sorted(metadata["tensor_names"])
        found[path.name] = (tensors, metadata)
    return found


@pytest.mark.parametrize(
    ("words", "recipe", "arguments"),
    [
        (["int8_weight_only"], "int8_weight_only", {}),
        (["int8_g32_v1"], "int8_weight_only", {"group_size": 32}),
        (["int8_dynamic_activation_int8_weight"], "int8_dynamic_activation_int8_weight", {}),
    ],
)
def test_the_first_recipes_are_named_as_transformers_named_them(words, recipe, arguments, tmp_path):
    """Up to 4.57, by their functions, with pickled weights: safetensors have no place for AffineQuantizedTensor."""
    source, out = float_folder(INT8, tmp_path / "in"), tmp_path / "out"
    qcts("quantize", "--scheme", *words, source, out)
    said = json.loads((out / "config.json").read_text())["quantization_config"]
    assert said["quant_method"] == "torchao" and said["quant_type"] == recipe and said["quant_type_kwargs"] == arguments
    assert (out / "pytorch_model.bin").exists() and not list(out.glob("*.safetensors"))
    assert {"AffineQuantizedTensor", "LinearActivationQuantizedTensor"} & {tensor["type"] for tensor in inspect(out)["tensors"]}
    qcts("check", out)


def differences(a, b):
    """Returns where two checkpoints differ in what they hold, without indices; their meaning must be the same."""
    said = json.loads(subprocess.run([BIN, "diff", a, b, "--json", "--all"], capture_output=True, text=True).stdout)
    assert said["e1"]["equal"], said["e1"]
    return {found["path"].split("[")[0] for found in said["e2"]["differences"]}


def text_files(folder):
    return {path.name: path.read_text() for path in folder.iterdir() if path.suffix == ".json"}


@pytest.mark.parametrize("id", FOLDERS)
def test_a_folder_is_what_transformers_writes(id, tmp_path):
    """config.json, the index and all other text byte for byte; every weight file's tensors and metadata."""
    source, out = float_folder(id, tmp_path / "float"), tmp_path / "out"
    size = GOLDENS[id]["config"].get("max_shard_size")
    qcts("quantize", *words_of(id), *(["--max-shard-size", size] if size else []), source, out)
    assert text_files(out) == text_files(golden_folder(id))
    assert contents(out) == contents(golden_folder(id))
    assert sorted(os.listdir(tmp_path)) == ["float", "out"]
    assert differences(out, golden_folder(id)) <= {"__metadata__.tensor_names"}  # in the order of the modules
    qcts("check", out)


@pytest.mark.parametrize("id", FOLDERS)
def test_like_copies_layers_scheme_and_configuration(id, tmp_path):
    source = float_folder(id, tmp_path / "float")
    qcts("quantize", "--like", golden_folder(id), source, tmp_path / "out")
    assert (tmp_path / "out/config.json").read_text() == (golden_folder(id) / "config.json").read_text()
    qcts("diff", tmp_path / "out", golden_folder(id))


@pytest.mark.parametrize("pickled", [False, True])
@pytest.mark.parametrize("shards", [1, 3])
def test_the_inputs_cut_is_kept(shards, pickled, tmp_path):
    """Every tensor's parts are in the file with its file's number; a pickled model becomes safetensors."""
    source, out = float_folder(INT8, tmp_path / "float", shards, pickled), tmp_path / "out"
    qcts("quantize", "--scheme", "int8_row", source, out)
    files = sorted(path.name for path in out.glob("*.safetensors"))
    assert files == ([f"model-{i + 1:05}-of-{shards:05}.safetensors" for i in range(shards)] if shards > 1 else ["model.safetensors"])
    if shards > 1:
        weights = json.loads((out / "model.safetensors.index.json").read_text())["weight_map"]
        names = [tensor["name"] for tensor in GOLDENS[INT8]["tensors"]]
        for key, file in weights.items():
            name = key.replace("._weight_qdata", ".weight").replace("._weight_scale", ".weight").replace("._weight_zero_point", ".weight")
            assert file == files[names.index(name) % shards], key
    else:
        assert not (out / "model.safetensors.index.json").exists()
    assert differences(out, golden_folder(INT8)) <= {"__metadata__.tensor_names"}


def test_classes_that_only_pickles_hold_are_pickled(tmp_path):
    """Int4OpaqueTensor, in two weight files and their index."""
    source, out = float_folder(INT8, tmp_path / "float", 2), tmp_path / "out"
    words = ["--scheme", "int4_tinygemm_g32", "--layout", "cpu_avx2"]
    qcts("quantize", *words, source, out)
    files = ["pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"]
    assert sorted(os.listdir(out)) == ["config.json", "generation_config.json", *files, "pytorch_model.bin.index.json"]
    index = json.loads((out / "pytorch_model.bin.index.json").read_text())
    assert sorted(index["weight_map"]) == sorted(tensor["name"] for tensor in GOLDENS[INT8]["tensors"])
    types = {tensor["name"]: tensor["type"] for tensor in inspect(out)["tensors"]}
    assert types["model.layers.0.mlp.up_proj.weight"] == "Int4OpaqueTensor" and types["lm_head.weight"] == "Tensor"
    qcts("quantize", *words, source, tmp_path / "one.pt", "--exclude", "lm_head")
    qcts("diff", out, tmp_path / "one.pt")
    said = qcts("quantize", "--like", out, source, tmp_path / "again", code=1).stderr
    assert "does not say which CPU packed its weights: give the layout with --layout" in said
    qcts("quantize", "--like", out, "--layout", "cpu_avx2", source, tmp_path / "again")
    qcts("diff", out, tmp_path / "again")


def test_a_choice_of_layers_is_named(tmp_path):
    """modules_to_not_convert is null for transformers' own choice, else the modules that stay float."""
    source = float_folder(INT8, tmp_path / "float")

    def left(name, *words):
        qcts("quantize", "--scheme", "int8_row", source, tmp_path / name, *words)
        qcts("check", tmp_path / name)
        return json.loads((tmp_path / name / "config.json").read_text())["quantization_config"]["modules_to_not_convert"]

    assert left("usual") is None
    assert left("same", "--exclude", "lm_head") is None
    assert left("all", "--include", "*proj", "--include", "lm_head") == []
    assert left("some", "--exclude", "*.0.*.up_proj") == ["lm_head", "model.layers.0.mlp.up_proj"]
    assert left("like", "--like", tmp_path / "some") == left("some2", "--exclude", "*.0.*.up_proj")
    qcts("quantize", "--scheme", "fp8_row", source, tmp_path / "fp8", "--like", tmp_path / "some")
    written = json.loads((tmp_path / "fp8/config.json").read_text())["quantization_config"]
    assert written["quant_type"]["default"]["_type"] == "Float8WeightOnlyConfig"
    assert written["modules_to_not_convert"] == ["lm_head", "model.layers.0.mlp.up_proj"]


def test_tied_weights_stay_tied(tmp_path):
    source = float_folder(INT8, tmp_path / "float")
    config = json.loads((source / "config.json").read_text()) | {"tie_word_embeddings": True}
    (source / "config.json").write_text(json.dumps(config))
    state = load_file(source / "model.safetensors")
    del state["lm_head.weight"]
    save_file(state, source / "model.safetensors", {"format": "pt"})
    qcts("quantize", "--scheme", "int8_row", source, tmp_path / "out", "--exclude", "up_proj")
    written = json.loads((tmp_path / "out/config.json").read_text())
    assert list(written)[-1] == "tie_word_embeddings" or list(written) == sorted(written)
    left = written["quantization_config"]["modules_to_not_convert"]
    assert left == [f"model.layers.{i}.mlp.up_proj" for i in (0, 1)] + ["lm_head"]
    assert "lm_head.weight" not in {tensor["name"] for tensor in inspect(tmp_path / "out")["tensors"]}


def test_what_is_no_linear_layer_stays_float(tmp_path):
    """GPT-2's Conv1D, experts and their router, which the names of a state dict do not distinguish from Linear layers."""
    folder = tmp_path / "gpt2"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "gpt2"}')
    state = {"h.0.attn.c_attn.weight": torch.ones(32, 96), "h.0.other.weight": torch.ones(32, 32)}
    save_file(state, folder / "model.safetensors")
    said = qcts("quantize", "--scheme", "int8_row", folder, tmp_path / "a").stdout
    assert "left float  h.0.attn.c_attn.weight: Conv1D" in said and "quantized   h.0.other.weight" in said
    folder = tmp_path / "mixtral"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "mixtral"}')
    names = ["m.experts.0.w1.weight", "m.gate.weight", "m.q_proj.weight"]
    save_file({name: torch.ones(32, 32) for name in names}, folder / "model.safetensors")
    said = qcts("quantize", "--scheme", "int8_row", folder, tmp_path / "b").stdout
    assert said.count("left float") == 2 and "quantized   m.q_proj.weight" in said
    assert "2 of" not in qcts("quantize", "--scheme", "int8_row", folder, tmp_path / "c", "--include", "*").stdout


def test_other_files_are_copied_and_links_out_are_not(tmp_path):
    source = float_folder(INT8, tmp_path / "float")
    (source / "tokenizer.json").write_text("{}")
    (source / "README.md").write_text("words")
    (source / ".gitattributes").write_text("hidden")
    (source / "onnx").mkdir()
    (source / "optimizer.pt").write_bytes(b"state")
    said = qcts("quantize", "--scheme", "int8_row", source, tmp_path / "out").stderr
    names = ["README.md", "config.json", "generation_config.json", "model.safetensors", "tokenizer.json"]
    assert sorted(os.listdir(tmp_path / "out")) == names
    assert "onnx is not a file and is not copied" in said
    (tmp_path / "secret").write_text("secret")
    (source / "vocab.json").symlink_to(tmp_path / "secret")
    assert "leads out of the directory" in qcts("quantize", "--scheme", "int8_row", source, tmp_path / "out2", code=1).stderr
    assert not (tmp_path / "out2").exists() and not list(tmp_path.glob(".out2*"))


def refusals(tmp_path):
    source = float_folder(INT8, tmp_path / "float")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine.txt").write_text("mine")
    (tmp_path / "file").write_text("file")
    alone = source / "model.safetensors"
    row = ["--scheme", "int8_row"]
    return [
        ([*row, source, tmp_path / "full"], "is not empty: choose another folder, or add --overwrite"),
        ([*row, source, tmp_path / "full", "--overwrite"], "has no config.json: --overwrite replaces only a model folder"),
        ([*row, source, tmp_path / "file"], "is a file, not a folder"),
        ([*row, source, source], "is IN"),
        ([*row, source, source / ".." / "float/"], "is IN"),
        ([*row, alone, tmp_path / "out"], "so IN must be one with config.json"),
        ([*row, source, tmp_path / "out.onnx"], "must end in .pt, .pth, .bin or .safetensors, or in / for a folder"),
        ([*row, source, tmp_path / "out.safetensor"], "did you mean '.safetensors'?"),
        ([*row, source, tmp_path / "out.pt", "--overwrite"], "--max-shard-size and --overwrite are for a folder"),
        (["--scheme", "tinyq_w8a32", source, tmp_path / "out"], "transformers has no configuration for tinyq_w8a32"),
        (["--scheme", "nvfp4_one_level", source, tmp_path / "out"], "transformers has no configuration for nvfp4_one_level"),
        *(
            ([*row, source, tmp_path / "out", f"--max-shard-size={size}"], f"--max-shard-size {size} is not a size")
            for size in ("0", "-1", "5XB", "1.5GB", "99999999999GB")
        ),
    ]


def test_refusals_write_nothing(tmp_path):
    cases = refusals(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    for words, why in cases:
        assert why in qcts("quantize", *words, code=2).stderr, why
        assert sorted(tmp_path.rglob("*")) == before, why


def test_a_model_is_replaced_only_when_asked(tmp_path):
    source, out = float_folder(INT8, tmp_path / "float"), tmp_path / "Llama-3.2"
    qcts("quantize", "--scheme", "int8_row", source, out)
    (out / "left.txt").write_text("from before")
    qcts("quantize", "--scheme", "fp8_row", source, f"{out}/", "--overwrite")
    assert sorted(os.listdir(out)) == ["config.json", "generation_config.json", "model.safetensors"]
    written = json.loads((out / "config.json").read_text())["quantization_config"]
    assert written["quant_type"]["default"]["_type"] == "Float8WeightOnlyConfig"
    assert sorted(os.listdir(tmp_path)) == ["Llama-3.2", "float"]


def test_a_folder_that_cannot_be_written_leaves_nothing(tmp_path):
    source = float_folder(INT8, tmp_path / "float")
    before = sorted(tmp_path.rglob("*"))
    qcts("quantize", "--scheme", "int8_row", source, tmp_path / "nowhere/out", code=5)
    assert sorted(tmp_path.rglob("*")) == before


CONFIGS = {
    "int8_row weight_only": lambda q, g: q.Int8WeightOnlyConfig(version=2),
    "int8_tensor weight_only": lambda q, g: q.Int8WeightOnlyConfig(version=2, granularity=g.PerTensor()),
    "int8_g64 weight_only": lambda q, g: q.Int8WeightOnlyConfig(version=2, granularity=g.PerGroup(64)),
    "int8_row dyn_row_sym": lambda q, g: q.Int8DynamicActivationInt8WeightConfig(version=2),
    "int8_row_reduced dyn_row_asym": lambda q, g: q.Int8DynamicActivationInt8WeightConfig(
        version=2, act_mapping_type=q.MappingType.ASYMMETRIC, reduce_range=True
    ),
    "int8_tensor dyn_tensor_sym": lambda q, g: q.Int8DynamicActivationInt8WeightConfig(version=2, granularity=g.PerTensor()),
    "fp8_row weight_only": lambda q, g: q.Float8WeightOnlyConfig(),
    "fp8_e5m2_tensor weight_only": lambda q, g: q.Float8WeightOnlyConfig(weight_dtype=torch.float8_e5m2, granularity=g.PerTensor()),
    "fp8_e4m3_g32 weight_only": lambda q, g: q.Float8WeightOnlyConfig(granularity=g.PerGroup(32)),
    "fp8_row dyn_row": lambda q, g: q.Float8DynamicActivationFloat8WeightConfig(granularity=g.PerRow()),
    "fp8_e4m3_tensor dyn_tensor": lambda q, g: q.Float8DynamicActivationFloat8WeightConfig(),
    "intx_b4_g32_sym weight_only": lambda q, g: q.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=g.PerGroup(32)),
    "intx_b3_axis_asym weight_only": lambda q, g: q.IntxWeightOnlyConfig(
        weight_dtype=torch.int3, granularity=g.PerAxis(0), mapping_type=q.MappingType.ASYMMETRIC
    ),
    "intx_b4_g32_s32_symnc weight_only": lambda q, g: q.IntxWeightOnlyConfig(
        weight_dtype=torch.int4,
        granularity=g.PerGroup(32),
        mapping_type=q.MappingType.SYMMETRIC_NO_CLIPPING_ERR,
        scale_dtype=torch.float32,
    ),
    "intx_b4_g32_sym dyn_token_asym": lambda q, g: q.Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4, weight_granularity=g.PerGroup(32)
    ),
    "int4_tinygemm_g64 weight_only": lambda q, g: q.Int4WeightOnlyConfig(
        group_size=64, int4_packing_format=q.Int4PackingFormat.TILE_PACKED_TO_4D
    ),
    "int4_tinygemm_g32 weight_only cpu_avx2": lambda q, g: q.Int4WeightOnlyConfig(group_size=32),
    "int4_plain_g128 weight_only": lambda q, g: q.Int4WeightOnlyConfig(group_size=128),
}


@pytest.mark.parametrize("what", CONFIGS)
def test_a_configuration_is_torchaos_own(what, tmp_path):
    """As torchao's config_to_dict gives it, from which transformers makes its quantization_config."""
    why = "needs torchao 0.18.0, see fixtures/make/requirements.txt"
    torchao = pytest.importorskip("torchao", minversion="0.18.0", reason=why)
    import torchao.quantization as quantization
    from torchao.core.config import config_to_dict
    from torchao.quantization import granularity
    from torchao.quantization.quant_primitives import MappingType
    from torchao.quantization.quantize_.workflows import Int4PackingFormat

    names = vars(quantization) | {"MappingType": MappingType, "Int4PackingFormat": Int4PackingFormat}
    scheme, policy, *layout = what.split()
    source = tmp_path / "float"
    source.mkdir()
    (source / "config.json").write_text("{}")
    dtype = torch.bfloat16
    save_file({"a.weight": torch.ones(32, 256, dtype=dtype)}, source / "model.safetensors")
    words = ["--scheme", scheme, "--activation", policy, *(["--layout", *layout] if layout else [])]
    qcts("quantize", *words, source, tmp_path / "out")
    written = json.loads((tmp_path / "out/config.json").read_text())["quantization_config"]
    want = config_to_dict(CONFIGS[what](type("Names", (), names), granularity))
    assert written["quant_type"] == {"default": json.loads(json.dumps(want))}, torchao.__version__
