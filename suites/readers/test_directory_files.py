# SPDX-License-Identifier: BSD-3-Clause
"""Directories as the hub's cache, the Trainer and other writers leave them: which files are the checkpoint."""

import json
import os

import pytest
from dialect_files import read_safetensors, refusal, write_safetensors
from qcts_program import inspect, qcts

ONES, ZEROS = ("F32", [2], b"\0\0\x80\x3f" * 2), ("F32", [2], bytes(8))


def folder_of(tmp_path, files, config=None):
    """files: name -> entries of a safetensors file, or text"""
    folder = tmp_path / "model"
    folder.mkdir()
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(content) if isinstance(content, str) else write_safetensors(path, content)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    return folder


def index(**places):
    return json.dumps({"metadata": {}, "weight_map": places})


def value_read(folder, tmp_path):
    out = tmp_path / "out.safetensors"
    qcts("dequantize", folder, out)
    return {name: entry[2] for name, entry in read_safetensors(out).items()}


@pytest.mark.parametrize("depth", [0, 1])
@pytest.mark.parametrize("sharded", [False, True])
def test_links_of_the_hubs_cache_are_followed(depth, sharded, tmp_path):
    repository = tmp_path / "models--a--b"
    folder = repository / "snapshots/abc" / "/".join(["unet"] * depth)
    folder.mkdir(parents=True)
    (repository / "blobs").mkdir()
    files = {"model-1.safetensors": {"a": ONES}, "model-2.safetensors": {"b": ZEROS}}
    files = files if sharded else {"model.safetensors": {"a": ONES, "b": ZEROS}}
    for number, (name, entries) in enumerate(files.items()):
        blob = write_safetensors(repository / f"blobs/{number:064}", entries)
        (folder / name).symlink_to(os.path.relpath(blob, folder))
    if sharded:
        blob = repository / "blobs/index"
        blob.write_text(index(a="model-1.safetensors", b="model-2.safetensors"))
        (folder / "model.safetensors.index.json").symlink_to(os.path.relpath(blob, folder))
    assert {t["name"] for t in inspect(folder)["tensors"]} == {"a", "b"}
    qcts("check", folder)
    qcts("resave", folder, tmp_path / "copy")
    qcts("diff", folder, tmp_path / "copy")
    (folder / "other.safetensors").symlink_to(write_safetensors(tmp_path / "outside.safetensors", {"c": ONES}))
    (folder / "model.safetensors.index.json").unlink(missing_ok=True)
    (folder / "model.safetensors.index.json").write_text(index(c="other.safetensors"))
    (folder / "model.safetensors").unlink(missing_ok=True)
    assert refusal(folder)["class"] == "EntryName"


def test_a_link_to_nothing_is_named(tmp_path):
    folder = folder_of(tmp_path, {})
    (folder / "model.safetensors").symlink_to("../../blobs/none")
    (tmp_path / "blobs").mkdir()
    found = refusal(folder)
    assert found["class"] in ("StorageRef", "EntryName") and "model.safetensors" in found["detail"]


def test_a_cache_names_its_revision(tmp_path):
    for name in ("blobs", "refs", "snapshots/0123abc"):
        (tmp_path / "models--a--b" / name).mkdir(parents=True)
    assert "snapshots/0123abc" in refusal(tmp_path / "models--a--b")["detail"]


TRAINER = ["optimizer.pt", "scheduler.pt", "rng_state.pth", "rng_state_0.pth", "training_args.bin", "scaler.pt"]


