# SPDX-License-Identifier: BSD-3-Clause
"""Pickles and archives with a high reading cost per byte, for test_bounds.py."""

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
    """Returns the sizes of the directory and of the pickle of an archive made here."""
    with open(path, "rb") as file:
        first = file.read(46)
        file.seek(-98, os.SEEK_END)
        directory = struct.unpack_from("<Q", file.read(98), 48)[0]
    pickle = struct.unpack_from("<I", first, 22)[0] if first.endswith(b"archive/data.pkl") else 0
    return path.stat().st_size - directory + pickle


def archive(records, path):
    """Writes stored entries with the end records that torch writes; the headers hold the sizes."""
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
    """One tensor with its own storage; the globals are in memo 1 to 5. 24 opcodes."""
    storage = b"(h\4h\3" + text(str(number)) + b"h\5J" + u32(elems) + b"tQ"
    return b"h\1(" + storage + b"K\0K\1\x85K\1\x85\x89h\2)RtR"


def many_tensors(count, path, storages):
    """A dict whose first entries memoise the globals; every tensor has a distinct name."""
    parts = [b"}(", text("g"), b"(", TENSOR_START, b"t"]
    parts += [text(f"layers.{i}.weight") + tensor(i % storages) for i in range(count)]
    pickled(b"".join(parts) + b"u", path, [b"\0\0\0\0"] * storages)
    return 26 * count + 20


def deep_lists(path):
    pickled(b"]" * 900_000 + b"a" * 899_999, path)
    return 1_800_000


def deep_tuples(path):
    pickled(b")" + b"\x85" * 4_000_000, path)
    return 4_000_000


def wide(item, batches):
    """A list of 1000 * batches items, appended 1000 at a time."""
    return b"]" + (b"(" + item * 1000 + b"e") * batches


def wide_list(path):
    """Every opcode makes a list, the object with the most heap per opcode."""
    pickled(wide(b"]", 8000), path)
    return 8_000_000


def wide_dicts(path):
    pickled(wide(b"}", 8000), path)
    return 8_000_000


def wide_numbers(path):
    pickled(wide(b"K\7", 8000), path)
    return 8_000_000


def wide_floats(path):
    pickled(wide(b"G" + b"\0" * 8, 4000), path)
    return 4_000_000


def wide_strings(path):
    pickled(wide(b"X\0\0\0\0", 8000), path)
    return 8_000_000


def memo_bomb(path):
    pickled(b"]" + b"".join(put(i) for i in range(4_000_000)), path)
    return 4_000_000


def memo_gap(path):
    pickled(b"]r\xff\xff\xff\xff", path)
    return 2


def laughs(path):
    """Thirty lists, each holding the previous one ten times: 10^30 tensors if walked as a tree."""
    start = b"(" + TENSOR_START + tensor(0) + put(6)
    levels = b"".join(
        b"](" + b"h" + bytes([6 + i]) + (b"h" + bytes([6 + i])) * 9 + b"e" + put(7 + i) for i in range(30)
    )
    pickled(start + levels + b"t", path, [b"\0\0\0\0"])
    return 1000


def shared_keys(path):
    """One dict with a million integer keys."""
    blocks = (range(first, first + 1000) for first in range(0, 1_000_000, 1000))
    pickled(
        b"}" + b"".join(b"(" + b"".join(b"J" + u32(i) + b"N" for i in block) + b"u" for block in blocks), path
    )
    return 2_000_000


def long_name(path):
    pickled(b"c" + b"a" * 20_000_000 + b"\nb\n", path)
    return 1


def empty_entries(count, path):
    """An archive of `count` empty stored entries, its directory in the zip64 form (APPNOTE 4.3)."""
    local, central, at = [], [], 0
    for i in range(count):
        name = b"archive/data/%d" % i
        local.append(struct.pack("<4s5H3I2H", b"PK\3\4", 0, 0, 0, 0, 0, 0, 0, 0, len(name), 0) + name)
        central.append(
            struct.pack("<4s6H3I5H2I", b"PK\1\2", 0, 0, 0, 0, 0, 0, 0, 0, 0, len(name), 0, 0, 0, 0, 0, at) + name
        )
        at += len(local[-1])
    directory = b"".join(central)
    end = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 0, 0, 0, 0, count, count, len(directory), at)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, at + len(directory), 1)
    last = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    path.write_bytes(b"".join(local) + directory + end + locator + last)


