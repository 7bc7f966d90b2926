# SPDX-License-Identifier: BSD-3-Clause
"""Tests what `check` says about the numbers in a file: findings, notes, and the limits that a user sets."""

import json
import struct

import numpy as np
import pytest
from dialect_files import metadata_of, read_safetensors, write_safetensors
from qcts_program import qcts

N, K = 8, 64
INF, NAN = float("inf"), float("nan")


def floats(values):
    values = np.asarray(values, "<f4")
    return ("F32", list(values.shape), values.tobytes())


def weight(seed=0, shape=(N, K)):
    return np.random.default_rng(seed).standard_normal(shape).astype("<f4")


def quantized(path, scheme, values, **others):
    dense = write_safetensors(path / "dense.safetensors", {"a.weight": floats(values), **others})
    qcts("quantize", "--scheme", scheme, dense, path / "q.safetensors")
    return path / "q.safetensors"


def patched(path, part, index, raw):
    """Writes `raw` over an element of a part."""
    entries = read_safetensors(path)
    name = next(name for name in entries if name.endswith(part))
    dtype, shape, data = entries[name]
    data = data[: index * len(raw)] + raw + data[(index + 1) * len(raw) :]
    return write_safetensors(path, entries | {name: (dtype, shape, data)}, metadata_of(path))


def checked(path, *words, code=0):
    done = qcts("check", path, *words, "--json", code=code)
    report = json.loads(done.stdout)
    (verdict,) = [v for v in report["verdicts"] if v["case_id"] == "values.file/any/file"]
    assert verdict["status"] == ("fail" if report["values"]["findings"] else "pass")
    assert report["passed"] is (code == 0)
    return report["values"], done.stderr


@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_a_float_tensor_without_reason_is_a_finding(value, tmp_path):
    values = weight()
    values[3, 17] = value
    path = write_safetensors(tmp_path / "w.safetensors", {"a.weight": floats(values), "b.weight": floats(weight(1))})
    found, text = checked(path, code=1)
    (finding,) = found["findings"]
    assert finding["rule"] == ("not_a_number" if np.isnan(value) else "infinity")
    assert (finding["tensor"], finding["place"], finding["count"], finding["total"]) == ("a.weight", "[3, 17]", 1, N * K)
    assert "qcts: finding: a.weight: [3, 17]" in text and "1 finding" in qcts("check", path, code=1).stdout


MASK = np.triu(np.full((4, 4), -INF), 1)
LEGITIMATE = {
    "a mask": ("attn.mask", MASK),
    "an observer without data": ("a.observer.min_val", np.array([INF])),
    "optimizer states": ("optimizer.state.0.exp_avg", np.array([[1.0, NAN]])),
    "an infinite number": ("best_loss", np.array(INF)),
    "all zero": ("lora_B.weight", np.zeros((4, 4))),
}


@pytest.mark.parametrize("why", LEGITIMATE)
def test_a_value_with_a_reason_is_noted(why, tmp_path):
    name, values = LEGITIMATE[why]
    found, text = checked(write_safetensors(tmp_path / "w.safetensors", {name: floats(values)}))
    (note,) = found["notes"]
    assert name in note and why in note and f"qcts: note: {note}" in text


def test_like_notes_are_one_line_with_a_count(tmp_path):
    zeros = {f"layers.{i}.lora_B.weight": floats(np.zeros((2, 2))) for i in range(2000)}
    found, text = checked(write_safetensors(tmp_path / "w.safetensors", zeros))
    assert found["notes"] == ["layers.0.lora_B.weight and 1999 more float tensors: all zero"]
    assert text.count("\n") == 1


@pytest.mark.parametrize("value", [NAN, INF, 0.0, -0.1, 3e38])
@pytest.mark.parametrize("scheme", ["int8_row", "fp8_row"])
def test_a_scale_that_no_recipe_writes_is_named(scheme, value, tmp_path):
    path = patched(quantized(tmp_path, scheme, weight()), "scale", 3, struct.pack("<f", value))
    found, _ = checked(path, code=1)
    assert all(finding["tensor"] == "a.weight" for finding in found["findings"])
    # fp8_row writes a scale of 0, but only with codes of NaN.
    want = "code" if scheme == "fp8_row" and value == 0 else "scale"
    (finding,) = [finding for finding in found["findings"] if finding["rule"] == want]
    assert finding["place"].startswith("row 3") and "the recipe writes" in finding["expected"]


def test_zero_rows_of_fp8_are_right_and_noted(tmp_path):
    values = weight()
    values[5] = 0
    found, _ = checked(quantized(tmp_path, "fp8_row", values))
    assert any("NaN" in note for note in found["notes"])
    path = patched(tmp_path / "q.safetensors", "qdata", 5, b"\x7f")  # row 0
    (finding,) = checked(path, code=1)[0]["findings"]
    assert (finding["rule"], finding["place"]) == ("code", "row 0, k 5")


def test_shares_are_figures_until_a_limit_makes_them_findings(tmp_path):
    values = weight()
    values[:2] = 0
    values[4] = 1
    path = quantized(tmp_path, "int8_row", values)
    found, text = checked(path)
    (tensor,) = found["tensors"]
    assert (tensor["groups"], tensor["zero_groups"], tensor["codes"]) == (N, 2, N * K)
    assert tensor["saturated_codes"] >= K
    assert "a.weight: groups of zeros: 2" in text
    out = " ".join(qcts("check", path).stdout.split())
    assert "zero groups 2 of 8 (25 %)" in out and "saturated codes" in out
    assert checked(path, "--max-zero-groups", "25%", "--max-saturated", "50")[0]["findings"] == []
    (finding,) = checked(path, "--max-zero-groups", "24.9", code=1)[0]["findings"]
    assert (finding["rule"], finding["value"], finding["count"]) == ("zero_groups", "25 %", 2)
    (finding,) = checked(path, "--max-saturated", "0.1", code=1)[0]["findings"]
    assert finding["rule"] == "saturated_codes"


def test_scale_outliers_are_noted(tmp_path):
    values = weight(shape=(32, K))
    values[7] *= 1000
    found, _ = checked(quantized(tmp_path, "int8_row", values))
    assert found["tensors"][0]["outlier_scales"] == 1 and found["tensors"][0]["largest_scale_at"] == "row 7"
    assert any("100 times" in note for note in found["notes"])


@pytest.mark.parametrize("words", [("--max-zero-groups", "101"), ("--max-saturated", "-1"), ("--max-saturated", "few")])
def test_a_limit_is_a_percentage(words, tmp_path):
    path = write_safetensors(tmp_path / "w.safetensors", {"a.weight": floats(weight())})
    assert "a percentage from 0 to 100" in qcts("check", path, *words, code=2).stderr
