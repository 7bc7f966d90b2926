# SPDX-License-Identifier: BSD-3-Clause
"""`qcts check FILE --model SKELETON`: missing, unexpected and mismatched keys by name, and each weight's type before and after."""

import json
import re

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
from qcts_program import qcts  # noqa: E402
from safetensors.torch import save_file  # noqa: E402


def network(device="cpu"):
    with torch.device(device):
        return torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Linear(64, 16, bias=False))


@pytest.fixture
def skeleton(tmp_path):
    torch.save(network("meta").state_dict(), tmp_path / "meta.pt")
    return tmp_path / "meta.pt"


def checked(file, model, code):
    return json.loads(qcts("check", file, "--model", model, "--json", code=code).stdout)


def test_all_keys_of_a_quantized_file_match(tmp_path, skeleton):
    torch.save(network().state_dict(), tmp_path / "float.pt")
    qcts("quantize", "--scheme", "int8_row", tmp_path / "float.pt", tmp_path / "int8.pt")
    report = checked(tmp_path / "int8.pt", skeleton, 0)
    assert report["passed"] and report["model"]["verdict"] == "pass"
    sides = {w["name"]: (w["before"], w["after"]) for w in report["model"]["weights"]}
    assert sides["0.weight"] == ("Tensor float32 [64,32]", "Int8Tensor int8_row float32 [64,32]")
    assert sides["0.bias"] == ("Tensor float32 [64]", "Tensor float32 [64]")
    assigned = next(v for v in report["verdicts"] if v["case_id"].startswith("assign"))
    measured = {m["name"]: m["value"] for m in assigned["measures"]}
    assert 0 < report["model"]["peak_bytes"] == measured["peak_bytes"] <= report["model"]["peak_bound_bytes"]
    assert {(t["before"], t["after"]): t["tensors"] for t in assigned["loaded"]} == {
        ("Tensor float32", "Int8Tensor int8_row float32"): 2,
        ("Tensor float32", "Tensor float32"): 1,
    }
    text = qcts("check", tmp_path / "int8.pt", "--model", skeleton, code=0).stdout
    assert re.search(r"peak memory [\d,]+ bytes, bound [\d,]+ while every byte was read", " ".join(text.split()))
    assert "Tensor float32 -> Int8Tensor int8_row float32: 2 tensors" in text
    assert "model: all keys matched (3)" in text and "-> Int8Tensor int8_row" in text


def test_each_misfit_is_named(tmp_path, skeleton):
    state = network().state_dict()
    del state["0.bias"]
    state["0.extra"] = torch.zeros(1)
    state["1.weight"] = torch.zeros(16, 65)
    torch.save(state, tmp_path / "other.pt")
    report = checked(tmp_path / "other.pt", skeleton, 1)["model"]
    assert report["verdict"] == "fail"
    assert report["missing"] == ["0.bias"] and report["unexpected"] == ["0.extra"]
    assert [m["name"] for m in report["mismatched"]] == ["1.weight"]
    text = qcts("check", tmp_path / "other.pt", "--model", skeleton, code=1).stdout
    for words in ("1 missing, 1 unexpected, 1 of another shape", "missing 0.bias", "unexpected 0.extra", "another shape 1.weight"):
        assert words in text


def test_a_folder_and_another_checkpoint_are_skeletons(tmp_path):
    state = network().state_dict()
    folder = tmp_path / "model"
    folder.mkdir()
    save_file(state, folder / "model.safetensors")
    (folder / "config.json").write_text("{}")
    torch.save(state, tmp_path / "one.pt")
    for model in (folder, folder / "model.safetensors", tmp_path / "one.pt"):
        assert checked(tmp_path / "one.pt", model, 0)["model"]["verdict"] == "pass"
    assert "no such" in qcts("check", tmp_path / "one.pt", "--model", tmp_path / "none.pt", code=2).stderr.lower()


@pytest.mark.parametrize(("model", "file"), [("module.", ""), ("", "module."), ("state_dict.", "module."), ("state_dict.module.", "")])
def test_a_common_prefix_is_named(model, file, tmp_path):
    def save(path, prefix):
        state = {prefix.removeprefix("state_dict.") + name: tensor for name, tensor in network().state_dict().items()}
        torch.save({"state_dict": state} if prefix.startswith("state_dict.") else state, path)
        return path

    a, b = save(tmp_path / "file.pt", file), save(tmp_path / "model.pt", model)
    report = checked(a, b, 1)["model"]
    assert report["prefix"] == {"model": model, "file": file, "matched_without": 3}
    text = " ".join(qcts("check", a, "--model", b, code=1).stdout.split())
    assert "without it 3 names match" in text and all(f"'{prefix}'" in text for prefix in (model, file) if prefix)


