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
    assert f"{weights} is read, but not what is next to it: {sorted(others)[0]}" in done.stderr
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
    assert "pass one of them" in refusal(folder_of(tmp_path, {"x.safetensors": {}, "y.safetensors": {}}))["detail"]


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
    "two_ggufs": ({"model.Q4_K_M.gguf": "GGUF", "model.Q8_0.gguf": "GGUF"}, "model.Q4_K_M.gguf and model.Q8_0.gguf"),
    "saved_model": ({"saved_model.pb": "x"}, "TensorFlow"),
    "empty": ({}, "empty"),
    "megatron_distributed": ({".metadata": "x", "__0_0.distcp": "x", "common.pt": "x"}, "dcp_to_torch_save"),
    "nemo": ({"weights/__0_0.distcp": "x", "context/model.yaml": "x"}, "weights is a distributed torch checkpoint"),
    "accelerate": ({"pytorch_model_fsdp_0/.metadata": "x", "scheduler.bin": "x"}, "pytorch_model_fsdp_0 is a distributed"),
    "deepspeed_step": ({"mp_rank_00_model_states.pt": "x", "zero_pp_rank_0_mp_rank_00_optim_states.pt": "x"}, "zero_to_fp32.py"),
    "deepspeed_bf16": ({"bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt": "x"}, "zero_to_fp32.py"),
    "vllm": ({"model-rank-0-part-0.safetensors": {"a": ONES}, "model-rank-1-part-0.safetensors": {"a": ONES}}, "vLLM"),
    "tensorrt_llm": ({"rank0.safetensors": {"a": ONES}, "rank1.safetensors": {"a": ONES}}, "TensorRT-LLM"),
    "llama": ({"consolidated.00.pth": "x", "consolidated.01.pth": "x"}, "consolidated.00.pth is one rank's part"),
    "coreml": ({"Manifest.json": "{}", "Data/com.apple.CoreML/model.mlmodel": "x"}, "Core ML"),
    "openvino": ({"openvino_model.xml": "<net/>", "openvino_model.bin": "x", "config.json": "{}"}, "openvino_model.xml"),
    "ncnn": ({"net.ncnn.param": "7767517", "net.ncnn.bin": "x"}, "net.ncnn.param"),
    "onnx_below": ({"onnx/model.onnx": "x", "config.json": "{}"}, "onnx/model.onnx"),
    "two_below": ({"a/b/model.safetensors": {"a": ONES}}, "a/b: pass that folder"),
    "not_finished": ({"model.safetensors.incomplete": "x", "config.json": "{}"}, "unfinished"),
    "torchsnapshot": ({".snapshot_metadata": "x", "0/a": "x"}, "torchsnapshot"),
    "ollama": ({"blobs/sha256-0": "GGUF", "manifests/x": "{}"}, "Ollama"),
    "folder_named_as_weights": ({"model.safetensors/readme": "x", "config.json": "{}"}, "no .safetensors"),
}


@pytest.mark.parametrize("case", KINDS)
def test_other_directories_are_named(case, tmp_path):
    files, word = KINDS[case]
    found = refusal(folder_of(tmp_path, files))
    assert found["class"] == "NotArchive" and word in found["detail"]


STEMS = ["model-{}-of-{}.safetensors", "pytorch_model-{}-of-{}.bin", "model--{}-of-{}.safetensors", "my.v2-{}-of-{}.safetensors"]


def numbered(stem, total, digits=5):
    return [stem.format(f"{part:0{digits}}", f"{total:0{digits}}") for part in range(1, total + 1)]


def write_shards(folder, names):
    folder.mkdir(exist_ok=True)
    for number, name in enumerate(names):
        if name.endswith(".safetensors"):
            write_safetensors(folder / name, {f"t{number}": ONES})
        else:
            torch = pytest.importorskip("torch", reason="torch is not installed")
            torch.save({f"t{number}": torch.ones(2)}, folder / name)
    return folder


@pytest.mark.parametrize("stem", STEMS)
@pytest.mark.parametrize("total, digits", [(2, 5), (3, 5), (11, 5), (2, 6), (3, 1)])
def test_shards_without_an_index_are_all_read_or_refused(stem, total, digits, tmp_path):
    """Protects: half of a model is never mistaken for the whole."""
    names = numbered(stem, total, digits)
    folder = write_shards(tmp_path / "model", names)
    done = qcts("inspect", folder, "--json")
    assert len(json.loads(done.stdout)["tensors"]) == total and "there is no index" in done.stderr
    qcts("check", folder)
    qcts("resave", folder, tmp_path / "copy")
    qcts("diff", folder, tmp_path / "copy")
    for gone in {names[0], names[-1]}:
        (folder / gone).unlink()
        found = refusal(folder)
        assert found["class"] == "StorageRef" and f"{gone} is not there" in found["detail"]
        qcts("dequantize", folder, tmp_path / "out.safetensors", code=1)
        write_shards(folder, names)


