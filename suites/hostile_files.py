"""Files that are made to cost much, byte by byte: for test_bounds.py."""

import json
import os
import struct
import zlib


def u32(value):
    return struct.pack("<I", value)


def text(value):
    return b"X" + u32(len(value)) + value.encode()


def put(index):
    return b"q" + bytes([index]) if index < 256 else b"r" + u32(index)


def header_of(path):
    """Bytes of the directory and of the pickle of an archive made here."""
    with open(path, "rb") as file:
        first = file.read(46)
        file.seek(-98, os.SEEK_END)
        directory = struct.unpack_from("<Q", file.read(98), 48)[0]
    pickle = struct.unpack_from("<I", first, 22)[0] if first.endswith(b"archive/data.pkl") else 0
    return path.stat().st_size - directory + pickle


def archive(records, path):
    """Stored entries with the end records that torch writes; sizes stand in the headers."""
    central = []
    with open(path, "wb") as out:
        for name, data in records:
            full, crc, at = f"archive/{name}".encode(), zlib.crc32(data), out.tell()
            common = struct.pack("<HHHHIII", 0, 0, 0, 0, crc, len(data), len(data))
            out.write(
                b"PK\3\4" + struct.pack("<H", 0) + common + struct.pack("<HH", len(full), 0) + full + data
            )
            places = struct.pack("<HHHHHII", len(full), 0, 0, 0, 0, 0, at)
            central.append(b"PK\1\2" + struct.pack("<HH", 0, 0) + common + places + full)
        begin, count, directory = out.tell(), len(records), b"".join(central)
        end64 = begin + len(directory)
        out.write(directory)
        out.write(
            b"PK\6\6" + struct.pack("<QHHIIQQQQ", 44, 0x31E, 45, 0, 0, count, count, len(directory), begin)
        )
        out.write(b"PK\6\7" + struct.pack("<IQI", 0, end64, 1))
        small = min(count, 0xFFFF)
        out.write(b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, small, small, len(directory), begin, 0))


def pickled(body, path, storages=()):
    extra = [(f"data/{i}", data) for i, data in enumerate(storages)]
    archive(
        [("data.pkl", b"\x80\x02" + body + b"."), ("byteorder", b"little"), *extra, ("version", b"3\n")], path
    )


TENSOR_START = (
    b"ctorch._utils\n_rebuild_tensor_v2\nq\1ccollections\nOrderedDict\nq\2ctorch\nFloatStorage\nq\3"
    + text("storage")
    + b"q\4"
    + text("cpu")
    + b"q\5"
)


def tensor(number, elems=1):
    """One tensor over a storage of its own name; the globals are in memo 1 to 5. 24 opcodes."""
    storage = b"(h\4h\3" + text(str(number)) + b"h\5J" + u32(elems) + b"tQ"
    return b"h\1(" + storage + b"K\0K\1\x85K\1\x85\x89h\2)RtR"


def many_tensors(count, path, storages):
    """A dict whose first entries memoise the globals; every tensor has a name of its own."""
    parts = [b"}(", text("g"), b"(", TENSOR_START, b"t"]
    parts += [text(f"layers.{i}.weight") + tensor(i % storages) for i in range(count)]
    pickled(b"".join(parts) + b"u", path, [b"\0\0\0\0"] * storages)
    return 26 * count + 20


def safetensors(header, path, data=b""):
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)


def described(metadata, entries, path):
    """A header with __metadata__ and entries name -> (dtype, shape, bytes), the data zeros."""
    header, at = {"__metadata__": metadata}, 0
    for name, (dtype, shape, size) in entries.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    safetensors(json.dumps(header, separators=(",", ":")).encode(), path, bytes(at))