def test_no_prefix_is_named_where_names_are_only_missing(tmp_path, skeleton):
    torch.save({"0.weight": torch.zeros(64, 32), "x": torch.zeros(1)}, tmp_path / "a.pt")
    assert checked(tmp_path / "a.pt", skeleton, 1)["model"]["prefix"] is None


@pytest.mark.parametrize("ties", [{"tie_word_embeddings": True}, {}, {"tie_word_embeddings": False}], ids=repr)
def test_a_folder_that_ties_needs_no_output_layer(ties, tmp_path):
    """from_pretrained fills it from the embeddings; load_state_dict of a file does not."""
    state = {"model.embed_tokens.weight": torch.zeros(8, 4), "model.norm.weight": torch.ones(4)}
    folder = tmp_path / "folder"
    folder.mkdir()
    save_file(state, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(ties))
    torch.save(state | {"lm_head.weight": torch.zeros(8, 4)}, tmp_path / "model.pt")
    report = checked(folder, tmp_path / "model.pt", 1 if ties.get("tie_word_embeddings") is False else 0)["model"]
    assert report["missing"] == ([] if report["verdict"] == "pass" else ["lm_head.weight"])
    assert checked(folder / "model.safetensors", tmp_path / "model.pt", 1)["model"]["missing"] == ["lm_head.weight"]
    torch.save(state | {"lm_head.weight": torch.zeros(9, 4)}, tmp_path / "other.pt")
    assert checked(folder, tmp_path / "other.pt", 1)["model"]["missing"] == ["lm_head.weight"]


@pytest.mark.parametrize("version", [None, 1, 2])
@pytest.mark.parametrize("at", ["", "net."])
def test_an_old_batch_norm_has_no_count_of_batches(version, at, tmp_path):
    """load_state_dict(strict=True) decides, by the version in the file's _metadata."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
    torch.save({"net": model.state_dict()} if at else model.state_dict(), tmp_path / "model.pt")
    old = model.state_dict()
    del old["1.num_batches_tracked"]
    old._metadata["1"] = {} if version is None else {"version": version}
    torch.save({"net": old} if at else old, tmp_path / "old.pt")
    try:
        model.load_state_dict(old)
        fits = True
    except RuntimeError:
        fits = False
    report = checked(tmp_path / "old.pt", tmp_path / "model.pt", 0 if fits else 1)["model"]
    assert (report["missing"] == []) == fits and report["filled"] == ([at + "1.num_batches_tracked"] if fits else [])


def norm_of(kind):
    torch.manual_seed(0)
    return torch.nn.Sequential(kind(torch.nn.Linear(4, 8)), kind(torch.nn.Conv1d(2, 3, 3)))


OLD_NORM, NEW_NORM = torch.nn.utils.weight_norm, torch.nn.utils.parametrizations.weight_norm


@pytest.mark.parametrize("lost", [None, "0.weight_g", "1.weight_v"])
def test_weight_norm_of_before_parametrizations_fits(lost, tmp_path):
    old, model = norm_of(OLD_NORM).state_dict(), norm_of(NEW_NORM)
    old.pop(lost, None)
    torch.save(old, tmp_path / "old.pt")
    torch.save(model.state_dict(), tmp_path / "model.pt")
    try:
        model.load_state_dict(old)
        fits = True
    except RuntimeError:
        fits = False
    assert fits == (lost is None)
    report = checked(tmp_path / "old.pt", tmp_path / "model.pt", 0 if fits else 1)["model"]
    assert (report["missing"] == [] == report["unexpected"]) == fits


@pytest.mark.parametrize("wanted, held", [((), (1,)), ((), (3,)), ((), (0,)), ((), (1, 1)), ((1,), ()), ((4,), (1, 4))], ids=str)
def test_a_vector_fits_a_scalar_as_in_torch(wanted, held, tmp_path):
    model = torch.nn.Module()
    model.scale = torch.nn.Parameter(torch.ones(wanted))
    state = {"scale": torch.ones(held)}
    torch.save(state, tmp_path / "old.pt")
    torch.save(model.state_dict(), tmp_path / "model.pt")
    try:
        model.load_state_dict(state)
        fits = True
    except (RuntimeError, IndexError):
        fits = False
    checked(tmp_path / "old.pt", tmp_path / "model.pt", 0 if fits else 1)
