# SPDX-License-Identifier: BSD-3-Clause
"""Folders whose metadata lists names in memory and whose files have those of the hub: matched, or named as missing."""

import json

import pytest
from dialect_files import read_safetensors, write_safetensors
from qcts_program import qcts

MIXTRAL = {"architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "num_local_experts": 2, "tie_word_embeddings": False}
LLAVA = {
    "architectures": ["LlavaForConditionalGeneration"], "model_type": "llava", "tie_word_embeddings": False,
    "text_config": {"model_type": "llama"}, "vision_config": {"model_type": "clip_vision_model"},
}  # fmt: skip
INT8 = {"act_quant_kwargs": None, "reduce_range": False, "block_size": [1, 4], "dtype": {"_type": "torch.dtype", "_data": "bfloat16"}}
PARTS = {"zero_point": ("I8", [2, 1], bytes(2)), "qdata": ("I8", [2, 4], bytes(range(8))), "scale": ("F32", [2, 1], b"\0\0\x80\x3f" * 2)}


def plain(seed, shape=(2, 2)):
    count = 1
    for size in shape:
        count *= size
    return ("F32", list(shape), bytes([seed % 50, 0, 128, 63]) * count)


def model(plain_names, quantized=(), on_disk=None, colon=False):
    """Returns (entries, metadata): names in memory are listed; `on_disk` gives the names of the entries."""
    entries, metadata = {}, {"format": "pt"}
    for seed, name in enumerate(plain_names):
        metadata[name] = json.dumps({"_type": "Tensor"})
        for key in (on_disk or {}).get(name, [name]):
            entries[key + (":_data" if colon else "")] = plain(len(entries) + seed)
    for name in quantized:
        metadata[name] = json.dumps({"_type": "Int8Tensor", "_data": INT8, "_tensor_data_names": list(PARTS)})
        (key,) = (on_disk or {}).get(name, [name])
        module, parameter = key.rsplit(".", 1)
        entries |= {f"{key}:{part}" if colon else f"{module}._{parameter}_{part}": value for part, value in PARTS.items()}
    return entries, metadata | {"tensor_names": json.dumps([*plain_names, *quantized])}


LAYER, DISK = "model.layers.0.", "model.layers.0.block_sparse_moe."
EXPERTS = {
    LAYER + "mlp.gate.weight": [DISK + "gate.weight"],
    LAYER + "mlp.experts.gate_up_proj": [f"{DISK}experts.{i}.{w}.weight" for i in (0, 1) for w in ("w1", "w3")],
    LAYER + "mlp.experts.down_proj": [f"{DISK}experts.{i}.w2.weight" for i in (0, 1)],
}
SEEN = {
    "lm_head.weight": ["language_model.lm_head.weight"],
    "model.language_model.norm.weight": ["language_model.model.norm.weight"],
    "model.vision_tower.pre_layrnorm.weight": ["vision_tower.pre_layrnorm.weight"],
    "model.language_model.layers.0.mlp.up_proj.weight": ["language_model.model.layers.0.mlp.up_proj.weight"],
}
QUANTIZED = LAYER + "self_attn.q_proj.weight"
MODELS = {
    "mixtral": (MIXTRAL, ["model.norm.weight", *EXPERTS], [QUANTIZED], EXPERTS),
    "llava": (LLAVA, list(SEEN)[:3], list(SEEN)[3:], SEEN),
    "unknown": (
        {"model_type": "of_nobody"},
        ["a.b.norm.weight"],
        ["a.b.up.weight"],
        {"a.b.norm.weight": ["c.b.norm.weight"], "a.b.up.weight": ["c.b.up.weight"]},
    ),
}


def write(folder, config, entries, metadata):
    folder.mkdir(exist_ok=True)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    return write_safetensors(folder / "model.safetensors", entries, metadata)


@pytest.mark.parametrize("colon", [False, True], ids=["underscore", "colon"])
@pytest.mark.parametrize("name", MODELS)
def test_names_are_those_on_disk_and_each_loss_is_found(name, colon, tmp_path):
    config, names, quantized, on_disk = MODELS[name]
    entries, metadata = model(names, quantized, on_disk, colon)
    folder = tmp_path / "model"
    for is_alone in (False, True):
        path = write(folder, None if is_alone else config, entries, metadata)
        target = path if is_alone else folder
        shown = {t["name"] for t in json.loads(qcts("inspect", target, "--json").stdout)["tensors"]}
        assert shown == {key for listed in [*names, *quantized] for key in on_disk.get(listed, [listed])}
        qcts("check", target)
        qcts("dequantize", target, tmp_path / "out.safetensors")
        assert read_safetensors(tmp_path / "out.safetensors").keys() == shown
        (folder / "config.json").unlink(missing_ok=True) if is_alone else None
    for lost in entries if name == "mixtral" and not colon else list(entries)[:1]:
        write(folder, config, {key: value for key, value in entries.items() if key != lost}, metadata)
        for words in (["check", folder], ["dequantize", folder, tmp_path / "x.safetensors"], ["convert", folder, tmp_path / "x"]):
            done = qcts(*words, code=1)
            assert "listed" in done.stdout + done.stderr or "no entry" in done.stderr, lost


def test_shards_and_an_expert_that_is_lost_as_a_whole(tmp_path):
    _, names, quantized, on_disk = MODELS["mixtral"]
    entries, metadata = model(names, quantized, on_disk)
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(MIXTRAL))
    places = {key: f"model-0000{1 + i % 2}-of-00002.safetensors" for i, key in enumerate(entries)}
    for shard in sorted(set(places.values())):
        write_safetensors(folder / shard, {key: entries[key] for key in entries if places[key] == shard}, metadata)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    qcts("check", folder)
    kept = {key: value for key, value in entries.items() if ".experts.1." not in key}
    write(tmp_path / "lost", MIXTRAL, kept, metadata)
    done = qcts("check", tmp_path / "lost", code=1)
    assert f"{DISK}experts.1.w1.weight is missing" in done.stderr
    assert f"{DISK}experts.1.w2.weight is missing" in done.stderr


