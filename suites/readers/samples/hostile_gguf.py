# SPDX-License-Identifier: BSD-3-Clause
"""GGUF files with a high reading cost, for test_bounds.py."""

import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "fixtures/make/malformed"))
import malformed_gguf as gguf  # noqa: E402


def numbered(count, name="{}"):
    """Descriptions of tensors without dimensions, 32 bytes apart."""
    return [gguf.tensor(name.format(i), dims=(), type=24, offset=32 * i) for i in range(count)]


def bytes_of(count):
    return bytes(32 * count)


def many_tensors(path, count=100_000):
    path.write_bytes(gguf.file_of(tensors=numbered(count), data=bytes_of(count)))


def million_tensors(path):
    """Empty tensors, which take no bytes of data."""
    tensors = [gguf.tensor(f"{i:x}", dims=(0,), type=24) for i in range(1_000_000)]
    path.write_bytes(gguf.file_of(tensors=tensors, data=b""))


def long_names(path):
    path.write_bytes(gguf.file_of(tensors=numbered(300, "{}" + "n" * 65_000), data=bytes_of(300)))


def many_pairs(path):
    path.write_bytes(gguf.file_of(pairs=[gguf.u32(f"k{i}", i) for i in range(65_536)]))


def long_keys(path):
    path.write_bytes(gguf.file_of(pairs=[gguf.u32(f"{i}" + "k" * 65_000, i) for i in range(1_500)]))


def long_string(path):
    path.write_bytes(gguf.file_of(pairs=[gguf.pair("k", gguf.STRING, gguf.string(b"s" * (100 << 20)))]))


def vocabulary(path, count=1_000_000):
    """As of a large model: a million words."""
    words = b"".join(gguf.string(f"word{i}") for i in range(count))
    path.write_bytes(gguf.file_of(pairs=[gguf.pair("tokenizer.ggml.tokens", gguf.ARRAY, struct.pack("<IQ", gguf.STRING, count) + words)]))


def empty_strings(path, count=8_000_000):
    items = struct.pack("<IQ", gguf.STRING, count) + bytes(8 * count)
    path.write_bytes(gguf.file_of(pairs=[gguf.pair("k", gguf.ARRAY, items)]))


def empty_arrays(path, count=5_000_000):
    items = struct.pack("<IQ", gguf.ARRAY, count) + struct.pack("<IQ", gguf.U8, 0) * count
    path.write_bytes(gguf.file_of(pairs=[gguf.pair("k", gguf.ARRAY, items)]))


def wide_padding(path):
    """An alignment of 64 KiB, and padding that is not zeros after each of 1,000 tensors."""
    pairs, wide = [gguf.u32("general.alignment", 65_536)], 65_536
    tensors = [gguf.tensor(f"{i}", dims=(), type=24, offset=wide * i) for i in range(1_000)]
    path.write_bytes(gguf.file_of(pairs, tensors, data=b"\1" * (wide * 1_000), alignment=wide))


ACCEPTED_GGUF = [many_tensors, many_pairs, long_string, vocabulary, empty_strings, empty_arrays, wide_padding]
HOSTILE_GGUF = [*ACCEPTED_GGUF, million_tensors, long_names, long_keys]