BESIDE = {
    "pytorch_model-{}-of-{}.bin": ["ema.bin", "consolidated.00.pt", "my_model-00001-of-00002.bin"],
    "model-{}-of-{}.safetensors": ["ema.safetensors", "consolidated-00001-of-00003.safetensors", "pytorch_model-00001-of-00003.bin"],
    "diffusion_pytorch_model-{}-of-{}.bin": ["vae.bin"],
}


@pytest.mark.parametrize("stem, other", [(stem, other) for stem, others in BESIDE.items() for other in others])
def test_shards_of_a_fixed_name_are_read_whatever_lies_beside_them(stem, other, tmp_path):
    """And a missing one is named, not the other file."""
    names = numbered(stem, 2)
    folder = write_shards(tmp_path / "model", names)
    write_shards(folder, [other])
    done = qcts("inspect", folder, "--json")
    assert {tensor["name"] for tensor in json.loads(done.stdout)["tensors"]} == {"t0", "t1"}
    assert "there is no index" in done.stderr and f"but not what is next to it: {other}" in done.stderr
    qcts("check", folder)
    for gone in names:
        (folder / gone).unlink()
        found = refusal(folder)
        assert found["class"] == "StorageRef" and f"{gone} is not there" in found["detail"]
        write_shards(folder, names)


def test_numbers_of_two_sets_are_not_joined(tmp_path):
    names = [name for total in (2, 3) for name in numbered("pytorch_model-{}-of-{}.bin", total)]
    assert "pass one of them" in refusal(write_shards(tmp_path / "model", names))["detail"]


TO_TODAY = "convert --as torchao_v2"
COMMANDS = {  # -> what it writes
    "check": None,
    "inspect": None,
    "diff": None,
    "resave": "out",
    "dequantize": "out.safetensors",
    "convert": "out",
    TO_TODAY: "out",
    f"{TO_TODAY} --dialect torchao_safetensors": "out",
}


CASES = [(scheme, command) for scheme in ("int8_weight_only", "int8_row") for command in COMMANDS]


@pytest.mark.parametrize("scheme, command", [case for case in CASES if case != ("int8_weight_only", "convert")])
def test_quantized_pickles_without_an_index(scheme, command, tmp_path):
    """Each command reads both shards, and with one missing does nothing but name it."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    folder, names = tmp_path / "model", numbered("pytorch_model-{}-of-{}.bin", 2)
    folder.mkdir()
    for layer, name in zip("ab", names, strict=True):
        torch.save({f"{layer}.weight": torch.randn(64, 64)}, tmp_path / "float.pt")
        qcts("quantize", "--scheme", scheme, tmp_path / "float.pt", folder / name)
    out = COMMANDS[command]
    words = [*command.split(), folder, *([tmp_path / out] if out else [folder] if command == "diff" else [])]
    assert f"all 2 shards that {names[0]} is one of are read" in qcts(*words).stderr
    assert {tensor["name"] for tensor in inspect(words[-1])["tensors"]} == {"a.weight", "b.weight"}
    (folder / names[1]).unlink()
    if out:
        words[-1] = tmp_path / f"other-{out}"
    done = qcts(*words, code=5 if command == "diff" else 1)
    assert f"{names[1]} is not there, and there is no index" in done.stderr and not list(tmp_path.glob("other-*"))


def test_shards_of_safetensors_get_an_index(tmp_path):
    """transformers finds shards only by their index, so a folder of safetensors has one whether the pickles had one or not."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    folder = tmp_path / "model"
    folder.mkdir()
    for layer, name in zip("ab", numbered("pytorch_model-{}-of-{}.bin", 2), strict=True):
        torch.save({f"{layer}.weight": torch.randn(64, 64)}, tmp_path / "float.pt")
        qcts("quantize", "--scheme", "int8_weight_only", tmp_path / "float.pt", folder / name)
    qcts(*TO_TODAY.split(), "--dialect", "torchao_safetensors", folder, tmp_path / "new")
    held = json.loads((tmp_path / "new/model.safetensors.index.json").read_text())
    shards = numbered("model-{}-of-{}.safetensors", 2)
    assert held["weight_map"] == {key: name for name in shards for key in read_safetensors(tmp_path / "new" / name)}
    assert held["metadata"]["total_size"] == sum(
        part["storage_bytes"] for tensor in inspect(tmp_path / "new")["tensors"] for part in tensor["payload"]
    )
    qcts("check", tmp_path / "new")


