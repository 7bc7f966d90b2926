# SPDX-License-Identifier: BSD-3-Clause
"""Every element type of safetensors is read as its own library reads it, and saved again byte for byte."""

import ctypes
import hashlib
import json
import struct

import pytest
from qcts_program import inspect, qcts

safetensors = pytest.importorskip("safetensors", reason="safetensors is not installed")

# (name in the header, bits per element, torch's name)
DTYPES = [
    ("BOOL", 8, "bool"),
    ("F4", 4, "float4_e2m1fn_x2"),
    ("F6_E2M3", 6, "float6_e2m3fn"),
    ("F6_E3M2", 6, "float6_e3m2fn"),
    ("U8", 8, "uint8"),
    ("I8", 8, "int8"),
    ("F8_E5M2", 8, "float8_e5m2"),
    ("F8_E4M3", 8, "float8_e4m3fn"),
    ("F8_E8M0", 8, "float8_e8m0fnu"),
    ("F8_E4M3FNUZ", 8, "float8_e4m3fnuz"),
    ("F8_E5M2FNUZ", 8, "float8_e5m2fnuz"),
    ("I16", 16, "int16"),
    ("U16", 16, "uint16"),
    ("F16", 16, "float16"),
    ("BF16", 16, "bfloat16"),
    ("I32", 32, "int32"),
    ("U32", 32, "uint32"),
    ("F32", 32, "float32"),
    ("C64", 64, "complex64"),
    ("F64", 64, "float64"),
    ("I64", 64, "int64"),
    ("U64", 64, "uint64"),
]


def file_of(tensors):
    """Writes header and data of the given (name, dtype, shape, bytes), in order."""
    header, data = {}, b""
    for name, dtype, shape, body in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(body)]}
        data += body
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


@pytest.mark.parametrize("dtype, bits, name", DTYPES, ids=[row[0] for row in DTYPES])
def test_every_dtype_is_read_and_kept(dtype, bits, name, tmp_path):
    shape, count = [3, 8], 24
    body = bytes(
        (i * 37 + 1) % 2 if dtype == "BOOL" else (i * 37 + 1) % 251 for i in range(count * bits // 8)
    )
    file, copy = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    file.write_bytes(file_of([("x", dtype, shape, body), ("none", dtype, [0, 8], b"")]))
    theirs = {
        key: (info["dtype"], list(info["shape"]), bytes(info["data"]))
        for key, info in safetensors.deserialize(file.read_bytes())
    }
    assert theirs["x"] == (dtype, shape, body)
    qcts("resave", file, copy)
    assert copy.read_bytes() == file.read_bytes()
    seen = {tensor["name"]: tensor["payload"][0] for tensor in inspect(file)["tensors"]}
    assert seen["x"]["dtype"] == name and seen["x"]["sha256"] == hashlib.sha256(body).hexdigest()
    assert seen["x"]["shape"] == ([3, 4] if dtype == "F4" else shape)
    assert seen["none"]["shape"][0] == 0


@pytest.mark.parametrize("dtype, count", [("F4", 3), ("F6_E2M3", 3), ("F6_E3M2", 2)])
def test_elements_that_fill_no_bytes_are_refused_by_both(dtype, count, tmp_path):
    file = tmp_path / "a.safetensors"
    file.write_bytes(file_of([("x", dtype, [count], b"\0\0")]))
    with pytest.raises(safetensors.SafetensorError):
        safetensors.deserialize(file.read_bytes())
    assert "StLayout" in qcts("inspect", file, code=1).stderr


def test_packed_float4_has_its_shape_doubled_in_the_header(tmp_path):
    body = bytes(range(6))
    buffer = ctypes.create_string_buffer(body, len(body))
    spec = safetensors.TensorSpec(
        dtype="float4_e2m1fn_x2", shape=[2, 3], data_ptr=ctypes.addressof(buffer), data_len=len(body)
    )
    file, copy = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    file.write_bytes(safetensors.serialize({"x": spec}))
    assert b'"shape":[2,6]' in file.read_bytes()
    assert inspect(file)["tensors"][0]["shape"] == [2, 3]
    qcts("resave", file, copy)
    assert copy.read_bytes() == file.read_bytes()
