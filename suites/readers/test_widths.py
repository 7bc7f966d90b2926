# SPDX-License-Identifier: BSD-3-Clause
"""What commands print fits the terminal: no line is wider, and colours are there only where a terminal has them and NO_COLOR is not
set."""

import random
import unicodedata

import pytest
from dialect_files import FIXTURES, GOLDENS, write_safetensors
from qcts_program import on_terminal, qcts

WIDTHS = [80, 120]
COMMANDS = {
    "schemes": ["schemes"],
    "a_scheme": ["schemes", "int4_tinygemm_g128"],
    "two_schemes": ["schemes", "int8_row", "mxfp8_e4m3_floor"],
    "choices": ["schemes", "--choices"],
}


def golden(ending):
    (entry,) = [entry for name, entry in GOLDENS.items() if name.endswith(ending)]
    return FIXTURES / entry["file"]


def columns_of(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def fits(lines, columns):
    wide = [line for line in lines if columns_of(line) > columns]
    assert not wide, wide[:3]


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_no_line_is_wider_than_the_terminal(words, columns):
    done = on_terminal(*words, columns=columns)
    assert done.code == 0 and len(done.lines) > 3
    fits(done.lines, columns)


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_without_a_terminal_lines_have_80_columns_or_what_columns_says(words):
    narrow, wide = qcts(*words).stdout.splitlines(), qcts(*words, COLUMNS="200").stdout.splitlines()
    fits(narrow, 80)
    fits(wide, 200)
    assert len(wide) < len(narrow)
    assert " ".join(narrow).split() == " ".join(wide).split()  # nothing is cut


def test_a_scheme_is_shown_in_full_and_a_wrong_name_gets_the_nearest():
    text = qcts("schemes", "int4_tinygemm_g128").stdout
    assert text.startswith("int4_tinygemm_g128: ") and "layouts: plain, cpu_avx512, " in text and "size: 1024 x 1024" in text
    assert qcts("schemes", "int8_group").stdout.count("size: 1024 x 1024") == 3  # a family
    assert "did you mean 'int8_row'?" in qcts("schemes", "int8_rwo", code=2).stderr


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("ending", ["int8_row/toy_64_32_64", "int4_e4m3_g128/preshuffled_32x256_bf16"])
def test_inspect_fits_and_loses_nothing(ending, columns):
    done = on_terminal("inspect", golden(ending), columns=columns)
    assert done.code == 0
    fits(done.lines, columns)
    wide = qcts("inspect", golden(ending), COLUMNS="1000").stdout.split("\n\n")[0].splitlines()[1:]
    for row in wide:
        plain = row.split()[1] == "-"  # then DTYPE and SHAPE say what PAYLOAD would
        for word in [] if plain else row.split():
            assert word.rstrip(",") in " ".join(done.lines), word


def test_inspect_of_names_of_any_length_fits(tmp_path):
    pieces = ["layers.", "0.", "日本", "attention", "_", "é", "w" * 90, "\x1b[31m", " ", "🙂"]
    chosen = random.Random(1)
    names = {"".join(chosen.choices(pieces, k=chosen.randint(1, 12))): ("F32", [2], bytes(8)) for _ in range(200)}
    file = write_safetensors(tmp_path / "a.safetensors", names)
    for columns in (40, *WIDTHS):
        done = on_terminal("inspect", file, columns=columns)
        assert done.code == 0
        fits(done.lines, columns)


def test_colours_need_a_terminal_that_wants_them():
    assert "\x1b[1m" in on_terminal("schemes", "int8_row").text
    for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in on_terminal("schemes", "int8_row", **environment).text
    assert "\x1b[1m" in on_terminal("schemes", "int8_row", NO_COLOR="").text
    assert "\x1b" not in qcts("schemes", "int8_row").stdout