def huge_directory(path):
    empty_entries(540_000, path)
    return 0


def many_entries(path):
    empty_entries(100_000, path)
    return 0


def tensors_20k(path):
    return many_tensors(20_000, path, 2000)


def tensors_100k(path):
    """Many storages: a pickle, a directory and the list of tensors together."""
    return many_tensors(100_000, path, 100_000)


def wide_list_accepted(path):
    """The largest number of empty lists that the reader accepts."""
    pickled(wide(b"]", 500), path)
    return 500_000


def most_entries(path):
    empty_entries(524_288, path)
    return 0


def on_parameters(count, value, path):
    """Many Parameters with the same attribute `value`, memoised as 6."""
    rebuild = b"ctorch._utils\n_rebuild_parameter_with_state\nq\7"
    head = b"}(" + text("g") + b"(" + TENSOR_START + value + b"q\6" + rebuild + b"t"
    one = b"h\7(" + tensor(0) + b"\x89h\2)R}" + text("a") + b"h\6stR"
    pickled(head + b"".join(text(f"p{i}") + one for i in range(count)) + b"u", path, [b"\0\0\0\0"])
    return 34 * count + 30


def shared_list(path):
    return on_parameters(3000, b"](" + b"K\7" * 60_000 + b"e", path) + 60_000


def shared_dict(path):
    """Keys that a conversion of the attribute to JSON would look up one by one."""
    return on_parameters(50, b"}(" + b"".join(b"M" + struct.pack("<H", i) + b"N" for i in range(60_000)) + b"u", path) + 120_000


def shared_state(path):
    """500 Parameters that share an attribute, a dict of 2000 tensors."""
    inside = b"}(" + b"".join(text(f"t{i}") + tensor(0) for i in range(2000)) + b"u"
    return on_parameters(500, inside, path) + 26 * 2000


def deep_state(path):
    """A tensor inside 400 nested lists, next to 100,000 numbers."""
    inside = b"](" + b"K\7" * 100_000 + tensor(0) + b"e"
    for _ in range(400):
        inside = b"](" + inside + b"e"
    return on_parameters(20, inside, path) + 100_000 + 1600


def named_often(path):
    """Ten thousand tensors, each in 250 places."""
    inside = b"](" + b"".join(tensor(0) for _ in range(10_000)) + b"eq\6"
    head = b"}(" + text("g") + b"(" + TENSOR_START + inside + b"t"
    pickled(head + b"".join(text(f"p{i}") + b"h\6" for i in range(250)) + b"u", path, [b"\0\0\0\0"])
    return 24 * 10_000 + 600


def long_keys(path):
    """A key of 8 MB over 20,000 empty dicts, and once on each of 400 levels above a tensor."""
    key = text("k" * 8_000_000) + b"q\6"
    flat = b"](" + b"".join(b"}h\6}s" for _ in range(20_000)) + b"e"
    deep = tensor(0)
    for _ in range(400):
        deep = b"}h\6" + deep + b"s"
    body = b"}(" + text("g") + b"(" + TENSOR_START + key + b"t" + text("flat") + flat + text("deep") + deep + b"u"
    pickled(body, path, [b"\0\0\0\0"])
    return 4 * 20_000 + 4 * 400 + 60


def legacy(sizes, body, keys, path):
    """A file in torch.save's legacy format: five pickles, made from these parts, and no storages."""
    magic = b"\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
    version = b"M\xe9\3"
    info = text("protocol_version") + version + text("little_endian") + b"\x88" + text("type_sizes") + b"}(" + sizes + b"u"
    pickles = [version, b"}(" + info + b"u", body, keys]
    path.write_bytes(magic + b"".join(b"\x80\2" + each + b"." for each in pickles))