def test_what_is_ambiguous_is_not_guessed(tmp_path):
    entries, metadata = model(["a.x.weight", "b.x.weight"], ["q.weight"], {"a.x.weight": ["c.x.weight"], "b.x.weight": ["d.x.weight"]})
    path = write(tmp_path / "model", None, entries, metadata)
    done = qcts("inspect", path)
    assert done.stderr.count("listed in tensor_names and not stored") == 2


def test_many_like_notes_are_one_line(tmp_path):
    entries, metadata = model(["norm.weight"], ["q.weight"])
    more = {f"extra.{i}.weight": plain(i) for i in range(3000)}
    done = qcts("inspect", write(tmp_path / "model", None, entries | more, metadata))
    assert len(done.stderr.splitlines()) < 12 and "2992 more that are not in tensor_names" in done.stderr


def test_quantize_lists_the_names_in_memory(tmp_path):
    entries = {
        key: plain(i, (8, 32) if key.endswith("proj.weight") else (4,))
        for i, key in enumerate(key for keys in SEEN.values() for key in keys)
    }
    folder = tmp_path / "model"
    write(folder, LLAVA, entries, {"format": "pt"})
    qcts("quantize", "--scheme", "int8_row", "--include", "*up_proj*", folder, tmp_path / "out")
    header = (tmp_path / "out/model.safetensors").read_bytes()
    header = json.loads(header[8 : 8 + int.from_bytes(header[:8], "little")])
    assert set(json.loads(header["__metadata__"]["tensor_names"])) == set(SEEN)
    assert "language_model.model.layers.0.mlp.up_proj._weight_qdata" in header
    qcts("check", tmp_path / "out")
