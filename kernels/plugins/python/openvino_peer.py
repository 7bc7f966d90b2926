#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""OpenVINO's compressed MatMul as a provider: int8_row and intx with 4 bits. x and arithmetic are float32, and x is not quantized.
Needs openvino.

qcts run --plan latency --provider kernels/plugins/python/openvino_peer.py
"""

import numpy as np
import openvino
from openvino import opset13 as ops
from peers import Provider, nibbles, register, scales, why_not_int4, why_not_weight_only

provider = Provider("openvino", version=openvino.__version__, url="https://github.com/openvinotoolkit/openvino/issues")
core = openvino.Core()


def compiled(p, weight, *alive):
    """`alive` holds arrays that the constants reference without owning them."""
    x = ops.parameter([p.m, p.k], np.float32)
    model = openvino.Model([ops.matmul(x, weight, False, True)], [x])
    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": str(p.threads),
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    }
    request = core.compile_model(model, "CPU", settings).create_infer_request()

    def infer(value, _alive=alive):
        return request.infer({0: value}, share_inputs=True)[0]

    return infer


def decompressed(codes, zeros, scale):
    """(codes - zeros) * scale in float32, in the form that OpenVINO's CPU plug-in recognizes."""
    shifted = ops.subtract(ops.convert(codes, np.float32), ops.convert(zeros, np.float32))
    return ops.multiply(shifted, ops.constant(np.ascontiguousarray(scale, dtype=np.float32)))


def int8_layer(p):
    codes, zeros = (p.planes[name].astype(np.int16) + 128 for name in ("qdata", "zero_point"))
    codes, zeros = (ops.constant(values.astype(np.uint8).reshape(p.n, -1)) for values in (codes, zeros))
    return compiled(p, decompressed(codes, zeros, scales(p).reshape(-1, 1)))


def int4_layer(p):
    blocks = p.planes["scale"].shape[1]
    shapes = {"qdata": (p.n, blocks, p.k // blocks), "zero_point": (p.n, blocks, 1)}
    pairs = {name: nibbles((p.planes[name].astype(np.int16) + 8).reshape(1, -1)) for name in shapes}
    constants = [
        ops.constant(openvino.Tensor(pairs[name], openvino.Shape(shape), openvino.Type.u4)) for name, shape in shapes.items()
    ]
    weight = decompressed(*constants, scales(p).reshape(p.n, blocks, 1))
    return compiled(p, ops.reshape(weight, np.array([p.n, p.k], dtype=np.int64), False), pairs)


def why_not_pairs(p):
    refusal = why_not_int4(p)
    if refusal is None and p.n * (p.k // p.group) % 2:
        return "an odd number of groups does not fill bytes with zero points"
    return refusal


register(provider, "int8_row", "compressed", int8_layer, why_not_weight_only, "MatMul on u8 constants, decompressed by the plug-in")
register(provider, "intx", "compressed", int4_layer, why_not_pairs, "MatMul on u4 constants, decompressed by the plug-in")

if __name__ == "__main__":
    provider.serve()
