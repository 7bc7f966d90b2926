# SPDX-License-Identifier: BSD-3-Clause
"""Layers that the numbers of a model skip: found where config.json or GGUF's block_count says how many there are."""

import json
import struct
import sys

import pytest
from dialect_files import FIXTURES, write_safetensors
from foreign_samples import entry
from qcts_program import inspect, qcts

sys.path.insert(0, str(FIXTURES / "make/malformed"))
import malformed_gguf as gguf  # noqa: E402

LAYERS = 5
PARTS = ["attn.q_proj.weight", "attn.o_proj.weight", "mlp.up_proj.weight", "mlp.down_proj.weight", "norm.weight"]
LLAMA = {"model_type": "llama", "num_hidden_layers": LAYERS}


def tensors_of(layers, prefix="model.layers"):
    names = [f"{prefix}.{layer}.{part}" for layer in layers for part in PARTS]
    return {"model.embed_tokens.weight": entry("F32", 8, 8)} | {name: entry("F32", 4, 4) for name in names}


def folder_of(tmp_path, tensors, config=LLAMA, container="safetensors"):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    if container == "safetensors":
        write_safetensors(folder / "model.safetensors", tensors)
    elif container == "shards":
        names = list(tensors)
        places = {name: f"model-0000{1 + (i % 2)}-of-00002.safetensors" for i, name in enumerate(names)}
        for file in set(places.values()):
            write_safetensors(folder / file, {name: tensors[name] for name in names if places[name] == file})
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    else:
        torch = pytest.importorskip("torch", reason="torch is not installed")
        torch.save({name: torch.zeros(shape) for name, (_, shape, _) in tensors.items()}, folder / "pytorch_model.bin")
    return folder


CONFIGS = {
    "llama": ("model.layers", LLAMA),
    "gpt": ("transformer.h", {"n_layer": LAYERS}),
    "vision_language": ("language_model.model.layers", {"text_config": LLAMA, "vision_config": {"num_hidden_layers": 2}}),
    "next_tokens": ("model.layers", {"num_hidden_layers": LAYERS - 1, "num_nextn_predict_layers": 1}),
}


@pytest.mark.parametrize("case", CONFIGS)
@pytest.mark.parametrize("container", ["safetensors", "shards", "bin"])
@pytest.mark.parametrize("lost", [[1], [0], [1, 2]])
def test_a_lost_layer_fails_the_check(case, container, lost, tmp_path):
    """Protects: merges and shards that lose a layer."""
    prefix, config = CONFIGS[case]
    folder = folder_of(tmp_path, tensors_of([i for i in range(LAYERS) if i not in lost], prefix), config, container)
    text = inspect(folder)["findings"][0]["text"]
    assert f"but there is no tensor of {prefix}.{lost[0]}" in text and ("and 1 more layers" in text) == (len(lost) > 1)
    assert text in qcts("check", folder, code=1).stderr
    qcts("dequantize", folder, tmp_path / "out.safetensors", code=1)
    assert not (tmp_path / "out.safetensors").exists()
    assert "there is no tensor of" in qcts("check", "--lenient", folder).stderr


def test_the_last_layers_are_noted(tmp_path):
    folder = folder_of(tmp_path, tensors_of(range(LAYERS - 2)))
    assert "note: config.json says num_hidden_layers 5, but model.layers ends with layer 2" in qcts("check", folder).stderr


@pytest.mark.parametrize("lost", [PARTS[2:3], PARTS[:2]])
def test_a_tensor_that_all_other_layers_have_is_noted(lost, tmp_path):
    tensors = tensors_of(range(LAYERS))
    for part in lost:
        del tensors[f"model.layers.3.{part}"]
    more = " and 1 more" if len(lost) > 1 else ""
    first = sorted(lost)[0]
    assert f"note: model.layers.3 lacks {first}{more}, which all other layers have" in qcts("check", folder_of(tmp_path, tensors)).stderr


def without(tensors, *names):
    return {name: tensor for name, tensor in tensors.items() if name not in names}


ALL = tensors_of(range(LAYERS))
OTHER_KIND = without(ALL, "model.layers.2.mlp.up_proj.weight") | {"model.layers.2.mlp.experts.w1": entry("F32", 2, 4, 4)}
NOTHING_LOST = {
    "all": (ALL, LLAMA),
    "one_more": (tensors_of(range(LAYERS + 1)), LLAMA),
    "another_kind_of_layer": (OTHER_KIND, LLAMA),
    "the_first_is_unlike_the_others": (without(ALL, "model.layers.0.norm.weight"), LLAMA),
    "no_number_is_said": (tensors_of([0, 1, 4]), {"model_type": "llama"}),
    "each_layer_is_described": (tensors_of([0, 1, 4]), LLAMA | {"block_configs": [{}]}),
    "adapter": ({f"base_model.model.{name}": t for name, t in tensors_of([0, 1, 4]).items()}, LLAMA),
    "convolutions": ({f"encoder.layers.{i}.conv.weight": entry("F32", 4, 4) for i in (0, 2, 4)}, LLAMA),
}


