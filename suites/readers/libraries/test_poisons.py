# SPDX-License-Identifier: BSD-3-Clause
"""Numbers that a library cannot have written, in each part of each format that is joined from plain tensors."""

import math

import numpy as np
import pytest
from joined_model import Model, folder_of
from qcts_program import inspect, qcts

CHOSEN = [
    "autoawq_0_2_9/int4_g32", "bitsandbytes_0_50_2/fp4_twice", "bitsandbytes_0_50_2/int8_bf16", "bitsandbytes_0_50_2/nf4",
    "compressed_tensors_0_20_0/bytes_bf16", "compressed_tensors_0_20_0/fp4_bf16", "compressed_tensors_0_20_0/integers_bf16",
    "gptqmodel_7_7_0/int4_g32_act_order", "mlx_0_32_4/affine_bf16", "mlx_0_32_4/floats", "modelopt_0_47_0/fp8",
    "modelopt_0_47_0/fp8_row", "modelopt_0_47_0/nvfp4", "transformers_5_24_0_peers/deepseek_v4",
    "transformers_5_24_0_peers/fp8_blocks", "transformers_5_24_0_peers/fp8_tensor", "transformers_5_24_0_peers/fp8_ue8m0",
]  # fmt: skip
SIZES = {"F32": 4, "F16": 2, "BF16": 2, "I32": 4, "U32": 4}  # bytes of an element; 1 for others
NUMBERS = {"nan": math.nan, "infinity": math.inf, "-infinity": -math.inf, "zero": 0.0, "negative": -0.1, "large": 3e38}
# Numbers that a library does write for some finite weight: (library, ending of a part, dtype, number) -> the reason.
WRITTEN = {
    ("gptq", "scales", "F16", "zero"): "scales are narrowed to float16 after the codes are rounded",
    ("gptq", "scales", "F16", "large"): "65504, of weights that were float32",
    ("modelopt", "weight_scale", "F8_E4M3", "zero"): "scales of blocks are narrowed to float8 after the codes are rounded",
    ("modelopt", "input_scale", "F32", "zero"): "of an expert that no sample reached",
    ("modelopt", "input_scale", "F32", "large"): "of the largest x",
    ("fp8", "activation_scale", "F32", "zero"): "as input_scale",
    ("fp8", "activation_scale", "F32", "large"): "as input_scale",
    ("mlx", "scales", "BF16", "negative"): "mx.quantize begins at the end of the range that is farther from zero",
    ("bitsandbytes", "absmax", "F32", "large"): "of a float32 weight",
    ("compressed-tensors", "weight_global_scale", "F32", "large"): "of a weight that is all but zero",
}


def number_bytes(dtype, value):
    if dtype == "F16":
        return np.float16(65504 if value == NUMBERS["large"] else value).tobytes()
    data = np.float32(value).tobytes()
    return data[2:] if dtype == "BF16" else data


def poisons(name, dtype):
    """Returns the bytes of an element, by name; none for parts of which any bits mean something."""
    part = name.rsplit(".", 1)[-1]
    if any(word in part for word in ("scale", "absmax", "SCB")):
        if dtype in SIZES:
            return {number: number_bytes(dtype, value) for number, value in NUMBERS.items()}
        return {
            "F8_E4M3": {"nan": b"\x7f", "negative": b"\xb8", "zero": b"\x00"},
            "F8_E8M0": {"nan": b"\xff", "large": b"\xfe"},
        }.get(dtype, {"nan": b"\xff"} if part != "absmax" and dtype == "U8" else {})
    if part in ("biases", "nested_quant_map", "quant_map"):
        return {number: number_bytes(dtype, NUMBERS[number]) for number in ("nan", "infinity", "-infinity")}
    return {"nan": b"\x7f", "-nan": b"\xff"} if dtype == "F8_E4M3" else {}


def parts_of(id, tensors):
    """Yields a tensor of each kind: scheme, part and dtype."""
    weights = {t["name"]: t["scheme"] for t in inspect(folder_of(id))["tensors"] if t["scheme"]}
    seen = set()
    for name, (dtype, _, data) in tensors.items():
        stems = [weight for weight in weights if name.startswith((weight.removesuffix("weight"), weight + "_"))]
        if not stems or not data:
            continue
        scheme, part = weights[max(stems, key=len)], name.rsplit(".", 1)[-1]
        kind = scheme.split("_g")[0].split("_b")[0], part, dtype
        if kind not in seen and not scheme.startswith("ct_int1_"):  # whose codes are all alike
            seen.add(kind)
            yield part, name


@pytest.mark.parametrize("id", CHOSEN)
def test_a_number_that_no_library_writes_is_found(id, tmp_path):
    """Protects: NaN, infinities, 0, negative and far too large scales, NaN codes and scales of x never pass."""
    model = Model(id, tmp_path)
    dialect, wrong, looked_at = inspect(folder_of(id))["dialect"], [], 0
    for part, name in list(parts_of(id, model.tensors)):
        dtype, shape, data = model.tensors[name]
        size = SIZES.get(dtype, 1)
        place = len(data) // size * 2 // 3 * size
        for number, raw in poisons(name, dtype).items():
            model.tensors[name] = dtype, shape, data[:place] + raw + data[place + size :]
            code = 0 if (dialect, part, dtype, number) in WRITTEN else 1
            looked_at += 1
            try:
                assert ("finding" in qcts("check", model.write(), code=code).stderr) == bool(code)
            except AssertionError as error:
                wrong.append((name, number, str(error)[:200]))
        model.tensors[name] = dtype, shape, data
    assert looked_at and not wrong
