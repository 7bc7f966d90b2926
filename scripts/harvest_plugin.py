# SPDX-License-Identifier: BSD-3-Clause
"""A pytest plug-in for scripts/harvest_torchao: keeps the quantized tensors that torchao's tests create.

The plug-in remembers every tensor of a torchao wrapper subclass when its class creates it, and saves it when its test ends, with
the attributes that it then has. From the tensors of a file's tests, it saves the first of each kind: a kind is a
class with the shapes and dtypes of its parts and the values of its attributes. $HARVEST_OUT receives N.pt, a state dict with
the tensor under "0.weight", N.pt.right.safetensors with what the library's own dequantize() returns, and N.json.
"""

import json
import os
import uuid
from pathlib import Path

import torch
import torchao.utils
from safetensors.torch import save_file
from torch._subclasses.fake_tensor import FakeTensor

OUT = Path(os.environ["HARVEST_OUT"])
MAX_ELEMENTS = 1 << 22  # of one tensor: the tests make a few larger ones, of kinds that smaller ones have too
made, known = [], set()


def remember(original):
    def make(cls, *arguments, **named):
        tensor = original(cls, *arguments, **named)
        if cls.__module__.startswith("torchao.") and tensor.numel() <= MAX_ELEMENTS:
            made.append(tensor)
        return tensor

    return make


torch.Tensor._make_wrapper_subclass = staticmethod(remember(torch.Tensor._make_wrapper_subclass))
# The tests ask these functions for the device to run on.
torchao.utils.get_current_accelerator_device = lambda: torch.device("cpu")
torchao.utils.get_available_devices = lambda: ["cpu"]


def kind_of(value):
    """Returns a text that is the same for all tensors of a kind, without the elements."""
    if isinstance(value, torch.Tensor):
        return f"{type(value).__name__} {value.dtype} {list(value.shape)} {list(value.stride())} {kind_of(vars(value))}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {kind_of(item)}" for key, item in sorted(value.items(), key=str)) + "}"
    return repr(value)


def parts_of(value):
    """Yields the plain tensors that a tensor consists of."""
    held = [item for item in vars(value).values() if isinstance(item, torch.Tensor)] if isinstance(value, torch.Tensor) else []
    for item in held:
        yield from parts_of(item)
    if isinstance(value, torch.Tensor) and not held:
        yield value


def is_real(tensor):
    parts = list(parts_of(tensor))
    fake = any(isinstance(part, FakeTensor) or part.is_meta or type(part) is type(tensor) for part in parts)
    return bool(parts) and not fake


def right_of(tensor):
    """Returns (what the library's own function turns the tensor into or None, the name of the function or the error)."""
    for name in ("dequantize", "get_original_weight"):
        function = getattr(type(tensor), name, None)
        if function is None or function is getattr(torch.Tensor, name, None):
            continue
        try:
            return function(tensor), f"{name}()"
        except TypeError as error:  # NF4Tensor.dequantize(value, nf4) is a static method
            wrong = f"{name}(): {error}"
        except Exception as error:
            return None, f"{name}(): {type(error).__name__}: {error}"
    return None, locals().get("wrong", "the class has no dequantize()")


def save(tensor, test):
    stem = OUT / uuid.uuid4().hex
    info = {"test": test, "class": type(tensor).__name__, "kind": kind_of(tensor)}
    info["parameter"] = bool(getattr(tensor, "_is_param", False))
    try:
        torch.save({"0.weight": tensor}, f"{stem}.pt")
    except Exception as error:
        info["not_saved"] = f"{type(error).__name__}: {error}"
    right, info["right"] = right_of(tensor)
    if isinstance(right, torch.Tensor) and type(right) is torch.Tensor:
        save_file({"0.weight": right.detach().contiguous()}, f"{stem}.pt.right.safetensors")
    Path(f"{stem}.json").write_text(json.dumps(info))


def pytest_runtest_teardown(item):
    tensors = list(made)
    made.clear()
    with torch.no_grad():
        for tensor in tensors:
            try:
                kind = kind_of(tensor) if is_real(tensor) else None
            except Exception:  # a tensor that its class did not finish
                continue
            if kind is None or kind in known:
                continue
            known.add(kind)
            save(tensor, item.nodeid)
    made.clear()  # what dequantize() made
