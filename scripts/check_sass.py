#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the machine code of the CUDA kernels, which needs no GPU: the instructions that a frame stands for are there, and nothing is in
local memory.

    scripts/check_sass.py [--library FILE] [--cuobjdump FILE] [--log FILE] [--write]

  --library    the plug-in; default build/release/lib/plugins/cuda/libqcts_cuda.so
  --cuobjdump  default: the one on the PATH, or that of the PyPI package nvidia-cuda-cuobjdump (with nvidia-cuda-nvdisasm beside it)
  --log        the build's output, in which ptxas says whether it serialized wgmma (C75xx)
  --write      writes what was found to kernels/cuda/sass.json

Exit code 1 if a fault is found. Without the plug-in or cuobjdump it says what is missing and for which sources the written table holds.
"""

import argparse
import hashlib
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "kernels/cuda/sass.json"
SOURCES = ("kernels/cuda/*.h", "kernels/sm80/*.h", "kernels/sm90a/*.h", "kernels/*/sm80.cu", "kernels/*/sm90a.cu")

# An instruction, and the part of its text that tells it: LDG.E.NA.LTC128B.128.CONSTANT.
PATTERNS = {
    "LDG.128": r"LDG\.[A-Z0-9.]*\b128\b",
    "STG.128": r"STG\.[A-Z0-9.]*\b128\b",
    "LDGSTS.128": r"LDGSTS\.[A-Z0-9.]*\b128\b",
    "LDSM": r"LDSM\b",
    "HMMA": r"HMMA\b",
    "IMMA": r"IMMA\b",
    "HGMMA": r"HGMMA\b",
    "QGMMA": r"QGMMA\b",
    "UTMALDG": r"UTMALDG\b",
    "LDL": r"LDL\b",
    "STL": r"STL\b",
}
# For the frames whose name and template arguments, as the compiler mangles them, match: the instructions that each kernel must have.
PROMISES = [
    (r"\d(de)?quantize_tiles", ["LDG.128", "STG.128"]),
    (r"\dgemv\w*Lb1E", ["LDG.128"]),
    (r"\dfloat_gemv", ["LDG.128"]),
    (r"\dgemv_tiles", ["LDG.128"]),
    (r"\dgemm\w*TilePacked", ["LDGSTS.128", "LDSM", "HMMA"]),
    (r"\dfp8_gemm", ["QGMMA", "UTMALDG"]),
    (r"\dint4_gemm", ["HGMMA", "UTMALDG"]),
]
NEVER = ["LDL", "STL"]


def frame_of(function):
    """Returns "dequantize_tiles" for its mangled name: the last of the names after _Z or _ZN, each of which follows its length."""
    rest = function.removeprefix("_Z").removeprefix("N")
    name = function
    while found := re.match(r"\d+", rest):
        end = found.end() + int(found.group())
        name, rest = rest[found.end() : end], rest[end:]
    return name


def kernels_of(sass):
    """Returns [(architecture, function, {instruction: count})] of cuobjdump -sass."""
    kernels, arch = [], ""
    for line in sass.splitlines():
        if found := re.match(r"arch = (\w+)", line):
            arch = found.group(1)
        elif found := re.match(r"\s*Function : (\S+)", line):
            kernels.append((arch, found.group(1), dict.fromkeys(PATTERNS, 0)))
        elif kernels and (found := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?(\S+)", line)):
            for name, pattern in PATTERNS.items():
                kernels[-1][2][name] += bool(re.match(pattern, found.group(1)))
    return kernels


def resources_of(text):
    """Returns {(architecture, function): (registers, stack bytes)} of cuobjdump -res-usage."""
    found, arch, function = {}, "", ""
    for line in text.splitlines():
        if match := re.match(r"arch = (\w+)", line):
            arch = match.group(1)
        elif match := re.match(r"\s*Function (\S+):", line):
            function = match.group(1)
        elif match := re.match(r"\s*REG:(\d+) STACK:(\d+)", line):
            found[arch, function] = (int(match.group(1)), int(match.group(2)))
    return found


def faults(kernels, resources):
    for arch, function, counts in kernels:
        where = f"{arch} {frame_of(function)} ({function})"
        for name in NEVER:
            if counts[name]:
                yield f"{where}: {counts[name]} {name}: it keeps something in local memory"
        if resources.get((arch, function), (0, 0))[1]:
            yield f"{where}: {resources[arch, function][1]} bytes of stack"
        for pattern, promised in PROMISES:
            if re.search(pattern, function):
                yield from (f"{where}: no {name}" for name in promised if not counts[name])
    for pattern, _ in PROMISES:
        if not any(re.search(pattern, function) for _, function, _ in kernels):
            yield f"no kernel matches {pattern}"


def log_faults(log):
    return sorted({f"ptxas: {line.strip()}" for line in log.splitlines() if re.search(r"\bC75\d\d\b", line)})


def rows(kernels, resources):
    """One row an architecture and frame."""
    table = {}
    for arch, function, counts in kernels:
        row = table.setdefault((arch, frame_of(function)), {"kernels": 0, "registers": 0, "instructions": {}})
        row["kernels"] += 1
        row["registers"] = max(row["registers"], resources.get((arch, function), (0, 0))[0])
        for name, count in counts.items():
            if count:
                row["instructions"][name] = row["instructions"].get(name, 0) + count
    return [{"architecture": arch, "frame": frame, **row} for (arch, frame), row in sorted(table.items())]


def source_hashes(root=ROOT):
    files = sorted({path for pattern in SOURCES for path in root.glob(pattern)})
    return {path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def find_cuobjdump():
    if found := shutil.which("cuobjdump"):
        return found
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations if spec else []:
        for found in sorted(Path(folder).glob("*/bin/cuobjdump")):
            return str(found)
    return None


def skip(reason):
    written = json.loads(TABLE.read_text())["sources"] if TABLE.exists() else {}
    changed = sorted(path for path, digest in source_hashes().items() if written.get(path) != digest)
    print(f"check_sass: skipped: {reason}")
    if changed:
        print(f"  since kernels/cuda/sass.json was written, {len(changed)} of {len(source_hashes())} sources have changed")
    else:
        print("  kernels/cuda/sass.json holds for these sources")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, default=ROOT / "build/release/lib/plugins/cuda/libqcts_cuda.so")
    parser.add_argument("--cuobjdump", default=find_cuobjdump())
    parser.add_argument("--log", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if not options.library.exists():
        return skip(f"no {options.library} (it is built where nvcc is found)")
    if options.cuobjdump is None:
        return skip("no cuobjdump (pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm)")

    def dump(what):
        return subprocess.run([options.cuobjdump, what, options.library], check=True, capture_output=True, text=True).stdout

    kernels, resources = kernels_of(dump("-sass")), resources_of(dump("-res-usage"))
    found = list(faults(kernels, resources))
    if options.log:
        found += log_faults(options.log.read_text(errors="replace"))
    print("architecture frame                     kernels registers instructions")
    for row in rows(kernels, resources):
        counts = " ".join(f"{name} {count}" for name, count in row["instructions"].items())
        print(f"{row['architecture']:12} {row['frame']:25} {row['kernels']:7} {row['registers']:9} {counts}")
    print("\n".join(found) if found else f"{len(kernels)} kernels keep what their frames promise")
    if options.write and not found:
        table = {"sources": source_hashes(), "frames": rows(kernels, resources)}
        TABLE.write_text(json.dumps(table, indent=1) + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
