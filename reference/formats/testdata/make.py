# SPDX-License-Identifier: BSD-3-Clause
"""Makes the files of this folder with the real libraries: python make.py OUT.

Each entry of TORCH and SAFETENSORS is one file: its name, and the function whose value is saved. README.txt lists the
versions that made the committed files.
"""

import collections
import struct
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.utils.serialization import config


def noise(*shape):
    """Returns small exact values without a random generator."""
    count = 1
    for size in shape:
        count *= size
    return ((torch.arange(count) * 37 + 11) % 61 - 30).to(torch.float32).div(32).reshape(shape)


def model():
    named = collections.OrderedDict(first=torch.nn.Linear(4, 3), second=torch.nn.Linear(3, 2))
    layers = torch.nn.Sequential(named)
    with torch.no_grad():
        for parameter in layers.parameters():
            parameter.copy_(noise(*parameter.shape))
    return layers


def views():
    base = torch.arange(12.0).reshape(3, 4)
    return {"base": base, "transposed": base.t(), "row": base[1], "expanded": torch.zeros(1).expand(3, 4)}


def attributed(value, **attributes):
    for name, attribute in attributes.items():
        setattr(value, name, attribute)
    return value


def optimizer():
    layers = model()
    adam = torch.optim.Adam(layers.parameters(), lr=0.5)
    for parameter in layers.parameters():
        parameter.grad = torch.full_like(parameter, 0.25)
    adam.step()
    return {"model": layers.state_dict(), "optimizer": adam.state_dict(), "step": 1}


def torchao(name, **arguments):
    import torchao.quantization as quantization

    layers = torch.nn.Sequential(torch.nn.Linear(32, 16)).to(torch.bfloat16)
    with torch.no_grad():
        for parameter in layers.parameters():
            parameter.copy_(noise(*parameter.shape))
    quantization.quantize_(layers, getattr(quantization, name)(**arguments))
    return layers.state_dict()


def mx():
    from torchao.prototype.mx_formats.mx_tensor import MXTensor

    return {"weight": MXTensor.to_mx(noise(16, 32).to(torch.bfloat16), torch.float8_e4m3fn, 32)}


def dtypes():
    names = (
        "float64 float16 bfloat16 float8_e4m3fn float8_e5m2 float8_e8m0fnu int8 uint8 int16 uint16 int32 "
        "uint32 int64 uint64 bool complex64 complex128"
    ).split()
    result = {name: torch.ones(2).to(getattr(torch, name)) for name in names}
    pairs = torch.tensor([[1, 2, 3, 4]], dtype=torch.uint8)
    result["float4_e2m1fn_x2"] = pairs.view(torch.float4_e2m1fn_x2)
    return result


def integers():
    edges = [0, 8, 16, 31, 32, 39, 40, 47, 48, 55, 56, 63]
    values = {sign * (1 << bit) + step for bit in edges for sign in (1, -1) for step in (-1, 0, 1)}
    return sorted(value for value in values if -(2**63) <= value < 2**63)


def values():
    return {
        "bytes": b"abc",
        "bytes_high": b"\xff\x00",
        "text": "\u00e9\u4e2d",
        "surrogate": "\ud800",
        "complex": 1 + 2j,
        "set": {1, 2},
        "none": None,
        "true": True,
        "negative_zero": -0.0,
        "infinity": float("inf"),
        "bytearray": bytearray(b"xy"),
        "integers": integers(),
        "counter": collections.Counter("hello"),
        "size": torch.Size([1, 2]),
        "device": torch.device("cuda:0"),
        "dtype": torch.bfloat16,
    }


def shared():
    tensor, text, key = torch.ones(2), "text", "key"
    return [tensor, tensor, {"again": tensor}, text, text, {key: 1}, {key: 2}]


def parameters():
    return {
        "p": torch.nn.Parameter(torch.ones(2, 2)),
        "q": torch.nn.Parameter(torch.ones(2), requires_grad=False),
    }


def attributes():
    return {
        "p": attributed(torch.nn.Parameter(torch.ones(2)), extra=7),
        "t": attributed(torch.ones(2), note="n"),
    }


def sparse():
    return {
        "coo": torch.eye(3).to_sparse(),
        "csr": torch.eye(3).to_sparse_csr(),
        "bsc": torch.eye(4).to_sparse_bsc((2, 2)),
    }


def quantized():
    scales, zero_points = torch.tensor([0.5, 0.25]), torch.tensor([0, 0])
    return {
        "tensor": torch.quantize_per_tensor(torch.ones(4), 0.5, 3, torch.qint8),
        "channel": torch.quantize_per_channel(torch.ones(2, 4), scales, zero_points, 0, torch.quint8),
    }


def intx():
    from torchao.quantization.granularity import PerGroup

    return torchao("IntxWeightOnlyConfig", weight_dtype=torch.int4, granularity=PerGroup(32))


