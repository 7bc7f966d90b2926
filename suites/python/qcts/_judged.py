# SPDX-License-Identifier: BSD-3-Clause
"""The process that runs a judged callable: a provider with one kernel that speaks line-JSON (qcts_provider.py)."""

from __future__ import annotations

import importlib
import json
import pickle
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ._watch import Watch

_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def load(how: dict[str, str]) -> Any:
    if "pickled" in how:
        return pickle.loads(Path(how["pickled"]).read_bytes())
    found: Any = importlib.import_module(how["module"])
    for name in how["name"].split("."):
        found = getattr(found, name)
    return found


class Torch:
    """Passes tensors to the callable and takes its answers."""

    def __init__(self, device: str) -> None:
        import torch

        self.torch = torch
        self.device = torch.device(device)

    def give(self, array: np.ndarray, dtype: str) -> Any:
        if array.size == 0:
            return self.torch.empty(array.shape, dtype=getattr(self.torch, dtype), device=self.device)
        bits = np.ascontiguousarray(array).view(_BITS[array.dtype.itemsize]).view(np.uint8)
        return self.torch.from_numpy(bits.copy()).view(getattr(self.torch, dtype)).reshape(array.shape).to(self.device)

    def take(self, answer: Any, place: np.ndarray, dtype: str, what: str) -> None:
        wanted = getattr(self.torch, dtype)
        if not isinstance(answer, self.torch.Tensor) or answer.dtype != wanted or tuple(answer.shape) != place.shape:
            got = f"{answer.dtype} of shape {tuple(answer.shape)}" if isinstance(answer, self.torch.Tensor) else type(answer).__name__
            raise TypeError(f"{what} is {got}, and must be {wanted} of shape {place.shape}")
        if place.size == 0:
            return
        flat = answer.detach().cpu().contiguous().reshape(-1).view(self.torch.uint8).numpy()
        place[...] = flat.view(place.dtype).reshape(place.shape)


class Numpy:
    """The same with NumPy arrays, in which bfloat16 and float8 are raw bits."""

    def give(self, array: np.ndarray, dtype: str) -> Any:
        return np.ascontiguousarray(array).copy()

    def take(self, answer: Any, place: np.ndarray, dtype: str, what: str) -> None:
        answer = np.asarray(answer)
        if answer.dtype != place.dtype or answer.shape != place.shape:
            raise TypeError(f"{what} is {answer.dtype} of shape {answer.shape}, and must be {place.dtype} of shape {place.shape}")
        place[...] = answer


def dtypes_of(request_planes: dict[str, Any]) -> dict[str, str]:
    return {name: tensor["dtype"] for name, tensor in request_planes.items()}


def outputs_of(problem: Any, op: str) -> dict[str, tuple[np.ndarray, str]]:
    """Where each output goes, and its dtype. An output that is not a plane is named y."""
    if op in ("linear", "dequantize"):
        return {"y": (problem.y, problem.y_dtype if op == "linear" else problem.w_dtype)}
    return {name: (place, problem.plane_dtypes[name]) for name, place in problem.out_planes.items()}


def main() -> None:
    spec = json.loads(Path(sys.argv[0]).with_suffix(".json").read_text())
    sys.path[:0] = [*spec["path"], spec["adapter"]]
    from qcts_provider import Provider

    arrays = Torch(spec["device"]) if spec["arrays"] == "torch" else Numpy()
    watch = Watch(arrays.give)
    function = load(spec["function"])

    class Judged(Provider):
        """Keeps the dtypes of planes, which NumPy arrays do not have."""

        def _problem(self, request: dict[str, Any]) -> Any:
            problem = super()._problem(request)
            fields = request["problem"]
            problem.plane_dtypes = dtypes_of(fields["planes"]) | dtypes_of(fields["out_planes"])
            return problem

    provider = Judged(spec["provider"], version=spec["version"], choices=spec["choices"])

    def supports(problem: Any) -> str | None:
        for name, allowed in spec["only"].items():
            if getattr(problem, name) not in allowed:
                return f"{name} {getattr(problem, name)}"
        return None

    @provider.kernel(spec["op"], spec["scheme"], "python", claims=spec["claims"], numerics=spec["numerics"] or None, supports=supports)
    def kernel(problem: Any) -> None:
        planes = {name: arrays.give(array, problem.plane_dtypes[name]) for name, array in problem.planes.items()}
        hidden = ("x", "y", "bias", "planes", "out_planes")
        shown = SimpleNamespace(**{name: value for name, value in vars(problem).items() if name not in hidden})
        outputs = outputs_of(problem, spec["op"])
        if spec["op"] == "linear":
            bias = None if problem.bias is None else arrays.give(problem.bias, problem.bias_dtype)
            arguments: tuple[Any, ...] = (arrays.give(problem.x, problem.x_dtype), planes, bias, shown)
        elif spec["op"] == "dequantize":
            arguments = (planes, shown)
        else:
            arguments = (arrays.give(problem.x, problem.w_dtype if spec["op"] == "quantize" else problem.x_dtype), shown)
        answer = watch.call(function, arguments, outputs)
        for name, (place, dtype) in outputs.items():
            what = name if name != "y" or spec["op"] == "linear" else "the weight"
            arrays.take(answer if name == "y" else answer[name], place, dtype, what)
        watch.check(outputs)

    provider.serve()
