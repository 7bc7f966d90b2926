#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""onnxruntime's MatMulNBits as a provider: int8_row and intx with 4 bits. Weights are packed by the library; x stays in float32
(accuracy_level 1). Needs onnx and onnxruntime.

qcts run --plan latency --provider kernels/plugins/python/onnxruntime_peer.py
"""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from peers import Provider, nibbles, register, scales, why_not_int4, why_not_weight_only

provider = Provider(
    "onnxruntime",
    version=onnxruntime.__version__,
    url="https://github.com/microsoft/onnxruntime/issues",
    choices="representable_inputs",
)


def layer(p, bits, block, packed, scale, zero_point):
    blocks = p.k // block
    tensors = {
        "b": packed.reshape(p.n, blocks, block * bits // 8),
        "s": np.ascontiguousarray(scale, dtype=np.float32).reshape(-1),
        "z": zero_point.reshape(-1),
    }
    node = helper.make_node(
        "MatMulNBits", ["x", *tensors], ["y"], domain="com.microsoft", K=p.k, N=p.n, bits=bits, block_size=block, accuracy_level=1
    )
    graph = helper.make_graph(
        [node],
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [p.m, p.k])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [p.m, p.n])],
        [numpy_helper.from_array(array, name) for name, array in tensors.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = p.threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, {"x": x})[0]


def int8_layer(p):
    """Repeats a row's scale and zero point for each block, because the library has no scales for whole rows."""
    block = next(size for size in (256, 128, 64, 32, 16) if p.k % size == 0)
    blocks = p.k // block
    codes = (p.planes["qdata"].astype(np.int16) + 128).astype(np.uint8)
    zeros = (p.planes["zero_point"].reshape(-1, 1).astype(np.int16) + 128).astype(np.uint8)
    return layer(p, 8, block, codes, np.repeat(scales(p).reshape(-1, 1), blocks, 1), np.repeat(zeros, blocks, 1))


def int4_layer(p):
    block = p.k // p.planes["scale"].shape[1]
    zeros = p.planes["zero_point"].astype(np.int16) + 8
    if zeros.shape[1] % 2:
        zeros = np.pad(zeros, ((0, 0), (0, 1)))
    return layer(p, 4, block, nibbles(p.planes["qdata"].astype(np.int16) + 8), scales(p), nibbles(zeros))


def why_not_int8(p):
    return why_not_weight_only(p) or (None if p.k % 16 == 0 else "k must be a multiple of 16, the smallest block")


register(provider, "int8_row", "matmulnbits", int8_layer, why_not_int8, "MatMulNBits of 8 bits, the row's scale repeated for each block")
register(provider, "intx", "matmulnbits", int4_layer, why_not_int4, "MatMulNBits of 4 bits, float32 arithmetic")

if __name__ == "__main__":
    provider.serve()
