# SPDX-License-Identifier: BSD-3-Clause
"""Files that torch's C++ side writes: torch::pickle_save, and TorchScript archives without checksums."""

import io
import json
import struct
import zipfile

import pytest
from dialect_files import read_safetensors
from qcts_program import inspect, pinned, qcts

torch = pinned("torch", "2.13")


def from_cpp(value):
    """What torch's C++ pickler writes: torch::pickle_save."""
    return torch._C._pickle_save(value)


def with_changed_element(value, number):
    """A copy in which the last element of one of the tensors, counted depth first, is changed."""
    left = [number]

    def copy(item):
        if isinstance(item, torch.Tensor):
            left[0] -= 1
            item = item.clone()
            if left[0] == -1:
                item[-1] += 1
            return item
        if isinstance(item, dict):
            return {key: copy(each) for key, each in item.items()}
        return type(item)(copy(each) for each in item) if isinstance(item, list | tuple) else item

    return copy(value)


CPP = {
    "list": ([torch.ones(2), torch.zeros(1)], ["0", "1"]),
    "dict": ({"a": torch.ones(2), "b": torch.zeros(3)}, ["a", "b"]),
    "nested": ({"a": [torch.ones(2)], "b": [torch.zeros(3)]}, ["a.0", "b.0"]),
    "tuple": ((torch.ones(2), [1, 2], [0.5], [True], {"x": 1}), ["0"]),
    "tensor": (torch.ones(2), ["tensor"]),
}


@pytest.mark.parametrize("what", CPP)
def test_files_of_the_cpp_pickler(what, tmp_path):
    value, names = CPP[what]
    path, copy = tmp_path / "a.pt", tmp_path / "copy.pt"
    path.write_bytes(from_cpp(value))
    assert [t["name"] for t in inspect(path)["tensors"]] == names
    qcts("resave", path, copy)
    assert copy.read_bytes() == path.read_bytes()
    qcts("diff", path, copy)
    checked = qcts("check", path)
    assert "pass           round_trip.file" in checked.stdout and "was copied from the file" in checked.stderr
    for tensor in range(len(names)):
        changed = tmp_path / "changed.pt"
        changed.write_bytes(from_cpp(with_changed_element(value, tensor)))
        assert json.loads(qcts("diff", path, changed, "--json", code=1).stdout)["e1"]["differing"] == 1
    qcts("dequantize", path, tmp_path / "o.safetensors")
    assert sorted(read_safetensors(tmp_path / "o.safetensors")) == sorted(names)


@pytest.mark.parametrize("what", ["all", "storages"])
def test_torchscript_without_checksums(what, tmp_path):
    module = torch.jit.script(torch.nn.Linear(2, 3))
    path = tmp_path / "a.pt"
    torch.jit.save(module, path)
    path.write_bytes(without_checksums(path.read_bytes(), lambda name: what == "all" or "/data/" in name))
    assert [t["name"] for t in inspect(path)["tensors"]] == ["weight", "bias"]
    one = path.with_name("one.pt")
    torch.jit.save(module, one)
    one.write_bytes(without_checksums(one.read_bytes(), lambda name: name.endswith("/data/0")))
    assert "CrcMismatch" in qcts("inspect", one, code=1).stderr  # a single 0 is damage


def without_checksums(data, chosen):
    """Zeroes the CRC-32 of the chosen records: in the directory and in the data descriptors."""
    data = bytearray(data)
    for info in zipfile.ZipFile(io.BytesIO(bytes(data))).infolist():
        if not chosen(info.filename) or info.CRC == 0:
            continue
        crc = struct.pack("<I", info.CRC)
        name = info.filename.encode()
        at = data.index(b"PK\1\2")
        while data[at + 46 : at + 46 + len(name)] != name:
            at = data.index(b"PK\1\2", at + 4)
        data[at + 16 : at + 20] = bytes(4)
        extra = struct.unpack_from("<HH", data, info.header_offset + 26)
        end = info.header_offset + 30 + sum(extra) + info.compress_size
        if data[end : end + 8] == b"PK\7\10" + crc:
            data[end + 4 : end + 8] = bytes(4)
        if data[info.header_offset + 14 : info.header_offset + 18] == crc:
            data[info.header_offset + 14 : info.header_offset + 18] = bytes(4)
    return bytes(data)
