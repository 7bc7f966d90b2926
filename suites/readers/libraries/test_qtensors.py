# SPDX-License-Identifier: BSD-3-Clause
"""torch's own quantized tensors: dequantized with torch's bits, or refused where torch refuses."""

import json

import pytest
from dialect_files import FIXTURES, GOLDENS, read_safetensors
from qcts_program import inspect, qcts

torch = pytest.importorskip("torch", reason="the files of these tests are made by torch")

QTENSORS = [id for id in GOLDENS if id.startswith("torch_2_13_0/qtensors/")]
BYTES = torch.arange(12, dtype=torch.uint8).reshape(3, 4)


@pytest.mark.parametrize("id", QTENSORS)
def test_dequantize_gives_the_bits_of_torch(id, tmp_path):
    file = FIXTURES / GOLDENS[id]["file"]
    qcts("check", file)
    qcts("dequantize", file, tmp_path / "out.safetensors")
    written = read_safetensors(tmp_path / "out.safetensors")
    expected = read_safetensors(FIXTURES / GOLDENS[id]["expected"])
    assert len(expected) == 26 and written == {key.removesuffix("|dequant"): value for key, value in expected.items()}
    qcts("resave", file, tmp_path / "again.pt")
    assert (tmp_path / "again.pt").read_bytes() == file.read_bytes()
    told = inspect(file)
    assert told["dense_bytes"] == GOLDENS[id]["dense_bytes"]
    schemes = {tensor["name"]: tensor["scheme"] for tensor in told["tensors"]}
    assert schemes["qint8.least"] == "torch_qint8_tensor" and schemes["quint4x2.float"] == "torch_quint4x2_float_channel"
    assert schemes["qint32.axis1"] == "torch_qint32_channel" and {tensor["dtype"] for tensor in told["tensors"]} == {"float32"}


def test_a_bit_of_a_code_changes_one_element(tmp_path):
    codes = BYTES.clone()
    codes[1, 2] ^= 0x40
    for name, data in (("a", BYTES), ("b", codes)):
        torch.save({"w": torch._make_per_tensor_quantized_tensor(data, 0.1, 3)}, tmp_path / f"{name}.pt")
        qcts("dequantize", tmp_path / f"{name}.pt", tmp_path / f"{name}.safetensors")
    a, b = (read_safetensors(tmp_path / f"{name}.safetensors")["w"][2] for name in "ab")
    assert [i for i in range(12) if a[4 * i : 4 * i + 4] != b[4 * i : 4 * i + 4]] == [6]


def by_channel(scales, zero_points):
    return torch._make_per_channel_quantized_tensor(BYTES, torch.tensor(scales, dtype=torch.float64), torch.tensor(zero_points), 0)


NO_VALUES = {
    "zero_point_of_a_tensor": (torch._make_per_tensor_quantized_tensor(BYTES, 0.1, 256), "zero_point"),
    "zero_point_of_a_channel": (by_channel([0.1, 0.2, 0.3], [0, -1, 255]), "zero_point"),
    "infinite_scale": (torch._make_per_tensor_quantized_tensor(BYTES, float("inf"), 0), "scale"),
    "no_scale": (torch._make_per_tensor_quantized_tensor(BYTES, 0.0, 3), "scale"),
    "negative_scale": (torch._make_per_tensor_quantized_tensor(BYTES, -0.1, 3), "scale"),
    "large_scale": (torch._make_per_tensor_quantized_tensor(BYTES, 3e38, 3), "scale"),
    "no_scale_of_a_channel": (by_channel([0.1, 0.0, 0.3], [0, 1, 2]), "scale"),
    "large_scale_of_a_channel": (by_channel([0.1, 0.2, 3e38], [0, 1, 2]), "scale"),
    "negative_scale_of_a_channel": (by_channel([0.1, -0.2, 0.3], [0, 1, 2]), "scale"),
    "scale_of_a_channel": (by_channel([0.1, float("nan"), 0.3], [0, 1, 2]), "scale"),
}


@pytest.mark.parametrize("case", NO_VALUES)
def test_values_that_no_quantizer_writes_are_findings(case, tmp_path):
    tensor, rule = NO_VALUES[case]
    torch.save({"w": tensor}, tmp_path / "x.pt")
    report = json.loads(qcts("check", tmp_path / "x.pt", "--json", code=1).stdout)
    assert [finding["rule"] for finding in report["values"]["findings"]] == [rule]


@pytest.mark.parametrize("case", [case for case in NO_VALUES if case.startswith("zero")])
def test_zero_points_that_torch_refuses_are_refused(case, tmp_path):
    tensor, _ = NO_VALUES[case]
    with pytest.raises(RuntimeError):
        tensor.dequantize()
    torch.save({"w": tensor}, tmp_path / "x.pt")
    told = qcts("dequantize", tmp_path / "x.pt", tmp_path / "out.safetensors", code=1).stderr
    assert ": w: one of torch's own quantized tensors" in told and not (tmp_path / "out.safetensors").exists()
