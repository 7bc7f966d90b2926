# SPDX-License-Identifier: BSD-3-Clause
"""The part of scripts/blind that tries tensors of any torchao class: files of fixtures/make/blind/blind_classes.py, and
`qcts dequantize` against the library's own dequantize(), bit for bit.
"""

import array
import json
import os
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

FLOATS = {"BF16": ("H", 0x7F80), "F16": ("H", 0x7C00), "F32": ("I", 0x7F800000)}  # array type, exponent bits


def header_of(data):
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    return header, data[8 + length :]


def same_floats(want, got, dtype):
    """Compares bits, but all NaNs are equal."""
    if want == got:
        return True
    if dtype not in FLOATS or len(want) != len(got):
        return False
    kind, exponent = FLOATS[dtype]
    left, right = array.array(kind, want), array.array(kind, got)
    sign = 1 << (8 * left.itemsize - 1)
    nan = [(a & ~sign) > exponent and (b & ~sign) > exponent for a, b in zip(left, right, strict=True)]
    return all(a == b or both for a, b, both in zip(left, right, nan, strict=True))


def only_tensor(path):
    """Returns (dtype, shape, bytes) of the one tensor of a safetensors file."""
    header, data = header_of(Path(path).read_bytes())
    ((_, info),) = header.items()
    begin, end = info["data_offsets"]
    return info["dtype"], info["shape"], data[begin:end]


def compare(binary, folder, name):
    """Returns what is wrong with a file's dequantized tensor, or None."""
    with tempfile.TemporaryDirectory(prefix="blind.") as temporary:
        out = Path(temporary) / "dense.safetensors"
        command = [binary, "dequantize", folder / name, out]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            return f"refused: {done.stderr.strip().splitlines()[-1]}"
        dtype, shape, data = only_tensor(out)
    want_dtype, want_shape, want = only_tensor(folder / f"{name}.right.safetensors")
    if (dtype, shape) != (want_dtype, want_shape):
        return f"{dtype} {shape}, not {want_dtype} {want_shape}"
    return None if same_floats(want, data, dtype) else "other bits"


def make(python, path, script, out, seed, count, only=""):
    """Draws `count` tensors into OUT with the packages of PATH. Returns (the list of files, what was said)."""
    environ = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""} | ({"PYTHONPATH": str(path)} if path else {})
    command = [python, "-W", "ignore", script, out, "--seed", seed, "--count", count, "--only", only]
    done = subprocess.run(list(map(str, command)), env=environ, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{script} ended with exit code {done.returncode}: {done.stderr.strip()[-500:]}")
    return json.loads((out / "list.json").read_text()), done.stdout


def judge(binary, folder, files):
    """Prints every file that fails and the counts by kind; returns the number of failures."""
    right, failed = Counter(), Counter()
    for file in files:
        wrong = compare(binary, folder, file["file"])
        (failed if wrong else right)[file["kind"]] += 1
        if wrong:
            print(f"FAIL {file['file']}: {file['text']}: {wrong}", flush=True)
    kinds = sorted(right.keys() | failed.keys())
    print(", ".join(f"{kind} {right[kind]} of {right[kind] + failed[kind]}" for kind in kinds))
    print(f"{right.total()} of {len(files)} files have the library's own bits", flush=True)
    return failed.total()
