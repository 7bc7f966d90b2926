#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that every kernel object exports its one qcts_kernel symbol and nothing else.

Each line of kernels.inc is one object, <op>/<family>_<variant>.cc.o, built from its own file or from a row of
<op>/<variant>.cc. A second strong symbol leaks internals; a weak one is an inline function that the linker may choose
for every variant, with instructions that the machine may not have.
"""
import argparse
import pathlib
import re
import subprocess
import sys

# nm letters: upper case is external; V, W, u and similar are weak or unique.
WEAK = set("vVwWu")


def faults(nm: str, path: pathlib.Path) -> list[str]:
    """Describes every fault of one object."""
    found = re.fullmatch(r"(?P<family>\w+)_(?P<variant>[a-z0-9]+)\.cc\.o(bj)?", path.name)
    if not found:
        return [f"{path}: the name is not <family>_<variant>.cc.o"]
    expected = f"qcts_kernel_{path.parent.name}_{found['family']}_{found['variant']}"
    listing = subprocess.run([nm, "--defined-only", "--format=posix", str(path)], check=True, capture_output=True, text=True).stdout
    problems, exported = [], []
    for line in listing.splitlines():
        name, kind = line.split()[:2]
        if kind in WEAK:
            problems.append(f"{path}: weak symbol {name}")
        elif kind.isupper():
            exported.append(name)
    if exported != [expected]:
        problems.append(f"{path}: exports {', '.join(exported) or 'nothing'} instead of {expected}")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nm", default="nm")
    parser.add_argument("objects", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    problems = [problem for path in options.objects for problem in faults(options.nm, path)]
    print("\n".join(problems) if problems else f"{len(options.objects)} objects, one kernel symbol each")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
