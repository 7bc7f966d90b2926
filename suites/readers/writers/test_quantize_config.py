# SPDX-License-Identifier: BSD-3-Clause
"""Tests that the quantization_config of a folder follows from the class and layout of its weights, and that `qcts check` holds one
against the other.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest
from dialect_files import FIXTURES, GOLDENS
from qcts_program import BIN, ROOT, inspect, qcts
from test_first_recipes import pinned_envs

torch = pytest.importorskip("torch", reason="torch is not installed")

from safetensors.torch import save_file  # noqa: E402

FOLDERS = [id for id in GOLDENS if id.startswith("transformers_")]
OLD, NEW = "torchao_v1", "torchao_v2"
# Words of quantize -> the class of a weight, and the configuration's name and version; no version: a string.
WRITTEN = {
    ("int4_weight_only",): ("AffineQuantizedTensor", "int4_weight_only", None),
    ("int4_weight_only", "--layout", "cpu_avx2"): ("AffineQuantizedTensor", "Int4WeightOnlyConfig", 1),
    ("int4_weight_only", "--layout", "cpu_avx512"): ("AffineQuantizedTensor", "Int4WeightOnlyConfig", 1),
    ("int4_tinygemm_g32", "--layout", "cpu_default", "--as", OLD): ("AffineQuantizedTensor", "Int4WeightOnlyConfig", 1),
    ("int8_weight_only",): ("AffineQuantizedTensor", "int8_weight_only", None),
    ("int8_g32_v1",): ("AffineQuantizedTensor", "int8_weight_only", None),
    ("int8_dynamic_activation_int8_weight",): ("LinearActivationQuantizedTensor", "int8_dynamic_activation_int8_weight", None),
    ("int8_row_v1", "--activation", "dyn_row_asym"): ("LinearActivationQuantizedTensor", "Int8DynamicActivationInt8WeightConfig", 1),
    ("int8_dynamic_activation_int4_weight",): ("LinearActivationQuantizedTensor", "Int8DynamicActivationInt4WeightConfig", 1),
    ("int4_dynamic_activation_int4_weight",): ("LinearActivationQuantizedTensor", "Int4DynamicActivationInt4WeightConfig", 1),
    ("float8_weight_only",): ("AffineQuantizedTensor", "Float8WeightOnlyConfig", 1),
    ("float8_dynamic_activation_float8_weight",): (
        "LinearActivationQuantizedTensor", "Float8DynamicActivationFloat8WeightConfig", 1,
    ),
    ("fp8_row", "--activation", "dyn_row", "--as", OLD): (
        "LinearActivationQuantizedTensor", "Float8DynamicActivationFloat8WeightConfig", 1,
    ),
    ("IntxWeightOnlyConfig",): ("AffineQuantizedTensor", "IntxWeightOnlyConfig", 1),
    ("Int8DynamicActivationIntxWeightConfig",): ("LinearActivationQuantizedTensor", "Int8DynamicActivationIntxWeightConfig", 1),
    ("int8_row",): ("Int8Tensor", "Int8WeightOnlyConfig", 2),
    ("int8_tensor",): ("Int8Tensor", "Int8WeightOnlyConfig", 2),
    ("int8_g32",): ("Int8Tensor", "Int8WeightOnlyConfig", 2),
    ("int8_row", "--activation", "dyn_row_sym"): ("Int8Tensor", "Int8DynamicActivationInt8WeightConfig", 2),
    ("int8_tensor_reduced", "--activation", "dyn_tensor_asym"): ("Int8Tensor", "Int8DynamicActivationInt8WeightConfig", 2),
    ("fp8_row",): ("Float8Tensor", "Float8WeightOnlyConfig", 2),
    ("fp8_e5m2_row",): ("Float8Tensor", "Float8WeightOnlyConfig", 2),
    ("fp8_e4m3_tensor", "--activation", "dyn_tensor"): ("Float8Tensor", "Float8DynamicActivationFloat8WeightConfig", 2),
    ("fp8_e4m3_g32",): ("Float8Tensor", "Float8WeightOnlyConfig", 2),
    ("intx_b3_g32_asym",): ("IntxUnpackedToInt8Tensor", "IntxWeightOnlyConfig", 2),
    ("intx_b4_axis_s32_sym",): ("IntxUnpackedToInt8Tensor", "IntxWeightOnlyConfig", 2),
    ("intx_b4_g32_symnc", "--activation", "dyn_token_asym"): (
        "IntxUnpackedToInt8Tensor", "Int8DynamicActivationIntxWeightConfig", 2,
    ),
    ("int4_plain_g32",): ("Int4Tensor", "Int4WeightOnlyConfig", 2),
    ("int4_int32_g32",): ("Int4PlainInt32Tensor", "Int4WeightOnlyConfig", 2),
    ("int4_tinygemm_g32",): ("Int4TilePackedTo4dTensor", "Int4WeightOnlyConfig", 2),
    ("int4_tinygemm_g32", "--layout", "cpu_avx2"): ("Int4OpaqueTensor", "Int4WeightOnlyConfig", 2),
}  # fmt: skip


@pytest.fixture(scope="module")
def floats(tmp_path_factory):
    """A Llama of one layer, as save_pretrained stores it."""
    folder = tmp_path_factory.mktemp("floats") / "llama"
    folder.mkdir()
    torch.manual_seed(1)
    sizes = {
        "vocab_size": 96, "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 1, "num_attention_heads": 4,
        "num_key_value_heads": 4, "head_dim": 32, "max_position_embeddings": 64, "rms_norm_eps": 1e-06, "hidden_act": "silu",
    }  # fmt: skip
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "tie_word_embeddings": False, "dtype": "bfloat16"}
    (folder / "config.json").write_text(json.dumps({**config, "torch_dtype": "bfloat16", **sizes}, indent=2, sort_keys=True))
    layer = "model.layers.0."
    shapes = {"model.embed_tokens": (96, 128), "lm_head": (96, 128), "model.norm": (128,)}
    shapes |= {f"{layer}self_attn.{name}_proj": (128, 128) for name in "qkvo"}
    shapes |= {f"{layer}mlp.{name}_proj": (256, 128) for name in ("gate", "up")} | {f"{layer}mlp.down_proj": (128, 256)}
    shapes |= {f"{layer}{name}": (128,) for name in ("input_layernorm", "post_attention_layernorm")}
    tensors = {f"{name}.weight": (torch.randn(shape) * 0.1).to(torch.bfloat16) for name, shape in shapes.items()}
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return folder


def said_by(folder):
    return json.loads((folder / "config.json").read_text())["quantization_config"]


def classes_of(folder):
    return {tensor["type"] for tensor in inspect(folder)["tensors"]} - {"Tensor", "Parameter"}


@pytest.mark.parametrize("words", WRITTEN, ids=" ".join)
def test_the_configuration_is_that_of_the_class(words, floats, tmp_path):
    cls, name, version = WRITTEN[words]
    qcts("quantize", "--scheme", *words, floats, tmp_path / "out")
    assert classes_of(tmp_path / "out") == {cls}
    kind = said_by(tmp_path / "out")["quant_type"]
    assert (
        (kind, None) == (name, version) if version is None else (kind["default"]["_type"], kind["default"]["_version"]) == (name, version)
    )
    qcts("check", tmp_path / "out")


def test_the_layout_of_a_cpu_is_in_the_configuration(floats, tmp_path):
    """Without it, torchao would make tiles again; this is the form that transformers 4.57.1 with torchao 0.13.0 writes."""
    qcts("quantize", "--scheme", "int4_weight_only", "--layout", "cpu_avx2", floats, tmp_path / "out")
    golden = said_by(FIXTURES / GOLDENS["transformers_4_57_1/int4wo"]["file"])["quant_type"]["default"]
    found = said_by(tmp_path / "out")["quant_type"]["default"]
    assert (found["_type"], found["_version"]) == (golden["_type"], golden["_version"])
    assert found["_data"] == {key: golden["_data"][key] for key in ("group_size", "layout")}


LOADERS = {
    NEW: ("transformers 5.24 with torchao 0.18", None),
    OLD: ("transformers 4.57.1 with torchao 0.13.0", ["transformers-4.57.1", "torchao-0.13.0", "main"]),
}
# transformers 5.24 converts these again instead of loading what is stored, and needs a GPU for it.
NOT_ON_A_CPU = set()


def environment_of(packages):
    if packages is None:
        for name, version in (("transformers", "5.24"), ("torchao", "0.18")):
            module = pytest.importorskip(name, reason=f"{name} is not installed")
            if not module.__version__.startswith(version):
                pytest.skip(f"{name} {version} is not installed")
        return os.environ
    folders = [ROOT / "build/goldens-env" / package for package in packages]
    for folder in folders:
        if not folder.exists():
            pytest.skip(f"{folder.name} is not in build/goldens-env, where scripts/make_goldens puts it")
    return {**os.environ, **pinned_envs.PINNED, "PYTHONPATH": os.pathsep.join(map(str, folders))}


@pytest.mark.parametrize("dialect", LOADERS)
def test_transformers_of_the_time_loads_the_folders(dialect, floats, tmp_path):
    """Every class and layout under its configuration, without a missing or unexpected weight."""
    who, packages = LOADERS[dialect]
    environ = environment_of(packages)
    first = ("AffineQuantizedTensor", "LinearActivationQuantizedTensor")
    wanted = {}
    for words, (cls, *_) in WRITTEN.items():
        if (cls in first) != (dialect == OLD) or words in NOT_ON_A_CPU:
            continue
        out = tmp_path / "_".join(words).replace("-", "")
        qcts("quantize", "--scheme", *words, floats, f"{out}/")
        wanted[str(out)] = cls
    done = subprocess.run(
        [sys.executable, "-W", "ignore", ROOT / "suites/readers/writers/load_folders.py", *wanted],
        env=environ, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    wrong = {folder: said for folder, said in found.items() if wanted[folder] not in said or isinstance(said, str)}
    assert not wrong, (who, wrong)


@pytest.mark.parametrize("id", FOLDERS)
def test_folders_of_transformers_agree_with_themselves(id):
    qcts("check", FIXTURES / GOLDENS[id]["file"])


def typed(name, version, **data):
    return {"default": {"_type": name, "_version": version, "_data": data}}


def enum(kind, name):
    return {"_type": kind, "_data": name}


def granularity(kind, **data):
    return {"_type": kind, "_version": 1, "_data": data}


INT4_CPU, INT8, FP8 = "transformers_4_57_1/int4wo", "transformers_5_23_0/int8_row/llama", "transformers_5_23_0/fp8_row"
CONTRADICTIONS = {
    "today's class for a weight of a CPU": (
        INT4_CPU, typed("Int4WeightOnlyConfig", 2, group_size=128, int4_packing_format=enum("Int4PackingFormat", "PLAIN")),
        "is AffineQuantizedTensor, which version 2 does not make",
    ),
    "tiles for a weight of a CPU": (
        INT4_CPU, typed("Int4WeightOnlyConfig", 1, group_size=128, layout=granularity("TensorCoreTiledLayout", inner_k_tiles=8)),
        "with Int4CPUAQTTensorImpl, which TensorCoreTiledLayout does not make",
    ),
    "groups": (INT4_CPU, typed("Int4WeightOnlyConfig", 1, group_size=64), "has groups of 128, not 64"),
    "int8 for float8": (FP8, typed("Int8WeightOnlyConfig", 2, granularity=granularity("PerRow", dim=-1)), "is Float8Tensor"),
    "float8 for int8": (INT8, typed("Float8WeightOnlyConfig", 2), "is Int8Tensor"),
    "the first generation for today's class": (INT8, typed("Int8WeightOnlyConfig", 1), "is Int8Tensor, which version 1 does not make"),
    "activations": (INT8, typed("Int8DynamicActivationInt8WeightConfig", 2), "does not quantize its activations"),
    "one scale for rows": (INT8, typed("Int8WeightOnlyConfig", 2, granularity=granularity("PerTensor")), "has a scale for each block of"),
    "groups for rows": (
        INT8, typed("Int8WeightOnlyConfig", 2, granularity=granularity("PerGroup", group_size=16)), "has a scale for each block of",
    ),
    "another float8": (
        FP8, typed("Float8WeightOnlyConfig", 2, weight_dtype=enum("torch.dtype", "float8_e5m2")),
        "has codes of float8_e4m3fn, not float8_e5m2",
    ),
    "int4 for int8": (INT8, typed("Int4WeightOnlyConfig", 2, group_size=32), "is Int8Tensor"),
    "intx for int8": (INT8, typed("IntxWeightOnlyConfig", 2), "is Int8Tensor"),
}  # fmt: skip


@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_check_finds_a_configuration_of_something_else(what, tmp_path):
    id, kind, why = CONTRADICTIONS[what]
    (found,) = [known for known in FOLDERS if known == id or known.startswith(f"{id}/")][:1]
    folder = tmp_path / "folder"
    shutil.copytree(FIXTURES / GOLDENS[found]["file"], folder)
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"]["quant_type"] = kind
    (folder / "config.json").write_text(json.dumps(config))
    done = subprocess.run([BIN, "check", folder], capture_output=True, text=True)
    assert done.returncode == 1 and why in done.stdout + done.stderr, done.stdout + done.stderr


def test_check_knows_the_packings_of_int4(floats, tmp_path):
    qcts("quantize", "--scheme", "int4_plain_g32", floats, tmp_path / "out")
    config = json.loads((tmp_path / "out/config.json").read_text())
    config["quantization_config"]["quant_type"]["default"]["_data"]["int4_packing_format"]["_data"] = "TILE_PACKED_TO_4D"
    (tmp_path / "out/config.json").write_text(json.dumps(config))
    done = subprocess.run([BIN, "check", tmp_path / "out"], capture_output=True, text=True)
    assert done.returncode == 1 and "is Int4Tensor, which packing TILE_PACKED_TO_4D does not make" in done.stdout + done.stderr
