# SPDX-License-Identifier: BSD-3-Clause
"""One value of every kind that torch.save writes: what torch.load(weights_only=True) of torch 2.13 takes, and what it refuses."""

import collections
import datetime
import enum

import numpy as np
import torch

Pair = collections.namedtuple("Pair", "first second")


class Color(enum.Enum):
    RED = 1


class Listed:
    """A class whose state is neither dict nor tuple."""

    def __init__(self):
        self.values = [1, 2]

    def __getstate__(self):
        return [*self.values]

    def __setstate__(self, state):
        self.values = state


def integers():
    edges = {2**63, 2**64, 2**127, 2**128 - 1, 10**100, 2**2039 - 1}
    edges |= {-n for n in edges} | {-(2**2039), 2**63 - 1, -(2**63), 255, 256, 65535, 65536, 2**31, -(2**31) - 1}
    return {f"integer_{'minus_' if n < 0 else ''}{n.bit_length()}_bits_{n % 7}": n for n in sorted(edges)}


KEYS = {
    "none": None, "true": True, "false": False, "real": 1.5, "infinity": float("inf"), "nan": float("nan"),
    "minus_zero": -0.0, "integral_real": 2.0**70, "bytes": b"\xff\0a", "tuple": (1, "a"), "empty_tuple": (),
    "nested_tuple": ((1, 2), (None, b"x", "it's")), "big_integer": 2**70, "big_negative": -(2**70), "size": torch.Size([1, 2]),
    "device": torch.device("cuda", 1), "complex": 1 + 2j, "layout": torch.sparse_csr, "dtype": torch.bfloat16,
    "qscheme": torch.per_tensor_affine, "class": collections.OrderedDict, "surrogate": "\udc80",
}  # fmt: skip

VALUES = {
    **integers(),
    "bit_generator": np.random.PCG64(7).state,
    "mersenne_state": torch.get_rng_state(),
    "bytes": bytes(range(256)), "bytearray": bytearray(b"xyz"), "empty_bytearray": bytearray(),
    "set": {1, (2, 3), "x"}, "empty_set": set(), "complex": 1 - 2j,
    "counter": collections.Counter([(1, 2), (1, 2), "a"]), "ordered": collections.OrderedDict([((0, "a"), 1)]),
    "size": torch.Size([2, 3]), "dtypes": [torch.float8_e4m3fn, torch.int1, torch.uint7, torch.bits4x2],
    "devices": [torch.device("cpu"), torch.device("cuda", 1), torch.device("meta")],
    "layouts": [torch.strided, torch.sparse_coo, torch.sparse_bsc, torch.jagged],
    "qschemes": [torch.per_tensor_affine, torch.per_channel_affine_float_qparams, torch.per_channel_symmetric],
    "reals": [float("nan"), float("-inf"), -0.0, 5e-324], "none": None, "nesting": ([], [[]], ((), ((),)), {}),
    "strings": ["", "\udc80", "größe\n", "x" * 70000],
    "keys_alike": {1: "a", "1": "b", (1,): "c", b"1": "d", None: "e", 2.5: "f"},
}  # fmt: skip

# name -> (value, global that torch's message names)
REFUSED = {
    "frozenset": (frozenset([1]), "frozenset"), "deque": (collections.deque([1]), "collections.deque"),
    "defaultdict": (collections.defaultdict(list, a=1), "collections.defaultdict"), "date": (datetime.date(2020, 1, 1), "datetime.date"),
    "range": (range(4), "range"), "slice": (slice(1, 2), "slice"), "type": (int, "int"), "enum": (Color.RED, "Color"),
    "namedtuple": (Pair(1, [2]), "Pair"), "state_is_a_list": (Listed(), "Listed"), "numpy_scalar": (np.float32(1), "scalar"),
    "numpy_array": (np.arange(3), "_reconstruct"), "numpy_dtype": (np.dtype("f4"), "numpy.dtype"),
    "structured_array": (np.zeros(2, [("a", "f4")]), "_reconstruct"), "generator": (np.random.default_rng(1), "__generator_ctor"),
    "method": (Color.mro, "getattr"), "enum_key": ({Color.RED: 1}, "Color"), "namedtuple_key": ({Pair(1, 2): 1}, "Pair"),
    "frozenset_key": ({frozenset([1, (2,)]): 1}, "frozenset"),
}  # fmt: skip