def descriptor_magic():
    return {"y": torch.frombuffer(bytearray(b"PK\x07\x08abcdefgh"), dtype=torch.uint8)}


TORCH = {
    "plain_dict": lambda: {"x": torch.ones(2)},
    "one_tensor": lambda: torch.arange(5),
    "state_dict": lambda: model().state_dict(),
    "shared_views": views,
    "shared_objects": shared,
    "dtypes": dtypes,
    "parameters": parameters,
    "attributes": attributes,
    "dict_1000": lambda: {i: i for i in range(1000)},
    "dict_1001": lambda: {i: i for i in range(1001)},
    "ordered_1001": lambda: collections.OrderedDict((i, i) for i in range(1001)),
    "list_1001": lambda: list(range(1001)),
    "nested": lambda: [1, [2, [3, (4,), (5, 6), (7, 8, 9), (1, 2, 3, 4), ()]], {"a": {"b": []}}, {}],
    "values": values,
    "optimizer": optimizer,
    "zero_size": lambda: {"z": torch.empty(0), "z2": torch.empty(0, 3), "scalar": torch.tensor(3.5)},
    "descriptor_magic": descriptor_magic,
    "lazy_views": lambda: {"conj": torch.ones(2, dtype=torch.complex64).conj()},
    "sparse": sparse,
    "quantized": quantized,
    "meta": lambda: {"m": torch.ones(2, 3, device="meta")},
    "many_storages": lambda: {str(i): torch.tensor([float(i)]) for i in range(70)},
    "ao_int8": lambda: torchao("Int8WeightOnlyConfig", version=2),
    "ao_int8_dynamic": lambda: torchao("Int8DynamicActivationInt8WeightConfig", version=2),
    "ao_float8": lambda: torchao("Float8WeightOnlyConfig"),
    "ao_intx": intx,
    "ao_mx": mx,
}


def zero_sizes():
    return {"z": torch.empty(0), "z2": torch.empty(0, 3, dtype=torch.int8), "s": torch.tensor(3.5)}


MANY_KEYS = {"format": "pt", 'q"uote': "back\\slash\n\u0001", "\u00e9": "\u4e2d"}
SAFETENSORS = {
    "no_metadata": (lambda: {"b": torch.ones(3), "a": torch.ones(2, 2, dtype=torch.bfloat16)}, None),
    "one_key": (lambda: {"x": torch.ones(2)}, {"format": "pt"}),
    "several_keys": (lambda: {"x": torch.ones(2)}, MANY_KEYS),
    "dtypes": (lambda: {name: value for name, value in dtypes().items() if name != "complex128"}, None),
    "zero_size": (zero_sizes, None),
    "empty": (dict, None),
}


def save_beyond_4_gib(path):
    """Saves the bytes of an archive beyond 4 GiB, without its large storage: u64 size of the archive, then u64
    offset, u64 length and bytes of each extent. skip_data leaves the storage a hole of the file.
    """
    state = {
        "big": torch.empty(2**32 + 8, dtype=torch.uint8),
        "small": torch.arange(3),
        "none": torch.empty(0),
    }
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "zip64.pt"
        with torch.serialization.skip_data():
            torch.save(state, archive)
        size = archive.stat().st_size
        with archive.open("rb") as file:
            headers = file.read(4096)
            name = b"zip64/data/0"
            at = headers.index(name)
            extra = struct.unpack("<H", headers[at - 2 : at])[0]
            hole = at + len(name) + extra
            out = struct.pack("<QQQ", size, 0, hole) + headers[:hole]
            file.seek(hole + 2**32 + 8)
            rest = file.read()
        path.write_bytes(out + struct.pack("<QQ", hole + 2**32 + 8, len(rest)) + rest)


def main(out):
    out.mkdir(parents=True, exist_ok=True)
    for name, value in TORCH.items():
        torch.save(value(), out / f"{name}.pt")
    torch.serialization.set_crc32_options(False)
    torch.save({"x": torch.ones(5), "y": torch.ones(3)}, out / "crc_off.pt")
    torch.serialization.set_crc32_options(True)
    with torch.serialization.skip_data():
        torch.save({"x": torch.ones(5), "y": torch.ones(3)}, out / "skip_data.pt")
    for alignment in (1, 4096):
        config.save.storage_alignment = alignment
        torch.save({"x": torch.ones(5)}, out / f"alignment_{alignment}.pt")
    config.save.storage_alignment = 64
    torch.save({"x": torch.ones(2)}, out / "a b.tar.pt")
    torch.save({"doubled": torch.full((2,), 2.0)}, out / "edited.pt")
    save_beyond_4_gib(out / "zip64.extents")
    for name, (tensors, metadata) in SAFETENSORS.items():
        save_file(tensors(), out / f"{name}.safetensors", metadata=metadata)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
