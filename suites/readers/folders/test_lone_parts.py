# SPDX-License-Identifier: BSD-3-Clause
"""Scales, zero points and other parts of a quantized weight whose codes got lost are a finding: nothing stands for the weight."""

import json

import pytest
from dialect_files import FIXTURES, GOLDENS, read_safetensors, write_safetensors
from foreign_samples import FORMATS, M, entry
from joined_model import Model, folder_of
from qcts_program import inspect, qcts
from torch_tensors import as_tensors

FLOATS = ("F64", "F32", "F16", "BF16")
PEERS = [
    id for id, golden in GOLDENS.items() if "peer" in golden["flags"] and (folder_of(id) / "model.safetensors").is_file()
]
PART = "of a quantized weight whose codes are missing"


def codes_of(id, tensors):
    """The codes of the first weight that the golden expects."""
    for key in read_safetensors(FIXTURES / GOLDENS[id]["expected"]):
        name = key.removesuffix("|dequant")
        stem = name.removesuffix("weight")
        for codes in (stem + "qweight", stem + "weight_packed", name + "_blocks", name):
            if codes in tensors and (tensors[codes][0] not in FLOATS or f"{codes}.absmax" in tensors):
                return codes
    raise AssertionError(f"{id}: no codes")


def is_missed(path, out):
    findings = [finding["text"] for finding in inspect(path)["findings"]]
    assert any(PART in text for text in findings), findings
    assert PART in " ".join(qcts("check", path, code=1).stderr.split())
    qcts("dequantize", path, out, code=1)
    assert not out.exists()


@pytest.mark.parametrize("id", PEERS)
def test_a_weight_without_its_codes_is_missed(id, tmp_path):
    """Protects: what merges and shortened shards lose, in every format that is read."""
    model = Model(id, tmp_path)
    del model.tensors[codes_of(id, model.tensors)]
    is_missed(model.write(), tmp_path / "out.safetensors")


@pytest.mark.parametrize("id", PEERS)
@pytest.mark.parametrize("container", ["bin", "legacy", "shards"])
def test_in_any_container(id, container, tmp_path):
    model = Model(id, tmp_path)
    del model.tensors[codes_of(id, model.tensors)]
    folder = model.write()
    if container == "shards":
        names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
        places = {name: names[i % 2] for i, name in enumerate(model.tensors)}
        for file in names:
            write_safetensors(folder / file, {name: t for name, t in model.tensors.items() if places[name] == file})
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    else:
        torch = pytest.importorskip("torch", reason="torch is not installed")
        torch.save(
            as_tensors(model.tensors), folder / "pytorch_model.bin", _use_new_zipfile_serialization=container == "bin"
        )
    (folder / "model.safetensors").unlink()
    is_missed(folder, tmp_path / "out.safetensors")


WORDS = ["qweight", "weight_packed", "weight", "gate_up_proj"]
OF_CODES = ["g_idx", "qzeros", "weight_scale", "weight_scale_inv", "gate_up_proj_scale_inv", "SCB"]
ENDINGS = {case: [part.split(":")[0].strip(".") for part in parts.split()] for case, (_, _, parts) in FORMATS.items()}
NAMED = [case for case, endings in ENDINGS.items() if endings[0] in WORDS and set(endings) & set(OF_CODES)]


@pytest.mark.parametrize("case", NAMED)
@pytest.mark.parametrize("prefix", ["", "model.language_model."])
def test_without_a_configuration_their_names_tell(case, prefix, tmp_path):
    parts = [part.split(":") for part in FORMATS[case][2].split()]
    tensors = {
        f"{prefix}{M}{ending}": entry(dtype, *[int(size) for size in shape.split("x") if size])
        for ending, dtype, shape in parts
        if ending.strip(".") not in WORDS
    }
    tensors["model.norm.weight"] = entry("BF16", 8)
    path = write_safetensors(tmp_path / "x.safetensors", tensors)
    is_missed(path, tmp_path / "out.safetensors")
    shard = write_safetensors(tmp_path / "model-00001-of-00002.safetensors", tensors)
    assert not any(PART in finding["text"] for finding in inspect(shard)["findings"])


TORCHAO = [
    "fp8_row/toy_64_32_64_st", "int8_row/toy_64_32_64_st", "int4_tinygemm_g32/tile_toy_64_32_64_st",
    "mxfp8_e4m3_rceil/toy_64_32_64_st", "nvfp4_two_level/toy_64_32_64_st",
]  # fmt: skip


@pytest.mark.parametrize("golden", TORCHAO)
def test_torchaos_keys_without_codes_and_metadata(golden, tmp_path):
    tensors = read_safetensors(FIXTURES / f"golden/torchao_0_18_0/{golden}/model.safetensors")
    left = {name: part for name, part in tensors.items() if not name.endswith("_qdata")}
    assert len(left) < len(tensors)
    is_missed(write_safetensors(tmp_path / "x.safetensors", left), tmp_path / "out.safetensors")


GOOD = {
    "cache": {"attn.k_scale": entry("F32", 1), "attn.v_scale": entry("F32", 1), "attn.q_proj.weight": entry("F32", 8, 8)},
    "floats_with_scales": {"fc.weight": entry("BF16", 8, 32), "fc.weight_scale": entry("BF16", 8, 1)},
    "of_x": {"fc.weight": entry("BF16", 8, 32), "fc.input_scale": entry("F32", 1), "fc.pre_quant_scale": entry("F32", 32)},
    "layer_scale": {"block.scale": entry("F32", 8, 1), "block.logit_scale": entry("F32", 4, 1, 1)},
    "scales_of_a_pyramid": {"neck.scales": entry("F32", 5), "neck.conv.weight": entry("F32", 4, 4)},
    "observer": {"quant.scale": entry("F32", 1), "quant.zero_point": entry("I64", 1)},
    "fake_quantized": {"fc.weight": entry("F32", 8, 8), "fc.weight_fake_quant.scale": entry("F32", 1),
                       "fc.weight_fake_quant.zero_point": entry("I32", 1)},
    "weight_norm": {"conv.weight_g": entry("F32", 8, 1), "conv.weight_v": entry("F32", 8, 8)},
}  # fmt: skip


@pytest.mark.parametrize("case", GOOD)
def test_scales_of_other_things_are_no_parts(case, tmp_path):
    path = write_safetensors(tmp_path / "x.safetensors", GOOD[case])
    assert not inspect(path)["findings"]
    qcts("check", path)
    qcts("dequantize", path, tmp_path / "out.safetensors")


def test_a_finding_names_each_weight_once(tmp_path):
    tensors = {f"l{i}.{part}": entry("I32", 4, 8) for i in range(3) for part in ("qzeros", "g_idx")}
    tensors |= {f"l{i}.scales": entry("F16", 4, 8) for i in range(3)}
    told = inspect(write_safetensors(tmp_path / "x.safetensors", tensors))
    assert [finding["tensor"] for finding in told["findings"]] == ["l0.qzeros", "l1.qzeros", "l2.qzeros"]
