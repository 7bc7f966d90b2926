#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A provider in Python: int8_row with numpy.

qcts run --provider ./provider.py; the adapter has to be next to this file or on PYTHONPATH.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3] / "kernels/abi"))  # in the repository
sys.path.append(str(Path(__file__).resolve().parents[2] / "python"))  # where qcts is installed

import numpy as np  # noqa: E402
from qcts_provider import Provider, narrow, widen  # noqa: E402

FLOATS = ("float32", "float16", "bfloat16")


provider = Provider("numpy", version=np.__version__, choices="representable_inputs")


def why_not_linear(p):
    if p.activation != "weight_only":
        return "float activations only"
    if p.x_dtype not in FLOATS or p.y_dtype not in FLOATS or (p.bias_dtype or "float32") not in FLOATS:
        return "x, y and bias must be float32, float16 or bfloat16"
    return None


def why_not_dequantize(p):
    return None if p.w_dtype in FLOATS else "weights must be float32, float16 or bfloat16"


@provider.kernel(
    "dequantize",
    "int8_row",
    "numpy",
    claims=["bit_exact", "deterministic", "thread_invariant"],
    supports=why_not_dequantize,
)
def dequantize(p):
    codes = p.planes["qdata"].astype(np.float32) - p.planes["zero_point"].reshape(-1, 1)
    p.y[...] = narrow(codes * p.planes["scale"].reshape(-1, 1), p.w_dtype)


@provider.kernel(
    "linear",
    "int8_row",
    "numpy",
    description="a float64 matrix product; scale on the sum, one rounding to float32, then the bias in float32",
    claims=["deterministic"],
    numerics={
        "accumulator": "float64",
        "output_cast": "float32",
        "scale_after_sum": True,
        "bias_in_output_cast": True,
    },
    supports=why_not_linear,
)
def linear(p):
    codes = p.planes["qdata"].astype(np.float64) - p.planes["zero_point"].reshape(-1, 1)
    sums = widen(p.x, p.x_dtype).astype(np.float64) @ codes.T
    y = (sums * p.planes["scale"].reshape(1, -1)).astype(np.float32)
    if p.bias is not None:
        y = y + widen(p.bias, p.bias_dtype)
    p.y[...] = narrow(y, p.y_dtype)


if __name__ == "__main__":
    provider.serve()