@pytest.mark.parametrize("case", NOTHING_LOST)
def test_where_nothing_is_lost_nothing_is_said(case, tmp_path):
    told = qcts("check", folder_of(tmp_path, *NOTHING_LOST[case])).stderr
    assert not any(words in told for words in ("there is no tensor of", " lacks ", "ends with layer"))


EXPERTS = 4


def experts_of(layer, lost=()):
    names = [f"model.layers.{layer}.mlp.experts.{i}.{part}.weight" for i in range(EXPERTS) for part in ("up", "gate", "down")]
    return {name: entry("F32", 4, 4) for name in names if not any(word in name for word in lost)}


@pytest.mark.parametrize("said", ["num_experts", "num_local_experts", "n_routed_experts"])
@pytest.mark.parametrize("lost", [0, 2, 3])
@pytest.mark.parametrize("nested", [False, True])
def test_a_lost_expert_fails_the_check(said, lost, nested, tmp_path):
    tensors = ALL | experts_of(1) | experts_of(2, [f"experts.{lost}."])
    config = LLAMA | {said: EXPERTS}
    folder = folder_of(tmp_path, tensors, {"text_config": config} if nested else config)
    wanted = f"config.json says {said} 4, but there is no tensor of model.layers.2.mlp.experts.{lost}"
    assert wanted in qcts("check", folder, code=1).stderr
    qcts("dequantize", folder, tmp_path / "out.safetensors", code=1)


@pytest.mark.parametrize("count", [EXPERTS, EXPERTS - 1, [4, 4], None])
def test_all_experts_are_no_finding(count, tmp_path):
    folder = folder_of(tmp_path, ALL | experts_of(1) | experts_of(2), LLAMA | {"num_experts": count})
    assert "expert" not in qcts("check", folder).stderr.replace("mlp.experts", "")


def test_a_tensor_that_all_other_experts_have_is_noted(tmp_path):
    tensors = ALL | experts_of(1) | experts_of(2, ["experts.1.gate"])
    folder = folder_of(tmp_path, tensors, LLAMA | {"num_experts": EXPERTS})
    assert "an expert of model.layers.2.mlp.experts lacks gate.weight, which all others have" in qcts("check", folder).stderr


def gguf_of(path, layers, architecture="llama", pairs=(), prefix="blk"):
    names = [f"{prefix}.{layer}.{part}" for layer in layers for part in ("attn_q", "attn_k", "ffn_up", "ffn_down")]
    name = gguf.pair("general.architecture", gguf.STRING, gguf.string(architecture))
    pairs = (name, gguf.u32(f"{architecture}.block_count", LAYERS), *pairs)
    tensors = [gguf.tensor(f"{name}.weight", dims=(8,), offset=32 * i) for i, name in enumerate(names)]
    path.write_bytes(gguf.file_of(pairs, tensors, data=bytes(32 * len(names))))
    return path


def test_a_lost_block_of_a_gguf_file_fails_the_check(tmp_path):
    path = gguf_of(tmp_path / "m.gguf", [0, 1, 3, 4])
    assert "llama.block_count is 5, but there is no tensor of blk.2" in qcts("check", path, code=1).stderr
    qcts("dequantize", path, tmp_path / "out.safetensors", code=1)
    assert "but blk ends with layer 3" in qcts("check", gguf_of(path, range(4))).stderr
    qcts("check", gguf_of(path, range(LAYERS)))


def test_gguf_files_with_empty_layers_or_of_several_are_not_judged_by_the_number(tmp_path):
    qcts("check", gguf_of(tmp_path / "m.gguf", [0, 4], "deci"))
    split = [gguf.pair(f"split.{key}", gguf.U16, struct.pack("<H", value)) for key, value in (("no", 1), ("count", 2))]
    qcts("check", gguf_of(tmp_path / "part.gguf", [0, 4], pairs=split))


def test_a_projector_beside_the_parts_of_a_model_is_noted(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    gguf_of(folder / "m.gguf", range(LAYERS))
    gguf_of(folder / "mmproj-m-f16.gguf", range(2), "clip", prefix="v.blk")
    assert "m.gguf is read, but not what is next to it: mmproj-m-f16.gguf" in qcts("check", folder).stderr
