# SPDX-License-Identifier: BSD-3-Clause
"""Ops, kinds, generators, layouts and policies are types in headers, and no scheme is known by its name where cases are made and judged."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
# `std::string_view kind`, `const std::string& op`, `std::string scheme, op;`, `std::optional<std::string> op`
TEXT = re.compile(
    r"(?:\bstd::string(?:_view)?>?|\bconst char ?\*)[\s&*]+"
    r"((?:\w+(?:\s*(?:=[^,;()]*|\{[^}]*\}))?\s*,\s*)*\w+)\s*(?=[;,={)\[])"
)
TYPED = {"op", "kind", "generator", "layout", "layout_hint", "activation", "policy"}
# Headers where text stands for one, the names there, and why: JSON, files, the command line and the C ABI.
ABI = "the C ABI spells schemes, layouts and policies"
TEXT_ALLOWED = {
    "fixtures/golden.h": ({"layout", "activation"}, "the manifest's words"),
    "kernels/abi/problem.h": ({"layout", "activation"}, ABI),
    "kernels/abi/qcts_kernel.h": ({"layout", "activation"}, ABI),
    "kernels/families/int8_x.h": ({"policy"}, ABI),
    "kernels/families/expected_planes.h": ({"layout"}, ABI),
    "kernels/sm80/quantizers.h": ({"policy"}, ABI),
    "kernels/registry.h": ({"activation", "layout"}, ABI),
    "kernels/variant_problems.h": ({"policy"}, ABI),
    "reference/dialects/decoders/scheme_tensor.h": ({"layout_hint"}, "a word of the manifest or of --cpu-pack, for whatever scheme"),
    "reference/dialects/decoders/decoder.h": ({"layout", "activation"}, "what a checkpoint's attributes say, before a scheme is found"),
    "reports/asked.h": ({"policy", "layout"}, "words of the record; this room knows no scheme"),
    "suites/cli/files/first_recipes.h": ({"activation"}, "words of the command line, for a recipe's name"),
    "suites/cli/files/quantize.h": ({"layout", "activation"}, "words of the command line"),
    "suites/timing/targets.h": ({"activation"}, "a word of targets/*.json, for a family of schemes"),
}

LITERAL = re.compile(r'"([a-z0-9_]+)"')
ROOMS = ("judge", "inputs", "cases", "timing", "run", "providers")
# Files with words that look like a scheme's but are not, and the words.
OTHER_WORDS = {  # element types
    "suites/providers/remote_protocol.cc": {"int8"},
    "suites/judge/diagnosis/answer_predictions.cc": {"int8"},
}


def code(path):
    return COMMENT.sub("", path.read_text(encoding="utf-8"))


def declared_as_text(text):
    """Yields the names of TYPED that a header declares as text."""
    for match in TEXT.finditer(COMMENT.sub("", text)):
        names = {re.match(r"\w+", part.strip()).group() for part in match.group(1).split(",")}
        yield from sorted(names & TYPED)


def headers():
    return [path for top in ("reference", "suites", "kernels", "reports", "fixtures") for path in sorted((ROOT / top).rglob("*.h"))]


def families():
    return re.findall(r"^QCTS_SCHEME\((\w+)\)", (ROOT / "reference/schemes/schemes.inc").read_text(encoding="utf-8"), re.MULTILINE)


def named_schemes(text, stems):
    """Returns the literals of a source that are or begin with a family's name."""
    return [word for word in LITERAL.findall(COMMENT.sub("", text)) if any(word == stem or word.startswith(stem + "_") for stem in stems)]


@pytest.mark.parametrize(
    "line, found",
    [
        ("std::string op;", ["op"]),
        ("std::string scheme, op, variant;", ["op"]),
        ("void judge(Op op, std::string_view kind);", ["kind"]),
        ('void judge(const std::string& generator = "noise");', ["generator"]),
        ("std::optional<std::string> op;", ["op"]),
        ("Op op; std::string scheme;", []),
        ("void judge(std::string_view scheme, Op op);", []),
        ("std::string_view op_name(Op op);", []),
        ("int op;  // a std::string op", []),
        ("std::string layout;", ["layout"]),
        ('virtual Planes quantize(const Matrix& weight, std::string_view layout = "plain") const = 0;', ["layout"]),
        ("std::string activation{kWeightOnly.name()};", ["activation"]),
        ("void exact_activation(const Matrix& x, const char* policy, int64_t row);", ["policy"]),
        ("Layout layout = kPlain, Policy activation = kWeightOnly);", []),
        ("std::string layout_name(const std::optional<Layout>& layout);", []),
    ],
)
def test_a_declaration_as_text_is_found(line, found):
    assert list(declared_as_text(line)) == found


def text_by_header(files):
    """Returns {path: names} of the headers that declare one of TYPED as text."""
    found = {path: set(declared_as_text(text)) for path, text in files}
    return {path: names for path, names in found.items() if names}


def test_headers_declare_types():
    files = [(path.relative_to(ROOT).as_posix(), code(path)) for path in headers()]
    assert len(files) > 100
    assert text_by_header(files) == {path: names for path, (names, _) in TEXT_ALLOWED.items()}


@pytest.mark.parametrize("header", ["reference/schemes/scheme.h", "suites/cases/case.h", "suites/selftest/mutant_list.h"])
def test_a_planted_text_is_found(header):
    planted = code(ROOT / header).replace("\nstruct ", "\nstruct Planted { std::string layout; };\nstruct ", 1)
    assert text_by_header([(header, code(ROOT / header))]) == {}
    assert text_by_header([(header, planted)]) == {header: {"layout"}}


def test_a_scheme_named_in_a_source_is_found():
    stems = ["mx", "int8"]
    assert named_schemes('if (family == "mx" || name == "int8_row") return "max"; // "mx"', stems) == ["mx", "int8_row"]


def test_no_source_knows_a_scheme_by_name():
    stems = [*families(), "mxfp8", "mxfp6", "mxfp4", "gguf", "int4"]
    assert len(stems) > 12
    found = []
    for room in ROOMS:
        for path in sorted((ROOT / "suites" / room).rglob("*.*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix not in {".h", ".cc"} or path.stem.endswith("_test"):
                continue
            words = set(named_schemes(code(path), stems)) - OTHER_WORDS.get(name, set())
            found += [f"{name}: {word}" for word in sorted(words)]
    assert found == []
