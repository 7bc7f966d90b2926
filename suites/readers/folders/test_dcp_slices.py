# SPDX-License-Identifier: BSD-3-Clause
"""Shards of torch.distributed.checkpoint's HuggingFaceStorageWriter: a rank's part of a tensor is refused by name, by itself and in its
folder. Whole tensors are read."""

import json

import pytest
from dialect_files import write_safetensors
from qcts_program import inspect, qcts


def shard(folder, rank, entries, offsets):
    name = f"shard-{rank:05}-model-00001-of-00001.safetensors"
    info = {key: {"saved_offsets": value} for key, value in offsets.items()}
    metadata = {"format": "pt", "DCP_VERSION": "1.0", "DCP_SHARDING_INFO": json.dumps(info)}
    return write_safetensors(folder / name, entries, metadata)


def part(*shape):
    count = 4
    for size in shape:
        count *= size
    return "F32", list(shape), bytes(count)


VERBS = [
    ["inspect"],
    ["check"],
    ["dequantize", "OUT"],
    ["resave", "OUT"],
    ["convert", "OUT"],
    ["diff", "IN"],
    ["quantize", "OUT", "--scheme", "int8_row"],
]


def refused(path, folder, tensor):
    for verb, *words in VERBS:
        ending = ".pt" if verb in ("convert", "quantize") else ".safetensors"
        out = folder / ("out" if path.is_dir() and verb != "dequantize" else f"out{ending}")
        done = qcts(verb, path, *[{"OUT": out, "IN": path}.get(word, word) for word in words], code=5 if verb == "diff" else 1)
        assert f"{tensor} is a rank's part of a tensor" in done.stderr and "consolidate" in done.stderr, (verb, done.stderr)
        assert not out.exists()


def test_parts_of_ranks_are_refused_in_their_folder_and_alone(tmp_path):
    folder = tmp_path / "ranks"
    folder.mkdir()
    first = shard(folder, 1, {"l.weight": part(4, 8)}, {"l.weight": [0, 0]})
    second = shard(folder, 2, {"l.bias": part(8), "l.weight": part(4, 8)}, {"l.weight": [4, 0], "l.bias": [0]})
    for path in (folder, first, second):
        refused(path, tmp_path, "l.weight")
    first.unlink()
    refused(second, tmp_path, "l.weight")  # it does not begin at the first element
    refused(folder, tmp_path, "l.weight")


def test_columns_are_parts_too(tmp_path):
    path = shard(tmp_path, 1, {"col.weight": part(8, 4)}, {"col.weight": [0, 4]})
    assert "col.weight is a rank's part" in qcts("check", path, code=1).stderr


def test_whole_tensors_are_read(tmp_path):
    """Each rank may save its own tensors, and one rank saves all of them."""
    folder = tmp_path / "ranks"
    folder.mkdir()
    paths = [shard(folder, rank, {f"l{rank}.weight": part(4, 8)}, {f"l{rank}.weight": [0, 0]}) for rank in (1, 2)]
    for path in (folder, *paths):
        told = qcts("check", path).stderr
        assert "all zero" in told and told.count("note") == 1
    assert [tensor["name"] for tensor in inspect(folder)["tensors"]] == ["l1.weight", "l2.weight"]
    paths[1].unlink()
    for path in (folder, paths[0]):
        assert "does not say whether its tensors are whole" in qcts("check", path).stderr


@pytest.mark.parametrize("text", ["{", "[" * 100, "x"])
def test_a_damaged_list_of_offsets_is_refused(text, tmp_path):
    path = write_safetensors(tmp_path / "x.safetensors", {"a": part(2)}, {"DCP_SHARDING_INFO": text})
    assert "DCP_SHARDING_INFO is " in qcts("check", path, code=1).stderr


INT8 = {
    "quant_method": "torchao",
    "quant_type": {"default": {"_type": "Int8WeightOnlyConfig", "_version": 2, "_data": {"group_size": None}}},
}


PARTS = [None, "text_config", "decoder", "encoder", "generator", "text_encoder", "vision_config", "thinker_config.text_config"]


@pytest.mark.parametrize("part_name", PARTS)
def test_a_torchao_config_in_any_part_over_floats_fails_the_check(part_name, tmp_path):
    said = {"quantization_config": INT8}
    for name in reversed(part_name.split(".") if part_name else []):
        said = {name: said}
    folder = tmp_path / "model"
    folder.mkdir()
    write_safetensors(folder / "model.safetensors", {"a.weight": part(8, 8)})
    (folder / "config.json").write_text(json.dumps(said))
    where = f" in {part_name}" if part_name else ""
    wanted = f"config.json says Int8WeightOnlyConfig{where}, but no tensor is quantized"
    assert wanted in qcts("check", folder, code=1).stderr
    qcts("dequantize", folder, tmp_path / "out.safetensors", code=1)


@pytest.mark.parametrize("keys", ["l._weight_", "l.weight:"])
@pytest.mark.parametrize("scale", ["scale", "scale_and_zero"])
@pytest.mark.parametrize("described", [False, True])
def test_torchaos_keys_without_their_metadata_are_named(keys, scale, described, tmp_path):
    """All of it gone, as load_file and save_file leave the file, or tensor_names alone; with a config and without."""
    folder = tmp_path / "model"
    folder.mkdir()
    entries = {f"{keys}qdata": ("I8", [8, 8], bytes(64)), f"{keys}{scale}": part(8, 1), "n.weight": part(8)}
    metadata = {"format": "pt"} | ({"l.weight": json.dumps({"_type": "Int8Tensor", "_data": {}})} if described else {})
    path = write_safetensors(folder / "model.safetensors", entries, metadata)
    (folder / "config.json").write_text(json.dumps({"quantization_config": INT8}))
    for checked in (path, folder):
        done = qcts("check", checked, code=3, COLUMNS="1000")
        assert done.stdout.startswith("not judged: torchao_keys (torchao's keys without their metadata"), done.stdout
        assert "no tensor is quantized" not in done.stderr
        qcts("dequantize", checked, tmp_path / "out.safetensors", code=1)
