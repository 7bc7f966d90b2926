# SPDX-License-Identifier: BSD-3-Clause
"""Builds providers of right kernels (suites/selftest/vendor), each declining or promising something else."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def vendor(folder, name="acme", source="vendor.c", **macros):
    """vendor(folder, DECLINES="p->n > 40") returns a shared library; a macro that is True has no value."""
    folder.mkdir(exist_ok=True)
    library = folder / f"{name}.so"
    words = [f"-D{macro}" + ("" if value is True else f"={value}") for macro, value in macros.items()]
    flags = ["-std=c11", "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"]
    files = [ROOT / "suites/selftest/vendor" / source, "-lm", "-o", library]
    subprocess.run(["cc", *flags, "-I", ROOT / "kernels/abi", *words, *files], check=True, timeout=120)
    return library
