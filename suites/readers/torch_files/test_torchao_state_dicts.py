# SPDX-License-Identifier: BSD-3-Clause
"""The commands on whole state dicts against torchao 0.18.0: which tensors are quantized, what survives, shards, and diff."""

import json

import pytest
from qcts_program import inspect, pinned, qcts

torch = pytest.importorskip("torch", reason="torch is not installed")
pinned("torchao", "0.18")

from safetensors.torch import save_file  # noqa: E402
from test_files_torchao import INT8, model, noise, same_tensor  # noqa: E402
from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor  # noqa: E402
from torchao.prototype.safetensors.safetensors_support import flatten_tensor_state_dict  # noqa: E402
from torchao.quantization import quantize_  # noqa: E402


def float_state():
    shared = noise((16, 32), 7, torch.bfloat16)
    return {
        "model.embed_tokens.weight": shared,
        "model.layer.q_proj.weight": noise((32, 32), 1, torch.bfloat16),
        "model.layer.q_proj.bias": noise((32,), 2, torch.bfloat16),
        "model.layer.norm.weight": noise((32,), 3, torch.bfloat16),
        "model.layer.odd.weight": noise((32, 20), 4, torch.bfloat16),
        "lm_head.weight": shared,
    }


def quantized_names(state, *words, code=0, tmp_path=None):
    torch.save(state, tmp_path / "in.pt")
    done = qcts("quantize", *words, tmp_path / "in.pt", tmp_path / "out.pt", "--json", code=code)
    report = json.loads(done.stdout)
    loaded = torch.load(tmp_path / "out.pt", weights_only=True)
    assert list(loaded) == list(state)
    assert [n for n, v in loaded.items() if type(v) is not torch.Tensor] == report["quantized"]
    assert {n["name"] for n in report["left"]} | set(report["quantized"]) == set(state)
    return report, loaded


def test_which_tensors_are_quantized(tmp_path):
    state = float_state()
    report, loaded = quantized_names(state, "--scheme", "int8_row", tmp_path=tmp_path)
    assert report["quantized"] == ["model.layer.q_proj.weight", "model.layer.odd.weight", "lm_head.weight"]
    assert same_tensor(loaded["model.embed_tokens.weight"], state["model.embed_tokens.weight"])

    report, _ = quantized_names(state, "--scheme", "int8_row", "--exclude", "lm_head", tmp_path=tmp_path)
    assert "lm_head.weight" not in report["quantized"]
    words = ["--scheme", "int8_row", "--include", "*proj*", "--include", "model.embed*"]
    words += ["--exclude", "*.bias"]
    report, _ = quantized_names(state, *words, tmp_path=tmp_path)
    assert report["quantized"] == ["model.embed_tokens.weight", "model.layer.q_proj.weight"]

    words = ["--scheme", "int4_tinygemm_g32", "--layout", "cpu_default"]
    report, _ = quantized_names(state, *words, tmp_path=tmp_path)
    left = {entry["name"]: entry for entry in report["left"]}
    assert "model.layer.odd.weight" in left and left["model.layer.odd.weight"]["asked"]
    assert "32" in left["model.layer.odd.weight"]["reason"]
    quantized_names(state, *words, "--strict", code=1, tmp_path=tmp_path)

    reference = dict(state)
    like = model((32, 32))
    quantize_(like, INT8())
    reference["model.layer.q_proj.weight"] = like.state_dict()["0.weight"]
    torch.save(reference, tmp_path / "like.pt")
    words = ["--scheme", "fp8_row", "--like", tmp_path / "like.pt"]
    report, _ = quantized_names(state, *words, tmp_path=tmp_path)
    assert report["quantized"] == ["model.layer.q_proj.weight"]


def test_tied_and_foreign_values_survive(tmp_path):
    """What is not quantized stays: tied tensors are one storage, other values keep their types."""
    tied = noise((8, 8), 1, torch.float32)
    state = {"a.bias": tied, "b.bias": tied, "step": 3, "opt": {"lr": 0.5, "names": ["x", None]}}
    state["w.weight"] = tied * 2
    torch.save(state, tmp_path / "in.pt")
    qcts("quantize", "--scheme", "int8_row", tmp_path / "in.pt", tmp_path / "out.pt")
    loaded = torch.load(tmp_path / "out.pt", weights_only=True)
    assert list(loaded) == list(state) and loaded["step"] == 3 and loaded["opt"] == state["opt"]
    assert loaded["a.bias"].data_ptr() == loaded["b.bias"].data_ptr()
    assert type(loaded["w.weight"]).__name__ == "Int8Tensor"
    words = ["quantize", "--scheme", "int8_row", tmp_path / "in.pt", tmp_path / "out.safetensors"]
    line = qcts(*words, code=1).stderr
    assert "step" in line and not (tmp_path / "out.safetensors").exists()


def test_directory_in_shards(tmp_path):
    net = model((64, 32, 64))
    quantize_(net, INT8())
    state = net.state_dict()
    tensors, metadata = flatten_tensor_state_dict(state)
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    weight_map = {}
    for i, part in enumerate([list(tensors)[:2], list(tensors)[2:]]):
        name = f"model-0000{i + 1}-of-00002.safetensors"
        save_file({k: tensors[k] for k in part}, folder / name, metadata=metadata)
        weight_map.update({k: name for k in part})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    torch.save(state, tmp_path / "one.pt")
    diff = json.loads(qcts("diff", folder, tmp_path / "one.pt", "--json").stdout)
    assert diff["e1"]["equal"] and diff["e2"]["equal"] and not diff["e3"]["equal"]
    assert inspect(folder)["format"] == "directory"
    qcts("resave", folder, tmp_path / "copy")
    assert all((tmp_path / "copy" / f.name).read_bytes() == f.read_bytes() for f in folder.iterdir())


def test_diff_names_the_first_difference(tmp_path):
    net = model((64, 32))
    quantize_(net, INT8())
    state = net.state_dict()
    torch.save(state, tmp_path / "a.pt")
    state["0.weight"].qdata[3, 17] += 1
    torch.save(state, tmp_path / "b.pt")
    diff = json.loads(qcts("diff", tmp_path / "a.pt", tmp_path / "b.pt", "--json", code=1).stdout)
    first = diff["e2"]["first"]
    assert first["path"] == "0.weight.qdata" and "row 3, k 17" in first["field"]
    assert not diff["e1"]["equal"] and not diff["e3"]["equal"]


def test_unknown_scheme_of_a_known_class_is_never_dropped(tmp_path):
    value = NVFP4Tensor.to_nvfp4(noise((32, 64), 1, torch.bfloat16), per_tensor_scale=torch.tensor(0.5))
    value.per_tensor_scale = torch.ones(2, 1, 1)  # of two experts, which a matrix does not have
    torch.save({"0.weight": value}, tmp_path / "x.pt")
    line = qcts("dequantize", tmp_path / "x.pt", tmp_path / "x.safetensors", code=1).stderr
    assert "0.weight" in line and "NVFP4Tensor" in line and not (tmp_path / "x.safetensors").exists()
