# SPDX-License-Identifier: BSD-3-Clause
"""An implementation of mxfp4_even that knows only the exported text of qcts: python mxfp4_even.py FILE.tsv > ANSWERS.tsv"""

import math
import struct
import sys

from read_vectors import read

VALUES = [0, 0.5, 1, 1.5, 2, 3, 4, 6]


def block(x):
    """Returns the scale byte and the 32 codes: torchao's EVEN, with its codes of blocks that are not finite."""
    largest = math.nan if any(map(math.isnan, x)) else max(map(abs, x))
    exponent = (struct.unpack("<I", struct.pack("<f", largest))[0] + (1 << 21) >> 23) - 127
    byte = 255 if math.isnan(largest) else min(max(exponent - 2, -127), 128) + 127
    if byte == 255:  # x / infinity
        return byte, [code(v if math.isnan(v) else -math.nan if math.isinf(v) else v * 0) for v in x]
    return byte, [code(v / 2.0 ** max(byte - 127, -126)) for v in x]


def code(v):
    nearest = 3 if math.isnan(v) else min(range(8), key=lambda i: (abs(min(abs(v), 6) - VALUES[i]), i % 2))
    return nearest | 8 * (math.copysign(1, v) < 0)


if __name__ == "__main__":
    print("id\tcodes\tscales")
    for vector in read(sys.argv[1]):
        wide = vector["dtype"] == "float32"
        raw = vector["x"] if wide else b"".join(b"\0\0" + vector["x"][i : i + 2] for i in range(0, len(vector["x"]), 2))
        x = struct.unpack(f"<{len(raw) // 4}f", raw)
        made = [block(x[i : i + 32]) for i in range(0, len(x), 32)]
        codes = [c for _, of_block in made for c in of_block]
        packed = bytes(low | high << 4 for low, high in zip(codes[::2], codes[1::2], strict=True))
        print(vector["id"], packed.hex(), bytes(byte for byte, _ in made).hex(), sep="\t")
