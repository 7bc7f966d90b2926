# SPDX-License-Identifier: BSD-3-Clause
"""`qcts check FILE --model SKELETON`: missing, unexpected and mismatched keys by name, and each weight's type before and after."""

import json
import re
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
from safetensors.torch import save_file  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from qcts_program import qcts  # noqa: E402


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
