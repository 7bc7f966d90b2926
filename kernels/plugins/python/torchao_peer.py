#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""torchao as a provider: builds its tensor classes from the checkpoint's planes and calls torch.nn.functional.linear, eagerly here and
compiled in torchao_compiled_peer.py. Needs torch and torchao.

Besides the paired times, each case has `benchmark_fn_us`: the mean of torch.utils.benchmark's blocked_autorange on one weight after five
warm-ups, which is how the documentation of transformers times quantized models. It is warm and unpaired.

qcts run --plan latency --provider kernels/plugins/python/torchao_peer.py
"""

import torch
import torchao
from peers import Provider
from torch.utils.benchmark import Timer
from torchao.quantization import Int8WeightOnlyConfig, PerRow, quantize_
from torchao.quantization.quantize_.workflows.int8.int8_tensor import Int8Tensor, QuantizeTensorToInt8Kwargs
from torchao.quantization.quantize_.workflows.intx.intx_unpacked_to_int8_tensor import (
    IntxUnpackedToInt8Tensor,
    IntxUnpackedToInt8TensorActivationQuantization,
)

torch.set_grad_enabled(False)
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
# x's dtype between the library's operations; recorded_stages() in reference/schemes says where each class rounds.
# oneDNN multiplies bfloat16 with VDPBF16PS, which flushes, if the processor has it.
SUMS = {"product_cast": "float32", "accumulator": "float32", "output_cast": "like_x", "flush_subnormals": True}
INT8 = SUMS | {"scale_cast": "like_x", "partial_cast": "like_x", "scale_after_sum": True}
INT8_DYNAMIC = {"accumulator": "int32", "partial_cast": "like_x", "scale_after_sum": True}
INTX = SUMS | {"weight_cast": "like_x", "x_cast": "like_x"}


def tensor(array):
    """Copies to torch's own memory, which is aligned to 64 bytes (numpy's to 16). 16-bit data that numpy has no type for is bfloat16."""
    made = torch.tensor(array)
    return made.view(torch.bfloat16) if made.dtype == torch.uint16 else made


def int8_weight(p):
    codes, scale, zero_point = (tensor(p.planes[name]) for name in ("qdata", "scale", "zero_point"))
    dynamic = QuantizeTensorToInt8Kwargs(granularity=PerRow()) if p.activation == "dyn_row_sym" else None
    return Int8Tensor(codes, scale, [1, p.k], DTYPES[p.w_dtype], zero_point, act_quant_kwargs=dynamic)


def intx_weight(p):
    codes, scale, zero_point = (tensor(p.planes[name]) for name in ("qdata", "scale", "zero_point"))
    dynamic = IntxUnpackedToInt8TensorActivationQuantization.INT8_ASYM_PER_TOKEN if p.activation == "dyn_token_asym" else None
    block = (1, p.k // scale.shape[1])
    return IntxUnpackedToInt8Tensor(codes, scale, zero_point, getattr(torch, f"int{p.params.bits}"), block, DTYPES[p.w_dtype], dynamic)


def why_not(p):
    if p.x_dtype != p.y_dtype or p.x_dtype != p.w_dtype or p.x_dtype not in DTYPES:
        return "torchao multiplies in one dtype: float32, float16 or bfloat16"
    if p.bias_dtype not in (None, p.x_dtype):
        return "the bias must have the dtype of x"
    return None


def put(p, y):
    p.y[...] = y.view(torch.uint16).numpy() if y.dtype == torch.bfloat16 else y.numpy()


class Layers:
    """`copies` linears with separate weights and the problem's x; one function computes them all."""

    def __init__(self, make, p, copies, linear):
        torch.set_num_threads(p.threads)
        self._problem = p
        self._weights = [make(p) for _ in range(copies)]
        self._x = tensor(p.x)
        self._bias = None if p.bias is None else tensor(p.bias)
        self._linear = linear
        self._y = None
        self.measures = {}

    def call(self, copy):
        self._y = self._linear(self._x, self._weights[copy], self._bias)

    def answer(self):
        y = self._y
        if len(self._weights) > 1:
            for _ in range(5):
                self.call(0)
            timer = Timer("layers.call(0)", globals={"layers": self}, num_threads=self._problem.threads)
            self.measures["benchmark_fn_us"] = timer.blocked_autorange(min_run_time=0.2).mean * 1e6
        put(self._problem, y)


def add_linear(provider, variant, scheme, make, numerics, supports, linear_for):
    @provider.kernel(
        "linear",
        scheme,
        variant,
        description="torch.nn.functional.linear on torchao's tensor, " + variant,
        numerics=numerics,
        supports=supports,
        timed=lambda p, copies: Layers(make, p, copies, linear_for(p)),
    )
    def linear(p):
        layers = Layers(make, p, 1, linear_for(p))
        layers.call(0)
        layers.answer()


def add_quantize(provider):
    @provider.kernel(
        "quantize",
        "int8_row",
        "eager",
        description="quantize_ with Int8WeightOnlyConfig",
        claims=["bit_exact", "deterministic"],
        supports=lambda p: None if p.w_dtype in DTYPES else "weights must be float32, float16 or bfloat16",
    )
    def quantize(p):
        torch.set_num_threads(p.threads)
        layer = torch.nn.Linear(p.k, p.n, bias=False, dtype=DTYPES[p.w_dtype], device="meta")
        layer.weight = torch.nn.Parameter(tensor(p.x), requires_grad=False)
        quantize_(layer, Int8WeightOnlyConfig(version=2))
        for name, array in p.out_planes.items():
            made = getattr(layer.weight, name)
            made = torch.zeros(array.shape, dtype=torch.int8) if made is None else made
            array[...] = (made.view(torch.uint16) if made.dtype == torch.bfloat16 else made).numpy().reshape(array.shape)


def serve(provider, variant, linear_for, supports=why_not):
    """linear_for(problem) returns the function that multiplies."""
    for scheme, make, numerics in (
        ("int8_row", int8_weight, INT8),
        ("int8_row:dyn_row_sym", int8_weight, INT8_DYNAMIC),
        ("intx", intx_weight, INTX),
        ("intx:dyn_token_asym", intx_weight, INTX),
    ):
        add_linear(provider, variant, scheme, make, numerics, supports, linear_for)
    provider.serve()


def named(name):
    return Provider(name, version=torchao.__version__, url="https://github.com/pytorch/ao/issues")


if __name__ == "__main__":
    eager = named("torchao")
    add_quantize(eager)
    serve(eager, "eager", lambda p: torch.nn.functional.linear)
