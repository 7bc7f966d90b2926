# SPDX-License-Identifier: BSD-3-Clause
"""The tensors of a safetensors file as torch's."""

TORCH_NAMES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I8": "int8", "U8": "uint8", "I16": "int16",
    "I32": "int32", "U32": "uint32", "I64": "int64", "BOOL": "bool", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
}  # fmt: skip


def as_tensors(entries):
    import torch

    tensors = {}
    for name, (dtype, shape, data) in entries.items():
        flat = torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
        tensors[name] = flat.view(getattr(torch, TORCH_NAMES[dtype])).reshape(shape)
    return tensors
