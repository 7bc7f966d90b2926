# SPDX-License-Identifier: BSD-3-Clause
"""Containers made from a seed: what torch, safetensors and zipfile read is what qcts reads, and what qcts writes
they read.

QCTS_DIFFERENTIAL_SEED and QCTS_DIFFERENTIAL_FILES choose others and more.
"""

import hashlib
import json
import os
import random
import struct
import subprocess
import zipfile
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the peer of the comparison is torch")
safe = pytest.importorskip("safetensors.torch")

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("QCTS_BUILD", ROOT / "build/release")) / "bin/qcts_differential"
SEED = int(os.environ.get("QCTS_DIFFERENTIAL_SEED", "20261121"))
FILES = int(os.environ.get("QCTS_DIFFERENTIAL_FILES", "500"))  # torch zips; half as many safetensors

DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.complex64,
    torch.complex128,
    torch.complex32,
]
DTYPES += [
    torch.int8,
    torch.uint8,
    torch.int16,
    torch.uint16,
    torch.int32,
    torch.uint32,
    torch.int64,
    torch.uint64,
    torch.bool,
]
DTYPES += [
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2fnuz,
    torch.float8_e8m0fnu,
]
DTYPES += [torch.float4_e2m1fn_x2]
NOT_IN_SAFETENSORS = {torch.complex128, torch.complex32}
TEXTS = ["", "weight", "ü", "日本", "\x00", "a.b", "\U0001f600", "x" * 300, 'q"\\\n']


class Peer:
    """qcts_differential, one process for all files."""

    def __init__(self):
        self.process = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, *words):
        self.process.stdin.write("\t".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert "refused" not in answer, (words, answer)
        return answer


@pytest.fixture(scope="module")
def peer():
    peer = Peer()
    yield peer
    peer.process.stdin.close()
    assert peer.process.wait(timeout=60) == 0


def base_tensor(rng, dtype):
    """A contiguous tensor of random bytes, sizes from 0 on."""
    shape = [rng.choice([0, 1, 1, 2, 3, 4, 5, 7]) for _ in range(rng.randrange(4))]
    count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    data = rng.randbytes(count) if dtype is not torch.bool else bytes(rng.randrange(2) for _ in range(count))
    flat = (
        torch.frombuffer(bytearray(data), dtype=torch.uint8).clone()
        if count
        else torch.empty(0, dtype=torch.uint8)
    )
    return flat.view(dtype).reshape(shape)


def view_of(rng, tensor):
    """Some strided view of the same storage."""
    kind = rng.randrange(6)
    if kind == 0 and tensor.dim() >= 2:
        return tensor.transpose(0, tensor.dim() - 1)
    if kind == 1 and tensor.dim() >= 1 and tensor.shape[0] >= 2:
        return tensor[1:]
    if kind == 2 and tensor.dim() >= 1:
        return tensor[::2]
    if kind == 3:
        return tensor.unsqueeze(0).expand(rng.randrange(4), *tensor.shape)
    if kind == 4 and tensor.numel() >= 4:
        return torch.as_strided(tensor, (2, 2), (1, rng.randrange(3)), rng.randrange(tensor.numel() - 3))
    return tensor.reshape(-1)[: rng.randrange(tensor.numel() + 1)]


def scalar(rng):
    return rng.choice(
        [
            None,
            True,
            False,
            0,
            255,
            256,
            65535,
            65536,
            -1,
            2**31 - 1,
            2**31,
            -(2**31),
            -(2**31) - 1,
            2**62,
            -(2**63),
        ]
        + [0.0, -0.0, 1.5, float("inf"), float("nan"), 5e-324, torch.Size([2, 3]), *TEXTS]
    )


def container(rng, pool, depth):
    """A nested value whose tensors come from `pool`, so that storages and whole tensors are shared."""
    kind = rng.randrange(9 if depth else 3)
    if kind < 2:
        return rng.choice(pool)
    if kind == 2:
        return scalar(rng)
    if kind == 3:
        return (
            pool[0]
            if rng.randrange(2)
            else torch.nn.Parameter(torch.ones(rng.randrange(4)), requires_grad=rng.random() < 0.5)
        )
    items = [container(rng, pool, depth - 1) for _ in range(rng.randrange(5))]
    if kind == 4:
        return tuple(items)
    if kind in (5, 6):
        return items
    keys = rng.sample(TEXTS + list(range(6)), len(items))
    return (dict if kind == 7 else OrderedDict)(zip(keys, items, strict=True))


def make_torch(rng, dtypes=DTYPES):
    pool = []
    for _ in range(rng.randrange(1, 5)):
        tensor = base_tensor(rng, rng.choice(dtypes))
        pool += [tensor] + [view_of(rng, tensor) for _ in range(rng.randrange(3))]
    return {"all": pool, "value": container(rng, pool, 4)}


def storage_bytes(tensor):
    flat = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())
    return flat.numpy().tobytes()


