# SPDX-License-Identifier: BSD-3-Clause
"""Objects to save with torch.save, and checks shared by the tests of its containers."""

import hashlib
import io
import struct
import zipfile
from collections import Counter, OrderedDict

import torch

DTYPES = (
    "float32 float64 float16 bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz "
    "float8_e8m0fnu float4_e2m1fn_x2 int8 uint8 int16 uint16 int32 uint32 int64 uint64 bool complex32 complex64 complex128 "
    "bits8 bits16 bits1x8 bits2x4 bits4x2"
).split()


def counting(shape, step=1.0):
    return (torch.arange(torch.Size(shape).numel(), dtype=torch.float32) * step).reshape(shape)


def dtypes():
    data = torch.arange(48, dtype=torch.uint8)
    return {
        name: (data % 2).bool() if name == "bool" else data.clone().view(getattr(torch, name))
        for name in DTYPES
    }


def zero_sizes():
    return {
        "flat": torch.empty(0),
        "rows": torch.empty(0, 3),
        "scalar": torch.tensor(2.5),
        "bytes": torch.empty(0).byte(),
    }


def views():
    base = counting((24,))
    return {
        "a": base[2:6],
        "b": base[4:8],
        "last": base[20:],
        "t": base[8:20].view(3, 4).t(),
        "none": base[3:3],
        "again": base[2:6],
        "expanded": base[5:6].expand(7),
    }


def quantized():
    state = {}
    scales, zeros = torch.tensor([0.5, 0.25, 2.0], dtype=torch.float64), torch.tensor([0, 1, 2])
    for dtype in (torch.qint8, torch.quint8, torch.qint32):
        x = counting((3, 4), 0.25)
        state[f"{dtype}.tensor"] = torch.quantize_per_tensor(x, 0.125, 3, dtype)
        state[f"{dtype}.channel"] = torch.quantize_per_channel(x, scales, zeros, 0, dtype)
    for dtype in (torch.quint4x2, torch.quint2x4):
        state[f"{dtype}.rows"] = torch.quantize_per_channel(
            counting((4, 8)), torch.full((4,), 0.5), torch.full((4,), 0.25), 0, dtype
        )
    return state


def attributes():
    parameter = torch.nn.Parameter(counting((2, 2)))
    parameter.tag, parameter.scale, parameter.both = "tagged", torch.ones(3), [1, torch.zeros(2)]
    tensor = counting((3,))
    tensor.why = "because"
    return {"p": parameter, "t": tensor, "frozen": torch.nn.Parameter(counting((2,)), requires_grad=False)}


def network():
    model = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2, bias=False)
    )
    for index, parameter in enumerate(model.parameters()):
        parameter.data = counting(parameter.shape, 0.5**index)
    return model


def optimizer(kind, **more):
    model = network()
    optimizer = kind(model.parameters(), lr=0.5, **more)
    for index, parameter in enumerate(model.parameters()):
        parameter.grad = counting(parameter.shape, 0.25 + index)
    optimizer.step()
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "best": None}


def sparse():
    dense = counting((4, 6)) * (counting((4, 6)) % 3 == 0)
    return {
        "coo": dense.to_sparse(),
        "uncoalesced": torch.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (2, 2)),
        "csr": dense.to_sparse_csr(),
        "csc": dense.to_sparse_csc(),
        "bsr": dense.to_sparse_bsr((2, 2)),
        "bsc": dense.to_sparse_bsc((2, 3)),
        "hybrid": torch.sparse_coo_tensor([[0, 2]], counting((2, 3)), (4, 3)),
    }


def nested():
    return {"n": torch.nested.nested_tensor([counting((2, 3)), counting((1, 3))])}


def jagged():
    make = torch.nested.nested_tensor_from_jagged
    return {
        "packed": torch.nested.nested_tensor([counting((2, 3)), counting((1, 3))], layout=torch.jagged),
        "inner": make(counting((4, 3)), torch.tensor([0, 1, 3]), jagged_dim=2),
        "gaps": make(counting((10, 2)), torch.tensor([0, 2, 6, 8]), torch.tensor([1, 3, 2])),
    }


def meta():
    return {
        "m": torch.empty(3, 4, device="meta"),
        "p": torch.nn.Parameter(torch.empty(2, device="meta")),
        "x": counting((2,)),
    }


def lazy():
    first, second = (torch.view_as_complex(counting((3, 2))) for _ in range(2))
    return {"conj": first.conj(), "neg": second.conj().imag}


def storages():
    return {"untyped": counting((3,)).untyped_storage(), "typed": torch.FloatStorage([1.0, 2.0])}


def containers():
    return OrderedDict(
        [
            (
                "nested",
                {
                    "list": [counting((2,)), {"deep": (counting((1,)), [])}],
                    7: torch.ones(1, dtype=torch.bool),
                },
            ),
            (
                "values",
                [
                    None,
                    True,
                    -1,
                    2**40,
                    -(2**62),
                    1.5e300,
                    "größe",
                    b"bytes",
                    bytearray(b"xx"),
                    {1, 2},
                    1 + 2j,
                ],
            ),
            (
                "torch",
                [
                    torch.Size([1, 2]),
                    torch.float16,
                    torch.device("cuda:1"),
                    torch.strided,
                    torch.per_tensor_affine,
                ],
            ),
            ("counter", Counter(a=2)),
            ("empty", [(), [], {}, ""]),
        ]
    )


