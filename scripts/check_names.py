# SPDX-License-Identifier: BSD-3-Clause
"""Checks anonymous-namespace names in folders that compile several files together (qcts_compile_in_groups in
CMakeLists.txt). A function in an anonymous namespace is visible to every later file of its group; if its
parameters match better than those of a function that a header declares, it silently replaces that function. So none may
have the name of a header's function. Lists those that do, with exit code 1.

This is a scanner, not a compiler: it reads declarations that begin at the left margin, as clang-format leaves them.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("reference", "fixtures", "reports", "suites")
ALONE = re.compile(r"_main$|^(faulty_)?provider$")  # separate programs and plug-ins
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
ANONYMOUS = re.compile(r"^namespace \{\n(.*?)^\}  // namespace\n", re.DOTALL | re.MULTILINE)
# A type, a name, an opening parenthesis: `std::vector<float> rounded(`
FUNCTION = re.compile(
    r"^(?!using|struct|class|enum|namespace|return)(?:\[\[\w+\]\] )*[A-Za-z_][\w:<>,&* ]*[ &*>](\w+)\(",
    re.MULTILINE,
)


def functions(text):
    return {match.group(1) for match in FUNCTION.finditer(text)}


def reached(root, path, seen):
    """Returns the project's headers that a file includes, directly or not."""
    for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
        if name not in seen and (root / name).is_file():
            seen.add(name)
            reached(root, root / name, seen)
    return seen


def grouped(root):
    """Maps each folder to its sources that compile together; tests form separate groups."""
    for room in ROOMS:
        folders = [root / room, *(p for p in sorted((root / room).rglob("*")) if p.is_dir())]
        for folder in folders:
            sources = sorted(folder.glob("*.cc"))
            for tests in (False, True):
                of_kind = [s for s in sources if s.stem.endswith("_test") == tests and not ALONE.search(s.stem)]
                if len(of_kind) > 1:
                    yield of_kind


def collisions(root=ROOT):
    for sources in grouped(root):
        declared = {}
        headers = set()
        for source in sources:
            reached(root, source, headers)
        for header in sorted(headers):
            text = (root / header).read_text(encoding="utf-8")
            for name in functions(ANONYMOUS.sub("", text)):
                declared.setdefault(name, header)
        for source in sources:
            for block in ANONYMOUS.finditer(source.read_text(encoding="utf-8")):
                for name in sorted(functions(block.group(1)) & declared.keys()):
                    yield f"{source.relative_to(root)}: {name} is a function of {declared[name]} too"


if __name__ == "__main__":
    found = list(collisions())
    print("\n".join(found) if found else "no anonymous name hides a header's function")
    sys.exit(1 if found else 0)
