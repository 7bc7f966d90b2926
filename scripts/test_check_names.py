# SPDX-License-Identifier: BSD-3-Clause
"""Tests that the name check finds an anonymous function that would hide a header's, and that the tree has none."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import check_names

HEADER = """#pragma once
namespace qcts {
// Returns the largest value of a row.
float largest(std::span<const float> row);
[[noreturn]] void refuse(const std::string& why);
struct Row { int size() const; };
}  // namespace qcts
"""
SOURCE = """#include "reference/schemes/row.h"
namespace qcts {
namespace {

float %s(const std::vector<float>& row) {
  return largest(row);
}

}  // namespace
}  // namespace qcts
"""


INCLUDE = '#include "reference/schemes/row.h"\n'


def found(folder, name, source=SOURCE):
    schemes = folder / "reference/schemes"
    schemes.mkdir(parents=True)
    (schemes / "row.h").write_text(HEADER)
    (schemes / "a.cc").write_text(source % name)
    (schemes / "b.cc").write_text(INCLUDE)
    return list(check_names.collisions(folder))


def test_a_name_of_a_header_is_found(tmp_path):
    assert found(tmp_path, "largest") == ["reference/schemes/a.cc: largest is a function of reference/schemes/row.h too"]


def test_an_attribute_does_not_hide_a_function(tmp_path):
    assert len(found(tmp_path, "refuse")) == 1


def test_a_header_that_only_the_neighbour_includes_counts(tmp_path):
    assert len(found(tmp_path, "largest", SOURCE.replace(INCLUDE, ""))) == 1


def test_a_name_of_its_own_and_a_method_are_fine(tmp_path):
    assert found(tmp_path / "own", "row_largest") == []
    assert found(tmp_path / "method", "size") == []


def test_the_tree_holds():
    assert list(check_names.collisions()) == []
