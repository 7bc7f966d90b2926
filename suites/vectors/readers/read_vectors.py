# SPDX-License-Identifier: BSD-3-Clause
"""Reads exported vectors: python read_vectors.py FILE.tsv. Prints how many there are, their bytes, and FNV-1a of all bytes."""

import sys


def read(path):
    """Yields one dictionary a vector: texts, n and k as numbers, x, codes and y as bytes, scales as a list of bytes, flags as a list."""
    with open(path, encoding="ascii") as file:
        names = next(file).rstrip("\n").split("\t")
        for line in file:
            vector = dict(zip(names, line.rstrip("\n").split("\t"), strict=True))
            vector |= {name: int(vector[name]) for name in ("n", "k")}
            vector |= {name: bytes.fromhex(vector[name]) for name in ("x", "codes", "y")}
            vector["scales"] = [bytes.fromhex(plane) for plane in vector["scales"].split(",")]
            vector["flags"] = vector["flags"].split(",") if vector["flags"] else []
            yield vector


if __name__ == "__main__":
    count, size, fnv = 0, 0, 0xCBF29CE484222325
    for vector in read(sys.argv[1]):
        count += 1
        for byte in vector["x"] + vector["codes"] + b"".join(vector["scales"]) + vector["y"]:
            size, fnv = size + 1, (fnv ^ byte) * 0x100000001B3 % 2**64
    print(f"{count} vectors, {size} bytes, fnv {fnv:016x}")
