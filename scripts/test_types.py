# SPDX-License-Identifier: BSD-3-Clause
"""Tests that headers of the suites use types for ops, kinds and generators, and that expansion and judge refer to no scheme by name."""

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
TYPED = {"op", "kind", "generator"}
# Headers that may use text, and why.
TEXT_ALLOWED = {
    "suites/selftest/exam.h": "a mutant's kind, a word of the list of mutants",
    "suites/selftest/kill.h": "a mutant's kind, a word of the list of mutants",
    "suites/selftest/mutant_list.h": "a mutant's kind, a word of the list of mutants",
}

LITERAL = re.compile(r'"([a-z0-9_]+)"')
ROOMS = ("judge", "inputs", "cases", "timing", "run", "providers")
# Files with words that look like a scheme's but are not, and the words.
OTHER_WORDS = {"suites/providers/remote_protocol.cc": {"int8"}}  # an element type


def code(path):
    return COMMENT.sub("", path.read_text(encoding="utf-8"))


def declared_as_text(text):
    """Yields the ops, kinds and generators that a header declares as text."""
    for match in TEXT.finditer(COMMENT.sub("", text)):
        names = {re.match(r"\w+", part.strip()).group() for part in match.group(1).split(",")}
        yield from sorted(names & TYPED)


def headers():
    return [path for top in ("suites", "reports") for path in sorted((ROOT / top).rglob("*.h"))]


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
    ],
)
def test_a_declaration_as_text_is_found(line, found):
    assert list(declared_as_text(line)) == found


def test_headers_declare_types():
    found = {path.relative_to(ROOT).as_posix(): list(declared_as_text(code(path))) for path in headers()}
    assert {path for path, names in found.items() if names} == set(TEXT_ALLOWED)


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
