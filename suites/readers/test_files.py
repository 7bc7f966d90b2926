# SPDX-License-Identifier: BSD-3-Clause
"""Tests the commands on files: saving goldens again, and messages for bad input and wrong arguments."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from dialect_files import read_safetensors, write_safetensors
from qcts_program import ROOT, inspect, qcts

GOLDENS = json.loads((ROOT / "fixtures/manifest.json").read_text())["goldens"]


def golden(ending, want="int8_row"):
    files = (g["file"] for g in GOLDENS if want in g["id"])
    return next(ROOT / "fixtures" / file for file in files if file.endswith(ending))


INT4_BELOW_FLOAT8 = [g for g in GOLDENS if g["id"].startswith("torchao_0_18_0/int4_plain_sym_")]


@pytest.mark.parametrize("entry", INT4_BELOW_FLOAT8, ids=lambda g: g["id"])
def test_quantize_writes_int4_below_float8_x_as_torchao_does(entry, tmp_path):
    """Protects: activation_dtype, without which torchao runs another kernel, and zero points of 0."""
    tensors, given = entry["tensors"], read_safetensors(ROOT / "fixtures" / entry["expected"])
    dense = {t["name"]: given[f"{t['name']}|w"] for t in tensors if t["scheme"]}
    scheme = next(t["scheme"] for t in tensors if t["scheme"])
    source, out = tmp_path / "dense.safetensors", tmp_path / f"out{Path(entry['file']).suffix}"
    qcts("quantize", "--scheme", scheme, "--activation", "dyn_row_mslk", write_safetensors(source, dense), out)
    want = {tensor["name"]: tensor for tensor in inspect(ROOT / "fixtures" / entry["file"])["tensors"]}
    for tensor in inspect(out)["tensors"]:
        other = want[tensor["name"]]
        assert tensor["attributes"] == other["attributes"] and tensor["scheme"] == other["scheme"]
        assert tensor["attributes"]["activation_dtype"]["_data"] == "float8_e4m3fn"
        parts = [{p["name"]: p["sha256"] for p in each["payload"]} for each in (tensor, other)]
        assert len(parts[0]) == 3 and parts[0] == parts[1]


WRITTEN = [g for g in GOLDENS if "torchscript" not in g["flags"]]  # TorchScript cannot be written


@pytest.mark.parametrize("entry", WRITTEN, ids=lambda g: g["id"])
def test_every_golden_is_resaved_byte_for_byte(entry, tmp_path):
    source = ROOT / "fixtures" / entry["file"]
    copy = tmp_path / "copy"
    allow = [word for name in entry.get("allow", []) for word in ("--allow", name)]
    qcts("resave", source, copy, *allow)
    files = [Path()]
    if source.is_dir():
        files = [f.relative_to(source) for f in sorted(source.rglob("*")) if f.is_file()]
    assert files and all((source / f).read_bytes() == (copy / f).read_bytes() for f in files)
    pack = ["--cpu-pack", "avx2"] if "int4_tinygemm" in entry["id"] else []  # small files do not show it
    diff = json.loads(qcts("diff", source, copy, "--json", *allow, *pack).stdout)
    assert diff["e2"]["equal"] and diff["e3"]["equal"]


def test_flipped_bit_is_refused_and_named(tmp_path):
    data = bytearray(golden(".pt").read_bytes())
    at = data.index(b"data/0") + 200
    data[at] ^= 1
    bad = tmp_path / "bad.pt"
    bad.write_bytes(data)
    done = qcts("inspect", bad, "--json", code=1)
    refusal = json.loads(done.stdout)["refusal"]
    assert refusal["class"] == "CrcMismatch" and "data/0" in refusal["detail"]
    assert done.stderr.startswith("qcts: refused: CrcMismatch: ") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["inspect", "resave", "dequantize", "quantize", "diff"])
def test_missing_file_is_usage(command, tmp_path):
    missing = tmp_path / "nothing.pt"
    more = {
        "inspect": [],
        "diff": [missing],
        "resave": [tmp_path / "o.pt"],
        "dequantize": [tmp_path / "o.safetensors"],
        "quantize": [tmp_path / "o.pt", "--scheme", "int8_row"],
    }
    done = qcts(command, missing, *more[command], code=2)
    assert done.stderr == f"qcts: {missing}: No such file or directory\n"


@pytest.mark.parametrize(
    "words, right",
    [
        (["inspct", "x"], "inspect"),
        (["inspect", "x", "--jsn"], "--json"),
        (["quantize", "--scheme", "int8row", "x", "y.pt"], "int8_row"),
        (["quantize", "--scheme", "int4_tinygemm_g128", "--layout", "cpu_avx51", "x", "y.pt"], "cpu_avx512"),
        (["quantize", "--scheme", "int8_row", "x", "y.safetensor"], ".safetensors"),
        (["inspect", "x", "--dialect", "torchao_v3"], "torchao_v"),
        (["dequantize", "x", "y.safetensors", "--cpu-pack", "avx521"], "avx512"),
    ],
)
def test_wrong_word_gets_the_nearest_right_one(words, right):
    done = qcts(*words, code=2)
    assert right in done.stderr and "did you mean" in done.stderr and done.stderr.count("\n") == 1


def test_out_stays_as_it_was_when_nothing_can_be_written(tmp_path):
    bad = tmp_path / "bad.pt"
    bad.write_bytes(golden(".pt").read_bytes()[:-40])
    for command, out, more in [
        ("resave", "o.pt", []),
        ("dequantize", "o.safetensors", []),
        ("quantize", "o.pt", ["--scheme", "int8_row"]),
    ]:
        (tmp_path / out).write_bytes(b"old")
        qcts(command, bad, tmp_path / out, *more, code=1)
        assert (tmp_path / out).read_bytes() == b"old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.pt", "o.pt", "o.safetensors"]


def test_unwritable_out_is_infrastructure(tmp_path):
    qcts("resave", golden(".pt"), tmp_path / "no_folder" / "o.pt", code=5)


@pytest.mark.parametrize(
    "ending, index",
    [(".safetensors", "model.safetensors.index.json"), (".bin", "pytorch_model.bin.index.json")],
)
def test_shard_outside_the_directory_is_refused(ending, index, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    shard = golden(".safetensors" if ending == ".safetensors" else ".pt")
    outside = tmp_path / f"outside{ending}"
    outside.write_bytes(shard.read_bytes())
    (tmp_path / "elsewhere").mkdir()
    (folder / "way").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / outside.name).write_bytes(shard.read_bytes())
    names = [
        f"../{outside.name}",
        f"a/../../{outside.name}",
        str(outside),
        f"link{ending}",
        f"way/{outside.name}",
        "",
    ]
    for name in names:
        (folder / index).write_text(json.dumps({"weight_map": {"0.bias": name}}))
        if name.startswith("link"):
            (folder / name).symlink_to(outside)
        refusal = json.loads(qcts("inspect", folder, "--json", code=1).stdout)["refusal"]
        assert refusal["class"] == "EntryName", refusal


def st_file(path, header, data=b""):
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def int8_header():
    info = {
        "_type": "Int8Tensor",
        "_data": {
            "act_quant_kwargs": None,
            "reduce_range": False,
            "block_size": [1, 4],
            "dtype": {"_type": "torch.dtype", "_data": "bfloat16"},
        },
        "_tensor_data_names": ["zero_point", "qdata", "scale"],
    }
    return info, {"qdata": ("I8", [2, 4]), "scale": ("F32", [2, 1]), "zero_point": ("I8", [2, 1])}


def dotted_prefix(name):
    module, parameter = name.rsplit(".", 1)
    return f"{module}._{parameter}_"


def write_int8(path, names, change=None, prefix=dotted_prefix):
    metadata, header, offset = {"tensor_names": json.dumps(names)}, {}, 0
    for name in names:
        info, parts = int8_header()
        if change:
            change(info)
        metadata[name] = json.dumps(info)
        for part, (dtype, shape) in parts.items():
            size = int(np.prod(shape)) * (4 if dtype == "F32" else 1)
            span = [offset, offset := offset + size]
            header[prefix(name) + part] = {"dtype": dtype, "shape": shape, "data_offsets": span}
    st_file(path, {"__metadata__": metadata, **header}, bytes(offset))


def test_names_that_are_prefixes_of_each_other_are_kept_apart(tmp_path):
    write_int8(tmp_path / "x.safetensors", ["l.w", "l.w_b"])
    tensors = {t["name"]: t for t in inspect(tmp_path / "x.safetensors")["tensors"]}
    assert {n: [p["name"] for p in t["payload"]] for n, t in tensors.items()} == {
        "l.w": ["qdata", "scale", "zero_point"],
        "l.w_b": ["qdata", "scale", "zero_point"],
    }
    assert all(t["scheme"] == "int8_row" for t in tensors.values())


@pytest.mark.parametrize(
    "what, change",
    [
        ("class", lambda i: i.update(_type="Evil")),
        ("dtype", lambda i: i["_data"].update(dtype={"_type": "torch.dtype", "_data": "load"})),
        ("block", lambda i: i["_data"].update(block_size=[1, 3])),
        ("block_zero", lambda i: i["_data"].update(block_size=[1, 0])),
        ("block_float", lambda i: i["_data"].update(block_size=[1, 4.0])),
        ("missing", lambda i: i["_data"].pop("block_size")),
        ("extra", lambda i: i["_data"].update(evil=1)),
        ("names", lambda i: i.update(_tensor_data_names=["qdata", "scale", "nothing"])),
        ("unlisted", lambda i: i.update(_tensor_data_names=["qdata", "scale"])),
        ("function", lambda i: i["_data"].update(act_quant_kwargs={"_type": "system", "_data": {}})),
    ],
)
def test_metadata_that_contradicts_the_schema_is_refused(what, change, tmp_path):
    write_int8(tmp_path / "x.safetensors", ["l.w"], change)
    done = qcts("inspect", tmp_path / "x.safetensors", "--json", code=1)
    assert json.loads(done.stdout)["refusal"]["class"] == "SubclassSchema"


def test_quantized_name_without_a_dot_is_refused(tmp_path):
    write_int8(tmp_path / "x.safetensors", ["w"], prefix=lambda n: "_" + n + "_")
    assert "SubclassSchema" in qcts("inspect", tmp_path / "x.safetensors", code=1).stderr


def test_two_spellings_at_once_are_refused_with_both_names(tmp_path):
    path = tmp_path / "x.safetensors"
    write_int8(path, ["l.w"])
    size = struct.unpack("<Q", path.read_bytes()[:8])[0]
    header, data = json.loads(path.read_bytes()[8 : 8 + size]), path.read_bytes()[8 + size :]
    header["m.w:qdata"] = {"dtype": "I8", "shape": [1], "data_offsets": [len(data), len(data) + 1]}
    st_file(path, header, data + b"\0")
    line = qcts("inspect", path, code=1).stderr
    assert "SubclassSchema" in line and "l._w_" in line and "m.w:qdata" in line
    assert inspect(path, "--dialect", "plain")["dialect"] == "plain"
