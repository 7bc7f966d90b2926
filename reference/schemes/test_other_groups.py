# SPDX-License-Identifier: BSD-3-Clause
"""A scheme exists for every length of its groups that its recipe takes, though plans hold a few of them."""

import json
import os
import subprocess
import warnings
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))


def qcts(*words, code=0):
    done = subprocess.run([QCTS, *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def config_of(scheme):
    from torchao.quantization import Int8WeightOnlyConfig, IntxWeightOnlyConfig
    from torchao.quantization.granularity import PerGroup

    group = int(scheme.split("_g")[1].split("_")[0])
    if scheme.startswith("int8"):
        return Int8WeightOnlyConfig(version=2, granularity=PerGroup(group)), group
    bits = int(scheme[len("intx_b")])
    return IntxWeightOnlyConfig(weight_dtype=getattr(torch, f"int{bits}"), granularity=PerGroup(group)), group


@pytest.mark.parametrize("scheme", ["intx_b4_g512_sym", "intx_b3_g16_sym", "intx_b7_g48_sym", "int8_g16", "int8_g512"])
def test_torchao_writes_the_same_bits(scheme, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from safetensors.torch import save_file
        from torchao.quantization import quantize_

        config, group = config_of(scheme)
        torch.manual_seed(len(scheme))
        layer = torch.nn.Linear(3 * group, 24, bias=False, dtype=torch.bfloat16)
        save_file({"0.weight": layer.weight.data}, tmp_path / "dense.safetensors")
        model = torch.nn.Sequential(layer)
        quantize_(model, config)
        qcts("quantize", "--scheme", scheme, tmp_path / "dense.safetensors", tmp_path / "ours.pt")
        ours = torch.load(tmp_path / "ours.pt", weights_only=False)["0.weight"]
    want = model[0].weight
    for name in ("qdata", "scale", "zero_point"):
        if getattr(want, name, None) is not None:
            assert torch.equal(getattr(ours, name), getattr(want, name)), name
    assert list(ours.block_size) == [1, group] == list(want.block_size)
    assert "SOUND" in qcts("check", tmp_path / "ours.pt")
    assert scheme in qcts("inspect", tmp_path / "ours.pt")


BY_NAME = ["intx_b4_g512_sym", "int8_g48_v1", "int4_plain_sym_g16", "int4_int32_g512", "fp8_e4m3_block64", "int4_tinygemm_g256"]
UNKNOWN = ["intx_b4_g0_sym", "intx_b9_g512_sym", "intx_b4_g0512_sym", "int4_tinygemm_g512", "intx_b4_g99999999_sym", "int8_row_g64"]


@pytest.mark.parametrize("scheme", BY_NAME)
def test_cases_are_asked_by_name_and_are_no_part_of_mustpass(scheme, tmp_path):
    assert qcts("schemes", scheme).startswith(scheme)
    assert qcts("list", "--plan", "nightly").count(f"/{scheme}/") == 0
    ids = qcts("list", "--plan", "nightly", "--provider", "builtin", "--scheme", scheme).split()
    assert len(ids) > 20 and all(f"/{scheme}/" in each for each in ids)
    one = next(each for each in ids if each.startswith("numerics.dequantize/") and each.endswith("/builtin_scalar"))
    out = tmp_path / "out"
    text = qcts("run", "--no-progress", "--filter", one, "--out", out)
    report = json.loads((out / "report.json").read_text())
    assert report["counts"]["by_status"]["pass"] == 1 and "(0 of " in text
    assert scheme in {each["name"] for each in report["schemes"]} and not report["conformance"]["conformant"]


@pytest.mark.parametrize("scheme", UNKNOWN)
def test_what_no_recipe_writes_is_refused(scheme):
    assert "did you mean" in qcts("schemes", scheme, code=2)
    assert f"'{scheme}'" in qcts("list", "--scheme", scheme, code=2)