def row_major(tensor):
    """Bytes of the elements, from the storage and the strides alone: not every dtype has a copy kernel."""
    size = tensor.dtype.itemsize
    if tensor.numel() == 0:
        return b""
    whole = np.frombuffer(storage_bytes(tensor), dtype=np.void(size).dtype)
    strides = [s * size for s in tensor.stride()]
    return np.lib.stride_tricks.as_strided(whole[tensor.storage_offset() :], tensor.shape, strides).tobytes()


def expected(value, storages):
    """What `qcts_differential read` has to say of a value; `storages` numbers them by first appearance."""
    if isinstance(value, torch.Tensor):
        pointer = value.untyped_storage()._cdata
        key = storages.setdefault(pointer, str(len(storages)))
        described = {
            "dtype": str(value.dtype)[6:],
            "shape": list(value.shape),
            "stride": list(value.stride()),
        }
        described |= {
            "offset": value.storage_offset(),
            "storage": key,
            "storage_bytes": value.untyped_storage().nbytes(),
        }
        described |= {"sha256": hashlib.sha256(row_major(value)).hexdigest()}
        return {"tensor": described | {"parameter": isinstance(value, torch.nn.Parameter)}}
    if isinstance(value, torch.Size):
        return {"size": [{"int": int(n)} for n in value]}
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [expected(item, storages) for item in value]}
    if isinstance(value, dict):
        name = "ordered" if isinstance(value, OrderedDict) else "dict"
        return {name: [[expected(k, storages), expected(v, storages)] for k, v in value.items()]}
    if value is None:
        return {"none": True}
    if isinstance(value, float):
        return {"float": str(struct.unpack("<Q", struct.pack("<d", value))[0])}
    return {type(value).__name__: value}


def renumbered(described, names=None):
    """Storages by first appearance, empty ones all alike: torch.load gives each tensor without bytes its own."""
    names = {} if names is None else names
    if isinstance(described, list):
        return [renumbered(item, names) for item in described]
    if not isinstance(described, dict):
        return described
    if "storage" in described:
        name = names.setdefault(described["storage"], len(names)) if described["storage_bytes"] else "empty"
        return described | {"storage": name}
    return {key: renumbered(item, names) for key, item in described.items()}


def load(path):
    return torch.load(path, weights_only=True)


def describe(value):
    return renumbered(expected(value, {}))


def python_records(path):
    with zipfile.ZipFile(path) as archive:
        return [
            {
                "name": i.filename.split("/", 1)[1],
                "offset": i.header_offset,
                "crc": i.CRC,
                "sha256": hashlib.sha256(archive.read(i)).hexdigest(),
            }
            for i in archive.infolist()
        ]


def edited(value):
    """The first non-empty storage in the order of the file becomes 1 0 1 0 ..."""
    seen = {}

    def walk(item):
        if isinstance(item, torch.Tensor):
            seen.setdefault(item.untyped_storage()._cdata, item)
        elif isinstance(item, dict):
            for v in item.values():
                walk(v)
        elif isinstance(item, (list, tuple)):
            for v in item:
                walk(v)

    walk(value)
    for tensor in seen.values():
        if tensor.untyped_storage().nbytes():
            flat = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())
            flat[:] = torch.arange(len(flat)) % 2 == 0
            return value
    return value


def test_torch_zips_are_read_and_written_as_python_does(peer, tmp_path):
    rng = random.Random(SEED)
    tensors = 0
    for i in range(FILES):
        path, out = tmp_path / f"generated_{i}.pt", tmp_path / "out.pt"
        value = make_torch(rng)
        torch.save(value, path)
        theirs = describe(load(path))
        got = peer("read", path)
        assert got["graph"] == expected(value, {}), f"file {i} of seed {SEED} is not read as what was saved"
        assert renumbered(got["graph"]) == theirs, f"file {i} of seed {SEED} is not read as torch.load does"
        assert got["records"] == python_records(path)
        tensors += json.dumps(theirs).count('"tensor"')
        for verb in ("rebuild", "write"):
            assert not peer(verb, path, out)["kept"]
            assert out.read_bytes() == path.read_bytes(), f"{verb}, file {i} of seed {SEED}"
        peer("rewrite", path, out)
        assert describe(load(out)) == theirs, f"rewrite, file {i} of seed {SEED}"
        peer("edit", path, out)
        assert describe(load(out)) == describe(edited(load(path))), f"edit, file {i} of seed {SEED}"
        path.unlink()
    assert tensors > 5 * FILES, "the generator makes too few tensors"


