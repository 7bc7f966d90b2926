# SPDX-License-Identifier: BSD-3-Clause
"""Names in files never control the terminal: every command escapes them in every line."""

import json

import pytest
from dialect_files import write_safetensors  # noqa: E402
from qcts_program import qcts  # noqa: E402

CONTROLS = {
    "escape": "\x1b[2J\x1b[31m",
    "newline": "a\nqcts: note: all is well\r",
    "tab": "\t",
    "delete": "\x7f",
    "c1": "\x9b31m",
    "bidi": "\u202egnp.exe",
    "zero_width": "\u200b",
    "bell": "\x07",
}
STEERING = {*range(32), *range(0x7F, 0xA0), 0x200B, 0x202E, 0x2028} - {10}


def is_clean(text, lines=None):
    assert not {ord(c) for c in text} & STEERING, ascii(text)
    assert lines is None or text.count("\n") == lines, ascii(text)


def safetensors(path, name, dtype="F32", data=bytes(8)):
    return write_safetensors(path, {name: (dtype, [len(data) // (4 if dtype == "F32" else 1)], data)}, {f"m{name}": "x" + name})


@pytest.mark.parametrize("case", CONTROLS)
def test_every_command_escapes_names(case, tmp_path):
    name = f"layer{CONTROLS[case]}.weight"
    a = safetensors(tmp_path / "a.safetensors", name)
    b = safetensors(tmp_path / "b.safetensors", name, data=b"\1" * 8)
    for words, code, lines in [
        (["inspect", a], 0, 5),
        (["inspect", a, "--json"], 0, None),
        (["check", a], 0, None),
        (["check", a, "--json"], 0, None),
        (["diff", a, b], 1, 6),
        (["diff", a, b, "--json"], 1, None),
        (["quantize", "--scheme", "int8_row", a, tmp_path / "out.pt"], 3, 2),
        (["quantize", "--scheme", "int8_row", "--include", name, a, tmp_path / "out.pt"], 3, 2),
    ]:
        done = qcts(*words, code=code, COLUMNS="1000")
        is_clean(done.stdout, lines)
        is_clean(done.stderr)
    assert name in [t["name"] for t in json.loads(qcts("inspect", a, "--json").stdout)["tensors"]]


@pytest.mark.parametrize("case", CONTROLS)
def test_refusals_and_findings_stay_one_line(case, tmp_path):
    word = CONTROLS[case]
    codes = write_safetensors(tmp_path / "c.safetensors", {f"m{word}.weight_packed": ("U8", [2, 2], bytes(4))})
    for words in (["check", codes], ["inspect", codes], ["dequantize", codes, tmp_path / "o.safetensors"]):
        done = qcts(*words, code=0 if words[0] == "inspect" else 1)
        is_clean(done.stdout)
        is_clean(done.stderr)
        assert all(line.startswith("qcts: ") for line in done.stderr.splitlines())
    broken = write_safetensors(tmp_path / "d.safetensors", {f"m{word}": ("F99", [1], b"1")})
    is_clean(qcts("inspect", broken, code=1).stderr, 1)


@pytest.mark.parametrize("case", CONTROLS)
def test_values_and_classes_of_pickles_are_escaped(case, tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    word = CONTROLS[case]
    torch.save({f"k{word}": torch.ones(2), f"v{word}": word}, tmp_path / "a.pt")
    torch.save({f"k{word}": torch.ones(2), f"v{word}": "other"}, tmp_path / "b.pt")
    for words, code in [(["diff", tmp_path / "a.pt", tmp_path / "b.pt"], 1), (["inspect", tmp_path / "a.pt"], 0)]:
        done = qcts(*words, code=code, COLUMNS="1000")
        is_clean(done.stdout)
        is_clean(done.stderr)
    is_clean(qcts("dequantize", tmp_path / "a.pt", tmp_path / "o.safetensors").stderr)
