# SPDX-License-Identifier: BSD-3-Clause
"""Checks that each folder includes only folders below it, and that headers form no cycle (CONTRIBUTING.md has the tables).

Prints every line that breaks a rule; exit code 1 if there is one."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# The subfolders ("rooms") of each top-level folder, lowest first. A file belongs to the deepest one that contains it.
ORDER = {
    "reports": ["reports", "reports/page"],
    "reference": [
        "reference/formats",
        "reference/formats/io",
        "reference/formats/zip",
        "reference/formats/pickle",
        "reference/formats/torch",
        "reference/formats/torchscript",
        "reference/formats/safetensors",
        "reference/formats/gguf",
        "reference/formats/testdata",
        "reference/numerics",
        "reference/schemes",
        "reference/schemes/choices",
        "reference/schemes/recorded",
        "reference/oracle",
        "reference/dialects/blocks",
        "reference/dialects/classes",
        "reference/dialects/decoders",
        "reference/dialects/names",
        "reference/dialects/directory",
        "reference/dialects",
        "reference/dialects/torchao",
        "reference/dialects/foreign",
        "reference/dialects/joins",
        "reference/dialects/encoders",
        "reference/dialects/transcode",
        "reference/comparison",
        "reference/values",
    ],
    "kernels": [
        "kernels/abi",
        "kernels/machine",
        "kernels/families",
        "kernels/cuda",
        "kernels/cudaclock",
        "kernels/sm80",
        "kernels/sm90a",
        "kernels/scalar",
        "kernels/avx2",
        "kernels/avx2/quantize",
        "kernels/avx2/dequantize",
        "kernels/avx512",
        "kernels/avx512/quantize",
        "kernels/avx512/dequantize",
        "kernels/fixed",
        "kernels/vnni",
        "kernels/avx2/dots",
        "kernels/bf16",
        "kernels/avxvnni",
        "kernels/avx512vnni",
        "kernels/avx512bf16",
        "kernels/avx512vbmi",
        "kernels/amx",
        "kernels/pack",
        "kernels/unpack",
        "kernels/quantize",
        "kernels/quantize_activation",
        "kernels/dequantize",
        "kernels/linear",
        "kernels",
        "kernels/fakecuda",
        "kernels/emulated",
        "kernels/device_check",
        "kernels/plugins",
    ],
    "fixtures": ["fixtures"],
    "suites": [
        "suites/base",
        "suites/host/device",
        "suites/host",
        "suites/providers/memory",
        "suites/providers",
        "suites/inputs",
        "suites/cases/selection",
        "suites/cases",
        "suites/cases/conformance",
        "suites/timing",
        "suites/judge/context",
        "suites/judge/expected",
        "suites/judge/diagnosis",
        "suites/judge/files",
        "suites/judge",
        "suites/judge/determinism",
        "suites/judge/numerics",
        "suites/judge/latency",
        "suites/vectors",
        "suites/identify",
        "suites/confirmed",
        "suites/record",
        "suites/comparison",
        "suites/run/environment",
        "suites/run/workers",
        "suites/run/summary",
        "suites/run",
        "suites/history",
        "suites/statement",
        "suites/bench",
        "suites/selftest/mutants",
        "suites/selftest/cuda_mutants",
        "suites/selftest/device_faults",
        "suites/selftest/cheats/library",
        "suites/selftest/cheats",
        "suites/selftest",
        "suites/cli",
        "suites/cli/files",
        "suites/cli/files/check",
        "suites/cli/files/transcode",
        "suites/fuzz",
        "suites/python",
        "suites/readers",
        "suites",
    ],
}
MAY_INCLUDE = {
    "reference": {"reference"},
    "kernels": {"kernels"},
    "fixtures": {"fixtures", "reference"},
    "reports": {"reports"},
    "suites": {"suites", "fixtures", "reference", "kernels", "reports"},
}
# A kernel is a function of raw pointers: it includes the C contract, instruction sets, C headers, what every kernel may call
# (kernels/families), and the helpers of its own variant, never another's (kernels/linear/avx2.cc and int8_row_avx2.cc: kernels/avx2/),
# or of what its variant multiplies (avx512bf16, avx512vbmi and amx: kernels/bf16/; sm90a: kernels/sm80/). Those for GPUs use kernels/cuda/.
KERNEL_OPS = ("linear", "dequantize", "quantize", "quantize_activation", "pack", "unpack")
KERNEL_HEADERS = re.compile(
    r"^(kernels/abi/[a-z_]+\.h|kernels/families/[a-z0-9_]+\.h|[a-z]*intrin\.h|std[a-z]+\.h|string\.h|math\.h|c[a-z]+)$"
)
SHARED_HELPERS = {"avx512bf16": "bf16", "avx512vbmi": "bf16", "amx": "bf16", "sm80": "cuda", "sm90a": "cuda|sm80"}
# The program that loads a provider has no part of the judge.
HOST_HEADERS = ("suites/host/", "suites/base/", "kernels/abi/")
LIST = "kernels/kernels.inc"  # any room may include the list of kernels
TORCH = re.compile(r"^(torch|ATen|c10)/")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
SOURCES = {".h", ".cc", ".c", ".cu", ".cuh", ".inc"}


def includes(root):
    """(path, line number, header) of every include directive below the top-level folders, paths relative to `root`."""
    for top in ORDER:
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in SOURCES:
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                match = INCLUDE.match(line)
                if match:
                    yield path.relative_to(root), number, match.group(1)


def violations(root=ROOT):
    graph = {}
    for path, number, header in includes(root):
        complaint = judge(path, header)
        if complaint:
            yield f"{path}:{number}: {complaint}"
        if header.split("/")[0] in ORDER:
            graph.setdefault(path.as_posix(), []).append(header)
    yield from (f"{ring[0]}: include cycle: {' -> '.join(ring)}" for ring in rings(graph))


def room_of(path):
    """Returns the room of `path`, which is its deepest matching folder; None outside all rooms."""
    top = path.split("/")[0]
    fitting = [room for room in ORDER.get(top, []) if path.startswith(room + "/")]
    return max(fitting, key=len, default=None)


def judge(path, header):
    """Returns why `path` may not include `header`; None when it may."""
    top = path.parts[0]
    target = header.split("/")[0]
    if TORCH.match(header) and path.parts[:3] != ("kernels", "plugins", "aten"):
        return f"{header}: LibTorch may be included in kernels/plugins/aten only"
    if target in ORDER and target not in MAY_INCLUDE[top]:
        return f"{header}: {top} may not include {target}"
    if target == top and header != LIST:
        here, there = room_of(path.as_posix()), room_of(header)
        if here is None or there is None:
            return f"{header}: {path.as_posix() if here is None else header} is in no room of scripts/check_includes.py"
        order = ORDER[top]
        if order.index(there) > order.index(here):
            return f"{header}: {here} may not include {there}, which is above it"
    if path.parts[:2] == ("suites", "host") and target in ORDER and not header.startswith(HOST_HEADERS):
        return f"{header}: a host includes kernels/abi and suites/base only, because it loads code that may be hostile"
    return judge_kernel(path, header, target) if top == "kernels" else None


def judge_kernel(path, header, target):
    """The same as judge(), but only for the rules of kernels/."""
    if len(path.parts) == 3 and path.parts[1] in KERNEL_OPS and not KERNEL_HEADERS.match(header):
        variant = path.stem.rsplit("_", 1)[-1]
        helpers = "|".join(filter(None, [variant, SHARED_HELPERS.get(variant)]))
        if not re.fullmatch(rf"kernels/({helpers})/([a-z]+/)?[a-z0-9_]+\.h", header):
            return f"{header}: a kernel includes the C contract, intrinsics, C headers and its own variant's helpers only"
    if path.as_posix() == "kernels/abi/qcts_kernel.h" and target in ORDER:
        return f"{header}: the contract includes no other header of qcts"
    return None


def rings(graph):
    """Returns each include cycle once, as the path around it."""
    done, found = set(), []

    def visit(node, trail):
        if node in trail:
            found.append([*trail[trail.index(node) :], node])
        elif node not in done:
            for header in graph.get(node, []):
                visit(header, [*trail, node])
            done.add(node)

    for node in sorted(graph):
        visit(node, [])
    return found


if __name__ == "__main__":
    found = list(violations())
    print("\n".join(found) if found else "include directions are correct")
    sys.exit(1 if found else 0)
