# SPDX-License-Identifier: BSD-3-Clause
"""Tests that the check of sources finds one without its own command and one that borrows a header, and how it draws."""

import json
import subprocess

import check_sources
import pytest

ALONE = "#include <string>\nstd::string text() { return {}; }\n"
BORROWS = "std::string other() { return {}; }\n"


@pytest.fixture
def tree(tmp_path):
    """A tree with one source that compiles by itself, and the commands of its build."""
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites/alone.cc").write_text(ALONE)
    return tmp_path


def problems(tree, extra="", known=("alone.cc", "added.cc"), words="-std=c++20 -Wall -Wextra -Werror"):
    if extra:
        (tree / "suites/added.cc").write_text(extra)
    listed = [
        {"directory": str(tree), "file": str(tree / "suites" / name), "command": f"ccache c++ {words} -o x.o -c {tree}/suites/{name}"}
        for name in known
        if (tree / "suites" / name).is_file()
    ]
    (tree / "compile_commands.json").write_text(json.dumps(listed))
    return check_sources.check(tree, tree, True, 1)


def test_a_source_that_compiles_by_itself_passes(tree):
    assert problems(tree) == ([], 1, 0)
    assert not (tree / "x.o").exists()


@pytest.mark.parametrize(("source", "said"), [
    (BORROWS, "'string' in namespace 'std' does not name a type"), ("int f(int a) { return 0; }\n", "unused"), ("int f(", "error"),
])
def test_what_does_not_compile_is_named(tree, source, said):
    (complaint,), count, _ = problems(tree, source)
    assert complaint.startswith("suites/added.cc does not compile by itself\n") and count == 2
    assert said in complaint.translate({0x2018: "'", 0x2019: "'"})


def test_a_source_without_a_command_is_named(tree):
    """Protects: a new source that no target has, or that only a unity file has."""
    (complaint,), *_ = problems(tree, ALONE, known=["alone.cc"])
    assert complaint.startswith("suites/added.cc: no compile command")


def test_a_source_whose_library_is_missing_is_counted_only(tree):
    complaints, _, unavailable = problems(tree, BORROWS, words="-o suites/CMakeFiles/qcts_unavailable.dir/x.o")
    assert complaints == [] and unavailable > 0


def test_one_in_ten_is_drawn_by_the_commit():
    """Protects: every source is drawn sooner or later, and a commit always draws the same ones."""
    paths = [f"{i}.cc" for i in range(95)]
    draws = [check_sources.drawn(paths, str(commit)) for commit in range(100)]
    assert all(len(draw) == 10 for draw in draws) and draws[0] != draws[1]
    assert draws[0] == check_sources.drawn(paths[::-1], "0")
    assert set().union(*draws) == set(paths)


def test_every_source_of_the_tree_has_a_command(tmp_path):
    """Protects: editors know every source; preset dev compiles each by itself, and release in groups, where warnings are errors."""
    presets = {preset["name"]: preset for preset in json.loads((check_sources.ROOT / "CMakePresets.json").read_text())["configurePresets"]}
    assert presets["dev"]["cacheVariables"] | {"QCTS_UNITY": "OFF", "QCTS_WERROR": "ON"} == presets["dev"]["cacheVariables"]
    assert presets["release"]["cacheVariables"]["QCTS_WERROR"] == "GCC12" and "QCTS_UNITY" not in presets["release"]["cacheVariables"]
    words = ["cmake", "--preset", "dev", "-B", tmp_path, "-DQCTS_TORCH=OFF", "-DQCTS_CUDA=OFF"]
    done = subprocess.run(words, cwd=check_sources.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = check_sources.commands(tmp_path, check_sources.ROOT)
    sources = check_sources.sources(check_sources.ROOT)
    assert len(sources) > 500 and [path for path in sources if path not in found] == []
    assert all("-Werror" in command for command, _ in found.values())
