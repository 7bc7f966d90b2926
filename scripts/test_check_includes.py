"""The include check refuses each forbidden direction, and the tree keeps to it."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import check_includes


@pytest.mark.parametrize("path, header", [
    ("reference/schemes/int8_row.cc", "kernels/abi/qcts_kernel.h"),
    ("kernels/registry.cc", "reference/schemes/scheme.h"),
    ("fixtures/golden.cc", "suites/cases/case.h"),
    ("reports/report.cc", "reference/formats/tensor.h"),
    ("suites/latency/latency.cc", "ATen/core/Tensor.h"),
    ("kernels/linear/int8_row_avx2.cc", "vector"),
    ("kernels/linear/int8_row_avx2.cc", "kernels/registry.h"),
    ("kernels/linear/int8_row_avx2.cc", "kernels/avx512/elements.h"),
    ("kernels/linear/int8_row_scalar.cc", "kernels/avx2/elements.h"),
    ("kernels/linear/int8_row_avx512.cc", "kernels/bf16/int8.h"),
    ("kernels/abi/qcts_kernel.h", "kernels/machine/machine.h"),
])
def test_forbidden(path, header):
    assert check_includes.judge(Path(path), header)


@pytest.mark.parametrize("path, header", [
    ("suites/latency/latency.cc", "kernels/registry.h"),
    ("kernels/plugins/aten/linear.cc", "ATen/ops/linear.h"),
    ("kernels/linear/int8_row_avx2.cc", "immintrin.h"),
    ("kernels/linear/int8_row_avx2.cc", "kernels/abi/qcts_kernel.h"),
    ("kernels/linear/int8_row_avx2.cc", "kernels/avx2/linear.h"),
    ("kernels/linear/int8_row_avx2.cc", "kernels/support.h"),
    ("kernels/linear/int8_row_amx.cc", "kernels/bf16/int8.h"),
    ("fixtures/golden.cc", "reference/formats/refusal.h"),
])
def test_allowed(path, header):
    assert check_includes.judge(Path(path), header) is None


def test_the_tree_keeps_to_it():
    assert list(check_includes.violations()) == []


def test_a_planted_include_is_found(tmp_path):
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels/bad.cc").write_text('#include "suites/cases/case.h"\n')
    assert list(check_includes.violations(tmp_path)) == ["kernels/bad.cc:1: suites/cases/case.h: kernels may not include suites"]
