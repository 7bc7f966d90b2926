# SPDX-License-Identifier: BSD-3-Clause
"""Slices of torchao's tensors: torch.save writes the whole storage of which they reach a part."""

import json

import pytest
from qcts_program import pinned, qcts

torch = pytest.importorskip("torch", reason="torch is not installed")
pinned("torchao", "0.18")

from safetensors.torch import load_file  # noqa: E402
from test_files_torchao import INT8, inner, noise, raw  # noqa: E402
from torchao.quantization import (  # noqa: E402
    Float8WeightOnlyConfig,
    IntxWeightOnlyConfig,
    PerGroup,
    PerRow,
    quantize_,
)

CONFIGS = {
    "int8": INT8,
    "float8": lambda: Float8WeightOnlyConfig(granularity=PerRow()),
    "intx": lambda: IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)),
}


def quantized(config, dtype=torch.bfloat16):
    layer = torch.nn.Linear(128, 64, bias=False, dtype=dtype)
    layer.weight = torch.nn.Parameter(noise((64, 128), 3, dtype), requires_grad=False)
    quantize_(layer, config())
    return layer.weight.data


def sizes(path):
    done = qcts("check", path, "--json")
    verdicts = json.loads(done.stdout)["verdicts"]
    size = next(one for one in verdicts if one["case_id"].startswith("size.file"))
    return {one["name"]: one["value"] for one in size["measures"]}, done.stderr


def check_bytes(path, state, unseen):
    measures, notes = sizes(path)
    storages = {
        part.untyped_storage().data_ptr(): part.untyped_storage().nbytes() for value in state.values() for part in inner(value).values()
    }
    assert measures["payload_bytes"] == sum(storages.values())
    assert measures.get("unseen_bytes", 0) == unseen
    assert measures["formula_bytes"] == measures["payload_bytes"] - unseen
    assert (f"no element reaches {unseen:,} of the storage bytes" in notes) == (unseen > 0)


def reached(value):
    return sum(part.numel() * part.element_size() for part in inner(value).values())


def check_meaning(path, state, tmp_path):
    qcts("dequantize", path, tmp_path / "dense.safetensors")
    dense = load_file(tmp_path / "dense.safetensors")
    for name, value in state.items():
        want = value.dequantize()
        assert dense[name].shape == want.shape and dense[name].dtype == want.dtype, name
        assert raw(dense[name]) == raw(want), name


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_rows_of_a_weight(name, dtype, tmp_path):
    whole = quantized(CONFIGS[name], dtype)
    path = tmp_path / "rows.pt"
    state = {"w": whole[8:40] if name != "intx" else whole.narrow(0, 8, 32)}
    torch.save(state, path)
    check_bytes(path, state, reached(whole) - reached(state["w"]))
    check_meaning(path, state, tmp_path)


def test_columns_of_a_weight(tmp_path):
    whole = quantized(CONFIGS["intx"])
    path = tmp_path / "columns.pt"
    state = {"w": whole.narrow(1, 32, 64)}
    torch.save(state, path)
    check_bytes(path, state, reached(whole) - reached(state["w"]))
    check_meaning(path, state, tmp_path)


def test_slices_of_one_storage_count_it_once(tmp_path):
    whole = quantized(CONFIGS["float8"])
    path = tmp_path / "parts.pt"
    state = {"q": whole[:32], "k": whole[32:48], "v": whole[48:]}
    torch.save(state, path)
    check_bytes(path, state, 0)
    check_meaning(path, state, tmp_path)
    state = {"q": whole[:32], "k": whole[16:48]}
    torch.save(state, path)
    check_bytes(path, state, reached(whole[48:]))
    check_meaning(path, state, tmp_path)