def many():
    base = torch.arange(1500, dtype=torch.int16)
    return {f"t{index}": base[index : index + 1] for index in range(1500)}


OBJECTS = {
    "dtypes": dtypes,
    "zero_sizes": zero_sizes,
    "views": views,
    "quantized": quantized,
    "attributes": attributes,
    "state_dict": lambda: network().state_dict(),
    "sgd": lambda: optimizer(torch.optim.SGD, momentum=0.5),
    "adamw": lambda: optimizer(torch.optim.AdamW),
    "adagrad": lambda: optimizer(torch.optim.Adagrad),
    "sparse": sparse,
    "nested": nested,
    "jagged": jagged,
    "meta": meta,
    "lazy": lazy,
    "storages": storages,
    "containers": containers,
    "many": many,
    "bare_tensor": lambda: counting((3,)),
    "bare_list": lambda: [counting((3,)), (torch.ones(2), {"x": torch.zeros(1)})],
    "no_tensor": lambda: {"a": 1, "b": [1, "x"]},
}
CONTAINERS = {"zip": {}, "legacy": {"_use_new_zipfile_serialization": False}}


def strided(value, name=""):
    """Returns name -> tensor for the plain tensors in containers, with the names that qcts gives them."""
    if isinstance(value, torch.Tensor):
        plain = value.layout == torch.strided and not value.is_nested and not value.is_quantized
        if plain and value.device.type == "cpu" and not value.is_conj() and not value.is_neg():
            yield name or "tensor", value.detach()
    elif isinstance(value, (dict, list, tuple)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from strided(item, f"{name}.{key}" if name else str(key))


def raw(tensor):
    flat = tensor.contiguous().reshape(-1)
    if flat.dtype in (torch.bits8, torch.bits16, torch.bits1x8, torch.bits2x4, torch.bits4x2):
        return bytes(flat.untyped_storage())
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def assert_same_tensors(seen, state):
    by_name = {tensor["name"]: tensor for tensor in seen["tensors"]}
    for name, tensor in strided(state):
        data = by_name[name]["payload"][0]
        assert data["dtype"] == str(tensor.dtype).removeprefix("torch."), name
        assert data["shape"] == list(tensor.shape) and data["stride"] == list(tensor.stride()), name
        assert data["offset"] == tensor.storage_offset(), name
        assert data["sha256"] == hashlib.sha256(raw(tensor)).hexdigest(), name


def same(a, b):
    if isinstance(a, torch.Tensor) and a.device.type != "meta":
        if a.is_nested:
            return all(same(x, y) for x, y in zip(a.unbind(), b.unbind(), strict=True))
        if a.is_quantized:
            return same(a.int_repr(), b.int_repr()) and a.qscheme() == b.qscheme()
        if a.layout != torch.strided:
            return a.layout == b.layout and same(a.to_dense(), b.to_dense())
        return a.dtype == b.dtype and a.shape == b.shape and raw(a.resolve_conj()) == raw(b.resolve_conj())
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, (torch.UntypedStorage, torch.TypedStorage)):
        return list(a) == list(b)
    return isinstance(a, torch.Tensor) or a == b


def read(path):
    return torch.load(path, weights_only=True)


def saved(state, **options):
    file = io.BytesIO()
    torch.save(state, file, **options)
    return file.getvalue()


def repacked(data, drop=(), order=None, change=None):
    """Writes the archive with torch's own padding, records dropped, reordered or changed, and no serialization_id."""
    records = zipfile.ZipFile(io.BytesIO(data))
    names = [n for n in records.namelist() if n.split("/", 1)[1] not in (".data/serialization_id", *drop)]
    names = order(names) if order else names
    out, central = bytearray(), bytearray()
    for name in names:
        body = records.read(name)
        if change and (changed := change(name.split("/", 1)[1], body)) is not None:
            body = changed
        start, text = len(out), name.encode()
        crc, flags = zipfile.crc32(body), 0x0808 if body else 0x0800
        pad = -(start + 30 + len(text) + 4) % 64
        out += struct.pack("<IHHHHHIIIHH", 0x04034B50, 0, flags, 0, 0, 0, 0, 0, 0, len(text), pad + 4)
        out += text + b"FB" + struct.pack("<H", pad) + b"Z" * pad + body
        if body:
            out += struct.pack("<IIII", 0x08074B50, crc, len(body), len(body))
        central += struct.pack(
            "<IHHHHHHIIIHHHHHII",
            0x02014B50,
            0,
            0,
            flags,
            0,
            0,
            0,
            crc,
            len(body),
            len(body),
            len(text),
            0,
            0,
            0,
            0,
            0,
            start,
        )
        central += text
    at, count = len(out), len(names)
    out += central
    out += struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 0x031E, 0x2D, 0, 0, count, count, len(central), at)
    out += struct.pack("<IIQI", 0x07064B50, 0, at + len(central), 1)
    return bytes(out + struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, count, count, len(central), at, 0))
