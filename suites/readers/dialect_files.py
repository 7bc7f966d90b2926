# SPDX-License-Identifier: BSD-3-Clause
"""Helpers for the dialect tests: goldens by id, safetensors files without a library, refusals."""

import json
import struct
from pathlib import Path

from qcts_program import ROOT, qcts

FIXTURES = ROOT / "fixtures"
MANIFEST = json.loads((FIXTURES / "manifest.json").read_text())
GOLDENS = {entry["id"]: entry for entry in MANIFEST["goldens"]}


def read_safetensors(path):
    """Reads a file as name -> (dtype, shape, bytes)."""
    data = Path(path).read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    body = data[8 + length :]
    return {name: (v["dtype"], v["shape"], body[slice(*v["data_offsets"])]) for name, v in header.items()}


def metadata_of(path):
    """Reads the __metadata__ of a file."""
    data = Path(path).read_bytes()
    return json.loads(data[8 : 8 + struct.unpack("<Q", data[:8])[0]]).get("__metadata__", {})


def write_safetensors(path, entries, metadata=None):
    """Writes entries, name -> (dtype, shape, bytes), in order."""
    header, offset = {"__metadata__": metadata} if metadata else {}, 0
    for name, (dtype, shape, data) in entries.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    Path(path).write_bytes(
        struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in entries.values())
    )
    return path


def refusal(path, *words):
    done = qcts("inspect", path, "--json", *words, code=1)
    return json.loads(done.stdout)["refusal"]


WEIGHT = ("F32", [2, 4], bytes(32))  # dtype, shape, bytes