@pytest.mark.parametrize("weights", ["pytorch_model.bin", "model.safetensors", "my_model.bin"])
@pytest.mark.parametrize("others", [TRAINER, TRAINER[:1], TRAINER[4:5]], ids=lambda names: names[0] + str(len(names)))
def test_the_trainers_states_are_no_weights(weights, others, tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    folder = folder_of(tmp_path, {}, {"torch_dtype": "float32"})
    if weights.endswith(".bin"):
        torch.save({"a": torch.ones(2)}, folder / weights)
    else:
        write_safetensors(folder / weights, {"a": ONES})
    for name in others:
        torch.save({"state": {0: torch.zeros(3)}}, folder / name)
    (folder / "trainer_state.json").write_text("{}")
    done = qcts("inspect", folder, "--json")
    told = json.loads(done.stdout)
    assert [t["name"] for t in told["tensors"]] == ["a"] and told["config"]["dtype"] == "float32"
    assert f"{weights} is read; beside it and not read: {sorted(others)[0]}" in done.stderr
    qcts("check", folder)


def test_transformers_order_of_names(tmp_path):
    """Protects: a file before an index, safetensors before pickles, and a note on what is not read."""
    stale = folder_of(
        tmp_path,
        {
            "model.safetensors": {"a": ONES},
            "model-00001-of-00001.safetensors": {"a": ZEROS},
            "model.safetensors.index.json": index(a="model-00001-of-00001.safetensors"),
            "pytorch_model.bin": "not even a pickle",
            "consolidated.safetensors": {"a": ZEROS},
        },
    )
    assert value_read(stale, tmp_path)["a"] == ONES[2]
    note = qcts("inspect", stale).stderr
    assert "model.safetensors is read, as transformers does" in note and "consolidated.safetensors" in note
    (stale / "model.safetensors").unlink()
    assert value_read(stale, tmp_path)["a"] == ZEROS[2]


def test_an_index_of_the_one_file_is_its_own(tmp_path):
    files = {"model.safetensors": {"a": ONES}, "model.safetensors.index.json": index(a="model.safetensors")}
    folder = folder_of(tmp_path, files)
    assert qcts("inspect", folder).stderr == ""
    (folder / "model.safetensors.index.json").write_text(index(a="model.safetensors", b="model.safetensors"))
    assert "assigns b to model.safetensors" in refusal(folder)["detail"]


def test_two_files_of_no_fixed_name_are_not_chosen_between(tmp_path):
    assert "name one of them" in refusal(folder_of(tmp_path, {"x.safetensors": {}, "y.safetensors": {}}))["detail"]


@pytest.mark.parametrize("ending, name", [("safetensors", "model"), ("bin", "pytorch_model")])
def test_a_missing_shard_is_refused_by_name(ending, name, tmp_path):
    gone = f"{name}-00002-of-00002.{ending}"
    folder = folder_of(tmp_path, {f"{name}.{ending}.index.json": index(a=gone)})
    found = refusal(folder)
    assert found["class"] == "StorageRef" and gone in found["detail"] and "not there" in found["detail"]


def test_shards_in_folders_below_pass_the_check(tmp_path):
    files = {
        "model.safetensors.index.json": index(a="part1/x.safetensors", b="part2/x.safetensors"),
        "part1/x.safetensors": {"a": ONES},
        "part2/x.safetensors": {"b": ZEROS},
    }
    qcts("check", folder_of(tmp_path, files))


def test_shards_may_have_metadata_of_their_own(tmp_path):
    folder = folder_of(tmp_path, {"model.safetensors.index.json": index(a="1.safetensors", b="2.safetensors")})
    write_safetensors(folder / "1.safetensors", {"a": ONES}, {"title": "one"})
    write_safetensors(folder / "2.safetensors", {"b": ONES}, {"title": "two"})
    assert "metadata for title" in qcts("check", folder).stderr


KINDS = {
    "dcp": ({".metadata": "x", "__0_0.distcp": "x"}, "dcp_to_torch_save"),
    "deepspeed": ({"latest": "global_step5", "global_step5/mp_rank_00_model_states.pt": "x"}, "zero_to_fp32.py"),
    "diffusers": ({"model_index.json": "{}", "unet/diffusion_pytorch_model.safetensors": {"a": ONES}}, "unet"),
    "gguf": ({"model.Q4_K_M.gguf": "GGUF"}, "model.Q4_K_M.gguf"),
    "saved_model": ({"saved_model.pb": "x"}, "TensorFlow"),
    "empty": ({}, "empty"),
}


@pytest.mark.parametrize("case", KINDS)
def test_other_directories_are_named(case, tmp_path):
    files, word = KINDS[case]
    found = refusal(folder_of(tmp_path, files))
    assert found["class"] == "NotArchive" and word in found["detail"]


def tied_file(path, names, described, stored):
    """torchao's safetensors of plain tensors: `names` are listed, `stored` are there."""
    metadata = {"tensor_names": json.dumps(names)} | {name: json.dumps({"_type": kind}) for name, kind in described.items()}
    return write_safetensors(path, dict.fromkeys(stored, ONES), metadata)


def test_a_tied_weight_that_the_writer_left_out_is_noted(tmp_path):
    names = ["model.embed_tokens.weight", "lm_head.weight"]
    folder = folder_of(tmp_path, {}, {"tie_word_embeddings": True})
    described = dict.fromkeys(names, "Tensor")
    path = tied_file(folder / "model.safetensors", names, described, names[:1])
    for target in (folder, path):
        done = qcts("inspect", target, "--json")
        assert [t["name"] for t in json.loads(done.stdout)["tensors"]] == names[:1]
        assert "lm_head.weight: listed and not stored" in done.stderr and "embed_tokens" in done.stderr
        qcts("check", target)
    (folder / "config.json").write_text(json.dumps({"tie_word_embeddings": False}))
    assert "ties no weights" in qcts("check", folder, code=1).stdout
    qcts("dequantize", folder, tmp_path / "out.safetensors", code=1)


def test_a_listed_weight_without_a_twin_is_refused(tmp_path):
    names = ["a.weight", "b.weight"]
    path = tied_file(tmp_path / "x.safetensors", names, {"a.weight": "Tensor", "b.weight": "torch.Tensor"}, names[:1])
    assert refusal(path)["class"] == "SubclassSchema"
