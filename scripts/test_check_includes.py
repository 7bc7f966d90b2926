# SPDX-License-Identifier: BSD-3-Clause
"""The include check refuses each forbidden direction, and the tree keeps to it."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import check_includes

# Tests an include from every room to the one just above it, the smallest possible fault.
ONE_STEP_UP = [(lower, upper) for rooms in check_includes.ORDER.values() for lower, upper in zip(rooms, rooms[1:], strict=False)]


@pytest.mark.parametrize("path, header", [
    ("reference/schemes/int8_row.cc", "kernels/abi/qcts_kernel.h"),
    ("kernels/registry.cc", "reference/schemes/scheme.h"),
    ("fixtures/golden.cc", "suites/cases/case.h"),
    ("reports/report.cc", "reference/formats/tensor.h"),
    ("suites/judge/latency/latency.cc", "ATen/core/Tensor.h"),
    ("kernels/linear/int8_row_avx2.cc", "vector"),
    ("kernels/linear/int8_row_avx2.cc", "kernels/registry.h"),
    ("kernels/linear/int8_row_avx2.cc", "kernels/avx512/elements.h"),
    ("kernels/linear/int8_row_scalar.cc", "kernels/avx2/elements.h"),
    ("kernels/linear/int8_row_avx512.cc", "kernels/bf16/int8.h"),
    ("kernels/abi/qcts_kernel.h", "kernels/abi/problem.h"),
    ("kernels/linear/avx2.cc", "kernels/avx512/linear.h"),
    ("kernels/avx2/linear.h", "kernels/avx512/elements.h"),
    ("suites/base/paths.cc", "suites/cli/program.h"),
    ("suites/host/serve.cc", "reports/verdict.h"),
    ("suites/host/serve.cc", "kernels/registry.h"),
    ("suites/judge/files/size.cc", "suites/judge/judge.h"),
    ("suites/judge/context/judge_settings.cc", "suites/judge/expected/compare.h"),
    ("suites/cli/command_line.cc", "suites/cli/files/file_command.h"),
    ("suites/selftest/mutants/faults.cc", "suites/selftest/kill.h"),
])
def test_forbidden(path, header):
    assert check_includes.judge(Path(path), header)


@pytest.mark.parametrize("path, header", [
    ("suites/judge/latency/latency.cc", "kernels/registry.h"),
    ("kernels/plugins/aten/linear.cc", "ATen/ops/linear.h"),
    ("kernels/linear/int8_row_avx2.cc", "immintrin.h"),
    ("kernels/linear/int8_row_avx2.cc", "kernels/abi/qcts_kernel.h"),
    ("kernels/linear/int8_row_avx2.cc", "kernels/avx2/linear.h"),
    ("kernels/linear/int8_row_avx2.cc", "kernels/families/entry.h"),
    ("kernels/linear/avx2.cc", "kernels/avx2/dots/word_dots.h"),
    ("kernels/families/entry.h", "kernels/kernels.inc"),
    ("kernels/linear/int8_row_amx.cc", "kernels/bf16/int8.h"),
    ("fixtures/golden.cc", "reference/formats/refusal.h"),
    ("suites/gtest_main.cc", "suites/cli/program.h"),
    ("suites/host/serve.cc", "kernels/abi/qcts_kernel.h"),
    ("suites/host/serve.cc", "suites/base/process.h"),
])
def test_allowed(path, header):
    assert check_includes.judge(Path(path), header) is None


def test_the_tree_keeps_to_it():
    assert list(check_includes.violations()) == []


# Each plug-in is a separate library, `minimal`, `vendor` and `planted` are vendors', and readers of vectors are anybody's.
ALONE = {"kernels/plugins/aten", "kernels/plugins/builtin", "kernels/plugins/onednn", "suites/selftest/minimal", "suites/selftest/vendor"}
ALONE |= {"suites/selftest/planted", "suites/vectors/readers"}


def test_every_folder_of_sources_is_a_room():
    rooms = {room for rooms in check_includes.ORDER.values() for room in rooms}
    sources = {
        path.relative_to(check_includes.ROOT).parent.as_posix()
        for top in check_includes.ORDER
        for path in (check_includes.ROOT / top).rglob("*")
        if path.suffix in check_includes.SOURCES
    }
    assert sources - rooms == ALONE


def test_every_room_is_there():
    for room in (room for rooms in check_includes.ORDER.values() for room in rooms):
        assert (check_includes.ROOT / room).is_dir(), room


def planted(tmp_path, files):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return list(check_includes.violations(tmp_path))


@pytest.mark.parametrize("lower, upper", ONE_STEP_UP)
def test_an_include_of_the_room_above_is_found(tmp_path, lower, upper):
    found = planted(tmp_path, {f"{lower}/bad.cc": f'#include "{upper}/good.h"\n', f"{upper}/good.h": ""})
    assert found == [f"{lower}/bad.cc:1: {upper}/good.h: {lower} may not include {upper}, which is above it"]


@pytest.mark.parametrize("room", [room for rooms in check_includes.ORDER.values() for room in rooms])
def test_a_ring_within_a_room_is_found(tmp_path, room):
    first, second = f"{room}/first.h", f"{room}/second.h"
    found = planted(tmp_path, {first: f'#include "{second}"\n', second: f'#include "{first}"\n'})
    assert any(f"include cycle: {first} -> {second} -> {first}" in line for line in found)


@pytest.mark.parametrize("top", check_includes.ORDER)
def test_an_include_across_folders_is_found(tmp_path, top):
    header = "suites/cases/case.h" if top != "suites" else "torch/torch.h"
    room = check_includes.ORDER[top][0]
    assert planted(tmp_path, {f"{room}/bad.cc": f'#include "{header}"\n'})
