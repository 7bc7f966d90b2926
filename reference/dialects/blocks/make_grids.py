# SPDX-License-Identifier: BSD-3-Clause
"""make_grids.py OUT: writes grids.inc, the grids of IQ1, IQ2 and IQ3, from the installed package gguf 0.19.0 (MIT)."""

import sys
from importlib.metadata import version
from pathlib import Path

from gguf import quants

GRIDS = {"Iq2Xxs": "IQ2_XXS", "Iq2Xs": "IQ2_XS", "Iq2S": "IQ2_S", "Iq3Xxs": "IQ3_XXS", "Iq3S": "IQ3_S", "Iq1": "IQ1_S"}


def words_of(cls):
    """Returns one word for each point: its coordinates as places in grid_map, the first one in the lowest bits."""
    cls.init_grid()
    places = {value: place for place, value in enumerate(cls.grid_map)}
    bits = (len(cls.grid_map) - 1).bit_length()
    points = cls.grid.reshape(cls.grid_shape)
    return [sum(places[int(value)] << (bits * i) for i, value in enumerate(point)) for point in points]


def main():
    assert version("gguf") == "0.19.0"
    lines = [
        "// SPDX-License-Identifier: BSD-3-Clause",
        "// Made by make_grids.py from gguf 0.19.0, quants.py: the points of each class's grid. A word holds a point:",
        "// its coordinates as places in grid_map, the first one in the lowest bits.",
        "// clang-format off",
    ]
    for name, cls in GRIDS.items():
        words = words_of(getattr(quants, cls))
        lines.append(f"constexpr std::array<uint16_t, {len(words)}> k{name}Grid = {{")
        for at in range(0, len(words), 20):
            lines.append("  " + " ".join(f"{word}," for word in words[at : at + 20]))
        lines.append("};")
    Path(sys.argv[1]).write_text("\n".join([*lines, "// clang-format on", ""]))


if __name__ == "__main__":
    main()
