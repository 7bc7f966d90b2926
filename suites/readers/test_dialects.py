# SPDX-License-Identifier: BSD-3-Clause
"""Tests the commands on files that current torchao does not write: TinyQ, torchao 0.5 to 0.17."""

import json
import struct
from collections import OrderedDict

import pytest
from dialect_files import FIXTURES, GOLDENS, read_safetensors, refusal, write_safetensors
from qcts_program import inspect, qcts


def with_own_dequantize():
    """Returns goldens of old writers, of TinyQ and of tensors without a scheme that record the writer's dequantized values."""
    for id, entry in GOLDENS.items():
        old = {"old_writer", "own_dequantize"} & set(entry["flags"]) or id.startswith("tinyq")
        if old and any("dequant" in tensor["expected"] for tensor in entry["tensors"]):
            yield id


@pytest.mark.parametrize("id", list(with_own_dequantize()))
def test_dequantize_gives_what_the_writer_gives(id, tmp_path):
    """Protects: weights in files that no current library reads are dequantized bit for bit."""
    entry = GOLDENS[id]
    words = ["--cpu-pack", entry["cpu_capability"]] if any("cpu_" in t["layout"] for t in entry["tensors"]) else []
    qcts("dequantize", FIXTURES / entry["file"], tmp_path / "dense.safetensors", *words)
    got = read_safetensors(tmp_path / "dense.safetensors")
    want = read_safetensors(FIXTURES / entry["expected"])
    checked = 0
    for tensor in entry["tensors"]:
        assert tensor["name"] in got
        if "dequant" in tensor["expected"]:
            assert got[tensor["name"]] == want[f"{tensor['name']}|dequant"], tensor["name"]
            checked += 1
    assert checked


@pytest.mark.parametrize("id", [id for id, entry in GOLDENS.items() if "old_writer" in entry["flags"]])
def test_resave_keeps_files_of_old_writers(id, tmp_path):
    """Protects: every byte of files whose classes exist only in old wheels."""
    path = FIXTURES / GOLDENS[id]["file"]
    copy = tmp_path / path.name
    qcts("resave", path, copy)
    if path.is_file():
        assert copy.read_bytes() == path.read_bytes()
        return
    files = sorted(file.relative_to(path) for file in path.rglob("*") if file.is_file())
    assert files == sorted(file.relative_to(copy) for file in copy.rglob("*") if file.is_file())
    for file in files:
        assert (copy / file).read_bytes() == (path / file).read_bytes(), file


@pytest.mark.parametrize("id", [id for id, entry in GOLDENS.items() if "noise_packed" in entry["flags"]])
def test_a_layout_that_nobody_publishes_is_not_guessed_at(id, tmp_path):
    """Protects: weights packed by a GPU library in an unknown way are never dequantized by a guess."""
    done = qcts("dequantize", FIXTURES / GOLDENS[id]["file"], tmp_path / "dense.safetensors", code=1)
    assert "can be read and saved but not dequantized: " in done.stderr
    assert not (tmp_path / "dense.safetensors").exists()


FIRST_POLICIES = [
    ("0_5_0/int8dq", "int8_row", "dyn_row_sym_127"),
    ("0_9_0/int8dq", "int8_row", "dyn_row_sym_127"),
    ("0_17_0/int8dq", "int8_row", "dyn_row_sym_127"),
    ("0_13_0/int8dq_decode", "int8_row", "dyn_row_sym_127"),
    ("0_5_0/int8da_int4w", "intx_b4_g32_sym", "dyn_token_asym_eps"),
    ("0_13_0/int8da_int4w", "intx_b4_g32_sym", "dyn_token_asym_s32"),
    ("0_15_0/int8da_intx4", "intx_b4_g32_sym", "dyn_token_asym_s32"),
    ("0_13_0/int8da_int4w_sym", "intx_b4_g32_sym", "dyn_token_sym_127_s32"),
    ("0_12_0/int8da_int4w_uint8", "intx_b4_g32_sym", "dyn_token_asym_u8_s32"),
    ("0_9_0/int8da_int4w_cutlass", "intx_b4_axis_sym", "dyn_token_sym_127"),
    ("0_15_0/int8da_int4w_cutlass", "intx_b4_axis_s32_sym", "dyn_token_sym_s32"),
    ("0_9_0/int4da_int4w", "intx_b4_axis_sym", "dyn_token_sym_b4"),
    ("0_13_0/int4da_int4w", "intx_b4_axis_s32_sym", "dyn_token_sym_b4_s32"),
    ("0_7_0/fp8dq", "fp8_e4m3_tensor", "dyn_tensor_recip"),
    ("0_9_0/fp8dq_row", "fp8_row", "dyn_row_recip"),
    ("0_11_0/fp8dq_cutlass", "fp8_row", "dyn_row_recip"),
    ("0_11_0/fp8st", "fp8_e4m3_tensor", "static_tensor_recip"),
    ("0_13_0/fbgemm_fp8", "fp8_row", "dyn_row_fbgemm"),
]


