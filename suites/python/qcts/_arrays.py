# SPDX-License-Identifier: BSD-3-Clause
"""Converts bytes to arrays, given the name of a dtype and a shape, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

# torch's names for the types that NumPy has too.
_SAME = {
    "float32", "float64", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "complex64", "complex128",
}  # fmt: skip


def to_numpy(elements: tuple[np.ndarray, str, list[int]]) -> np.ndarray:
    """bfloat16 becomes float32, which holds its values exactly; bool stays bool. Other types that NumPy lacks stay bytes (uint8)."""
    data, dtype, shape = elements
    if dtype in _SAME:
        return data.view(dtype).reshape(shape)
    if dtype == "bool":
        return data.view(np.bool_).reshape(shape)
    if dtype == "bfloat16":
        return (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(shape)
    return data.reshape(shape) if data.size == int(np.prod(shape, dtype=np.int64)) else data


def to_torch(elements: tuple[np.ndarray, str, list[int]]) -> torch.Tensor:
    """Returns a tensor with the named dtype. It shares the array's memory if that is writable; if not, it has a copy."""
    import torch

    data, dtype, shape = elements
    wanted = getattr(torch, dtype, None)
    if not isinstance(wanted, torch.dtype):
        raise TypeError(f"torch {torch.__version__} has no dtype {dtype}")
    owned = data if data.flags.writeable else data.copy()
    return torch.from_numpy(owned).view(wanted).reshape(shape)


def from_any(weight: Any) -> tuple[np.ndarray, str, int, int]:
    """Returns the bytes, dtype name, rows and columns of a float matrix: a NumPy array or a torch tensor."""
    if hasattr(weight, "detach"):
        import torch

        matrix = weight.detach().cpu().contiguous()
        dtype = str(matrix.dtype).removeprefix("torch.")
        data = matrix.view(torch.uint8).numpy().reshape(-1)
        shape = tuple(matrix.shape)
    else:
        array = np.ascontiguousarray(weight)
        dtype, shape = array.dtype.name, array.shape
        data = array.reshape(-1).view(np.uint8)
    if dtype not in ("float32", "float16", "bfloat16") or len(shape) != 2:
        raise TypeError(f"a weight is a matrix of float32, float16 or bfloat16, not {dtype} of shape {tuple(shape)}")
    return data, dtype, shape[0], shape[1]