def test_a_shard_is_read_where_it_is_named_itself_or_the_only_one(tmp_path):
    folder = write_shards(tmp_path / "model", numbered(STEMS[0], 2)[:1])
    assert len(inspect(folder / numbered(STEMS[0], 2)[0])["tensors"]) == 1
    assert len(inspect(write_shards(tmp_path / "one", numbered(STEMS[0], 1)))["tensors"]) == 1


@pytest.mark.parametrize("begin", ["model", "diffusion_pytorch_model", "adapter_model"])
def test_the_index_of_a_variant_is_an_index(begin, tmp_path):
    names = [f"{begin}.fp16-0000{n}-of-00002.safetensors" for n in (1, 2)]
    files = {names[0]: {"a": ONES}, names[1]: {"b": ZEROS}}
    folder = folder_of(tmp_path, files | {f"{begin}.safetensors.index.fp16.json": index(a=names[0], b=names[1])})
    assert {t["name"] for t in inspect(folder)["tensors"]} == {"a", "b"}
    qcts("check", folder)


@pytest.mark.parametrize("marker", [".aria2", ".part", ".crdownload", ".incomplete"])
@pytest.mark.parametrize("shard", [False, True])
def test_a_download_that_was_not_finished_is_refused(marker, shard, tmp_path):
    """Downloaders allocate the whole file first: what is not there yet reads as zeros."""
    names = numbered(STEMS[0], 2) if shard else ["model.safetensors"]
    folder = write_shards(tmp_path / "model", names)
    (folder / (names[-1] + marker)).write_text("x")
    for target in (folder, folder / names[-1]):
        found = refusal(target)
        assert found["class"] == "Truncated" and names[-1] + marker in found["detail"]


@pytest.mark.parametrize("word", ["Infinity", "-Infinity", "NaN"])
@pytest.mark.parametrize("place", ["config", "index"])
def test_pythons_numbers_are_no_fault_of_a_json_file(word, place, tmp_path):
    """Configs of Mamba models have "time_step_limit": [0.0, Infinity]."""
    said = '{"time_step_limit": [0.0, WORD], "text": "WORD \\" WORD", "dtype": "float32", "WORD": 1}'.replace("WORD", word)
    folder = write_shards(tmp_path / "model", ["model-1.safetensors"])
    (folder / "config.json").write_text(said)
    (folder / "model.safetensors.index.json").write_text(
        f'{{"metadata": {{"total_size": {word if place == "index" else 8}}}, "weight_map": {{"t0": "model-1.safetensors"}}}}'
    )
    assert inspect(folder)["config"]["dtype"] == "float32"
    qcts("check", folder)
    (folder / "config.json").write_text(said.replace("[0.0, ", "[0.0, x"))
    assert refusal(folder)["class"] == "StJson"


def test_quantize_keeps_pythons_numbers_of_the_config(tmp_path):
    folder, out = tmp_path / "model", tmp_path / "out"
    folder.mkdir()
    write_safetensors(folder / "model.safetensors", {"a.weight": ("F32", [8, 64], bytes(2048))})
    said = {"model_type": "mamba2", "time_step_limit": [0.0, float("inf")], "low": float("-inf"), "none": float("nan")}
    (folder / "config.json").write_text(json.dumps(said))
    qcts("quantize", "--scheme", "int8_row", "--include", "a.weight", folder, out)
    written = (out / "config.json").read_text()
    kept = json.loads(written)
    assert kept["time_step_limit"] == [0.0, float("inf")] and kept["low"] == float("-inf") and "NaN" in written


def test_modules_of_sentence_transformers_that_are_not_read_are_named(tmp_path):
    files = {"model.safetensors": {"a": ONES}, "modules.json": "[]", "2_Dense/model.safetensors": {"b": ONES}}
    assert "2_Dense/model.safetensors" in qcts("inspect", folder_of(tmp_path, files)).stderr


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


def test_a_listed_weight_that_is_lost_is_a_finding(tmp_path):
    names = ["a.weight", "b.weight"]
    path = tied_file(tmp_path / "x.safetensors", names, {"a.weight": "Tensor", "b.weight": "torch.Tensor"}, names[:1])
    assert "b.weight: listed in tensor_names and not stored" in qcts("check", path, code=1).stderr