@pytest.mark.parametrize("golden, scheme, policy", FIRST_POLICIES)
def test_first_generations_policies_are_read_and_not_written_in_todays_classes(golden, scheme, policy, tmp_path):
    """Protects: no file claims a policy that current torchao cannot express."""
    entry = GOLDENS[f"torchao_{golden}"]
    assert inspect(FIXTURES / entry["file"])["tensors"][0]["scheme"] == scheme
    assert entry["tensors"][0]["activation"] == policy  # the judge checks the file against it
    qcts("dequantize", FIXTURES / entry["file"], tmp_path / "dense.safetensors")
    words = ["--scheme", scheme, "--activation", policy]
    if policy.startswith("static_"):
        words += ["--activation-scale", "0.01"]
    words += ["--as", "torchao_v2", tmp_path / "dense.safetensors", tmp_path / "out.pt"]
    refused = qcts("quantize", *words, code=2).stderr
    if policy == "dyn_row_fbgemm":
        assert "dyn_row_fbgemm needs activation_scale_ub from a calibration" in refused
        return
    assert f"torchao_v2 has no class for {scheme} in the layout " in refused and f"under the policy '{policy}'" in refused


TINYQ = [id for id in GOLDENS if id.startswith("tinyq_006b7b9/")]


def test_tinyq_goldens_are_there():
    assert len(TINYQ) == 9


@pytest.mark.parametrize("id", TINYQ)
def test_tinyq_layers_are_read(id):
    found = inspect(FIXTURES / GOLDENS[id]["file"])
    assert found["dialect"] == "tinyq"
    layers = [tensor for tensor in found["tensors"] if tensor["scheme"]]
    assert layers and all(tensor["type"] in ("W8A32LinearLayer", "W8A16LinearLayer") for tensor in layers)
    for layer in layers:
        parts = [part["name"] for part in layer["payload"]]
        assert parts == ["int8_weights", "scales"] + (["zero_points"] if "w8a32" in id else [])


def float_state(torch, id):
    """Returns the state dict that TinyQ's Quantizer was given, from the recorded weights."""
    from safetensors.torch import load_file

    path = FIXTURES / GOLDENS[id]["file"]
    quantized = torch.load(path, weights_only=True)
    weights = load_file(FIXTURES / GOLDENS[id]["expected"])
    if not all(f"{key.removesuffix('int8_weights')}weight|w" in weights for key in quantized if "int8_weights" in key):
        return None
    source = OrderedDict()
    dtype = next((t.dtype for k, t in quantized.items() if k.endswith("bias")), torch.float32)
    modules = []
    for key in quantized:
        module, _, part = key.rpartition(".")
        if f"{module}.int8_weights" not in quantized:
            source[key] = quantized[key]
        elif module not in modules:
            modules.append(module)
            source[f"{module}.weight"] = weights[f"{module}.weight|w"].to(dtype)
            if f"{module}.bias" in quantized:
                source[f"{module}.bias"] = quantized[f"{module}.bias"]
    source._metadata = quantized._metadata
    return source


