"""Who may include whom (see CONTRIBUTING.md). Exit code 1 names every line that breaks the direction."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("reference", "kernels", "fixtures", "suites", "reports")
MAY_INCLUDE = {
    "reference": {"reference"},
    "kernels": {"kernels"},
    "fixtures": {"fixtures", "reference"},
    "reports": {"reports"},
    "suites": {"suites", "fixtures", "reference", "kernels", "reports"},
}
# A kernel is a function of raw pointers: the C contract, instruction sets, C headers, what every kernel may call (kernels/support.h), the
# shape of a table entry (kernels/entry.h), and the helpers of its own variant, never another's (<scheme>_avx2.cc: kernels/avx2/*.h), or of
# what its variant multiplies (avx512bf16, avx512vbmi and amx: kernels/bf16/*.h).
KERNEL_OPS = ("linear", "dequantize", "quantize", "quantize_activation", "pack", "unpack")
KERNEL_HEADERS = re.compile(
    r"^(kernels/abi/qcts_kernel\.h|kernels/support\.h|kernels/entry\.h|[a-z]*intrin\.h|std[a-z]+\.h|string\.h|math\.h|c[a-z]+)$"
)
SHARED_HELPERS = {"avx512bf16": "bf16", "avx512vbmi": "bf16", "amx": "bf16"}
TORCH = re.compile(r"^(torch|ATen|c10)/")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


def violations(root=ROOT):
    for room in ROOMS:
        for path in sorted((root / room).rglob("*")):
            if path.suffix not in {".h", ".cc", ".c", ".cu", ".inc"}:
                continue
            relative = path.relative_to(root)
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                match = INCLUDE.match(line)
                if match:
                    complaint = judge(relative, match.group(1))
                    if complaint:
                        yield f"{relative}:{number}: {complaint}"


def judge(path, header):
    """Why `path` may not include `header`; None when it may."""
    room = path.parts[0]
    target = header.split("/")[0]
    if TORCH.match(header) and path.parts[:3] != ("kernels", "plugins", "aten"):
        return f"{header}: LibTorch belongs to kernels/plugins/aten alone"
    if target in ROOMS and target not in MAY_INCLUDE[room]:
        return f"{header}: {room} may not include {target}"
    if room == "kernels" and len(path.parts) == 3 and path.parts[1] in KERNEL_OPS and not KERNEL_HEADERS.match(header):
        variant = path.stem.rsplit("_", 1)[-1]
        helpers = "|".join(filter(None, [variant, SHARED_HELPERS.get(variant)]))
        if not re.fullmatch(rf"kernels/({helpers})/[a-z0-9_]+\.h", header):
            return f"{header}: a kernel includes the C contract, intrinsics, C headers and its own variant's helpers only"
    if room == "kernels" and path.parts[1] == "abi" and target in ROOMS and header != "kernels/abi/qcts_kernel.h":
        return f"{header}: the contract stands alone"
    return None


if __name__ == "__main__":
    found = list(violations())
    print("\n".join(found) if found else "include directions hold")
    sys.exit(1 if found else 0)
