# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the peers in this folder: problems as float arrays, bytes as codes, and timed calls of a library."""

import os
import sys
from pathlib import Path

# Spinning threads steal time from each other if there are few cores. Must be set before a library starts its threads.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
sys.path.append(str(Path(__file__).resolve().parents[2] / "abi"))  # in the repository
sys.path.append(str(Path(__file__).resolve().parents[1] / "python"))  # where qcts is installed

import numpy as np  # noqa: E402
from qcts_provider import Provider, Refused, narrow, widen  # noqa: E402, F401

FLOATS = ("float32", "bfloat16")
INT4_GROUPS = (32, 64, 128, 256)
# The float weight, its products and their sum round to float32; the library answers in float32.
FLOAT32 = {"weight_cast": "float32", "product_cast": "float32", "accumulator": "float32", "output_cast": "float32"}


def why_not_weight_only(p):
    """Returns why a float32 library cannot compute this linear, or None if it can."""
    if p.activation != "weight_only":
        return "float activations only"
    if p.x_dtype not in FLOATS or p.y_dtype not in FLOATS or (p.bias_dtype or "float32") not in FLOATS:
        return "x, y and bias must be float32 or bfloat16"
    return None


def why_not_int4(p):
    known = p.params.bits == 4 and p.group in INT4_GROUPS and p.params.scale_dtype == "like_w"
    return why_not_weight_only(p) or (None if known else "4 bits in groups of 32 to 256 only")


def float_x(p):
    return np.ascontiguousarray(widen(p.x, p.x_dtype))


def scales(p):
    return widen(p.planes["scale"], p.w_dtype if p.planes["scale"].dtype == np.uint16 else "float32")


def nibbles(codes):
    """Packs codes 0..15 two to a byte, the first in the low half."""
    pairs = codes.astype(np.uint8)
    return np.ascontiguousarray(pairs[..., 0::2] | (pairs[..., 1::2] << 4))


def put(p, y):
    """Adds the bias to float32 y and writes it to the caller's y."""
    if p.bias is not None:
        y = y + widen(p.bias, p.bias_dtype)
    p.y[...] = narrow(np.asarray(y, dtype=np.float32), p.y_dtype)


class TimedLibrary:
    """`copies` layers of a library that run on float32 x. make(problem) returns one: a function from x to y. Only the library's call is
    timed; x is converted before it, y after it."""

    def __init__(self, make, problem, copies):
        self._problem = problem
        self._layers = [make(problem) for _ in range(copies)]
        self._x = float_x(problem)
        self._y = None

    def call(self, copy):
        self._y = self._layers[copy](self._x)

    def answer(self):
        put(self._problem, self._y)


def register(provider, scheme, variant, make, why_not, description):
    """Registers a linear of `provider`; make(problem) returns its function."""

    @provider.kernel(
        "linear",
        scheme,
        variant,
        description=description,
        claims=["deterministic"],
        numerics=FLOAT32,
        supports=why_not,
        timed=lambda p, copies: TimedLibrary(make, p, copies),
    )
    def linear(p):
        put(p, make(p)(float_x(p)))