@pytest.mark.parametrize("id", [id for id in TINYQ if "opt" not in id])
def test_quantize_writes_what_tinyqs_quantizer_writes(id, tmp_path):
    """Protects: keys, order, dtypes and bytes as in TinyQ's own .pth; here even the whole file is equal."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    source = float_state(torch, id)
    assert source is not None
    torch.save(source, tmp_path / "float.pth")
    method = id.split("/")[1]
    qcts("quantize", "--scheme", f"tinyq_{method}", tmp_path / "float.pth", tmp_path / "qmodel.pth")
    assert (tmp_path / "qmodel.pth").read_bytes() == (FIXTURES / GOLDENS[id]["file"]).read_bytes()


def test_quantize_leaves_what_tinyqs_exclusion_list_names(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    state = {
        "block.fc.weight": torch.ones(4, 8),
        "block.lm_head.weight": torch.ones(4, 8),
        "block.fc.bias": torch.ones(4),
    }
    torch.save(state, tmp_path / "in.pth")
    qcts(
        "quantize",
        "--scheme",
        "tinyq_w8a16",
        "--exclude",
        "lm_head",
        tmp_path / "in.pth",
        tmp_path / "out.pth",
    )
    loaded = torch.load(tmp_path / "out.pth", weights_only=True)
    assert list(loaded) == [
        "block.fc.bias",
        "block.fc.int8_weights",
        "block.fc.scales",
        "block.lm_head.weight",
    ]
    assert (
        "TinyQ cannot write safetensors"
        in qcts("quantize", "--scheme", "tinyq_w8a16", tmp_path / "in.pth", tmp_path / "out.safetensors", code=2).stderr
    )


def test_tinyq_from_safetensors(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    ones = struct.pack("<f", 1.0)
    entries = {"fc.weight": ("F32", [4, 8], ones * 32), "fc.bias": ("F32", [4], ones * 4)}
    path = write_safetensors(tmp_path / "in.safetensors", entries)
    qcts("quantize", "--scheme", "tinyq_w8a32", path, tmp_path / "out.pth")
    loaded = torch.load(tmp_path / "out.pth", weights_only=True)
    assert list(loaded) == ["fc.bias", "fc.int8_weights", "fc.scales", "fc.zero_points"]
    assert (loaded["fc.int8_weights"] == 127).all() and loaded["fc.zero_points"].dtype == torch.int32


def test_tinyq_layers_that_contradict_themselves_are_refused(tmp_path):
    codes = ("I8", [4, 8], bytes(32))
    scales = ("F32", [4], bytes(16))
    wrong = {
        "scales is": {"m.int8_weights": codes, "m.scales": ("F32", [3], bytes(12))},
        "int8_weights is uint8": {"m.int8_weights": ("U8", [4, 8], bytes(32)), "m.scales": scales},
        "not float32": {
            "m.int8_weights": codes,
            "m.scales": ("F16", [4], bytes(8)),
            "m.zero_points": ("I32", [4], bytes(16)),
        },
        "two weights of one module": {
            "m.int8_weights": codes,
            "m.scales": scales,
            "m.weight": ("F32", [4, 8], bytes(128)),
        },
    }
    for words, entries in wrong.items():
        found = refusal(write_safetensors(tmp_path / "wrong.safetensors", entries))
        assert words in found["detail"], found
    plain = write_safetensors(tmp_path / "plain.safetensors", {"m.int8_weights": codes})
    assert inspect(plain)["dialect"] == "plain"
    assert "no module has tinyq's int8_weights and scales" in refusal(plain, "--dialect", "tinyq")["detail"]
    # With one row, torch's squeeze() left the scale without a dimension.
    one = {"m.int8_weights": ("I8", [1, 8], bytes(8)), "m.scales": ("F32", [], bytes(4))}
    assert inspect(write_safetensors(tmp_path / "one.safetensors", one))["tensors"][0]["scheme"] == "tinyq_w8a16"


def test_every_choice_of_a_golden_is_in_the_ledger():
    """Protects: every choice that a golden names is explained in the ledger."""
    ledger = json.loads(qcts("schemes", "--choices", "--json").stdout)["choices"]
    known = {option["id"] for entry in ledger for option in entry["options"]}
    assert {choice for entry in GOLDENS.values() for choice in entry["choices"]} <= known
    answers = {scheme for entry in ledger for option in entry["options"] for scheme in option["schemes"]}
    assert {"int8_row", "int4_tinygemm_g128", "fp8_row", "tinyq_w8a16"} <= answers