def legacy_dtypes(path):
    """Those that torch.load reads back from its first format: of the newer ones it writes files that it cannot read."""
    readable = []
    for dtype in DTYPES:
        save_legacy(torch.empty(2, dtype=dtype), path)
        try:
            load(path)
            readable.append(dtype)
        except Exception:  # whatever torch says of its own file
            pass
    path.unlink()
    return readable


def save_legacy(value, path):
    torch.save(value, path, _use_new_zipfile_serialization=False)


def test_legacy_files_are_read_and_written_as_python_does(peer, tmp_path):
    rng = random.Random(SEED + 2)
    dtypes = legacy_dtypes(tmp_path / "probe.pt")
    assert len(dtypes) >= 12
    for i in range(FILES // 2):
        path, out = tmp_path / f"generated_{i}.pt", tmp_path / "out.pt"
        value = make_torch(rng, dtypes)
        save_legacy(value, path)
        theirs = describe(load(path))
        got = renumbered(peer("read", path)["graph"])
        assert got == describe(value), f"file {i} of seed {SEED} is not read as what was saved"
        assert got == theirs, f"file {i} of seed {SEED} is not read as torch.load does"
        assert not peer("rebuild", path, out)["kept"]
        assert out.read_bytes() == path.read_bytes(), f"rebuild, file {i} of seed {SEED}"
        peer("edit", path, out)
        assert describe(load(out)) == describe(edited(load(path))), f"edit, file {i} of seed {SEED}"
        path.unlink()


def safetensors_value(path):
    with safe.safe_open(path, framework="pt") as file:
        metadata = sorted((file.metadata() or {}).items())
    found = {}
    for name, tensor in safe.load_file(path).items():
        found[name] = {"dtype": str(tensor.dtype)[6:], "shape": list(tensor.shape)}
        found[name]["sha256"] = hashlib.sha256(row_major(tensor)).hexdigest()
    return metadata, found


def our_value(answer):
    tensors = {n: {k: t[k] for k in ("dtype", "shape", "sha256")} for n, t in answer["tensors"].items()}
    return sorted(map(tuple, answer["metadata"])), tensors


def test_safetensors_are_read_and_written_as_python_does(peer, tmp_path):
    rng = random.Random(SEED + 1)
    dtypes = [d for d in DTYPES if d not in NOT_IN_SAFETENSORS]
    for i in range(FILES // 2):
        path, out = tmp_path / f"generated_{i}.safetensors", tmp_path / "out.safetensors"
        tensors = {}
        for name in rng.sample(TEXTS, rng.randrange(7)):
            tensor = base_tensor(rng, rng.choice(dtypes))
            if tensor.dtype is torch.float4_e2m1fn_x2 and tensor.dim() == 0:
                continue
            tensors[name] = tensor
        metadata = {
            k: v for k, v in zip(rng.sample(TEXTS[1:7], 3), ["pt", "", "ü"], strict=True) if rng.randrange(2)
        }
        safe.save_file(tensors, path, metadata or None)
        theirs = safetensors_value(path)
        assert our_value(peer("read", path)) == theirs, f"file {i} of seed {SEED}"
        peer("rebuild", path, out)
        assert out.read_bytes() == path.read_bytes(), f"rebuild, file {i} of seed {SEED}"
        peer("write", path, out)
        assert safetensors_value(out) == theirs, f"write, file {i} of seed {SEED}"
        if len(metadata) < 2:  # the order of several keys is random in safetensors, sorted here
            assert out.read_bytes() == path.read_bytes(), f"write, file {i} of seed {SEED}"
        peer("edit", path, out)
        changed = [n for n, t in safetensors_value(out)[1].items() if t != theirs[1][n]]
        first = next((n for n, t in peer("read", path)["tensors"].items() if t["storage_bytes"]), None)
        wanted = (
            hashlib.sha256(bytes(1 - k % 2 for k in range(storage_size(path, first)))).hexdigest()
            if first is not None
            else None
        )
        assert changed == ([] if first is None or theirs[1][first]["sha256"] == wanted else [first])
        assert first is None or safetensors_value(out)[1][first]["sha256"] == wanted
        path.unlink()


def storage_size(path, name):
    return len(row_major(safe.load_file(path)[name]))
