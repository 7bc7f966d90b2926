#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the machine code of the CUDA kernels, without a GPU: it has the instructions that each frame must have, keeps nothing in
local memory, and the inner loops of `linear` execute no more instructions than their budgets allow (scripts/sass_budget.py).

    scripts/check_sass.py [--library FILE] [--cuobjdump FILE] [--log FILE] [--write [--accept-misses]]

  --library        the plug-in; default build/release/lib/plugins/cuda/libqcts_cuda.so
  --cuobjdump      default: the one on the PATH, or in the PyPI package nvidia-cuda-cuobjdump (together with nvidia-cuda-nvdisasm)
  --log            the build's output, in which ptxas says whether it serialized wgmma (C75xx)
  --write          writes what was found to kernels/cuda/sass.json
  --accept-misses  also writes rows that are over their budget for the first time, or more than before

The table has a hash of the machine code of each kernel, which comments do not change, and the rows that are over their budget. These rows
may only improve. Exit code 1 if a fault is found. Without the plug-in or cuobjdump, it says what is missing.
"""

import argparse
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import sass
import sass_budget

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "kernels/cuda/sass.json"

# An instruction, and the part of its text that identifies it: LDG.E.NA.LTC128B.128.CONSTANT.
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
    (r"\ddecode\w*", ["LDGSTS.128", "HMMA"]),
    (r"\dgemm\w*TilePacked", ["LDGSTS.128", "LDSM", "HMMA"]),
    (r"\dfp8_gemm", ["QGMMA", "UTMALDG"]),
    (r"\dint4_gemm", ["HGMMA", "UTMALDG"]),
]
NEVER = ["LDL", "STL"]


@dataclass
class Found:
    """A kernel: {instruction of PATTERNS: count}, the hash of its code, and its Row of sass_budget, if it has a budget."""

    architecture: str
    function: str
    counts: dict[str, int]
    digest: str
    row: sass_budget.Row | None


def kernels_of(lines, resources):
    """Returns what cuobjdump -sass says about each kernel."""
    found = []
    for kernel in sass.read_kernels(lines):
        counts = {name: kernel.count(pattern) for name, pattern in PATTERNS.items()}
        registers = resources.get((kernel.architecture, kernel.function), (0, 0))[0]
        row = sass_budget.row_of(kernel, registers)
        found.append(Found(kernel.architecture, kernel.function, counts, kernel.digest(), row))
    return found


def resources_of(lines):
    """Returns {(architecture, function): (registers, stack bytes)} of cuobjdump -res-usage."""
    found, arch, function = {}, "", ""
    for line in lines:
        if match := re.match(r"arch = (\w+)", line):
            arch = match.group(1)
        elif match := re.match(r"\s*Function (\S+):", line):
            function = match.group(1)
        elif match := re.match(r"\s*REG:(\d+) STACK:(\d+)", line):
            found[arch, function] = (int(match.group(1)), int(match.group(2)))
    return found


def faults(kernels, resources):
    for kernel in kernels:
        arch, function, counts = kernel.architecture, kernel.function, kernel.counts
        where = f"{arch} {sass.frame_of(function)} ({function})"
        for name in NEVER:
            if counts[name]:
                yield f"{where}: {counts[name]} {name}: it keeps something in local memory"
        if resources.get((arch, function), (0, 0))[1]:
            yield f"{where}: {resources[arch, function][1]} bytes of stack"
        for pattern, promised in PROMISES:
            if re.search(pattern, function):
                yield from (f"{where}: no {name}" for name in promised if not counts[name])
    for pattern, _ in PROMISES:
        if not any(re.search(pattern, kernel.function) for kernel in kernels):
            yield f"no kernel matches {pattern}"


def log_faults(log):
    return sorted({f"ptxas: {line.strip()}" for line in log.splitlines() if re.search(r"\bC75\d\d\b", line)})


def rows(kernels, resources):
    """Returns one row per architecture and frame."""
    table = {}
    for kernel in kernels:
        arch, frame = kernel.architecture, sass.frame_of(kernel.function)
        row = table.setdefault((arch, frame), {"kernels": 0, "registers": 0, "instructions": {}})
        row["kernels"] += 1
        row["registers"] = max(row["registers"], resources.get((arch, kernel.function), (0, 0))[0])
        for name, count in kernel.counts.items():
            if count:
                row["instructions"][name] = row["instructions"].get(name, 0) + count
    return [{"architecture": arch, "frame": frame, **row} for (arch, frame), row in sorted(table.items())]


def hashes_of(kernels):
    """{"sm_80 gemm<BF16, Nf4Decoder, 4>": hash}. Kernels that share a name, because it leaves parts out, are numbered by hash."""
    named = {}
    for kernel in kernels:
        named.setdefault(f"{kernel.architecture} {sass.name_of(kernel.function)}", []).append(kernel.digest)
    return {name + (f" #{i}" if i else ""): digest for name, found in sorted(named.items()) for i, digest in enumerate(sorted(found))}


def changes(kernels, written):
    hashes = hashes_of(kernels)
    changed = sorted(name for name in hashes.keys() | written.keys() if hashes.get(name) != written.get(name))
    if not changed:
        return []
    return [f"{len(changed)} of {len(hashes)} kernels differ from kernels/cuda/sass.json, the first is {changed[0]}: run with --write"]


def find_cuobjdump():
    if found := shutil.which("cuobjdump"):
        return found
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations if spec else []:
        for found in sorted(Path(folder).glob("*/bin/cuobjdump")):
            return str(found)
    return None


def read_table():
    return json.loads(TABLE.read_text()) if TABLE.exists() else {}


def skip(reason):
    table = read_table()
    print(f"check_sass: skipped: {reason}")
    print(f"  kernels/cuda/sass.json has {len(table.get('kernels', {}))} kernels, {len(table.get('misses', {}))} of them over their budget")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, default=ROOT / "build/release/lib/plugins/cuda/libqcts_cuda.so")
    parser.add_argument("--cuobjdump", default=find_cuobjdump())
    parser.add_argument("--log", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--accept-misses", action="store_true")
    options = parser.parse_args()
    if not options.library.exists():
        return skip(f"no {options.library} (it is built if nvcc is found)")
    if options.cuobjdump is None:
        return skip("no cuobjdump (pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm)")

    def dump(what):
        with subprocess.Popen([options.cuobjdump, what, options.library], stdout=subprocess.PIPE, text=True) as process:
            yield from process.stdout
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, options.cuobjdump)

    resources = resources_of(dump("-res-usage"))
    kernels = kernels_of(dump("-sass"), resources)
    table = read_table()
    budget_rows = [kernel.row for kernel in kernels if kernel.row]
    over, improved, misses = sass_budget.ratchet(budget_rows, table.get("misses", {}))
    if options.accept_misses:
        over = []
    found = list(faults(kernels, resources)) + over
    if options.log:
        found += log_faults(options.log.read_text(errors="replace"))
    print("architecture frame                     kernels registers instructions")
    for row in rows(kernels, resources):
        counts = " ".join(f"{name} {count}" for name, count in row["instructions"].items())
        print(f"{row['architecture']:12} {row['frame']:25} {row['kernels']:7} {row['registers']:9} {counts}")
    print("\n".join(sass_budget.table_text(budget_rows)))
    if improved:
        print("\n".join([f"{len(improved)} rows are better than in kernels/cuda/sass.json: run with --write", *improved]))
    print("\n".join(changes(kernels, table.get("kernels", {}))))
    print("\n".join(found) if found else f"{len(kernels)} kernels keep what their frames promise, {len(misses)} over their budget")
    if options.write and not found:
        table = {"misses": dict(sorted(misses.items())), "frames": rows(kernels, resources), "kernels": hashes_of(kernels)}
        TABLE.write_text(json.dumps(table, indent=1) + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