def legacy_wide(path):
    """Three pickles, each of the maximum width."""
    lists = wide(b"]", 1200)
    sizes = b"".join(text(str(i)) + b"K\1" for i in range(400_000))
    legacy(sizes, lists, lists, path)
    return 2_400_000 + 1_200_000


def legacy_deep(path):
    legacy(b"", b"]" * 900_000 + b"a" * 899_999, b"]", path)
    return 1_800_000


def long_integers(path):
    """Integers of 255 bytes: 8,000 of them, and one in four million places."""
    number = b"\x8a\xff" + b"\x7f" * 255
    pickled(b"(" + wide(number, 8) + number + put(0) + wide(b"h\0", 4000) + b"t", path)
    return 4_020_000


def long4(path):
    pickled(b"\x8b" + u32(2**31 - 1) + b"\x7f" * 1000, path)
    return 2


def tuple_keys(path):
    """A tuple of 60 kB as the key of 500,000 dicts, and of dicts of nine."""
    key = b"(" + text("k" * 6_000) * 10 + b"t" + put(0)
    nine = b"}(" + b"".join(b"h\0K" + bytes([i]) + b"\x86N" for i in range(9)) + b"u"
    pickled(b"(" + key + wide(b"}h\0Ns", 500) + wide(nine, 50) + b"t", path)
    return 4_000_000


def doubling_keys(path):
    """Tuples that hold the previous one twice, each the key of a dict."""
    pickled(b"](" + b")" + b"".join(b"q\0}h\0Nsh\0h\0\x86" for _ in range(400)) + b"e", path)
    return 4_000


def unknown_globals(path):
    """Two million names that are on no list; a refusal names 64."""
    pickled(b"](" + b"".join(b"cm%d\nn\n" % i for i in range(100)) + b"cm\nn\n" * 2_000_000 + b"e", path)
    return 2_000_000


def shared_arrays(path):
    """Arrays of an XLA device that all have the same 4 MB."""

    def call(function, reconstruct, kind, data):
        name = text("b") + text("latin1") + b"\x86R"
        state = b"(K\1J" + u32(4_000_000) + b"\x85" + kind + b"\x89" + data + b"t"
        return function + b"(" + reconstruct + name + b"\x87R" + state + b"bctorch\nuint8\n" + text("xla:0") + b"\x89tR"

    order = b"(K\3" + text("|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb"
    first = call(
        b"ctorch._utils\n_rebuild_device_tensor_from_numpy\nq\1",
        b"cnumpy.core.multiarray\n_reconstruct\nq\2cnumpy\nndarray\nq\3K\0\x85c_codecs\nencode\nq\4",
        b"cnumpy\ndtype\n" + text("u1") + b"\x89\x88\x87R" + order + b"q\5",
        b"h\4" + text("a" * 4_000_000) + text("latin1") + b"\x86Rq\6",
    )
    pickled(b"(" + first + wide(call(b"h\1", b"h\2h\3K\0\x85h\4", b"h\5", b"h\6"), 20) + b"t", path)
    return 30 * 20_000


HOSTILE = [
    deep_lists,
    deep_tuples,
    wide_list,
    wide_dicts,
    wide_numbers,
    wide_floats,
    wide_strings,
    memo_bomb,
    memo_gap,
]
HOSTILE += [long_integers, long4, tuple_keys, doubling_keys, unknown_globals, shared_arrays]
HOSTILE += [legacy_wide, legacy_deep, shared_list, shared_dict, shared_state, deep_state, named_often, long_keys]
HOSTILE += [
    laughs,
    shared_keys,
    long_name,
    huge_directory,
    many_entries,
    most_entries,
    tensors_20k,
    tensors_100k,
    wide_list_accepted,
]
ACCEPTED = {wide_numbers, tensors_20k, tensors_100k, wide_list_accepted}  # plausible in a real checkpoint
